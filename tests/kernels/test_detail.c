/*
 * The detail pass: bins, quantiles, units of the last place, worst elements.  Expected
 * values are numpy's, by the expressions beside them, with
 *   r = float32([1, -2, 0, 4, 0, 1e-3, -8, 100])
 *   c = float32([1.0005, -2.008, 0, 4.5, 1e-9, 2e-3, -8, 99])
 *   x, y = float64(r), float64(c); e = abs(y - x); rms = sqrt(mean(x * x))
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/measured.h"
#include "kernels/slices.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const double infinity = HUGE_VAL;

static const float sample_r[] = {1.0F, -2.0F, 0.0F, 4.0F, 0.0F, 1e-3F, -8.0F, 100.0F};
static const float sample_c[] = {1.0005F, -2.008F, 0.0F, 4.5F, 1e-9F, 2e-3F, -8.0F, 99.0F};
static const double sample_rms = 35.50528129905465;

static struct nd_detail_sums detail_of(enum nd_dtype dtype, const void *r, const void *c,
                                  uint64_t n, struct detail_params params)
{
    const struct sides sides = {
        {dtype, dtype},
        {r,     c    },
        n
    };
    const struct tensor_view view[2] = {sides_view(&sides, 0), sides_view(&sides, 1)};
    struct nd_detail_sums detail;

    params.real[0] = params.real[1] = dtype;
    nd_detail_init(&detail);
    nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &view[0], &view[1], &params, 0, n, &detail);
    return detail;
}

static struct nd_detail_sums sample_detail(void)
{
    const struct detail_params params = {.rms_r = sample_rms,
                                         .rel_floor = sample_rms * 0x1p-20,
                                         .ulp_dtype = ND_DTYPE_f32,
                                         .worst = 5};

    return detail_of(ND_DTYPE_f32, sample_r, sample_c, 8, params);
}

/* rel = where(e == 0, 0, e / maximum(abs(x), rms * 2**-20)) */
static void relative_errors_have_a_floor_under_the_reference(void **state)
{
    const struct nd_detail_sums found = sample_detail();

    (void)state;
    assert_int_equal(found.detail.n, 8);
    assert_near(found.detail.max_rel, 1.0, 1.0);
    assert_near(found.detail.sum_rel / 8.0, 0.1424411806524565, 4.0);
    assert_int_equal(found.detail.within_1e3, 4);
    assert_int_equal(found.detail.within_5e3, 5);
}

/* s = e / (abs(x) + rms) */
static void scaled_errors_are_counted_at_both_bounds(void **state)
{
    const struct nd_detail_sums found = sample_detail();

    (void)state;
    assert_near(found.detail.max_scaled, 0.012656535621528782, 2.0);
    assert_int_equal(found.detail.scaled_fault, 0);
    assert_int_equal(found.detail.scaled_elevated, 1);
}

/* numpy.percentile(e, 100 * q, method="inverted_cdf"), then the float32 whose bits are
 * (bits >> 19) + 1 << 19 */
static void quantiles_are_upper_edges_of_the_nearest_rank(void **state)
{
    struct nd_detail_sums found = sample_detail();

    (void)state;
    nd_detail_settle(&found);
    assert_double(found.detail.p50, 0.000518798828125);
    assert_double(found.detail.p90, 1.0625);
    assert_double(found.detail.p999, 1.0625);
}

/* e / spacing(maximum(abs(x), rms * 2**-10).astype(float32)) */
static void ulp_is_the_spacing_at_the_reference(void **state)
{
    struct nd_detail_sums found = sample_detail();

    (void)state;
    nd_detail_settle(&found);
    assert_true(found.detail.has_ulp);
    assert_double(found.detail.max_ulp, 1048576.0);
    assert_double(found.detail.p99_ulp, 1114112.0);
}

