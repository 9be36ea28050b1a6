/*
 * Causes inside products, activations, softmax and rotary positions, put in by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checks/scene.h"

enum { ROWS = 24, COLUMNS = 32, TERMS = 40, X = ROWS * TERMS, W = COLUMNS * TERMS };
enum { Y = ROWS * COLUMNS };

static const uint64_t x_shape[] = {ROWS, TERMS}, w_shape[] = {COLUMNS, TERMS};
static const uint64_t y_shape[] = {ROWS, COLUMNS}, b_shape[] = {COLUMNS};

struct tensors {
    double x[X], w[W], b[COLUMNS], y[Y], other[Y];
};

/* Keeps so many bits of the significand, rounding to nearest. */
static double cut(double value, int bits)
{
    int exponent;
    const double significand = frexp(value, &exponent);

    return ldexp(nearbyint(ldexp(significand, bits)), exponent - bits);
}

static double single(double value)
{
    return (double)(float)value;
}

static struct tensors *tensors_new(void)
{
    struct tensors *t = calloc(1, sizeof *t);
    uint64_t state = 11;

    for (int i = 0; i < X; i++)
        t->x[i] = single(scene_normal(&state));
    for (int i = 0; i < W; i++)
        t->w[i] = single(0.2 * scene_normal(&state));
    for (int i = 0; i < COLUMNS; i++)
        t->b[i] = single(0.1 * scene_normal(&state));
    return t;
}

/* x times w turned plus b, operands of so many bits; sums kept in so many if sums > 0. */
static void linear(const struct tensors *t, int bits, int sums, double *out)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = 0;
            for (int k = 0; k < TERMS; k++) {
                sum += cut(t->x[r * TERMS + k], bits) * cut(t->w[c * TERMS + k], bits);
                sum = sums > 0 ? cut(sum, sums) : sum;
            }
            out[r * COLUMNS + c] = single(sum + t->b[c]);
        }
}

static const struct nd_cause *diagnose_linear(struct scene *scene, const struct tensors *t)
{
    scene_layer(scene, "first", "Identity");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, x_shape, t->x, t->x);
    scene_layer(scene, "fc", "Linear");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, x_shape, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, y_shape, t->y, t->other);
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 2, w_shape, t->w, t->w);
    scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, b_shape, t->b, t->b);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_non_null(diagnosis);
    assert_int_equal(diagnosis->origin, 1);
    return diagnosis->cause_count > 0 ? &diagnosis->causes[0] : NULL;
}

static const char *word_of(const struct nd_cause *cause, const char *key)
{
    for (size_t i = 0; i < cause->param_count; i++)
        if (strcmp(cause->params[i].key, key) == 0)
            return cause->params[i].text;
    return "";
}

static void confirms_operands_rounded(int bits, const char *name)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    linear(t, 53, 0, t->y);
    linear(t, bits, 0, t->other);
    const struct nd_cause *cause = diagnose_linear(scene, t);
    assert_non_null(cause);
    assert_string_equal(cause->id, "matmul_lowp");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    assert_string_equal(word_of(cause, "dtype"), name);
    assert_true(cause->explains > 0.99);
    scene_free(scene);
    free(t);
}

static void confirms_operands_rounded_to_tf32(void **state)
{
    (void)state;
    confirms_operands_rounded(11, "TF32");
}

static void confirms_operands_rounded_to_hf32(void **state)
{
    (void)state;
    confirms_operands_rounded(12, "HF32");
}

static void confirms_operands_rounded_to_bfloat16(void **state)
{
    (void)state;
    confirms_operands_rounded(8, "bfloat16");
}

static void finds_the_reference_whose_operands_were_rounded(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    linear(t, 8, 0, t->y);
    linear(t, 53, 0, t->other);
    const struct nd_cause *cause = diagnose_linear(scene, t);
    assert_string_equal(cause->id, "matmul_lowp");
    assert_int_equal(cause->side, ND_SIDE_REFERENCE);
    scene_free(scene);
    free(t);
}

