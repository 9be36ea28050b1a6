/*
 * Faults inside the arithmetic of a norm, put in by plain loops in float, and their names.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checks/scene.h"

enum { ROWS = 64, COLUMNS = 48, N = ROWS * COLUMNS };
static const uint64_t matrix[] = {ROWS, COLUMNS}, vector[] = {COLUMNS};

struct norm {
    double x[N], y[N], faulty[N], w[COLUMNS], b[COLUMNS];
};

/* Rows of about unit variance about `mean`. */
static struct norm *norm_new(double mean, double size)
{
    struct norm *t = calloc(1, sizeof *t);
    uint64_t state = 23;

    assert_non_null(t);
    for (int i = 0; i < N; i++)
        t->x[i] = (double)(float)(size * (scene_normal(&state) *
                                              (1 + 0.02 * (i / COLUMNS)) +
                                          mean));
    for (int c = 0; c < COLUMNS; c++) {
        t->w[c] = (double)(float)(1 + 0.3 * scene_normal(&state));
        t->b[c] = (double)(float)(0.2 * scene_normal(&state));
    }
    return t;
}

/* Round to nearest even after dropping 16 bits of a float's mantissa. */
static float bfloat16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* One element each of: subtract centre[row], times rstd[row], weight, bias. */
static void apply(const struct norm *t, const float *centre, const float *rstd,
                  bool cast_xhat, double *out)
{
    for (int i = 0; i < N; i++) {
        float xhat = ((float)t->x[i] - centre[i / COLUMNS]) * rstd[i / COLUMNS];
        if (cast_xhat)
            xhat = bfloat16(xhat);
        out[i] = (double)(xhat * (float)t->w[i % COLUMNS] + (float)t->b[i % COLUMNS]);
    }
}

/* Mean and mean square deviation of `count` elements from `first` on. */
static void moments(const double *x, int first, int count, float *ret_mean, float *ret_var)
{
    double mean = 0, var = 0;

    for (int i = first; i < first + count; i++)
        mean += x[i] / count;
    for (int i = first; i < first + count; i++)
        var += (x[i] - mean) * (x[i] - mean) / count;
    *ret_mean = (float)mean;
    *ret_var = (float)var;
}

static void honest(const struct norm *t, float *centre, float *rstd, double *out)
{
    for (int r = 0; r < ROWS; r++) {
        float var;
        moments(t->x, r * COLUMNS, COLUMNS, &centre[r], &var);
        rstd[r] = 1 / sqrtf(var + 1e-5f);
    }
    apply(t, centre, rstd, false, out);
}

static const struct diagnosis *diagnose_sides(struct scene *scene, const struct norm *t,
                                              const char *type, const double *reference,
                                              const double *candidate, bool weights)
{
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(scene, "norm", type);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, reference, candidate);
    if (weights) {
        scene_slot(scene, "param.weight", ND_DTYPE_f32, 1, vector, t->w, t->w);
        if (strcmp(type, "LayerNorm") == 0)
            scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, vector, t->b, t->b);
    }
    scene_number(scene, 0, "eps", 1e-5);
    return scene_diagnose(scene);
}

/* The candidate is at fault; its first cause must be `id`, confirmed. */
static const struct nd_cause *expect_cause(struct scene *scene, const struct norm *t,
                                           const char *id)
{
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "LayerNorm", t->y, t->faulty, true);

    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, id);
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_CANDIDATE);
    return &diagnosis->causes[0];
}

static const char *word_of(const struct nd_cause *cause, const char *key)
{
    for (size_t i = 0; i < cause->param_count; i++)
        if (strcmp(cause->params[i].key, key) == 0)
            return cause->params[i].text;
    return "";
}

static void names_a_reciprocal_deviation_in_bfloat16(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++)
        rstd[r] = bfloat16(rstd[r]);
    apply(t, centre, rstd, false, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "rstd_rounded");
    assert_string_equal(word_of(cause, "dtype"), "bfloat16");
    scene_free(scene);
    free(t);
}

static void names_a_cast_before_the_weight(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    apply(t, centre, rstd, true, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "cast_before_weight");
    assert_string_equal(word_of(cause, "dtype"), "bfloat16");
    scene_free(scene);
    free(t);
}

