/*
 * The hot pass a block at a time, for whoever has the bytes of blocks at hand: in any
 * order.
 *
 * Of a block its sums alone depend on where it stands; so they are handed out, and added up
 * by nd_sums_add() in index order.  Counts, extremes and the largest |e| stay in the pass.
 * Both together are the bits of nd_moments_measure().
 */
#ifndef ND_KERNELS_PASS_H
#define ND_KERNELS_PASS_H

#include "kernels/kernel_set.h"

/* A block of at most MOMENTS_BLOCK positions, in place or piece by piece. */
struct moments_block {
    const struct kernel_set *set;
    struct lanes_run *run;
    uint64_t first;
    size_t count;
    const unsigned char *bytes[2]; /* NULL: the block has to be gathered */
};

void nd_moments_block(const struct moments_block *block);

/* The sums of struct nd_moments, in its order. */
struct moments_sums {
    double abs, ee, r, c, rr, cc, rc;
    double pr, pc, prr, pcc, prc;
};

struct moments_pass {
    const struct kernel_set *set;
    struct pair pair;
    struct lanes_run run;
    struct nd_moments moments;
    bool has_largest; /* of all blocks so far */
    double largest;
    uint64_t largest_at;
};

/* The views say what the bytes are; they outlive the pass. */
void nd_pass_begin(struct moments_pass *pass, const struct kernel_set *set,
                   const struct tensor_view *view, const enum nd_dtype *real,
                   const struct moments_pivot *pivot, const struct moments_policy *policy);
/* The block from flat index `first`, a multiple of MOMENTS_BLOCK; count is less than that
 * for the last one of all alone. */
void nd_pass_add(struct moments_pass *pass, const unsigned char *const *bytes,
                 uint64_t first, size_t count, struct moments_sums *ret);
/* All but the sums: those of *ret are 0. */
void nd_pass_end(struct moments_pass *pass, struct nd_moments *ret);

/* Adds the sums of `count` blocks from flat index `first`, a multiple of MOMENTS_CHUNK, on:
 * blocks to chunks, chunks to the moments. */
void nd_sums_add(const struct moments_sums *blocks, uint64_t count,
                 struct nd_moments *inout);

#endif
