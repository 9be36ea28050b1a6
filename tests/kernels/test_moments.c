/*
 * What the hot pass counts, adds and leaves out.  Expected values are torch's and numpy's
 * (golden/dtype_rows.py), Python's integers, or exact by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel_set.h"
#include "kernels/measured.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const double infinity = HUGE_VAL;
static const double nan_value = (double)NAN;

static void assert_counts(const struct nd_moments *found, uint64_t n, uint64_t differ,
                          uint64_t mismatches, uint64_t masked, uint64_t masks_differ)
{
    assert_int_equal(found->n, n);
    assert_int_equal(found->differ, differ);
    assert_int_equal(found->mismatches, mismatches);
    assert_int_equal(found->masked, masked);
    assert_int_equal(found->masks_differ, masks_differ);
}

/* --- every dtype ---------------------------------------------------------------------- */

struct dtype_row {
    enum nd_dtype dtype;
    const char *r, *c;
    double sums[8]; /* abs, ee, r, c, rr, cc, rc; max_abs */
    uint64_t at, differ;
};
#include "kernels/golden/dtype_rows.h"

static void every_dtype_is_read_as_torch_reads_it(void **state)
{
    (void)state;
    assert_int_equal(COUNT(dtype_rows), ND_DTYPE_COUNT);
    for (size_t i = 0; i < COUNT(dtype_rows); i++) {
        const struct dtype_row *const row = &dtype_rows[i];
        const struct nd_moments found = measured(row->dtype, row->r, row->c, 7);
        const double sums[8] = {found.sum_abs, found.sum_ee, found.sum_r,  found.sum_c,
                                found.sum_rr,  found.sum_cc, found.sum_rc, found.max_abs};
        assert_counts(&found, 7, row->differ, 0, 0, 0);
        assert_int_equal(found.max_abs_at, row->at);
        for (int k = 0; k < 8; k++) /* exact, but for the roots in complex moduli */
            assert_near(sums[k], row->sums[k], 4.0);
    }
}

/* FNV-1a over the float32 bits of every pattern, NaN as 0x7fc00000. */
static uint64_t patterns_hash(kernel_decode decode, unsigned size)
{
    uint64_t hash = 14695981039346656037U;

    for (uint32_t pattern = 0; pattern < 1U << (8 * size); pattern++) {
        unsigned char bytes[4];
        double value;
        memcpy(bytes, &pattern, sizeof bytes);
        decode(bytes, 1, &value);
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        bits = isnan(single) ? 0x7fc00000U : bits;
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ (bits >> shift & 255U)) * 1099511628211U;
    }
    return hash;
}

/* torch: t = torch.arange(65536).to(torch.int16).view(dtype).float(), hashed likewise. */
static void every_pattern_of_the_small_floats_is_torchs_value(void **state)
{
    static const struct {
        enum nd_dtype dtype;
        uint64_t hash;
    } rows[] = {
        {ND_DTYPE_f16,      0x1f87f165810ea7c5},
        {ND_DTYPE_bf16,     0xcf8e09175d8f5ba5},
        {ND_DTYPE_f8e4m3fn, 0xdad1d9c50f749ca5},
        {ND_DTYPE_f8e5m2,   0x6c1e56b6fb09c905}
    };

    (void)state;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        for (size_t i = 0; set != NULL && i < COUNT(rows); i++)
            assert_true(patterns_hash(set->decode[rows[i].dtype],
                                      nd_dtype_info(rows[i].dtype)->size) == rows[i].hash);
    }
}

/* --- not finite ---------------------------------------------------------------------- */

static void nonfinite_values_agree_or_are_counted(void **state)
{
    const float r[] = {NAN, NAN, 1.0F, HUGE_VALF, HUGE_VALF, -HUGE_VALF, 2.0F, NAN};
    const float c[] = {NAN, 1.0F, NAN, HUGE_VALF, -HUGE_VALF, 3.0F, 2.5F, HUGE_VALF};
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, 8);

    (void)state;
    assert_counts(&found, 1, 6, 5, 0, 0);
    assert_int_equal(found.side[0].nan, 3);
    assert_int_equal(found.side[0].pos_inf, 2);
    assert_int_equal(found.side[0].neg_inf, 1);
    assert_int_equal(found.side[1].nan, 2);
    assert_int_equal(found.side[1].pos_inf, 2);
    assert_int_equal(found.side[1].neg_inf, 1);
    assert_double(found.sum_abs, 0.5);
    assert_double(found.sum_rr, 4.0);
    assert_int_equal(found.max_abs_at, 6);
}