static void names_sums_kept_in_float16_without_confirming_them(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    linear(t, 53, 0, t->y);
    linear(t, 53, 11, t->other);
    const struct nd_cause *cause = diagnose_linear(scene, t);
    assert_string_equal(cause->id, "matmul_lowp");
    assert_int_equal(cause->status, ND_CAUSE_SUPPORTED);
    assert_string_equal(word_of(cause, "dtype"), "float16");
    scene_free(scene);
    free(t);
}

static void does_not_take_noise_for_rounded_operands(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();
    uint64_t random = 3;

    (void)state;
    linear(t, 53, 0, t->y);
    for (int i = 0; i < Y; i++)
        t->other[i] = single(t->y[i] + 3e-3 * scene_normal(&random));
    const struct nd_cause *cause = diagnose_linear(scene, t);
    assert_true(cause == NULL || cause->status != ND_CAUSE_CONFIRMED);
    scene_free(scene);
    free(t);
}

/* --- other formulas ------------------------------------------------------------------ */

static double gelu_erf(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double hardswish(double x)
{
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static const struct nd_cause *diagnose_values(struct scene *scene, const char *type,
                                              const struct tensors *t)
{
    scene_layer(scene, "first", "Identity");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, y_shape, t->x, t->x);
    scene_layer(scene, "act", type);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, y_shape, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, y_shape, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_non_null(diagnosis);
    assert_int_equal(diagnosis->origin, 1);
    return diagnosis->cause_count > 0 ? &diagnosis->causes[0] : NULL;
}

static void confirms_variant(const char *type, double (*expected)(double),
                             double (*found)(double), const char *name)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    for (int i = 0; i < Y; i++) {
        t->y[i] = single(expected(t->x[i]));
        t->other[i] = single(found(t->x[i]));
    }
    const struct nd_cause *cause = diagnose_values(scene, type, t);
    assert_non_null(cause);
    assert_string_equal(cause->id, "activation_variant");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_string_equal(word_of(cause, "found"), name);
    scene_free(scene);
    free(t);
}

static void tells_gelu_by_tanh_from_gelu_by_erf(void **state)
{
    (void)state;
    confirms_variant("GELU", gelu_erf, gelu_tanh, "GELU (tanh)");
    confirms_variant("GELU", gelu_tanh, gelu_erf, "GELU (erf)");
}

static void tells_hardswish_from_silu(void **state)
{
    (void)state;
    confirms_variant("SiLU", silu, hardswish, "Hardswish");
    confirms_variant("Hardswish", hardswish, silu, "SiLU");
}

static void softmax(const double *x, int bits, double *out)
{
    for (int r = 0; r < ROWS; r++) {
        double max = -HUGE_VAL, sum = 0;
        for (int c = 0; c < COLUMNS; c++)
            max = fmax(max, cut(x[r * COLUMNS + c], bits));
        for (int c = 0; c < COLUMNS; c++)
            sum += out[r * COLUMNS + c] =
                cut(exp(cut(cut(x[r * COLUMNS + c], bits) - max, bits)), bits);
        for (int c = 0; c < COLUMNS; c++)
            out[r * COLUMNS + c] = single(out[r * COLUMNS + c] / cut(sum, bits));
    }
}

static void confirms_a_softmax_with_bfloat16_inside(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    softmax(t->x, 53, t->y);
    softmax(t->x, 8, t->other);
    const struct nd_cause *cause = diagnose_values(scene, "Softmax", t);
    assert_non_null(cause);
    assert_string_equal(cause->id, "softmax_lowp");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_string_equal(word_of(cause, "dtype"), "bfloat16");
    scene_free(scene);
    free(t);
}

/* --- attention ----------------------------------------------------------------------- */

