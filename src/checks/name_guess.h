/*
 * Dumps that record no types (.npz and .pt of hooks) have names: the last word of one says
 * which formulas to try.  It proves nothing; the caller believes a formula that reproduces
 * a side.
 */
#ifndef ND_CHECKS_NAME_GUESS_H
#define ND_CHECKS_NAME_GUESS_H

#include "ops/op.h"

enum { NAME_GUESSES = 3 };

/* Operators that a layer of this name may be, most likely first; how many. */
size_t nd_name_guess(const char *name, const struct op *ret_ops[NAME_GUESSES]);

#endif
