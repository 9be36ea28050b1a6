/*
 * The grid test: bits worked out by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "checks/grid.h"

enum { COUNT = 64 };

/* 1 + k / 2^bits for k = 1, 3, 5 ...: needs bits + 1 significant digits. */
static enum grid grid_of_steps(int bits, double scale, struct grid_shares *ret_shares)
{
    const struct nd_shape shape = {.rank = 1, .dim = {COUNT}};
    struct tensor_view view;
    float values[COUNT];

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(scale * (1 + ldexp(2 * i + 1, -bits)));
    nd_view_contiguous(&view, values, sizeof values, ND_DTYPE_f32, &shape);
    nd_grid_shares(&view, 1 << 20, ret_shares);
    return nd_grid_of(ret_shares, ND_DTYPE_f32);
}

static void each_grid_holds_as_many_digits_as_its_format(void **state)
{
    struct grid_shares shares;

    (void)state;
    assert_int_equal(grid_of_steps(7, 1, &shares), GRID_BF16);       /* 8 digits */
    assert_int_equal(grid_of_steps(10, 1, &shares), GRID_F16);       /* 11 digits */
    assert_int_equal(grid_of_steps(10, 0x1p60, &shares), GRID_TF32); /* beyond float16 */
    assert_int_equal(grid_of_steps(11, 1, &shares), GRID_HF32);      /* 12 digits */
    assert_int_equal(grid_of_steps(12, 1, &shares), GRID_NONE);
    assert_true(shares.share[GRID_HF32] == 0);
    assert_int_equal(shares.counted, COUNT);
}

static void a_type_is_no_narrower_than_itself(void **state)
{
    struct grid_shares shares;

    (void)state;
    assert_int_equal(grid_of_steps(7, 1, &shares), GRID_BF16);
    assert_int_equal(nd_grid_of(&shares, ND_DTYPE_bf16), GRID_NONE);
    assert_int_equal(nd_grid_of(&shares, ND_DTYPE_f16), GRID_BF16);
    assert_int_equal(nd_grid_of(&shares, ND_DTYPE_i32), GRID_NONE);
}

static void grids_of_the_matrix_units_round_halves_to_even(void **state)
{
    (void)state;
    /* TF32 has 11 digits: 1 and 1 + 2^-10 are neighbours. */
    assert_true(nd_grid_round(GRID_TF32, 1 + 0x1p-11) == 1);
    assert_true(nd_grid_round(GRID_TF32, 1 + 0x1.8p-10) == 1 + 0x1p-9);
    assert_true(nd_grid_round(GRID_TF32, 1 + 0x1.0000001p-11) == 1 + 0x1p-10);
    assert_true(nd_grid_round(GRID_TF32, -(2 - 0x1p-12)) == -2);
    assert_true(nd_grid_round(GRID_HF32, 1 + 0x1p-12) == 1); /* 12 digits */
    assert_true(nd_grid_round(GRID_HF32, 1 + 0x1.8p-11) == 1 + 0x1p-10);
    /* Their range is not looked at. */
    assert_true(nd_grid_round(GRID_HF32, 0x1.801p-1060) == 0x1.8p-1060);
    assert_true(nd_grid_round(GRID_HF32, 0x1.fffffffffffffp1023) == HUGE_VAL);
    assert_true(nd_grid_round(GRID_TF32, 0x1.ffffp500) == 0x1p501);
    assert_true(nd_grid_round(GRID_TF32, -HUGE_VAL) == -HUGE_VAL);
    assert_true(isnan(nd_grid_round(GRID_TF32, (double)NAN)));
}

static void zeros_and_infinities_are_no_evidence(void **state)
{
    const struct nd_shape shape = {.rank = 1, .dim = {COUNT}};
    struct tensor_view view;
    struct grid_shares shares;
    float values[COUNT] = {0};

    (void)state;
    values[3] = (float)HUGE_VAL;
    values[5] = 1;
    nd_view_contiguous(&view, values, sizeof values, ND_DTYPE_f32, &shape);
    nd_grid_shares(&view, 1 << 20, &shares);
    assert_int_equal(shares.counted, 1);
    assert_int_equal(nd_grid_of(&shares, ND_DTYPE_f32), GRID_NONE);
}

static void rounding_goes_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    assert_true(nd_grid_round(GRID_BF16, 1 + 0x1p-8) == 1);              /* a tie */
    assert_true(nd_grid_round(GRID_BF16, 1 + 3 * 0x1p-8) == 1 + 0x1p-6); /* a tie */
    assert_true(nd_grid_round(GRID_TF32, 1 + 0x1p-10) == 1 + 0x1p-10);
    assert_true(nd_grid_round(GRID_TF32, 1 + 0x1p-12) == 1);
    assert_true(nd_grid_round(GRID_HF32, -(1 + 0x1p-11)) == -(1 + 0x1p-11));
    assert_true(nd_grid_round(GRID_F16, 70000) == HUGE_VAL);
    assert_true(nd_grid_roundoff(GRID_HF32) == 0x1p-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_grid_holds_as_many_digits_as_its_format),
        cmocka_unit_test(a_type_is_no_narrower_than_itself),
        cmocka_unit_test(grids_of_the_matrix_units_round_halves_to_even),
        cmocka_unit_test(zeros_and_infinities_are_no_evidence),
        cmocka_unit_test(rounding_goes_to_the_nearest_and_ties_to_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
