/*
 * Top-1 agreement.
 */
#ifndef ND_COMPARE_TOP1_H
#define ND_COMPARE_TOP1_H

#include "compare/slot_pair.h"

/* Whether a measured pair has rows of real numbers to look at; reads no values. */
bool nd_top1_applies(const struct slot_pair *slot);
/* No position differs: all rows agree. */
void nd_top1_equal(const struct slot_pair *slot, struct nd_outcome *ret);
void nd_top1_count(unsigned jobs, const struct pair_views *views, struct nd_outcome *ret);

#endif