/* numpy.lexsort((arange(8), -e))[:5] */
static void the_worst_elements_come_by_error_then_place(void **state)
{
    static const uint64_t order[] = {7, 3, 1, 5, 0};
    const struct nd_detail_sums found = sample_detail();

    (void)state;
    assert_int_equal(found.detail.worst_count, 5);
    for (unsigned k = 0; k < 5; k++)
        assert_int_equal(found.detail.worst[k].at, order[k]);
    assert_double(found.detail.worst[1].abs, 0.5);
    assert_double(found.detail.worst[1].r, 4.0);
    assert_double(found.detail.worst[1].c, 4.5);
}

/* Bin 1 + (bits >> 19); bits as numpy.float32(v).view(uint32). */
static void bins_follow_the_bits_of_a_float32(void **state)
{
    static const struct {
        double value;
        unsigned bin;
    } rows[] = {
        {0.0,                   0              },
        {5e-324,                1              }, /* below float32's least: still no zero */
        {0x1p-149,              1              },
        {0x1.fffffcp-127,       16             },
        {0x1p-126,              17             },
        {1.0,                   2033           },
        {0x1.0fffffffffffp0,    2033           }, /* not rounded up to the next bin */
        {1.0625,                2034           },
        {0x1.fffffep127,        4080           },
        {0x1.fffffffffffffp127, 4080           },
        {0x1p128,               DETAIL_BINS + 1},
        {HUGE_VAL,              DETAIL_BINS + 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(nd_detail_bin(rows[i].value), rows[i].bin);
}

static double only_bin(unsigned bin)
{
    uint64_t bins[DETAIL_BINS + 2] = {0};

    bins[bin] = 1;
    return nd_detail_quantile(bins, 1, 0.5);
}

/* float32 whose bits are bin << 19 */
static void a_bins_edge_is_the_next_float32_of_four_bits(void **state)
{
    (void)state;
    assert_double(only_bin(0), 0.0);
    assert_double(only_bin(1), 7.346839692639297e-40);
    assert_double(only_bin(16), 1.1754943508222875e-38);
    assert_double(only_bin(17), 1.2489627477486805e-38);
    assert_double(only_bin(2033), 1.0625);
    assert_double(only_bin(4079), 0x1.fp127);
    assert_double(only_bin(4080), infinity);
    assert_double(only_bin(DETAIL_BINS + 1), infinity);
}

static void ranks_are_counted_in_integers(void **state)
{
    uint64_t bins[DETAIL_BINS + 2] = {0};

    (void)state;
    bins[0] = 297;
    bins[2033] = 3;
    assert_double(nd_detail_quantile(bins, 300, 0.99), 0.0);
    bins[0] = 296;
    bins[2033] = 4;
    assert_double(nd_detail_quantile(bins, 300, 0.99), 1.0625);
    assert_double(nd_detail_quantile(bins, 300, 0.9), 0.0);
}

static uint16_t f16_bits(double value) /* powers of two only */
{
    return (uint16_t)((int)(log2(value) + 15.5) << 10);
}

/* numpy.spacing(numpy.float16(v)): 2**-24 below 2**-13, 2**-10 at 1, 0.5 at 1000 */
static void ulps_of_float16_stop_shrinking_among_subnormals(void **state)
{
    static const struct {
        double at, spacing;
    } rows[] = {
        {1.0,     0x1p-10},
        {512.0,   0.5    },
        {0x1p-14, 0x1p-24}
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const uint16_t r = f16_bits(rows[i].at), c = (uint16_t)(r + 3);
        const struct detail_params params = {.rms_r = rows[i].at,
                                             .ulp_dtype = ND_DTYPE_f16};
        assert_double(detail_of(ND_DTYPE_f16, &r, &c, 1, params).detail.max_ulp, 3.0);
    }
    const uint16_t zero = 0, least = 5; /* 5 * 2**-24 */
    const struct detail_params params = {.ulp_dtype = ND_DTYPE_f16};
    assert_double(detail_of(ND_DTYPE_f16, &zero, &least, 1, params).detail.max_ulp, 5.0);
}

static void ulps_have_a_floor_at_a_thousandth_of_the_rms(void **state)
{
    const float r = 0.0F, c = 0x1p-10F;
    const struct detail_params params = {.rms_r = 1024.0, .ulp_dtype = ND_DTYPE_bf16};

    (void)state;
    /* 1024 * 2**-10 = 1, where bfloat16 steps by 2**-7 */
    assert_double(detail_of(ND_DTYPE_f32, &r, &c, 1, params).detail.max_ulp, 0.125);
}

static void without_a_float_dtype_there_are_no_ulps(void **state)
{
    const int32_t r = 1, c = 2;
    const struct detail_params params = {.ulp_dtype = ND_DTYPE_NONE};
    const struct detail_params integer = {.ulp_dtype = ND_DTYPE_i32};

    (void)state;
    assert_false(detail_of(ND_DTYPE_i32, &r, &c, 1, params).detail.has_ulp);
    assert_false(detail_of(ND_DTYPE_i32, &r, &c, 1, integer).detail.has_ulp);
}

static void zeros_subnormals_and_saturation_are_the_sides_own(void **state)
{
    /* f16: 0, -0, least subnormal, least normal, 65504, -65503 is not there, 1 */
    const uint16_t r[] = {0x0000, 0x8000, 0x0001, 0x0400, 0x7bff, 0x7bff, 0x7e00};
    const uint16_t c[] = {0x0000, 0x3c00, 0x83ff, 0x0400, 0xfbff, 0x3c00, 0x7bff};
    const struct detail_params params = {.rms_r = 1.0, .ulp_dtype = ND_DTYPE_f16};
    const struct nd_detail_sums found = detail_of(ND_DTYPE_f16, r, c, 7, params);

    (void)state;
    assert_int_equal(found.detail.n, 6);
    assert_int_equal(found.detail.zeros[0], 2);
    assert_int_equal(found.detail.zeros[1], 1);
    assert_int_equal(found.detail.subnormals[0], 1);
    assert_int_equal(found.detail.subnormals[1], 1);
    assert_int_equal(found.detail.saturated[0], 2);
    assert_int_equal(found.detail.saturated[1], 1);
}

static void saturation_is_that_of_the_dtype_the_run_computed_in(void **state)
{
    const float values[] = {65504.0F, 1.0F};
    const struct sides sides = {
        {ND_DTYPE_f32, ND_DTYPE_f32},
        {values,       values      },
        2
    };
    const struct tensor_view view = sides_view(&sides, 0);
    const struct detail_params params = {
        .real = {ND_DTYPE_f16, ND_DTYPE_f32},
          .ulp_dtype = ND_DTYPE_f16
    };
    struct nd_detail_sums found;

    (void)state;
    nd_detail_init(&found);
    nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &view, &view, &params, 0, 2, &found);
    assert_int_equal(found.detail.saturated[0], 1);
    assert_int_equal(found.detail.saturated[1], 0);
}

static void nothing_over_zero_is_no_error_and_something_is_infinite(void **state)
{
    const float zeros[] = {0.0F, 0.0F}, c[] = {0.0F, 1.0F};
    const struct detail_params params = {.ulp_dtype = ND_DTYPE_f32};
    const struct nd_detail_sums equal = detail_of(ND_DTYPE_f32, zeros, zeros, 2, params);
    const struct nd_detail_sums found = detail_of(ND_DTYPE_f32, zeros, c, 2, params);

    (void)state;
    assert_double(equal.detail.max_rel, 0.0);
    assert_double(equal.detail.max_scaled, 0.0);
    assert_int_equal(equal.detail.within_1e3, 2);
    assert_double(found.detail.max_rel, infinity);
    assert_double(found.detail.max_scaled, infinity);
    assert_int_equal(found.detail.scaled_fault, 1);
}

static void ratios_survive_errors_beyond_float64(void **state)
{
    const double r[] = {-0x1p1023}, c[] = {0x1p1023};
    const struct detail_params params = {
        .rms_r = 0x1p1023, .rel_floor = 0x1p1003, .ulp_dtype = ND_DTYPE_f64, .worst = 1};
    const struct nd_detail_sums found = detail_of(ND_DTYPE_f64, r, c, 1, params);

    (void)state;
    assert_double(found.detail.max_rel, 2.0);
    assert_double(found.detail.max_scaled, 1.0);
    assert_int_equal(found.abs_bins[DETAIL_BINS + 1], 1);
}

static void integers_keep_their_exact_error(void **state)
{
    const int64_t r[] = {INT64_MAX, 5}, c[] = {INT64_MAX - 1, 5};
    const struct detail_params params = {
        .rms_r = 1.0, .rel_floor = 1.0, .ulp_dtype = ND_DTYPE_NONE, .worst = 2};
    const struct nd_detail_sums found = detail_of(ND_DTYPE_i64, r, c, 2, params);

    (void)state;
    assert_double(found.detail.worst[0].abs, 1.0);
    assert_int_equal(found.abs_bins[2033], 1);
}

/* Two chunks and a bit, measured whole and by chunks in two ways. */
static void chunks_fold_to_the_same_bits(void **state)
{
    enum { N = 2 * MOMENTS_CHUNK + 77 };
    static float r[N], c[N];
    static struct nd_detail_sums whole, folded, chunk;
    const struct sides sides = {
        {ND_DTYPE_f32, ND_DTYPE_f32},
        {r,            c           },
        N
    };
    const struct detail_params params = {
        .rms_r = 0.6,
        .rel_floor = 0.6 * 0x1p-20,
        .ulp_dtype = ND_DTYPE_f32,
        .worst = 7,
        .real = {ND_DTYPE_f32, ND_DTYPE_f32}
    };

    (void)state;
    for (int i = 0; i < N; i++) {
        r[i] = (float)(i % 10007 * 7919 % 10007) / 10007.0F;
        c[i] = r[i] + (float)(i * 31 % 1009) * 1e-7F;
    }
    const struct tensor_view view[2] = {sides_view(&sides, 0), sides_view(&sides, 1)};
    nd_detail_init(&whole);
    nd_detail_init(&folded);
    nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &view[0], &view[1], &params, 0, N,
                      &whole);
    for (uint64_t at = 0; at < N; at += MOMENTS_CHUNK) {
        const uint64_t left = N - at;
        nd_detail_init(&chunk);
        nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &view[0], &view[1], &params, at,
                          left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &chunk);
        nd_detail_fold(&folded, &chunk);
    }
    assert_int_equal(whole.detail.n, N);
    assert_memory_equal(&whole, &folded, sizeof whole);
}

