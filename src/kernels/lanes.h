/*
 * The lanes of a block: where the kernels add, and what is the same for all of them.
 */
#ifndef ND_KERNELS_LANES_H
#define ND_KERNELS_LANES_H

#include <math.h>
#include <stddef.h>

#include "kernels/moments.h"
#include "kernels/pair.h"

enum {
    LANES_STEPS = MOMENTS_BLOCK / PAIR_STEP,
    LANES_LINE = 64,   /* of a cache */
    LANES_AHEAD = 4096 /* bytes that are prefetched before they are needed */
};

_Static_assert(PAIR_STEP % MOMENTS_LANES == 0 && MOMENTS_BLOCK % PAIR_STEP == 0 &&
                   MOMENTS_CHUNK % MOMENTS_BLOCK == 0 && LANES_STEPS <= 32,
               "steps fill blocks, blocks fill chunks, and a block's steps fit a word");

/* The sums of struct nd_moments, in its order. */
enum lane_sum { LANE_ABS, LANE_EE, LANE_R, LANE_C, LANE_RR, LANE_CC, LANE_RC, LANE_SUMS };
/* Those about the pivot. */
enum pivot_sum { PIVOT_R, PIVOT_C, PIVOT_RR, PIVOT_CC, PIVOT_RC, PIVOT_SUMS };

/* The accumulators of one block: element i of the block belongs to lane i % 16. */
struct lanes {
    double sum[LANE_SUMS][MOMENTS_LANES];
};

/* Least and largest values: [reference, candidate].  Their lanes mean nothing. */
struct lanes_extremes {
    double min[2][MOMENTS_LANES], max[2][MOMENTS_LANES];
};
struct lanes_ends { /* of values that floats hold; and how many pairs of them differ */
    float min[2][MOMENTS_LANES], max[2][MOMENTS_LANES];
    int32_t differ[MOMENTS_LANES];
};

typedef void (*kernel_decode)(const unsigned char *bytes, size_t n, double *ret);

/* What one chunk carries from step to step, and within a block. */
struct lanes_run {
    const struct pair *pair;
    kernel_decode decode[2];    /* of the sides, by the kernels at work */
    struct moments_pivot pivot; /* times the scale */
    bool has_largest;           /* moments->max_abs and its index are set */
    struct nd_moments *moments; /* counts and the largest |e| go straight there */

    struct lanes_extremes extremes;
    struct lanes_ends ends;
    /* Elements among which the largest |e| lies, whose place is not yet known; n 0: it is. */
    struct lanes_place {
        const unsigned char *r, *c;
        size_t n;
        uint64_t at;
        const unsigned char *ahead[2]; /* prefetched meanwhile; NULL: what follows */
    } place;
    const unsigned char *ahead[2]; /* the same, of the block at hand */

    /* Of the block at hand. */
    struct lanes *lanes, *spare; /* a step adds from the one into the other, and swaps them */
    struct lanes room[2];
    double pivoted[PIVOT_SUMS][MOMENTS_LANES];
    uint64_t block_n; /* moments->n when the block began */
    uint32_t odd;     /* bit k: step k holds positions that do not count */
    bool odd_before;  /* the block before had such steps */
    bool odd_lately;  /* the step before was one; of the chunk */
};

/* What taking out of a step what does not count has found (sift_tmpl.h). */
struct lanes_sifted {
    unsigned total;  /* positions, those included that fill the last group of lanes */
    unsigned left;   /* in the groups of lanes that were kept */
    unsigned equal;  /* of those that count */
    unsigned masked, masks_differ;
    unsigned wild;   /* neither finite nor masked */
    unsigned mismatches;
    struct side_counts side[2];
};

/* The fixed tree: 16 lanes to 8, 4, 2, 1. */
double nd_lanes_sum(const double *lane);

void nd_lanes_chunk_begin(struct lanes_run *run);
/* Extremes, and the place of the largest |e|. */
void nd_lanes_chunk_end(struct lanes_run *run);

void nd_lanes_block_begin(struct lanes_run *run);
/* Both sides are the same, and the reference's sums and ends are there: makes the others. */
void nd_lanes_mirror(struct lanes_run *run);
/* Folds the lanes in their fixed tree and adds the block to the chunk.  False: the sums
 * about the pivot are still wanted, from the lanes made for them. */
bool nd_lanes_block_end(struct lanes_run *run);
void nd_lanes_pivot_end(struct lanes_run *run);

/* Counts a step of place->n positions; false: none of them is in the sums. */
bool nd_lanes_count_sifted(struct lanes_run *run, const struct lanes_sifted *sifted,
                           const struct lanes_place *place);

