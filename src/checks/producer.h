/*
 * Which earlier layer made this input?  A layer's input is mostly an earlier layer's
 * output; both stand in the dump, and the comparison measured both: two tensors of as many
 * elements with the same extremes, mean and norm are taken to be one, whatever their
 * shapes.
 */
#ifndef ND_CHECKS_PRODUCER_H
#define ND_CHECKS_PRODUCER_H

#include "normdiff/result.h"

struct producer {
    uint64_t n;
    double min, max, mean, norm; /* of the reference */
    size_t layer, slot;
};

struct producers {
    struct producer *items; /* sorted by n, min, max, layer */
    size_t count;
};

/* Lists every output; false without memory. */
bool nd_producers_make(const struct nd_result *result, struct producers *ret);
void nd_producers_done(struct producers *producers);

/* The latest layer before `layer`, at or after `first`, that produced this slot; NULL:
 * none. */
const struct producer *nd_producer_of(const struct producers *producers,
                                      const struct nd_slot *slot, size_t first,
                                      size_t layer);

#endif