static void strict_nan_differs_from_nan(void **state)
{
    const double r[] = {nan_value, infinity, 1.0}, c[] = {nan_value, infinity, 1.0};
    const struct sides sides = {
        {ND_DTYPE_f64, ND_DTYPE_f64},
        {r,            c           },
        3
    };
    const struct moments_policy strict = {.nan_strict = true, .scale = 1.0};
    const struct moments_policy equal = {.scale = 1.0};
    const struct nd_moments differs = sides_measure(&sides, &strict);
    const struct nd_moments agrees = sides_measure(&sides, &equal);

    (void)state;
    assert_counts(&differs, 1, 1, 1, 0, 0);
    assert_counts(&agrees, 1, 0, 0, 0, 0);
    assert_true(agrees.bit_equal);
}

static void zeros_of_either_sign_are_equal_but_not_the_same_bits(void **state)
{
    const float r[] = {0.0F, -0.0F, 1.0F}, c[] = {-0.0F, -0.0F, 1.0F};
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, 3);

    (void)state;
    assert_counts(&found, 3, 0, 0, 0, 0);
    assert_false(found.bit_equal);
    assert_false(signbit(found.min[0]));
}

/* --- masks --------------------------------------------------------------------------- */

/* torch: torch.tensor([-1e4, -65504, -1e9, finfo.min ...], dtype=float64).to(dtype) */
static const double masks_f32[] = {-HUGE_VAL, -10000.0,    -65504.0,
                                   -1e9,      -0x1.fep127, -0x1.fffffep127};
static const double masks_f16[] = {-HUGE_VAL, -10000.0, -65504.0};
static const double masks_bf16[] = {-HUGE_VAL, -9984.0, -65536.0, -998244352.0,
                                    -0x1.fep127};

static void floats_of(const double *values, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (float)values[i];
}

static struct nd_moments measured_as(enum nd_dtype real, const float *r, const float *c,
                                     size_t n)
{
    const struct sides sides = {
        {ND_DTYPE_f32, ND_DTYPE_f32},
        {r,            c           },
        n
    };
    const struct tensor_view view[2] = {sides_view(&sides, 0), sides_view(&sides, 1)};
    const struct kernel_set *const set = nd_kernel_set_for(nd_isa_best());
    const struct moments_pivot pivot =
        nd_moments_pivot(set, &view[0], &view[1], real, real);
    const struct moments_policy policy = {.scale = 1.0};
    struct nd_moments moments;

    nd_moments_measure(set, &view[0], &view[1], real, real, 0, n, &pivot, &policy, &moments);
    return moments;
}

static void every_mask_constant_counts_as_its_dtype_rounds_it(void **state)
{
    static const struct {
        enum nd_dtype real;
        const double *masks;
        size_t count;
    } rows[] = {
        {ND_DTYPE_f32,  masks_f32,  COUNT(masks_f32) },
        {ND_DTYPE_f16,  masks_f16,  COUNT(masks_f16) },
        {ND_DTYPE_bf16, masks_bf16, COUNT(masks_bf16)}
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].count; k++) {
            float r[2] = {0.0F, 1.0F};
            floats_of(&rows[i].masks[k], 1, r);
            const struct nd_moments found = measured_as(rows[i].real, r, r, 2);
            assert_counts(&found, 1, 0, 0, 1, 0);
            assert_int_equal(found.side[0].neg_inf, 0);
            assert_double(found.sum_r, 1.0);
            assert_double(found.min[0], 1.0);
        }
}

static void neighbours_of_mask_constants_are_values(void **state)
{
    const float f32[] = {-10001.0F, -9984.0F, -65536.0F, -1e8F, -0x1.fffffcp127F};

    (void)state;
    for (size_t i = 0; i < COUNT(f32); i++) {
        const struct nd_moments found = measured_as(ND_DTYPE_f32, &f32[i], &f32[i], 1);
        assert_counts(&found, 1, 0, 0, 0, 0);
    }
}