static void recovers_both_scales_of_attention_scores(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();
    const double root = 1 / sqrt((double)TERMS);

    (void)state;
    memset(t->b, 0, sizeof t->b);
    linear(t, 53, 0, t->y);
    for (int i = 0; i < Y; i++) {
        t->other[i] = single(t->y[i] / TERMS);
        t->y[i] = single(t->y[i] * root);
    }
    scene_layer(scene, "first", "Identity");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, x_shape, t->x, t->x);
    scene_layer(scene, "scores", "Scores");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, x_shape, t->x, t->x);
    scene_slot(scene, "input.1", ND_DTYPE_f32, 2, w_shape, t->w, t->w);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, y_shape, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_true(diagnosis->cause_count > 0);
    const struct nd_cause *cause = &diagnosis->causes[0];
    assert_string_equal(cause->id, "attention_scale");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    assert_true(fabs(scene_parameter(cause, "reference") / root - 1) < 1e-6);
    assert_true(fabs(scene_parameter(cause, "candidate") * TERMS - 1) < 1e-6);
    scene_free(scene);
    free(t);
}

enum { HEADS = 3, TOKENS = 8, WIDTH = 32 };

static const uint64_t rope_shape[] = {HEADS, TOKENS, WIDTH};

static void rope(const double *x, double base, int offset, bool neighbours, double *out)
{
    for (int i = 0; i < HEADS * TOKENS; i++)
        for (int j = 0; j < WIDTH / 2; j++) {
            const double angle = (i % TOKENS + offset) * pow(base, -2.0 * j / WIDTH);
            const int a = i * WIDTH + (neighbours ? 2 * j : j);
            const int b = i * WIDTH + (neighbours ? 2 * j + 1 : j + WIDTH / 2);
            out[a] = single(x[a] * cos(angle) - x[b] * sin(angle));
            out[b] = single(x[b] * cos(angle) + x[a] * sin(angle));
        }
}

static void confirms_other_turn(double base, int offset, bool neighbours, bool with_input,
                                const char *key, double value)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    rope(t->x, 1e4, 0, false, t->y);
    rope(t->x, base, offset, neighbours, t->other);
    scene_layer(scene, "first", "Identity");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 3, rope_shape, t->x, t->x);
    scene_layer(scene, "turn", "RotaryEmbedding");
    if (with_input)
        scene_slot(scene, "input.0", ND_DTYPE_f32, 3, rope_shape, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 3, rope_shape, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_true(diagnosis->cause_count > 0);
    const struct nd_cause *cause = &diagnosis->causes[0];
    assert_string_equal(cause->id, "rope");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_true(scene_parameter(cause, key) == value);
    scene_free(scene);
    free(t);
}

static void names_another_first_position(void **state)
{
    (void)state;
    confirms_other_turn(1e4, 1, false, true, "offset", 1);
    confirms_other_turn(1e4, 3, false, false, "offset", 3);
}

static void names_pairs_of_neighbours(void **state)
{
    (void)state;
    confirms_other_turn(1e4, 0, true, true, "interleaved", 1);
    confirms_other_turn(1e4, 0, true, false, "interleaved", 1);
}

static void names_another_base(void **state)
{
    (void)state;
    confirms_other_turn(5e5, 0, false, true, "base", 5e5);
    confirms_other_turn(5e5, 0, false, false, "base", 5e5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confirms_operands_rounded_to_tf32),
        cmocka_unit_test(confirms_operands_rounded_to_hf32),
        cmocka_unit_test(confirms_operands_rounded_to_bfloat16),
        cmocka_unit_test(finds_the_reference_whose_operands_were_rounded),
        cmocka_unit_test(names_sums_kept_in_float16_without_confirming_them),
        cmocka_unit_test(does_not_take_noise_for_rounded_operands),
        cmocka_unit_test(tells_gelu_by_tanh_from_gelu_by_erf),
        cmocka_unit_test(tells_hardswish_from_silu),
        cmocka_unit_test(confirms_a_softmax_with_bfloat16_inside),
        cmocka_unit_test(recovers_both_scales_of_attention_scores),
        cmocka_unit_test(names_another_first_position),
        cmocka_unit_test(names_pairs_of_neighbours),
        cmocka_unit_test(names_another_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
