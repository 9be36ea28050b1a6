/*
 * Whole steps of what does not count, as scores under a mask are, or a run that failed: on
 * every instruction set that this machine has.  Expected values are by hand, from a pattern
 * of twelve pairs that repeats.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/kernel_set.h"
#include "kernels/measured.h"

enum { KINDS = 12, PERIODS = 512, COUNT = KINDS * PERIODS };

static const double nan_value = (double)NAN;
static const double infinity = HUGE_VAL;

/* What becomes of the pairs: kept; masked; masked, differently; masked; kept (one side is
 * no mask); agrees; mismatches; agrees; mismatches twice; kept and equal; mismatches. */
static double pattern(int side, size_t i)
{
    const double pair[KINDS][2] = {
        {1.0,       1.5      },
        {-infinity, -infinity},
        {-65504.0,  -infinity},
        {-1e4,      -1e4     },
        {-1e4,      5.0      },
        {nan_value, nan_value},
        {nan_value, 2.0      },
        {infinity,  infinity },
        {infinity,  -infinity},
        {2.0,       -infinity},
        {-20000.0,  -20000.0 },
        {-infinity, nan_value},
    };

    return pair[i % KINDS][side];
}

/* As float16 stores it: Python, struct.pack("<e", value).hex(). */
static uint16_t half_of(double value)
{
    static const struct {
        double value;
        uint16_t bits;
    } known[] = {
        {1.0,      0x3c00},
        {1.5,      0x3e00},
        {2.0,      0x4000},
        {5.0,      0x4500},
        {-65504.0, 0xfbff},
        {-1e4,     0xf0e2},
        {-20000.0, 0xf4e2},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].value == value)
            return known[i].bits;
    return isnan(value) ? 0x7e00 : value > 0.0 ? 0x7c00 : 0xfc00;
}

static union {
    double f64[COUNT];
    float f32[COUNT];
    uint16_t f16[COUNT];
} values[2];

static const enum nd_dtype dtypes[] = {ND_DTYPE_f64, ND_DTYPE_f32, ND_DTYPE_f16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static struct sides filled(enum nd_dtype dtype, double (*value)(int side, size_t i),
                           uint64_t n)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n; i++) {
            const double held = value(side, i);
            if (dtype == ND_DTYPE_f64)
                values[side].f64[i] = held;
            else if (dtype == ND_DTYPE_f32)
                values[side].f32[i] = (float)held;
            else
                values[side].f16[i] = half_of(held);
        }
    return (struct sides){
        {dtype,      dtype     },
        {&values[0], &values[1]},
        n
    };
}

static struct nd_moments measured_by(const struct kernel_set *set,
                                     const struct sides *sides, bool nan_strict)
{
    const struct tensor_view r = sides_view(sides, 0), c = sides_view(sides, 1);
    const struct moments_policy policy = {.nan_strict = nan_strict, .scale = 1.0};
    const struct moments_pivot pivot = nd_moments_pivot(set, &r, &c, r.dtype, c.dtype);
    struct nd_moments moments;

    nd_moments_measure(set, &r, &c, r.dtype, c.dtype, 0, sides->n, &pivot, &policy,
                       &moments);
    return moments;
}

/* Of so many periods. */
static void assert_pattern(const struct nd_moments *found, uint64_t k, bool nan_strict)
{
    assert_int_equal(found->n, 3 * k);
    assert_int_equal(found->masked, 3 * k);
    assert_int_equal(found->masks_differ, k);
    assert_int_equal(found->mismatches, (nan_strict ? 5 : 4) * k);
    assert_int_equal(found->differ, (nan_strict ? 7 : 6) * k);
    assert_int_equal(found->side[0].nan, 2 * k);
    assert_int_equal(found->side[1].nan, 2 * k);
    assert_int_equal(found->side[0].pos_inf, 2 * k);
    assert_int_equal(found->side[1].pos_inf, k);
    assert_int_equal(found->side[0].neg_inf, k);
    assert_int_equal(found->side[1].neg_inf, 2 * k);
    assert_double(found->sum_abs, 10005.5 * (double)k);
    assert_double(found->sum_r, -29999.0 * (double)k);
    assert_double(found->sum_c, -19993.5 * (double)k);
    assert_double(found->sum_rc, (1.5 - 5e4 + 4e8) * (double)k);
    assert_double(found->max_abs, 10005.0);
    assert_int_equal(found->max_abs_at, 4);
    assert_double(found->min[0], -20000.0);
    assert_double(found->max[0], 1.0);
    assert_double(found->min[1], -20000.0);
    assert_double(found->max[1], 5.0);
}