static void masks_that_differ_are_masked_and_said(void **state)
{
    const float r[] = {-HUGE_VALF, -1e9F, 1.0F, -1e4F};
    const float c[] = {-1e4F, -1e9F, 1.0F, 5.0F};
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, 4);

    (void)state;
    assert_counts(&found, 2, 1, 0, 2, 1);
    assert_double(found.max_abs, 10005.0);
    assert_int_equal(found.side[0].neg_inf, 0);
}

static void a_mask_on_one_side_alone_is_a_value(void **state)
{
    const float r[] = {-HUGE_VALF}, c[] = {1.0F};
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, 1);

    (void)state;
    assert_counts(&found, 0, 1, 1, 0, 0);
    assert_int_equal(found.side[0].neg_inf, 1);
}

static void integers_are_never_masked(void **state)
{
    const int32_t r[] = {-10000, 3}, c[] = {-10000, 3};
    const float single[] = {-10000.0F, 3.0F};
    const struct sides mixed = {
        {ND_DTYPE_i32, ND_DTYPE_f32},
        {r,            single      },
        2
    };
    const struct moments_policy policy = {.scale = 1.0};
    const struct nd_moments same = measured(ND_DTYPE_i32, r, c, 2);
    const struct nd_moments beside = sides_measure(&mixed, &policy);

    (void)state;
    assert_counts(&same, 2, 0, 0, 0, 0);
    assert_counts(&beside, 2, 0, 0, 0, 0);
}

static void masks_are_values_where_the_policy_says_so(void **state)
{
    const double r[] = {-10000.0, 3.0, -infinity};
    const struct sides sides = {
        {ND_DTYPE_f64, ND_DTYPE_f64},
        {r,            r           },
        3
    };
    const struct moments_policy policy = {.no_masks = true, .scale = 1.0};
    const struct nd_moments found = sides_measure(&sides, &policy);

    (void)state;
    assert_counts(&found, 2, 0, 0, 0, 0);
    assert_double(found.min[0], -10000.0);
    assert_int_equal(found.side[0].neg_inf, 1);
}

static void positions_left_out_change_nothing_else(void **state)
{
    enum { N = 1000 };
    float r[N], c[N], kept_r[N], kept_c[N];
    size_t kept = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        r[i] = (float)(i % 17) - 8.0F;
        c[i] = r[i] + (float)(i % 5) * 0.25F;
        if (i % 3 == 0)
            r[i] = c[i] = -1e9F;
        else if (i % 7 == 0)
            r[i] = c[i] = NAN;
        else {
            kept_r[kept] = r[i];
            kept_c[kept++] = c[i];
        }
    }
    /* Sums of small dyadic numbers are exact, so their order does not matter. */
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, N);
    const struct nd_moments alone = measured(ND_DTYPE_f32, kept_r, kept_c, kept);
    assert_int_equal(found.n, kept);
    assert_int_equal(found.differ, alone.differ);
    assert_double(found.sum_abs, alone.sum_abs);
    assert_double(found.sum_rc, alone.sum_rc);
    assert_double(found.sum_prc, alone.sum_prc);
    assert_double(found.sum_prr, alone.sum_prr);
    assert_double(found.min[0], alone.min[0]);
    assert_double(found.max[1], alone.max[1]);
}

/* --- integers of 64 bits ------------------------------------------------------------- */

/* Python: abs(c - r) as an integer, then float(). */
static void integers_beyond_2_53_differ_exactly(void **state)
{
    const int64_t r[] = {INT64_MIN, 9007199254740993, INT64_MAX, -9007199254740993};
    const int64_t c[] = {INT64_MAX, 9007199254740992, INT64_MAX - 1, -9007199254740993};
    static const double abs[] = {18446744073709551615.0, 1.0, 1.0, 0.0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct nd_moments found = measured(ND_DTYPE_i64, &r[i], &c[i], 1);
        assert_double(found.max_abs, abs[i]);
        assert_int_equal(found.differ, abs[i] != 0.0);
    }
}

