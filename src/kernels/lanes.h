/*
 * The lanes of a block: where the kernels add, and what is the same for all of them.
 */
#ifndef ND_KERNELS_LANES_H
#define ND_KERNELS_LANES_H

#include <math.h>
#include <stddef.h>

#include "kernels/moments.h"
#include "kernels/pair.h"

_Static_assert(PAIR_STEP % MOMENTS_LANES == 0 && MOMENTS_BLOCK % PAIR_STEP == 0 &&
                   MOMENTS_CHUNK % MOMENTS_BLOCK == 0,
               "steps fill blocks and blocks fill chunks");

/* The sums of struct nd_moments, in its order. */
enum lane_sum {
    LANE_ABS,
    LANE_EE,
    LANE_R,
    LANE_C,
    LANE_RR,
    LANE_CC,
    LANE_RC,
    LANE_PR,
    LANE_PC,
    LANE_PRR,
    LANE_PCC,
    LANE_PRC,
    LANE_DIFFER, /* a count, exact as a double */
    LANE_SUMS
};

struct lanes_extremes {
    double min[2][MOMENTS_LANES], max[2][MOMENTS_LANES];
};

/* The accumulators of one block: element i of the block belongs to lane i % 16. */
struct lanes {
    double sum[LANE_SUMS][MOMENTS_LANES];
    struct lanes_extremes extremes;
};

/* What one chunk carries from step to step. */
struct lanes_run {
    const struct pair *pair;
    struct moments_pivot pivot; /* times the scale */
    struct lanes lanes;         /* of the block at hand */
    bool has_largest;           /* moments->max_abs and its index are set */
    struct nd_moments *moments; /* counts and the largest |e| go straight there */
};

/* What an odd step holds: which positions count (1 or 0, a double so that selecting by it
 * is vector code), and the first of them. */
struct lanes_kept {
    double flag[PAIR_STEP];
    double first[2];
    uint64_t count;
};

void nd_lanes_init(struct lanes *lanes);
/* Folds the lanes in their fixed tree and adds the block to the chunk. */
void nd_lanes_fold(const struct lanes *lanes, struct nd_moments *moments);

/* Counts every position of an odd step and finds those that are in the sums. */
void nd_lanes_sort_out(struct lanes_run *run, const double *r, const double *c, size_t n,
                       struct lanes_kept *ret);

/* A kernel's step, one element at a time: for complex elements and 64-bit integers. */
void nd_lanes_step_exact(struct lanes_run *run, const unsigned char *r,
                         const unsigned char *c, size_t n, uint64_t at);

static inline void lanes_extremes_init(struct lanes_extremes *extremes)
{
    for (int side = 0; side < 2; side++)
        for (int l = 0; l < MOMENTS_LANES; l++) {
            extremes->min[side][l] = HUGE_VAL;
            extremes->max[side][l] = -HUGE_VAL;
        }
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

static inline double lanes_least(const double *lane)
{
    double least = lane[0];

    for (int l = 1; l < MOMENTS_LANES; l++)
        least = lane[l] < least ? lane[l] : least;
    return least;
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

static inline bool lanes_all_zero(const double *lane)
{
    unsigned any = 0;

    for (int l = 0; l < MOMENTS_LANES; l++)
        any |= lane[l] == 0.0 ? 0U : 1U;
    return any == 0;
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

/* Keeps the first place of the largest |e|; kept NULL: all n positions count. */
static inline void lanes_largest(struct lanes_run *run, const double *largest,
                                 const double *r, const double *c, const double *kept,
                                 size_t n, uint64_t at)
{
    struct nd_moments *const moments = run->moments;

    if (run->has_largest && !lanes_any_above(largest, moments->max_abs))
        return;
    const double found = lanes_greatest(largest);
    for (size_t i = 0; i < n; i++) {
        if ((kept == NULL || kept[i] != 0.0) && fabs(c[i] - r[i]) == found) {
            run->has_largest = true;
            moments->max_abs = found;
            moments->max_abs_at = at + i;
            return;
        }
    }
}

#endif
