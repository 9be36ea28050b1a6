/*
 * Inputs that were not dumped: mostly they are earlier outputs.  An earlier output stands
 * in for an input when the reference's own output follows from it down to rounding.
 */
#ifndef ND_CHECKS_STAND_IN_H
#define ND_CHECKS_STAND_IN_H

#include "checks/check.h"
#include "ops/op.h"

/* A layer pair with earlier outputs as its inputs; the pair borrows from this. */
struct stand_in {
    size_t from[OP_MAX_INPUTS]; /* layers whose output.0 it is */
    unsigned count;             /* 0: none */
    struct layer_pair_view pair;
    struct layer_view side[2];
    struct slot_view *slots[2];
    void *own[2]; /* values that were made for it; NULL: none */
};

/* Searches the layers before `index` in its run; false: none, nothing to free. */
bool nd_stand_in_find(const struct diagnosis_input *input, size_t index,
                      const struct op *op, double roundoff, struct stand_in *ret);

/* A copy of the pair with the outputs of `count` layers already found as its inputs. */
bool nd_stand_in_make(const struct diagnosis_input *input, size_t index, const size_t *from,
                      unsigned count, struct stand_in *ret);
/* One side follows from these inputs down to rounding: the reference, or the candidate
 * where the reference is the faulty one. */
bool nd_stand_in_proved(const struct stand_in *stand_in, const struct op *op,
                        double roundoff, size_t index);
void nd_stand_in_done(struct stand_in *stand_in);

#endif