static void signed_and_unsigned_integers_differ_exactly(void **state)
{
    const int64_t r[] = {INT64_MIN, -1, 9007199254740993};
    const uint64_t c[] = {UINT64_MAX, UINT64_MAX, 9007199254740993};
    /* float(2**64 - 1 + 2**63), float(2**64), 0 */
    static const double abs[] = {27670116110564327423.0, 18446744073709551616.0, 0.0};
    const struct moments_policy policy = {.scale = 1.0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct sides sides = {
            {ND_DTYPE_i64, ND_DTYPE_u64},
            {&r[i],        &c[i]       },
            1
        };
        const struct nd_moments found = sides_measure(&sides, &policy);
        assert_double(found.max_abs, abs[i]);
        assert_int_equal(found.differ, abs[i] != 0.0);
    }
}

/* Python: float(abs(Fraction(c) - r)) */
static void floats_differ_from_64_bit_integers_exactly(void **state)
{
    static const struct {
        int64_t r;
        double c, abs;
    } rows[] = {
        {9007199254740993,  9007199254740992.0, 1.0                },
        {9007199254740993,  0.25,               9007199254740992.0 },
        {9007199254740993,  -0.25,              9007199254740994.0 },
        {9007199254740995,  0.75,               9007199254740994.0 },
        {INT64_MAX,         0x1p63,             1.0                },
        {INT64_MIN,         -0x1p63,            0.0                },
        {-9007199254740993, 1e300,              1e300              },
        {36028797018963971, 0.5,                36028797018963968.0},
    };
    const struct moments_policy policy = {.scale = 1.0};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct sides sides = {
            {ND_DTYPE_i64, ND_DTYPE_f64},
            {&rows[i].r,   &rows[i].c  },
            1
        };
        const struct sides turned = {
            {ND_DTYPE_f64, ND_DTYPE_i64},
            {&rows[i].c,   &rows[i].r  },
            1
        };
        assert_double(sides_measure(&sides, &policy).max_abs, rows[i].abs);
        assert_double(sides_measure(&turned, &policy).max_abs, rows[i].abs);
        assert_int_equal(sides_measure(&sides, &policy).differ, rows[i].abs != 0.0);
    }
}

/* --- the range of float64 ------------------------------------------------------------ */

static double drift_of(const struct nd_moments *moments)
{
    return sqrt(moments->sum_ee) / sqrt(moments->sum_rr);
}

static struct nd_moments measured_twice(const double *r, const double *c, uint64_t n)
{
    const struct sides sides = {
        {ND_DTYPE_f64, ND_DTYPE_f64},
        {r,            c           },
        n
    };
    struct moments_policy policy = {.scale = 1.0};
    const struct nd_moments first = sides_measure(&sides, &policy);

    policy.scale = nd_moments_rescale(&first);
    assert_true(policy.scale != 1.0);
    const struct nd_moments second = sides_measure(&sides, &policy);
    assert_double(nd_moments_rescale(&second), 1.0);
    assert_int_equal(second.n, first.n);
    assert_int_equal(second.differ, first.differ);
    assert_double(second.min[0], first.min[0]);
    assert_double(second.max[1], first.max[1]);
    return second;
}

static void errors_beyond_float64_keep_their_ratio(void **state)
{
    const double r[] = {1e308, -1e308, 1e308, 5e-324, nan_value};
    const double c[] = {-1e308, 1e308, -1e308, 1e-323, nan_value};
    const struct nd_moments found = measured_twice(r, c, 5);

    (void)state;
    assert_counts(&found, 4, 4, 0, 0, 0);
    assert_near(drift_of(&found), 2.0, 1.0);
    assert_true(isinf(found.max_abs / found.scale));
    assert_int_equal(found.max_abs_at, 0);
    assert_near(sqrt(found.sum_rr) / found.scale, 1.7320508075688772e308, 2.0);
}

