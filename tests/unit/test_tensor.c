/*
 * Dtypes, shapes, views and layouts.  Decoded values come from the formats' own tables
 * (IEEE 754, OCP 8-bit floats) and from numpy.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/layout.h"

static double decoded(enum nd_dtype dtype, uint64_t bits)
{
    unsigned char bytes[8];
    double        value;

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(bits >> (8 * i));
    nd_dtype_decode(dtype, false, bytes, 1, &value);
    return value;
}

static void float16_decodes_as_ieee_754_says(void **state)
{
    (void)state;
    assert_true(decoded(ND_DTYPE_f16, 0x3c00) == 1.0);
    assert_true(decoded(ND_DTYPE_f16, 0xc000) == -2.0);
    assert_true(decoded(ND_DTYPE_f16, 0x7bff) == 65504.0);
    assert_true(decoded(ND_DTYPE_f16, 0x0001) == 0x1p-24);
    assert_true(decoded(ND_DTYPE_f16, 0x0400) == 0x1p-14);
    assert_true(decoded(ND_DTYPE_f16, 0x3555) == 0.333251953125); /* nearest to 1/3 */
    assert_true(decoded(ND_DTYPE_f16, 0x7c00) == (double)INFINITY);
    assert_true(decoded(ND_DTYPE_f16, 0xfc00) == -(double)INFINITY);
    assert_true(isnan(decoded(ND_DTYPE_f16, 0x7e00)));
    assert_true(signbit(decoded(ND_DTYPE_f16, 0x8000)) != 0);
}

static void bfloat16_and_float8_decode_as_their_tables_say(void **state)
{
    (void)state;
    assert_true(decoded(ND_DTYPE_bf16, 0x4049) == 3.140625);
    assert_true(decoded(ND_DTYPE_bf16, 0xff80) == -(double)INFINITY);
    assert_true(decoded(ND_DTYPE_f8e4m3fn, 0x7e) == 448.0);
    assert_true(decoded(ND_DTYPE_f8e4m3fn, 0x01) == 0x1p-9);
    assert_true(decoded(ND_DTYPE_f8e4m3fn, 0x08) == 0x1p-6);
    assert_true(isnan(decoded(ND_DTYPE_f8e4m3fn, 0xff)));
    assert_true(decoded(ND_DTYPE_f8e5m2, 0x7b) == 57344.0);
    assert_true(decoded(ND_DTYPE_f8e5m2, 0x01) == 0x1p-16);
    assert_true(decoded(ND_DTYPE_f8e5m2, 0x7c) == (double)INFINITY);
    assert_true(isnan(decoded(ND_DTYPE_f8e5m2, 0x7d)));
}

static void rounds_to(enum nd_dtype dtype, double value, double expected)
{
    const double rounded = nd_dtype_round(dtype, value);
    const double turned = nd_dtype_round(dtype, -value);

    assert_memory_equal(&rounded, &expected, sizeof expected); /* zeros keep their sign */
    expected = -expected;
    assert_memory_equal(&turned, &expected, sizeof expected);
}

/* Between a code and the next: the half goes to the even code, all else to the nearer. */
static void rounds_between(enum nd_dtype dtype, uint64_t code)
{
    const double low = decoded(dtype, code), high = decoded(dtype, code + 1);
    const double half = low + (high - low) / 2; /* exact: a double has digits to spare */

    rounds_to(dtype, low, low);
    rounds_to(dtype, half, code % 2 == 0 ? low : high);
    rounds_to(dtype, nextafter(half, low), low);
    rounds_to(dtype, nextafter(half, high), high);
    rounds_to(dtype, nextafter(low, high), low);
    rounds_to(dtype, nextafter(high, low), high);
}

