/*
 * Which earlier layer made this input?  A layer's input is mostly an earlier layer's
 * output; both stand in the dump, and the comparison measured both: two tensors of as many
 * elements with the same extremes, mean and norm are taken to be one, whatever their
 * shapes.
 */
#ifndef ND_CHECKS_PRODUCER_H
#define ND_CHECKS_PRODUCER_H

#include "checks/check.h"

struct producer {
    uint64_t n;
    double min, max, mean, norm; /* of the reference */
    size_t run, layer, slot;
};

struct producers {
    struct producer *items; /* sorted by n, min, max, run, layer */
    size_t count;
};

/* Lists every output; false without memory. */
bool nd_producers_make(const struct diagnosis_input *input, struct producers *ret);
void nd_producers_done(struct producers *producers);

/* The latest layer of the run before `layer` that produced this slot; NULL: none. */
const struct producer *nd_producer_of(const struct producers *producers,
                                      const struct nd_slot *slot, size_t run, size_t layer);

#endif
