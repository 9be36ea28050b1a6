/*
 * A stage: room for a piece of each side that does not lie in logical order.  A piece is
 * gathered as a whole, so that elements which share a cache line are taken from it
 * together, and measured block by block from there.  What is left of a block waits for the
 * next piece.
 */
#ifndef ND_COMPARE_STAGE_H
#define ND_COMPARE_STAGE_H

#include "kernels/moments.h"

struct tiles;

struct stage {
    uint64_t room;           /* elements of a piece; 0: there is no stage */
    unsigned char *bytes[2]; /* room + MOMENTS_BLOCK elements; NULL: the side is in order */
    struct tiles *tiles;     /* instead, where pieces would be too large for the cache */
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
/* The same, of which each `part` (a multiple of MOMENTS_CHUNK) is folded into one of inout;
 * but what needs no order may all go into the first. */
void nd_stage_measure_parts(struct stage *stage, const struct kernel_set *kernels,
                            const struct tensor_view *view, const enum nd_dtype *real,
                            uint64_t first, uint64_t count, uint64_t part,
                            const struct moments_pivot *pivot,
                            const struct moments_policy *policy, struct nd_moments *inout);
/* Whether more than `part` positions had best be measured at once: rows that lie side by
 * side are so long that each part would read the lines of all of them. */
bool nd_stage_wants_more(const struct tensor_view *view, uint64_t part);

#endif
