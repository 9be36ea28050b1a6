/*
 * What the table of operators (src/ops) tells about the slots of a dump: which output is
 * which, and which two statistics stand for the same thing.
 */
#ifndef ND_OPERATORS_H
#define ND_OPERATORS_H

#include "compare/compare.h"

/* Pairs the outputs of two operators by what they are where their orders differ, and marks
 * variances that stand beside reciprocal standard deviations. */
enum nd_status nd_operators_apply(struct comparison *comparison, struct nd_error *err);

/* Names the outputs in a listing: "rstd", "batch_variance". */
enum nd_status nd_operators_list(struct arena *arena, struct nd_listing *listing,
                                 struct nd_error *err);

#endif