static void squares_below_float64_keep_their_ratio(void **state)
{
    const double r[] = {3e-200, 4e-200}, c[] = {3e-200, 4.5e-200};
    const double tiny[] = {5e-324, 1e-323}, twice[] = {1e-323, 2e-323};
    const struct nd_moments found = measured_twice(r, c, 2);
    const struct nd_moments least = measured_twice(tiny, twice, 2);

    (void)state;
    assert_near(drift_of(&found), 0.1, 16.0); /* 4.5e-200 - 4e-200 is inexact */
    assert_near(found.max_abs / found.scale, 5e-201, 16.0);
    assert_near(drift_of(&least), 1.0, 1.0);
}

static void small_errors_beside_large_values_are_not_lost(void **state)
{
    const double r[] = {1.0, 1e-170}, c[] = {1.0, 3e-170};
    const struct nd_moments found = measured_twice(r, c, 2);

    (void)state;
    assert_near(drift_of(&found), 2e-170, 4.0);
}

static void ordinary_sums_need_no_scale(void **state)
{
    const double r[] = {0.0, 1e-100, 1e100}, c[] = {0.0, 1e-100, 1.5e100};
    const struct nd_moments found = measured(ND_DTYPE_f64, r, c, 3);
    const double zeros[] = {0.0, 0.0};
    const struct nd_moments nothing = measured(ND_DTYPE_f64, zeros, zeros, 2);

    (void)state;
    assert_double(nd_moments_rescale(&found), 1.0);
    assert_double(nd_moments_rescale(&nothing), 1.0);
}

/* --- places -------------------------------------------------------------------------- */

static void the_first_of_equal_errors_is_named(void **state)
{
    static float r[5000], c[5000];

    (void)state;
    c[4321] = c[4322] = c[4999] = 2.0F;
    c[7] = -1.0F;
    const struct nd_moments found = measured(ND_DTYPE_f32, r, c, 5000);
    assert_int_equal(found.max_abs_at, 4321);
    c[4321] = c[4322] = c[4999] = c[7] = 0.0F;
    r[0] = c[0] = NAN;
    const struct nd_moments equal = measured(ND_DTYPE_f32, r, c, 5000);
    assert_int_equal(equal.max_abs_at, 1);
    r[0] = c[0] = 0.0F;
}

static void the_pivot_is_the_first_pair_that_counts(void **state)
{
    static float r[600], c[600];
    const struct sides sides = {
        {ND_DTYPE_f32, ND_DTYPE_f32},
        {r,            c           },
        600
    };
    const struct tensor_view view[2] = {sides_view(&sides, 0), sides_view(&sides, 1)};

    (void)state;
    for (int i = 0; i < 600; i++)
        r[i] = c[i] = i < 300 ? NAN : (float)i;
    r[300] = -1e9F;
    c[300] = -1e4F;
    const struct moments_pivot pivot = nd_moments_pivot(
        nd_kernel_set_for(nd_isa_best()), &view[0], &view[1], ND_DTYPE_f32, ND_DTYPE_f32);
    assert_double(pivot.r, 301.0);
    assert_double(pivot.c, 301.0);
}

static void an_empty_pair_measures_nothing(void **state)
{
    const float none[1] = {0.0F};
    const struct sides mixed = {
        {ND_DTYPE_f32, ND_DTYPE_f64},
        {none,         none        },
        0
    };
    const struct moments_policy policy = {.scale = 1.0};
    const struct nd_moments found = measured(ND_DTYPE_f32, none, none, 0);

    (void)state;
    assert_counts(&found, 0, 0, 0, 0, 0);
    assert_true(found.bit_equal);
    assert_false(sides_measure(&mixed, &policy).bit_equal);
    assert_double(found.min[0], infinity);
    assert_double(found.max[0], -infinity);
}