/* Positions that were read, one at a time. */
void nd_lanes_add_values(struct lanes_run *run, const struct pair_values *values, uint64_t at);
/* What a kernel set offers, one element at a time: the plain form of the rules. */
void nd_lanes_add_exact(struct lanes_run *run, const unsigned char *r,
                        const unsigned char *c, size_t n, uint64_t at);
void nd_lanes_pivot_exact(struct lanes_run *run, const unsigned char *r,
                          const unsigned char *c, size_t n, uint64_t at);

/* The place of moments->max_abs, which lies in run->place. */
void nd_lanes_find_largest(struct lanes_run *run);

/* Where a side's prefetching begins. */
static inline uintptr_t lanes_ahead(const struct lanes_place *place, unsigned side)
{
    const unsigned char *const bytes = side == 0 ? place->r : place->c;

    return place->ahead[side] != NULL ? (uintptr_t)place->ahead[side]
                                      : (uintptr_t)bytes + LANES_AHEAD;
}

static inline void lanes_extremes_init(struct lanes_extremes *extremes)
{
    for (int side = 0; side < 2; side++)
        for (int l = 0; l < MOMENTS_LANES; l++) {
            extremes->min[side][l] = HUGE_VAL;
            extremes->max[side][l] = -HUGE_VAL;
        }
}

static inline void lanes_ends_init(struct lanes_ends *ends)
{
    for (int side = 0; side < 2; side++)
        for (int l = 0; l < MOMENTS_LANES; l++) {
            ends->min[side][l] = HUGE_VALF;
            ends->max[side][l] = -HUGE_VALF;
        }
    for (int l = 0; l < MOMENTS_LANES; l++)
        ends->differ[l] = 0;
}

static inline void lanes_extremes_add(struct lanes_extremes *into,
                                      const struct lanes_extremes *step)
{
    for (int side = 0; side < 2; side++)
        for (int l = 0; l < MOMENTS_LANES; l++) {
            const double min = step->min[side][l], max = step->max[side][l];
            into->min[side][l] = min < into->min[side][l] ? min : into->min[side][l];
            into->max[side][l] = max > into->max[side][l] ? max : into->max[side][l];
        }
}

static inline double lanes_greatest(const double *lane)
{
    double greatest = lane[0];

    for (int l = 1; l < MOMENTS_LANES; l++)
        greatest = lane[l] > greatest ? lane[l] : greatest;
    return greatest;
}

/* Is any lane beyond the bound?  Compared all at once: a running minimum would take 16
 * steps that wait for each other. */
static inline bool lanes_any_below(const double *lane, double bound)
{
    unsigned any = 0;

    for (int l = 0; l < MOMENTS_LANES; l++)
        any |= lane[l] <= bound ? 1U : 0U;
    return any != 0;
}

static inline bool lanes_any_above(const double *lane, double bound)
{
    unsigned any = 0;

    for (int l = 0; l < MOMENTS_LANES; l++)
        any |= lane[l] > bound ? 1U : 0U;
    return any != 0;
}

/* Only values as low as a mask constant on both sides can be masked. */
static inline bool lanes_may_hold_masks(const struct pair *pair,
                                        const struct lanes_extremes *step)
{
    return lanes_any_below(step->min[0], pair->masks[0].top) &&
           lanes_any_below(step->min[1], pair->masks[1].top);
}

/* Integers up to 2^53 are themselves as doubles. */
static inline bool lanes_are_exact(const struct lanes_extremes *step)
{
    bool exact = true;

    for (int side = 0; side < 2; side++)
        exact = exact && !lanes_any_below(step->min[side], -0x1p53) &&
                !lanes_any_above(step->max[side], 0x1p53 - 1.0);
    return exact;
}

/* The sums that a step wrote become those of the block. */
static inline void lanes_swap(struct lanes_run *run)
{
    struct lanes *const before = run->lanes;

    run->lanes = run->spare;
    run->spare = before;
}

static inline void lanes_mark_odd(struct lanes_run *run, uint64_t at)
{
    run->odd |= 1U << (at % MOMENTS_BLOCK / PAIR_STEP);
}

static inline bool lanes_is_odd(const struct lanes_run *run, uint64_t at)
{
    return (run->odd >> (at % MOMENTS_BLOCK / PAIR_STEP) & 1U) != 0;
}

/* Less than any |e| where there was none. */
static inline double lanes_so_far(const struct lanes_run *run)
{
    return run->has_largest ? run->moments->max_abs : -1.0;
}

/* The largest |e| lies among these. */
static inline void lanes_larger(struct lanes_run *run, const double *largest,
                                const struct lanes_place *place)
{
    run->has_largest = true;
    run->moments->max_abs = lanes_greatest(largest);
    run->place = *place;
}

#endif