/* --- slices ------------------------------------------------------------------------------
 * The reference is 1 everywhere and the candidate the same but for one row and one channel,
 * so that drifts follow by hand. */

static struct worst_slice slices_found[2]; /* channel, row */

static void measure_slices(const struct nd_shape *shape, const float *r, const float *c)
{
    const enum nd_dtype real[2] = {ND_DTYPE_f32, ND_DTYPE_f32};
    struct tensor_view view[2];
    struct slices slices;
    uint64_t count = 1;

    for (uint32_t k = 0; k < shape->rank; k++)
        count *= shape->dim[k];
    nd_view_contiguous(&view[0], r, count * sizeof *r, ND_DTYPE_f32, shape);
    nd_view_contiguous(&view[1], c, count * sizeof *c, ND_DTYPE_f32, shape);
    assert_true(nd_slices_init(&slices, nd_kernel_set_for(nd_isa_best()), view, real, 1.0));
    for (size_t part = slices.part_count; part > 0; part--) /* in any order */
        nd_slices_part(&slices, part - 1);
    nd_slices_end(&slices, &slices_found[0], &slices_found[1]);
    nd_slices_done(&slices);
}

static float *ones(size_t count)
{
    float *const values = malloc(count * sizeof *values);

    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = 1.0F;
    return values;
}