static void byte_order_and_strides_do_not_matter(void **state)
{
    const uint16_t little[] = {0x3c00, 0xc000, 0x4200, 0x0001, 0x7bff, 0xfc00};
    uint16_t big[6], transposed[6];
    const struct nd_shape shape = {
        .rank = 2, .dim = {2, 3}
    };
    const int64_t strides[] = {1, 2};
    const struct moments_policy policy = {.scale = 1.0};
    struct tensor_view view[3];
    struct nd_moments swapped, strided;

    (void)state;
    for (int i = 0; i < 6; i++) {
        big[i] = (uint16_t)(little[i] << 8 | little[i] >> 8);
        transposed[i % 3 * 2 + i / 3] = little[i];
    }
    nd_view_contiguous(&view[0], little, sizeof little, ND_DTYPE_f16, &shape);
    nd_view_contiguous(&view[1], big, sizeof big, ND_DTYPE_f16, &shape);
    nd_view_contiguous(&view[2], transposed, sizeof transposed, ND_DTYPE_f16, &shape);
    view[1].swapped = true;
    assert_true(nd_view_set_strides(&view[2], 0, strides));
    const struct moments_pivot pivot = {1.0, 1.0};
    const struct kernel_set *const set = nd_kernel_set_for(nd_isa_best());
    nd_moments_measure(set, &view[0], &view[1], ND_DTYPE_f16, ND_DTYPE_f16, 0, 6, &pivot,
                       &policy, &swapped);
    nd_moments_measure(set, &view[0], &view[2], ND_DTYPE_f16, ND_DTYPE_f16, 0, 6, &pivot,
                       &policy, &strided);
    assert_true(swapped.bit_equal);
    assert_true(strided.bit_equal);
    assert_int_equal(swapped.differ, 0);
    assert_double(strided.sum_r, 1.0 - 2.0 + 3.0 + 0x1p-24 + 65504.0);
}

static void complex_infinities_must_point_the_same_way(void **state)
{
    const float r[] = {HUGE_VALF, 0.0F, HUGE_VALF, 0.0F, NAN, 1.0F, 3.0F, 4.0F};
    const float c[] = {HUGE_VALF, 0.0F, 0.0F, HUGE_VALF, 2.0F, NAN, 0.0F, 0.0F};
    const struct nd_moments found = measured(ND_DTYPE_c64, r, c, 4);

    (void)state;
    assert_counts(&found, 1, 2, 1, 0, 0);
    assert_double(found.max_abs, 5.0);
    assert_double(found.sum_prr, 0.0);
}

/* --- whole blocks --------------------------------------------------------------------- */

/* Python's fractions: (37 - 2^-24)^2 and (37 - 9 * 2^-24)^2 rounded, then added; a fused
 * sum ends in 1. */
static void squares_of_long_errors_are_rounded_before_they_are_added(void **state)
{
    static uint16_t r[MOMENTS_BLOCK], c[MOMENTS_BLOCK];

    (void)state;
    r[0] = 1;
    r[MOMENTS_LANES] = 9;
    c[0] = c[MOMENTS_LANES] = 0x50a0; /* 37 */
    const struct nd_moments found = measured(ND_DTYPE_f16, r, c, MOMENTS_BLOCK);
    assert_double(found.sum_ee, 0x1.563fffa38p+11);
    assert_double(found.max_abs, 37.0 - 0x1p-24);
    assert_int_equal(found.differ, 2);
}

static void blocks_of_one_sign_have_the_right_ends(void **state)
{
    static const uint16_t sizes[3] = {0x3c00, 0x4000, 0x4200}; /* 1, 2, 3 */
    static uint16_t r[MOMENTS_BLOCK], c[MOMENTS_BLOCK];

    (void)state;
    for (size_t i = 0; i < MOMENTS_BLOCK; i++) {
        r[i] = sizes[i % 3] | 0x8000;
        c[i] = sizes[(i + 1) % 3];
    }
    const struct nd_moments found = measured(ND_DTYPE_f16, r, c, MOMENTS_BLOCK);
    assert_double(found.min[0], -3.0);
    assert_double(found.max[0], -1.0);
    assert_double(found.min[1], 1.0);
    assert_double(found.max[1], 3.0);
}

