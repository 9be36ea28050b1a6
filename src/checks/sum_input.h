/*
 * Inputs that no layer has as its output.  A residual connection adds what a branch made to
 * what went past it, mostly outside any module: the next norm reads a sum of outputs.
 */
#ifndef ND_CHECKS_SUM_INPUT_H
#define ND_CHECKS_SUM_INPUT_H

#include "checks/facts.h"
#include "checks/stand_in.h"

/*
 * Looks for earlier outputs that add up to the input of layer `index`, a norm over the last
 * axis: followed from norm to norm, since each reads what the one before it read and what
 * was added meanwhile.  The pair that is returned has that sum as input.0; a side follows
 * from it to rounding.  False: none found, nothing to free.
 */
bool nd_sum_input_find(const struct diagnosis_input *input, const struct layer_facts *facts,
                       size_t index, struct stand_in *ret);

#endif
