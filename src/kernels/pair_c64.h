/*
 * A pair of complex64, inline: every instruction set makes its own vectors of these loops.
 * The rules are those of pair.c, in its words.
 */
#ifndef ND_KERNELS_PAIR_C64_H
#define ND_KERNELS_PAIR_C64_H

#include "kernels/load.h"
#include "kernels/pair.h"

/* As doubles no square of a float leaves the range, so that no modulus needs care. */
static inline bool pair_is_c64(const struct pair *pair)
{
    return pair->view[0]->dtype == ND_DTYPE_c64 && pair->view[1]->dtype == ND_DTYPE_c64 &&
           pair->scale == 1.0;
}

/* Both infinite, in different directions, is a mismatch. */
static inline enum pair_state pair_c64_state(const struct pair *pair, double x, double y,
                                             bool differs)
{
    const enum pair_state state = nd_pair_state(pair, x, y);

    return state == PAIR_AGREES && !isnan(x) && differs ? PAIR_MISMATCHES : state;
}

static inline void pair_c64_read(const struct pair *pair, const unsigned char *restrict r,
                                 const unsigned char *restrict c, size_t n,
                                 struct pair_values *restrict ret)
{
    uint64_t finite = 1;

    ret->n = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        const double a = load_f32(r, 2 * i), b = load_f32(r, 2 * i + 1);
        const double x = load_f32(c, 2 * i), y = load_f32(c, 2 * i + 1);
        const double d = x - a, e = y - b;
        ret->r[i] = sqrt(a * a + b * b);
        ret->c[i] = sqrt(x * x + y * y);
        ret->abs[i] = sqrt(d * d + e * e);
        ret->product[i] = a * x + b * y;
    }
    for (size_t i = 0; i < n; i++) {
        const bool re = load_raw_f32(r, 2 * i) != load_raw_f32(c, 2 * i);
        const bool im = load_raw_f32(r, 2 * i + 1) != load_raw_f32(c, 2 * i + 1);
        ret->differs[i] = re | im;
    }
    for (size_t i = 0; i < n; i++) /* complex numbers are never masked */
        finite &= ((ret->r[i] <= DBL_MAX) & (ret->c[i] <= DBL_MAX)) ? 1U : 0U;
    memset(ret->state, PAIR_KEPT, n);
    for (size_t i = 0; finite == 0 && i < n; i++)
        ret->state[i] =
            (unsigned char)pair_c64_state(pair, ret->r[i], ret->c[i], ret->differs[i]);
}

#endif
