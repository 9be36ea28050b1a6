/*
 * Gradients of values that lie on both sides of an activation's kink.
 */
#ifndef ND_COMPARE_KINK_H
#define ND_COMPARE_KINK_H

#include "compare/compare.h"

/* Once all is measured, before it is judged: sets slot_pair.kink where a local error of a
 * gradient is proved to be no fault. */
enum nd_status nd_kinks_find(struct comparison *comparison, struct nd_error *err);

/* Few wrong values in an otherwise right tensor, by the counts of the detail pass. */
bool nd_slot_looks_localised(const struct slot_pair *slot);

#endif
