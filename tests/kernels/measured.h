/*
 * Measuring two arrays, for tests.
 */
#ifndef TESTS_KERNELS_MEASURED_H
#define TESTS_KERNELS_MEASURED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/moments.h"

struct sides {
    enum nd_dtype dtype[2];
    const void *bytes[2];
    uint64_t n;
};

static inline struct tensor_view sides_view(const struct sides *sides, int side)
{
    const struct nd_shape shape = {.rank = 1, .dim = {sides->n}};
    const enum nd_dtype dtype = sides->dtype[side];
    struct tensor_view view;

    nd_view_contiguous(&view, sides->bytes[side], sides->n * nd_dtype_info(dtype)->size,
                       dtype, &shape);
    return view;
}

/* One chunk; the best kernels here unless NORMDIFF_ISA says otherwise. */
static inline struct nd_moments sides_measure(const struct sides *sides,
                                              const struct moments_policy *policy)
{
    const struct tensor_view r = sides_view(sides, 0), c = sides_view(sides, 1);
    const struct kernel_set *const set = nd_kernel_set_for(nd_isa_best());
    const struct moments_pivot pivot = nd_moments_pivot(set, &r, &c, r.dtype, c.dtype);
    struct nd_moments moments;

    nd_moments_measure(set, &r, &c, r.dtype, c.dtype, 0, sides->n, &pivot, policy, &moments);
    return moments;
}

static inline struct nd_moments measured(enum nd_dtype dtype, const void *r, const void *c,
                                         uint64_t n)
{
    const struct moments_policy policy = {.scale = 1.0};
    const struct sides sides = {
        {dtype, dtype},
        {r,     c    },
        n
    };

    return sides_measure(&sides, &policy);
}

static inline void assert_double(double found, double expected)
{
    if (!(found == expected))
        fail_msg("found %.17g (%a), expected %.17g (%a)", found, found, expected, expected);
}

/* Within `parts` of 2^-52 of the expected value. */
static inline void assert_near(double found, double expected, double parts)
{
    const double size = expected < 0.0 ? -expected : expected;
    const double gap = found < expected ? expected - found : found - expected;

    if (!(gap <= parts * 0x1p-52 * size))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

#endif