static void doubles_round_to_the_nearest_code_and_halves_to_the_even_one(void **state)
{
    static const struct {
        enum nd_dtype dtype;
        uint64_t last, step; /* code of the largest finite value */
    } rows[] = {
        {ND_DTYPE_f16,      0x7bff,     1     },
        {ND_DTYPE_bf16,     0x7f7f,     1     },
        {ND_DTYPE_f8e4m3fn, 0x7e,       1     },
        {ND_DTYPE_f8e5m2,   0x7b,       1     },
        {ND_DTYPE_f32,      0x7f7fffff, 0x1735}, /* odd: codes of both kinds */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t code = 0; code < rows[i].last; code += rows[i].step)
            rounds_between(rows[i].dtype, code);
    /* Where the subnormal numbers of float32 end. */
    for (uint64_t code = 0x7ff000; code < 0x801000; code++)
        rounds_between(ND_DTYPE_f32, code);
}

/* What lies beyond the middle between the largest value and the one that would follow. */
static void doubles_beyond_the_largest_code_become_infinite_or_nan(void **state)
{
    (void)state;
    rounds_to(ND_DTYPE_f16, 65519.999, 65504);
    rounds_to(ND_DTYPE_f16, 65520, (double)INFINITY);
    rounds_to(ND_DTYPE_bf16, 0x1.fefffffp127, 0x1.fep127);
    rounds_to(ND_DTYPE_bf16, 0x1.ffp127, (double)INFINITY);
    rounds_to(ND_DTYPE_f32, 0x1.fffffefffffffp127, 0x1.fffffep127);
    rounds_to(ND_DTYPE_f32, 0x1.ffffffp127, (double)INFINITY);
    rounds_to(ND_DTYPE_f8e5m2, 61439.999, 57344);
    rounds_to(ND_DTYPE_f8e5m2, 61440, (double)INFINITY);
    rounds_to(ND_DTYPE_f8e4m3fn, 464, 448); /* the even one of 448 and 480 */
    assert_true(isnan(nd_dtype_round(ND_DTYPE_f8e4m3fn, 464.001)));
    assert_true(isnan(nd_dtype_round(ND_DTYPE_f16, (double)NAN)));
    rounds_to(ND_DTYPE_f16, 0x1p-25, 0); /* half of the smallest: to the even zero */
    rounds_to(ND_DTYPE_f16, 0x1p-1074, 0);
    rounds_to(ND_DTYPE_bf16, (double)INFINITY, (double)INFINITY);
    rounds_to(ND_DTYPE_f64, 0x1.0000000000001p-1030, 0x1.0000000000001p-1030);
    assert_true(nd_dtype_max(ND_DTYPE_f64) == 0x1.fffffffffffffp1023);
    assert_true(nd_dtype_max(ND_DTYPE_f32) == 0x1.fffffep127);
    assert_true(nd_dtype_max(ND_DTYPE_bf16) == 0x1.fep127);
}

static void integers_keep_their_sign_and_width(void **state)
{
    (void)state;
    assert_true(decoded(ND_DTYPE_i8, 0xff) == -1.0);
    assert_true(decoded(ND_DTYPE_u8, 0xff) == 255.0);
    assert_true(decoded(ND_DTYPE_i16, 0x8000) == -32768.0);
    assert_true(decoded(ND_DTYPE_u32, 0xffffffff) == 4294967295.0);
    assert_true(decoded(ND_DTYPE_i64, UINT64_MAX) == -1.0);
    assert_true(decoded(ND_DTYPE_bool8, 2) == 1.0);
}

