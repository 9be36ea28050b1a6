/*
 * A candidate that computed everything in a narrower type than the reference, as graph
 * compilers do by default: what that alone explains, and which layers are off by more.
 */
#ifndef ND_CHECKS_LOWERED_H
#define ND_CHECKS_LOWERED_H

#include "checks/facts.h"
#include "checks/origin.h"

/* Fills *ret; its dtype[1] stays NULL where the candidate is not lowered as a whole. */
enum nd_status nd_lowered_find(const struct diagnosis_input *input,
                               const struct layer_facts *facts, const struct origin *origin,
                               struct arena *arena, struct nd_lowered *ret,
                               struct nd_error *err);

#endif