static void names_statistics_in_bfloat16(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float mean, var = 0;
        moments(t->x, r * COLUMNS, COLUMNS, &mean, &var);
        centre[r] = bfloat16(mean);
        var = 0;
        for (int c = 0; c < COLUMNS; c++) {
            const float d = (float)t->x[r * COLUMNS + c] - centre[r];
            var += d * d / COLUMNS;
        }
        rstd[r] = 1 / sqrtf(bfloat16(var) + 1e-5f);
    }
    apply(t, centre, rstd, false, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "norm_internal_lowp");
    assert_string_equal(word_of(cause, "dtype"), "bfloat16");
    assert_string_equal(word_of(cause, "place"), "mean and variance");
    scene_free(scene);
    free(t);
}

static void names_the_exponent_trick_for_the_root(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float mean, var;
        uint32_t bits;
        moments(t->x, r * COLUMNS, COLUMNS, &mean, &var);
        var += 1e-5f;
        memcpy(&bits, &var, sizeof bits);
        bits = 0x5f3759dfu - (bits >> 1);
        memcpy(&rstd[r], &bits, sizeof bits);
        rstd[r] *= 1.5f - 0.5f * var * rstd[r] * rstd[r];
    }
    apply(t, centre, rstd, false, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "approximate_rsqrt");
    assert_true(fabs(scene_parameter(cause, "steps") - 1) < 1e-9);
    scene_free(scene);
    free(t);
}

/* Four shards of twelve channels, each with its own mean and variance. */
static void shard(const struct norm *t, double *out)
{
    for (int s = 0; s < N / 12; s++) {
        float mean, var;
        moments(t->x, s * 12, 12, &mean, &var);
        const float rstd = 1 / sqrtf(var + 1e-5f);
        for (int i = s * 12; i < s * 12 + 12; i++)
            out[i] = (double)(((float)t->x[i] - mean) * rstd * (float)t->w[i % COLUMNS] +
                              (float)t->b[i % COLUMNS]);
    }
}

static void names_the_number_of_shards(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    shard(t, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "shard_statistics");
    assert_true(fabs(scene_parameter(cause, "shards") - 4) < 1e-9);
    scene_free(scene);
    free(t);
}

static void blames_the_reference_without_weights(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    shard(t, t->faulty);
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "LayerNorm", t->faulty, t->y, false);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "shard_statistics");
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_REFERENCE);
    scene_free(scene);
    free(t);
}

/* Without weights the reference's own are estimated, fault and all. */
static void finds_the_weight_that_the_reference_dropped(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int i = 0; i < N; i++)
        t->faulty[i] = (double)(((float)t->x[i] - centre[i / COLUMNS]) * rstd[i / COLUMNS] +
                                (float)t->b[i % COLUMNS]);
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "LayerNorm", t->faulty, t->y, false);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "weight_dropped");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_REFERENCE);
    scene_free(scene);
    free(t);
}

/* A LayerNorm's weight is plain: a side that adds 1 is wrong, with weights or without. */
static void blames_the_side_that_adds_one_to_the_weight(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int i = 0; i < N; i++)
        t->faulty[i] = (double)(((float)t->x[i] - centre[i / COLUMNS]) * rstd[i / COLUMNS] *
                                    (float)(1 + t->w[i % COLUMNS]) +
                                (float)t->b[i % COLUMNS]);
    for (int k = 0; k < 4; k++) {
        struct scene *scene = scene_new();
        const bool weights = k / 2 == 1, is_candidate = k % 2 == 1;
        const struct diagnosis *diagnosis = diagnose_sides(
            scene, t, "LayerNorm", is_candidate ? t->y : t->faulty,
            is_candidate ? t->faulty : t->y, weights);
        assert_true(diagnosis->cause_count >= 1);
        assert_string_equal(diagnosis->causes[0].id, "one_plus_weight");
        assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
        assert_int_equal(diagnosis->causes[0].side,
                         is_candidate ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE);
        scene_free(scene);
    }
    free(t);
}

/* A class of a name that says nothing: what it does makes it an RMSNorm. */
static void recognises_a_norm_of_unknown_type_by_what_it_does(void **state)
{
    struct norm *t = norm_new(0.3, 0.02);
    struct scene *scene = scene_new();
    float zero[ROWS] = {0}, rstd[ROWS];

    (void)state;
    memset(t->b, 0, sizeof t->b);
    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < ROWS; r++) {
            double squares = 0;
            for (int c = 0; c < COLUMNS; c++)
                squares += t->x[r * COLUMNS + c] * t->x[r * COLUMNS + c] / COLUMNS;
            rstd[r] = 1 / sqrtf((float)squares + (k == 0 ? 1e-5f : 1e-4f));
        }
        apply(t, zero, rstd, false, k == 0 ? t->y : t->faulty);
    }
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "Stabiliser", t->y, t->faulty, true);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "eps");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    const double eps = scene_parameter(&diagnosis->causes[0], "candidate");
    assert_true(fabs(eps / 1e-4 - 1) < 0.01);
    scene_free(scene);
    free(t);
}

