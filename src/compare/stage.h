/*
 * A stage: room for a few chunks of each side that does not lie in logical order.  Chunks
 * are gathered there as a whole, so that elements which share a cache line are taken from it
 * together, and then measured like any contiguous ones.
 */
#ifndef ND_COMPARE_STAGE_H
#define ND_COMPARE_STAGE_H

#include "kernels/moments.h"

struct stage {
    unsigned char *bytes[2]; /* NULL: the side lies in order, or memory is short */
    uint64_t chunks;         /* that are gathered at once */
};

/* Never fails: without memory the kernels gather in small steps. */
void nd_stage_init(const struct tensor_view *view, struct stage *ret);
void nd_stage_done(struct stage *stage);

/* Measures positions [first, first + count) of two views, chunk by chunk, and folds them
 * into *inout; first is a multiple of MOMENTS_CHUNK. */
void nd_stage_measure(struct stage *stage, const struct kernel_set *kernels,
                      const struct tensor_view *view, const enum nd_dtype *real,
                      uint64_t first, uint64_t count, const struct moments_pivot *pivot,
                      const struct moments_policy *policy, struct nd_moments *inout);

#endif
