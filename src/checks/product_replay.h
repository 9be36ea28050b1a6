/*
 * Products judged as every other formula is: recomputed in float64 from a side's own input,
 * on a sample of single outputs, so that any size is affordable.
 */
#ifndef ND_CHECKS_PRODUCT_REPLAY_H
#define ND_CHECKS_PRODUCT_REPLAY_H

#include "checks/replay.h"

/* Fills `ret_replay`; done stays false where the product cannot be recomputed.  worst: a
 * logical multi-index of the output that should be looked at, or NULL.  terms: about how
 * many multiply-adds that may take on each side. */
void nd_product_replay(const struct layer_pair_view *pair, const struct op *op,
                       double roundoff, const uint64_t *worst, uint64_t terms,
                       uint64_t max_bytes, uint64_t seed, struct replay *ret_replay);

/* All outputs of one side in logical order, where that is affordable; masked positions are
 * taken from the other side's. */
bool nd_product_expected(const struct layer_pair_view *pair, double roundoff, int side,
                         uint64_t max_bytes, uint64_t seed, double *ret_expected);

#endif