/* The producer agrees, and the norm's input lies on the bfloat16 grid on one side. */
static void names_a_cast_of_the_input(void **state)
{
    struct norm *t = norm_new(0.3, 1), *cast = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int i = 0; i < N; i++)
        cast->x[i] = (double)bfloat16((float)t->x[i]);
    honest(cast, centre, rstd, cast->y);
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, cast->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, cast->y);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->origin_role, "gap");
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "dtype_effective");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_CANDIDATE);
    assert_string_equal(word_of(&diagnosis->causes[0], "dtype"), "bfloat16");
    scene_free(scene);
    free(cast);
    free(t);
}

enum { SHORT = 8, SHORT_ROWS = N / SHORT };

/* Rows of eight: the smallest variance of them against the mean one, worked out here. */
static void says_how_much_few_elements_magnify_noise(void **state)
{
    static const uint64_t rows[] = {SHORT_ROWS, SHORT};
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    double least = 1e9, typical = 0;

    (void)state;
    for (int r = 0; r < SHORT_ROWS; r++) {
        float mean, var;
        moments(t->x, r * SHORT, SHORT, &mean, &var);
        least = (double)var < least ? (double)var : least;
        typical += (double)var / SHORT_ROWS;
        for (int i = r * SHORT; i < (r + 1) * SHORT; i++) {
            t->y[i] = (double)(((float)t->x[i] - mean) / sqrtf(var + 1e-5f));
            t->faulty[i] = (double)(((float)t->x[i] - mean) / sqrtf(var + 1e-3f));
        }
    }
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, rows, t->x, t->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, rows, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, rows, t->y, t->faulty);
    scene_number(scene, 0, "eps", 1e-5);
    scene_number(scene, 0, "elementwise_affine", 0);
    const struct nd_finding *line = scene_finding(scene_diagnose(scene), "statistics");
    assert_string_equal(line->advice.id, "advice.statistics.few");
    assert_true(fabs(line->advice.params[0].number - SHORT) < 1e-9);
    const double factor = sqrt((typical + 1e-3) / (least + 1e-3));
    assert_true(fabs(line->advice.params[1].number / factor - 1) < 0.02);
    scene_free(scene);
    free(t);
}

/* Weights estimated on the reference take its eps up: the difference is all that is left. */
static void names_eps_by_the_difference_where_weights_hide_the_value(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float var;
        moments(t->x, r * COLUMNS, COLUMNS, &centre[r], &var);
        rstd[r] = 1 / sqrtf(var + 3e-5f);
    }
    apply(t, centre, rstd, false, t->faulty);
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->faulty);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "eps");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    const double apart = scene_parameter(&diagnosis->causes[0], "candidate") -
                         scene_parameter(&diagnosis->causes[0], "reference");
    assert_true(fabs(apart / 2e-5 - 1) < 0.05);
    scene_free(scene);
    free(t);
}

static void names_a_divisor_of_two_ranks(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float mean, var;
        moments(t->x, r * COLUMNS, COLUMNS, &mean, &var);
        rstd[r] = 1 / sqrtf(var / 2 + 1e-5f);
    }
    apply(t, centre, rstd, false, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "wrong_divisor");
    assert_true(fabs(scene_parameter(cause, "divisor") - 96) < 1e-9);
    scene_free(scene);
    free(t);
}

static void names_elements_of_the_next_row(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float var;
        moments(t->x, r * COLUMNS, r + 1 < ROWS ? COLUMNS + 4 : COLUMNS, &centre[r], &var);
        rstd[r] = 1 / sqrtf(var + 1e-5f);
    }
    apply(t, centre, rstd, false, t->faulty);
    const struct nd_cause *cause = expect_cause(scene, t, "neighbour_in_statistics");
    assert_true(fabs(scene_parameter(cause, "elements") - 4) < 1e-9);
    scene_free(scene);
    free(t);
}