static void every_position_is_counted_by_its_kind(void **state)
{
    (void)state;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        for (int i = 0; set != NULL && i < 2 * DTYPES; i++) {
            const struct sides all = filled(dtypes[i / 2], pattern, COUNT);
            const struct sides part = filled(dtypes[i / 2], pattern, KINDS * (PERIODS - 9));
            const struct nd_moments whole = measured_by(set, &all, i % 2 == 1);
            const struct nd_moments short_by_some = measured_by(set, &part, i % 2 == 1);
            assert_pattern(&whole, PERIODS, i % 2 == 1);
            assert_pattern(&short_by_some, PERIODS - 9, i % 2 == 1);
        }
    }
}

/* The first pair that counts is in the last step but one: all before are no numbers. */
static double late(int side, size_t i)
{
    return i < COUNT - 600 ? nan_value : side == 0 ? 1.5 : 5.0;
}

static void what_counts_may_lie_behind_whole_steps_that_do_not(void **state)
{
    (void)state;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        for (int i = 0; set != NULL && i < DTYPES; i++) {
            const struct sides sides = filled(dtypes[i], late, COUNT);
            const struct tensor_view r = sides_view(&sides, 0), c = sides_view(&sides, 1);
            const struct moments_pivot pivot =
                nd_moments_pivot(set, &r, &c, r.dtype, c.dtype);
            const struct nd_moments found = measured_by(set, &sides, false);
            assert_double(pivot.r, 1.5);
            assert_double(pivot.c, 5.0);
            assert_int_equal(found.n, 600);
            assert_int_equal(found.max_abs_at, COUNT - 600);
            assert_double(found.sum_c, 3000.0);
            assert_double(found.sum_pr, 0.0);
        }
    }
}

/* A mean far larger than the spread: the sums about the pivot are not made of others. */
static double far_off(int side, size_t i)
{
    return i % 2 == 1 ? -infinity : side == 0 && i % 4 == 0 ? 1.0 : 1.5;
}

static void sums_about_the_pivot_leave_out_what_does_not_count(void **state)
{
    (void)state;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        const struct sides sides = filled(ND_DTYPE_f32, far_off, COUNT - 100);
        if (set == NULL)
            continue;
        const struct nd_moments found = measured_by(set, &sides, false);
        assert_int_equal(found.masked, (COUNT - 100) / 2);
        /* Every other one that counts is 0.5 above the first; the candidate never is. */
        assert_double(found.sum_pr, 0.5 * (COUNT - 100) / 4);
        assert_double(found.sum_prr, 0.25 * (COUNT - 100) / 4);
        assert_double(found.sum_pc, 0.0);
        assert_double(found.sum_prc, 0.0);
    }
}

/* No errors at all, and masks before what counts: -65504 less itself is 0 too. */
static double without_errors(int side, size_t i)
{
    (void)side;
    return i < 5000 ? -65504.0 : 1.0;
}

static void the_largest_error_is_where_something_counts(void **state)
{
    (void)state;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        for (int i = 0; set != NULL && i < DTYPES; i++) {
            const struct sides sides = filled(dtypes[i], without_errors, COUNT);
            const struct nd_moments found = measured_by(set, &sides, false);
            assert_int_equal(found.n, COUNT - 5000);
            assert_double(found.max_abs, 0.0);
            assert_int_equal(found.max_abs_at, 5000);
        }
    }
}

static void the_detail_pass_goes_over_what_counts(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPES; i++) {
        const struct sides sides = filled(dtypes[i], pattern, COUNT);
        const struct tensor_view r = sides_view(&sides, 0), c = sides_view(&sides, 1);
        const struct detail_params params = {.rms_r = 12909.0,
                                             .rel_floor = 1.0,
                                             .ulp_dtype = ND_DTYPE_NONE,
                                             .worst = 5,
                                             .real = {dtypes[i], dtypes[i]}};
        static struct nd_detail_sums found;

        nd_detail_init(&found);
        nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &r, &c, &params, 0, COUNT,
                          &found);
        assert_int_equal(found.detail.n, 3 * PERIODS);
        assert_double(found.detail.max_rel, 1.0005); /* 10005 / 10000 */
        assert_int_equal(found.detail.within_1e3, PERIODS);
        assert_int_equal(found.detail.scaled_fault, PERIODS);
        for (unsigned k = 0; k < 5; k++) {
            assert_int_equal(found.detail.worst[k].at, KINDS * k + 4);
            assert_double(found.detail.worst[k].r, -1e4);
            assert_double(found.detail.worst[k].c, 5.0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_position_is_counted_by_its_kind),
        cmocka_unit_test(what_counts_may_lie_behind_whole_steps_that_do_not),
        cmocka_unit_test(sums_about_the_pivot_leave_out_what_does_not_count),
        cmocka_unit_test(the_largest_error_is_where_something_counts),
        cmocka_unit_test(the_detail_pass_goes_over_what_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
