/*
 * Which narrower number formats do the values of a wide tensor lie on?  A float32 tensor
 * whose values all fit bfloat16 was computed, or stored on its way, in bfloat16.
 */
#ifndef ND_CHECKS_GRID_H
#define ND_CHECKS_GRID_H

#include "tensor/view.h"

/* Coarsest first. */
enum grid {
    GRID_BF16,
    GRID_F16,
    GRID_TF32,
    GRID_HF32,
    GRID_F32,
    GRID_COUNT,
    GRID_NONE = GRID_COUNT
};

const char *nd_grid_name(enum grid grid);           /* "bfloat16" ... */
double nd_grid_roundoff(enum grid grid);            /* 2^-digits */
double nd_grid_round(enum grid grid, double value); /* to nearest, ties to even */

struct grid_shares {
    double share[GRID_COUNT]; /* of the finite, non-zero values, repeats left out */
    uint64_t counted;
    bool whole; /* every element was looked at */
};

/* Looks at up to `budget` elements: all, or evenly spaced blocks. */
void nd_grid_shares(const struct tensor_view *view, uint64_t budget,
                    struct grid_shares *ret);

/* The coarsest grid that holds over 99.9 % of at least 16 values and is narrower than the
 * tensor's own type; GRID_NONE if there is none. */
enum grid nd_grid_of(const struct grid_shares *shares, enum nd_dtype dtype);

#endif