static void equal_sides_have_the_sums_of_one(void **state)
{
    enum { N = MOMENTS_BLOCK + 405 }; /* a block, and a part of one that fills no lanes */
    static double values[N], copy[N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = copy[i] = (double)(i % 5);
    const struct nd_moments found = measured(ND_DTYPE_f64, values, copy, N);
    assert_counts(&found, N, 0, 0, 0, 0);
    assert_true(found.bit_equal);
    assert_double(found.sum_c, 9000.0);
    assert_double(found.sum_rr, 27000.0);
    assert_double(found.sum_rc, 27000.0);
    assert_double(found.sum_pcc, 27000.0);
    assert_double(found.max_abs, 0.0);
    assert_int_equal(found.max_abs_at, 0);
    assert_double(found.min[1], 0.0);
    assert_double(found.max[1], 4.0);
}

static void a_bit_in_the_last_element_is_no_equal_side(void **state)
{
    enum { N = MOMENTS_BLOCK + 405 };
    static double r[N], c[N];

    (void)state;
    c[N - 1] = 0x1p-1074;
    const struct nd_moments found = measured(ND_DTYPE_f64, r, c, N);
    assert_counts(&found, N, 1, 0, 0, 0);
    assert_false(found.bit_equal);
    assert_int_equal(found.max_abs_at, N - 1);
}

static void errors_of_bytes_go_beyond_a_byte(void **state)
{
    enum { N = 2 * MOMENTS_BLOCK + 700 };
    static signed char r[N], c[N];

    (void)state;
    for (size_t i = 0; i < N; i++) {
        r[i] = i == 0 ? 0 : -128;
        c[i] = 127;
    }
    const struct nd_moments found = measured(ND_DTYPE_i8, r, c, N);
    assert_counts(&found, N, N, 0, 0, 0);
    assert_double(found.sum_abs, 127.0 + (N - 1) * 255.0);
    assert_double(found.sum_ee, 127.0 * 127.0 + (N - 1) * 255.0 * 255.0);
    assert_double(found.sum_rc, (N - 1) * -128.0 * 127.0);
    assert_double(found.sum_rr, (N - 1) * 128.0 * 128.0);
    assert_double(found.sum_pcc, 0.0);
    assert_double(found.min[0], -128.0);
    assert_double(found.max[0], 0.0);
    assert_double(found.max_abs, 255.0);
    assert_int_equal(found.max_abs_at, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_read_as_torch_reads_it),
        cmocka_unit_test(every_pattern_of_the_small_floats_is_torchs_value),
        cmocka_unit_test(nonfinite_values_agree_or_are_counted),
        cmocka_unit_test(strict_nan_differs_from_nan),
        cmocka_unit_test(zeros_of_either_sign_are_equal_but_not_the_same_bits),
        cmocka_unit_test(every_mask_constant_counts_as_its_dtype_rounds_it),
        cmocka_unit_test(neighbours_of_mask_constants_are_values),
        cmocka_unit_test(masks_that_differ_are_masked_and_said),
        cmocka_unit_test(a_mask_on_one_side_alone_is_a_value),
        cmocka_unit_test(integers_are_never_masked),
        cmocka_unit_test(masks_are_values_where_the_policy_says_so),
        cmocka_unit_test(positions_left_out_change_nothing_else),
        cmocka_unit_test(integers_beyond_2_53_differ_exactly),
        cmocka_unit_test(signed_and_unsigned_integers_differ_exactly),
        cmocka_unit_test(floats_differ_from_64_bit_integers_exactly),
        cmocka_unit_test(errors_beyond_float64_keep_their_ratio),
        cmocka_unit_test(squares_below_float64_keep_their_ratio),
        cmocka_unit_test(small_errors_beside_large_values_are_not_lost),
        cmocka_unit_test(ordinary_sums_need_no_scale),
        cmocka_unit_test(the_first_of_equal_errors_is_named),
        cmocka_unit_test(the_pivot_is_the_first_pair_that_counts),
        cmocka_unit_test(an_empty_pair_measures_nothing),
        cmocka_unit_test(byte_order_and_strides_do_not_matter),
        cmocka_unit_test(complex_infinities_must_point_the_same_way),
        cmocka_unit_test(squares_of_long_errors_are_rounded_before_they_are_added),
        cmocka_unit_test(blocks_of_one_sign_have_the_right_ends),
        cmocka_unit_test(equal_sides_have_the_sums_of_one),
        cmocka_unit_test(a_bit_in_the_last_element_is_no_equal_side),
        cmocka_unit_test(errors_of_bytes_go_beyond_a_byte),
    };

    if (getenv("NORMDIFF_ISA") != NULL &&
        !nd_isa_available(nd_isa_by_name(getenv("NORMDIFF_ISA"))))
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