static void names_statistics_over_the_first_axis(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];
    double column[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int c = 0; c < COLUMNS; c++) {
        float mean, var;
        for (int r = 0; r < ROWS; r++)
            column[r] = t->x[r * COLUMNS + c];
        moments(column, 0, ROWS, &mean, &var);
        const float factor = 1 / sqrtf(var + 1e-5f);
        for (int r = 0; r < ROWS; r++)
            t->faulty[r * COLUMNS + c] =
                (double)(((float)column[r] - mean) * factor * (float)t->w[c] +
                         (float)t->b[c]);
    }
    const struct nd_cause *cause = expect_cause(scene, t, "wrong_axis");
    assert_string_equal(word_of(cause, "axes"), "0");
    scene_free(scene);
    free(t);
}

/* E[x^2] - E[x]^2 in float, one addition after the other. */
static void supports_cancellation_and_does_not_confirm_it(void **state)
{
    struct norm *t = norm_new(60, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++) {
        float squares = 0;
        for (int c = 0; c < COLUMNS; c++)
            squares += (float)t->x[r * COLUMNS + c] * (float)t->x[r * COLUMNS + c];
        rstd[r] = 1 / sqrtf(squares / COLUMNS - centre[r] * centre[r] + 1e-5f);
    }
    apply(t, centre, rstd, false, t->faulty);
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "LayerNorm", t->y, t->faulty, true);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "cancellation");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_SUPPORTED);
    scene_free(scene);
    free(t);
}

/* Rows whose sum of squares passes 65504 become zero: 48 * 40^2 = 76800. */
static void names_squares_that_leave_float16(void **state)
{
    struct norm *t = norm_new(0, 1);
    struct scene *scene = scene_new();

    (void)state;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < COLUMNS; c++) {
            /* Integers: their squares are exact in float16 up to 45^2 = 2025. */
            t->x[r * COLUMNS + c] = (r % 8 == 0 ? 40 : 1) + (r + c) % 3;
            sum += t->x[r * COLUMNS + c] * t->x[r * COLUMNS + c];
        }
        for (int c = 0; c < COLUMNS; c++) {
            const double y = t->x[r * COLUMNS + c] / sqrt(sum / COLUMNS + 1e-5) * t->w[c];
            t->y[r * COLUMNS + c] = (double)(float)y;
            t->faulty[r * COLUMNS + c] = sum > 65504 ? 0 : (double)(float)y;
        }
    }
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "RMSNorm", t->y, t->faulty, true);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "sumsq_overflow");
    assert_true(fabs(scene_parameter(&diagnosis->causes[0], "rows") - 8) < 1e-9);
    scene_free(scene);
    free(t);
}

static void confirms_nothing_for_factors_of_no_known_kind(void **state)
{
    struct norm *t = norm_new(0.3, 1);
    struct scene *scene = scene_new();
    float centre[ROWS], rstd[ROWS];
    uint64_t random = 5;

    (void)state;
    honest(t, centre, rstd, t->y);
    for (int r = 0; r < ROWS; r++)
        rstd[r] *= (float)(1 + 0.05 * scene_normal(&random));
    apply(t, centre, rstd, false, t->faulty);
    const struct diagnosis *diagnosis =
        diagnose_sides(scene, t, "LayerNorm", t->y, t->faulty, true);
    assert_int_equal(diagnosis->origin, 1);
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_int_equal(diagnosis->causes[i].status, ND_CAUSE_POSSIBLE);
    scene_free(scene);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_a_reciprocal_deviation_in_bfloat16),
        cmocka_unit_test(names_a_cast_before_the_weight),
        cmocka_unit_test(names_statistics_in_bfloat16),
        cmocka_unit_test(names_the_exponent_trick_for_the_root),
        cmocka_unit_test(names_the_number_of_shards),
        cmocka_unit_test(blames_the_reference_without_weights),
        cmocka_unit_test(finds_the_weight_that_the_reference_dropped),
        cmocka_unit_test(blames_the_side_that_adds_one_to_the_weight),
        cmocka_unit_test(recognises_a_norm_of_unknown_type_by_what_it_does),
        cmocka_unit_test(names_a_cast_of_the_input),
        cmocka_unit_test(says_how_much_few_elements_magnify_noise),
        cmocka_unit_test(names_eps_by_the_difference_where_weights_hide_the_value),
        cmocka_unit_test(names_a_divisor_of_two_ranks),
        cmocka_unit_test(names_elements_of_the_next_row),
        cmocka_unit_test(names_statistics_over_the_first_axis),
        cmocka_unit_test(supports_cancellation_and_does_not_confirm_it),
        cmocka_unit_test(names_squares_that_leave_float16),
        cmocka_unit_test(confirms_nothing_for_factors_of_no_known_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
