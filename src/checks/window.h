/*
 * A part of a layer pair whose tensors are too large to be looked at whole: the same layer
 * with shorter axes.  Views are narrowed, nothing is copied, and what the layer computes
 * stays what it computes: rows that share statistics, and sums of products, are never cut.
 */
#ifndef ND_CHECKS_WINDOW_H
#define ND_CHECKS_WINDOW_H

#include "ops/op.h"

/* The pair borrows from this. */
struct window {
    bool is; /* false: the tensors are small, or cannot be cut */
    struct layer_pair_view pair;
    struct layer_view side[2];
    struct slot_view *slots[2];
};

/*
 * Cuts a pair until no tensor that belongs to `output` has more than about `limit`
 * elements. worst: a logical multi-index of the output that stays inside; NULL: the middle
 * does. False: nothing was cut and there is nothing to free.
 */
bool nd_window_open(const struct layer_pair_view *pair, const struct op *op,
                    const char *output, const uint64_t *worst, uint64_t limit,
                    struct window *ret_window);
void nd_window_done(struct window *window);

/* A tensor of the pair has more elements than that. */
bool nd_window_is_large(const struct layer_pair_view *pair, uint64_t limit);

#endif