static void big_endian_elements_and_complex_halves_are_turned(void **state)
{
    const unsigned char real[] = {0x3f, 0x80, 0, 0}, pair[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    double              value[2];

    (void)state;
    nd_dtype_decode(ND_DTYPE_f32, true, real, 1, value);
    assert_true(value[0] == 1.0);
    nd_dtype_decode(ND_DTYPE_c64, true, pair, 1, value);
    assert_true(value[0] == 1.0 && value[1] == -2.0);
}

static void dtypes_are_found_by_every_ecosystems_spelling(void **state)
{
    static const struct {
        const char   *name;
        enum nd_dtype dtype;
    } cases[] = {{"torch.float32", ND_DTYPE_f32}, {"F32", ND_DTYPE_f32}, {"BF16", ND_DTYPE_bf16},
                 {"Float16", ND_DTYPE_f16}, {"DT_FLOAT16", ND_DTYPE_f16}, {"half", ND_DTYPE_f16},
                 {"BOOL", ND_DTYPE_bool8}, {"bool", ND_DTYPE_bool8}, {"I64", ND_DTYPE_i64},
                 {"torch.bfloat16", ND_DTYPE_bf16}, {"F8_E4M3", ND_DTYPE_f8e4m3fn},
                 {"float8_e5m2", ND_DTYPE_f8e5m2}, {"C64", ND_DTYPE_c64}, {"float", ND_DTYPE_f32},
                 {"complex128", ND_DTYPE_c128}, {"float3", ND_DTYPE_NONE}, {"", ND_DTYPE_NONE}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(nd_dtype_by_name(cases[i].name, strlen(cases[i].name)), cases[i].dtype);
}

/* numpy: float(np.float16(x)); bfloat16 by hand. */
static void rounding_to_a_dtype_is_to_nearest_even(void **state)
{
    (void)state;
    assert_true(nd_dtype_round(ND_DTYPE_bf16, -1e4) == -9984.0);
    assert_true(nd_dtype_round(ND_DTYPE_bf16, -65504.0) == -65536.0);
    assert_true(nd_dtype_round(ND_DTYPE_f16, -1e9) == -(double)INFINITY);
    assert_true(nd_dtype_round(ND_DTYPE_f16, 2049.0) == 2048.0);
    assert_true(nd_dtype_round(ND_DTYPE_f16, 2051.0) == 2052.0);
    assert_true(nd_dtype_round(ND_DTYPE_f16, 0x1p-25) == 0.0);
    assert_true(nd_dtype_round(ND_DTYPE_f32, 0.1) == (double)0.1f);
    assert_true(nd_dtype_max(ND_DTYPE_f32) == 3.4028234663852886e38);
    assert_true(nd_dtype_max(ND_DTYPE_f8e4m3fn) == 448.0);
}

static void counts_that_overflow_are_refused(void **state)
{
    const struct nd_shape huge = {.rank = 2, .dim = {1ull << 40, 1ull << 40}};
    const struct nd_shape none = {.rank = 3, .dim = {UINT64_MAX, UINT64_MAX, 0}};
    const struct nd_shape edge = {.rank = 1, .dim = {1ull << 61}};
    uint64_t              n;

    (void)state;
    assert_false(nd_shape_count(&huge, &n));
    assert_true(nd_shape_count(&none, &n));
    assert_int_equal(n, 0);
    assert_false(nd_shape_bytes(&edge, 4, &n));
    assert_true(nd_shape_count(&(struct nd_shape){0}, &n));
    assert_int_equal(n, 1);
}

/* np.arange(24).reshape(2,3,4).transpose(2,0,1).ravel() */
static void a_permuted_view_reads_in_logical_order(void **state)
{
    static const float want[24] = {0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21,
                                   2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23};
    float              data[24], got[24];
    struct tensor_view view;
    const uint32_t     order[] = {2, 0, 1};

    (void)state;
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
    nd_view_contiguous(&view, data, sizeof data, ND_DTYPE_f32,
                       &(struct nd_shape){.rank = 3, .dim = {2, 3, 4}});
    assert_true(view.contiguous);
    nd_view_permute(&view, order);
    assert_false(view.contiguous);
    nd_view_gather(&view, 0, 24, got);
    assert_memory_equal(got, want, sizeof want);
    for (uint64_t first = 0; first < 24; first++) { /* any cut gives the same */
        nd_view_gather(&view, first, 24 - first, got);
        assert_memory_equal(got, want + first, (24 - first) * sizeof *want);
    }
}

static void strides_beyond_the_data_are_refused(void **state)
{
    float              data[6] = {0};
    struct tensor_view view;
    const struct nd_shape shape = {.rank = 2, .dim = {2, 3}};

    (void)state;
    nd_view_contiguous(&view, data, sizeof data, ND_DTYPE_f32, &shape);
    assert_true(nd_view_set_strides(&view, 0, (const int64_t[]){3, 1}));
    assert_true(view.contiguous);
    assert_true(nd_view_set_strides(&view, 0, (const int64_t[]){0, 0}));
    assert_false(view.contiguous);
    assert_false(nd_view_set_strides(&view, 1, (const int64_t[]){3, 1}));
    assert_false(nd_view_set_strides(&view, 0, (const int64_t[]){INT64_MAX, 1}));
    assert_false(nd_view_set_strides(&view, 0, (const int64_t[]){-1, 1}));
    assert_true(nd_view_set_strides(&view, 5, (const int64_t[]){-3, -1}));
}

/* NC1HWC0 by its definition: element (n,c,h,w) lies at [n][c/C0][h][w][c%C0]. */
static void nc1hwc0_reads_as_nchw_and_its_padding_is_seen(void **state)
{
    enum { N = 2, C = 5, H = 3, W = 2, C0 = 4, C1 = 2 };
    float              stored[N * C1 * H * W * C0] = {0}, got[N * C * H * W];
    struct tensor_view view, storage;
    uint32_t           c0 = 0;
    const char        *why;
    const struct nd_shape five = {.rank = 5, .dim = {N, C1, H, W, C0}};
    const struct nd_shape four = {.rank = 4, .dim = {N, C, H, W}};

    (void)state;
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int h = 0; h < H; h++)
                for (int w = 0; w < W; w++)
                    stored[(((n * C1 + c / C0) * H + h) * W + w) * C0 + c % C0] =
                        (float)(((n * C + c) * H + h) * W + w + 1);
    nd_view_contiguous(&storage, stored, sizeof stored, ND_DTYPE_f32, &five);
    view = storage;
    assert_true(nd_layout_apply(&view, nd_layout_by_name("nc1hwc0"), &five, &four, &c0, &why));
    assert_int_equal(c0, C0);
    assert_int_equal(view.count, N * C * H * W);
    nd_view_gather(&view, 0, view.count, got);
    for (int i = 0; i < N * C * H * W; i++)
        assert_true(got[i] == (float)(i + 1));
    assert_int_equal(nd_layout_padding_nonzero(&storage, nd_layout_by_name("NC1HWC0"), &four, C0), 0);
    stored[(((1 * C1 + 1) * H + 2) * W + 1) * C0 + 3] = 7;
    stored[(((0 * C1 + 1) * H + 0) * W + 0) * C0 + 1] = (float)NAN;
    assert_int_equal(nd_layout_padding_nonzero(&storage, nd_layout_by_name("NC1HWC0"), &four, C0), 2);
}

static void layouts_that_contradict_the_shapes_say_why(void **state)
{
    float              stored[16] = {0};
    struct tensor_view view;
    uint32_t           c0 = 0;
    const char        *why = NULL;
    const struct nd_shape five = {.rank = 5, .dim = {1, 1, 2, 2, 4}};
    const struct nd_shape four = {.rank = 4, .dim = {1, 5, 2, 2}};

    (void)state;
    nd_view_contiguous(&view, stored, sizeof stored, ND_DTYPE_f32, &five);
    assert_false(nd_layout_apply(&view, nd_layout_by_name("NC1HWC0"), &five, &four, &c0, &why));
    assert_non_null(why);
    assert_false(nd_layout_apply(&view, nd_layout_by_name("NC1HWC0"), &five, &(struct nd_shape){0}, &c0, &why));
    assert_null(nd_layout_by_name("NC1HWC"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float16_decodes_as_ieee_754_says),
        cmocka_unit_test(doubles_round_to_the_nearest_code_and_halves_to_the_even_one),
        cmocka_unit_test(doubles_beyond_the_largest_code_become_infinite_or_nan),
        cmocka_unit_test(bfloat16_and_float8_decode_as_their_tables_say),
        cmocka_unit_test(integers_keep_their_sign_and_width),
        cmocka_unit_test(big_endian_elements_and_complex_halves_are_turned),
        cmocka_unit_test(dtypes_are_found_by_every_ecosystems_spelling),
        cmocka_unit_test(rounding_to_a_dtype_is_to_nearest_even),
        cmocka_unit_test(counts_that_overflow_are_refused),
        cmocka_unit_test(a_permuted_view_reads_in_logical_order),
        cmocka_unit_test(strides_beyond_the_data_are_refused),
        cmocka_unit_test(nc1hwc0_reads_as_nchw_and_its_padding_is_seen),
        cmocka_unit_test(layouts_that_contradict_the_shapes_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