static void the_worst_row_and_column_are_found_among_several_parts(void **state)
{
    enum { ROWS = 1500, COLUMNS = 2048 };
    const struct nd_shape shape = {
        .rank = 2, .dim = {ROWS, COLUMNS}
    };
    float *const r = ones((size_t)ROWS * COLUMNS), *const c = ones((size_t)ROWS * COLUMNS);

    (void)state;
    for (size_t k = 0; k < COLUMNS; k++)
        c[1234 * (size_t)COLUMNS + k] += 0.5F;
    for (size_t k = 0; k < ROWS; k++)
        c[k * COLUMNS + 77] += 0.25F;
    measure_slices(&shape, r, c);
    assert_true(slices_found[0].known && slices_found[1].known);
    assert_int_equal(slices_found[0].axis, 1);
    assert_int_equal(slices_found[0].at, 77);
    assert_near(slices_found[0].drift, sqrt((1499 * 0.0625 + 0.5625) / 1500.0), 4.0);
    assert_int_equal(slices_found[1].at, 1234 * COLUMNS);
    assert_near(slices_found[1].drift, sqrt((2047 * 0.25 + 0.5625) / 2048.0), 4.0);
    free(r);
    free(c);
}

/* NCHW: channels are axis 1; what is not finite on both sides is in no slice. */
static void channels_of_images_are_axis_1(void **state)
{
    enum { N = 3, C = 5, H = 40, W = 50 };
    const struct nd_shape shape = {
        .rank = 4, .dim = {N, C, H, W}
    };
    float *const r = ones(N * C * H * W), *const c = ones(N * C * H * W);

    (void)state;
    for (size_t n = 0; n < N; n++)
        for (size_t i = 0; i < H * W; i++)
            c[(n * C + 3) * H * W + i] += 0.125F;
    c[((2 * C + 1) * H + 7) * W + 49] += 2.0F;
    r[3] = (float)NAN; /* one of [0, 0, 0, :] is left out */
    measure_slices(&shape, r, c);
    assert_int_equal(slices_found[0].axis, 1);
    assert_int_equal(slices_found[0].at, 3);
    assert_near(slices_found[0].drift, 0.125, 1.0);
    assert_int_equal(slices_found[1].at, ((2 * C + 1) * H + 7) * W);
    assert_near(slices_found[1].drift, sqrt(4.0 / 50.0), 1.0);
    free(r);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_errors_have_a_floor_under_the_reference),
        cmocka_unit_test(scaled_errors_are_counted_at_both_bounds),
        cmocka_unit_test(quantiles_are_upper_edges_of_the_nearest_rank),
        cmocka_unit_test(ulp_is_the_spacing_at_the_reference),
        cmocka_unit_test(the_worst_elements_come_by_error_then_place),
        cmocka_unit_test(bins_follow_the_bits_of_a_float32),
        cmocka_unit_test(a_bins_edge_is_the_next_float32_of_four_bits),
        cmocka_unit_test(ranks_are_counted_in_integers),
        cmocka_unit_test(ulps_of_float16_stop_shrinking_among_subnormals),
        cmocka_unit_test(ulps_have_a_floor_at_a_thousandth_of_the_rms),
        cmocka_unit_test(without_a_float_dtype_there_are_no_ulps),
        cmocka_unit_test(zeros_subnormals_and_saturation_are_the_sides_own),
        cmocka_unit_test(saturation_is_that_of_the_dtype_the_run_computed_in),
        cmocka_unit_test(nothing_over_zero_is_no_error_and_something_is_infinite),
        cmocka_unit_test(ratios_survive_errors_beyond_float64),
        cmocka_unit_test(integers_keep_their_exact_error),
        cmocka_unit_test(chunks_fold_to_the_same_bits),
        cmocka_unit_test(the_worst_row_and_column_are_found_among_several_parts),
        cmocka_unit_test(channels_of_images_are_axis_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
