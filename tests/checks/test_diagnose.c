/*
 * The diagnosis on small scenes whose fault is put in by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checks/scene.h"

enum { ROWS = 64, COLUMNS = 48, N = ROWS * COLUMNS };
static const uint64_t matrix[] = {ROWS, COLUMNS}, vector[] = {COLUMNS};

struct tensors {
    double x[N], y[N], other[N], w[COLUMNS], b[COLUMNS];
};

static struct tensors *tensors_new(void)
{
    struct tensors *t = calloc(1, sizeof *t);
    uint64_t state = 7;

    for (int i = 0; i < N; i++) /* rows of different scale: eps shows in the small ones */
        t->x[i] = (double)(float)(scene_normal(&state) *
                                      pow(10, -2.0 * (i / COLUMNS) / ROWS) * 0.02 +
                                  0.01);
    for (int c = 0; c < COLUMNS; c++) {
        t->w[c] = (double)(float)(1 + 0.3 * scene_normal(&state));
        t->b[c] = (double)(float)(0.2 * scene_normal(&state));
    }
    return t;
}

static void layer_norm(const double *x, const double *w, const double *b, double eps,
                       double *out)
{
    for (int r = 0; r < ROWS; r++) {
        double mean = 0, var = 0;
        for (int c = 0; c < COLUMNS; c++)
            mean += x[r * COLUMNS + c] / COLUMNS;
        for (int c = 0; c < COLUMNS; c++)
            var += (x[r * COLUMNS + c] - mean) * (x[r * COLUMNS + c] - mean) / COLUMNS;
        for (int c = 0; c < COLUMNS; c++)
            out[r * COLUMNS + c] =
                (x[r * COLUMNS + c] - mean) / sqrt(var + eps) * w[c] + b[c];
    }
}

/* A first layer that hands on x, then a LayerNorm with the given outputs. */
static void add_norm(struct scene *scene, const struct tensors *t, enum nd_dtype real,
                     const double *reference, const double *candidate, bool with_weights)
{
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", real, 2, matrix, t->x, t->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_slot(scene, "input.0", real, 2, matrix, t->x, t->x);
    scene_slot(scene, "output.0", real, 2, matrix, reference, candidate);
    if (!with_weights)
        return;
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 1, vector, t->w, t->w);
    scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, vector, t->b, t->b);
}

static void names_another_eps_and_both_values(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(t->x, t->w, t->b, 1e-4, t->other);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    scene_number(scene, 0, "eps", 1e-5);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_non_null(diagnosis);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->origin_role, "origin");
    assert_int_equal(diagnosis->roles[0], ND_ROLE_CLEAN);
    assert_true(diagnosis->cause_count >= 1);
    const struct nd_cause *cause = &diagnosis->causes[0];
    assert_string_equal(cause->id, "eps");
    assert_int_equal(cause->status, ND_CAUSE_CONFIRMED);
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    assert_true(fabs(scene_parameter(cause, "reference") / 1e-5 - 1) < 0.01);
    assert_true(fabs(scene_parameter(cause, "candidate") / 1e-4 - 1) < 0.01);
    assert_true(cause->explains > 0.999);
    assert_int_equal(scene_finding(diagnosis, "eps")->status, ND_CHECK_MISMATCH);
    assert_int_equal(scene_finding(diagnosis, "centre")->status, ND_CHECK_OK);
    scene_free(scene);
    free(t);
}

static void finds_the_reference_to_be_the_wrong_side(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-4, t->y); /* although it declares 1e-5 */
    layer_norm(t->x, t->w, t->b, 1e-5, t->other);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    scene_number(scene, 0, "eps", 1e-5);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->causes[0].id, "eps");
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_REFERENCE);
    scene_free(scene);
    free(t);
}

static void names_another_eps_without_weights(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(t->x, t->w, t->b, 1e-3, t->other);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, false);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->causes[0].id, "eps");
    assert_true(fabs(scene_parameter(&diagnosis->causes[0], "candidate") / 1e-3 - 1) <
                0.01);
    scene_free(scene);
    free(t);
}

static void finds_no_origin_in_a_clean_bfloat16_pair(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();
    uint64_t random = 11;

    (void)state;
    for (int i = 0; i < N; i++)
        t->x[i] = nd_dtype_round(ND_DTYPE_bf16, t->x[i]);
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    for (int i = 0; i < N;
         i++) /* rounded once more before the weight, as fused kernels do */
        t->other[i] = t->y[i] * (1 + 0x1p-9 * scene_normal(&random));
    add_norm(scene, t, ND_DTYPE_bf16, t->y, t->other, true);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, ND_NO_INDEX);
    assert_int_equal(diagnosis->first, ND_NO_INDEX);
    assert_int_equal(diagnosis->expected[1], ND_YES);
    assert_int_equal(diagnosis->cause_count, 0);
    scene_free(scene);
    free(t);
}

static void clears_a_layer_that_only_passes_on_its_input(void **state)
{
    struct tensors *t = tensors_new(), *moved = tensors_new();
    struct scene *scene = scene_new();
    uint64_t random = 3;

    (void)state;
    for (int i = 0; i < N; i++)
        moved->x[i] = t->x[i] * (1 + 0.1 * scene_normal(&random));
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(moved->x, t->w, t->b, 1e-5, t->other);
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->y, t->y);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, moved->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_number(scene, 0, "eps", 1e-5);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, moved->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 1, vector, t->w, t->w);
    scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, vector, t->b, t->b);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 0);
    assert_int_equal(diagnosis->roles[0], ND_ROLE_ORIGIN);
    assert_int_equal(diagnosis->roles[1], ND_ROLE_INHERITED);
    assert_int_equal(diagnosis->expected[1], ND_NO);
    scene_free(scene);
    free(t);
    free(moved);
}

static void says_gap_where_nothing_made_the_input_differ(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    for (int i = 0; i < N; i++)
        t->other[i] = t->y[i] * 1.5;
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(scene, "second", "Linear");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->origin_role, "gap");
    assert_int_equal(diagnosis->roles[1], ND_ROLE_GAP);
    scene_free(scene);
    free(t);
}

static void says_different_input_before_anything_else(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    for (int i = 0; i < N; i++)
        t->other[i] = t->x[i] * 1.01;
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->other);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->x);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 0);
    assert_int_equal(diagnosis->cause_count, 1);
    assert_string_equal(diagnosis->causes[0].id, "different_input");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    scene_free(scene);
    free(t);
}

static void names_weights_that_stand_out(void **state)
{
    struct tensors *t = tensors_new(), *moved = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    for (int c = 0; c < COLUMNS; c++)
        moved->w[c] = t->w[c] * (1 + 0.05 * (c % 3));
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(t->x, moved->w, t->b, 1e-5, t->other);
    scene_layer(scene, "norm", "LayerNorm");
    scene_number(scene, 0, "eps", 1e-5);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 1, vector, t->w, moved->w);
    scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, vector, t->b, t->b);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 0);
    assert_string_equal(diagnosis->causes[0].id, "different_weights");
    scene_free(scene);
    free(t);
    free(moved);
}

static void finds_where_nan_appears_first(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    memcpy(t->other, t->y, sizeof t->y);
    t->other[100] = (double)NAN;
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    scene_layer(scene, "after", "ReLU");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->causes[0].id, "nonfinite");
    assert_true(scene_parameter(&diagnosis->causes[0], "nan") == 1);
    assert_int_equal(diagnosis->roles[2], ND_ROLE_INHERITED);
    scene_free(scene);
    free(t);
}

static void names_float32_values_on_the_bfloat16_grid(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    for (int i = 0; i < N; i++)
        t->other[i] = nd_dtype_round(ND_DTYPE_bf16, t->y[i]);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    scene_number(scene, 0, "eps", 1e-5);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->causes[0].id, "dtype_effective");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    assert_string_equal(diagnosis->causes[0].params[0].text, "bfloat16");
    assert_string_equal(scene_finding(diagnosis, "dtype")->recovered[1], "bfloat16");
    scene_free(scene);
    free(t);
}

/* Channels of 4 images of 3 channels and 16 positions. */
static void batch_norm(const double *x, const double *mean, const double *var, double *out)
{
    for (int i = 0; i < 192; i++) {
        const int c = i / 16 % 3;
        out[i] = (x[i] - mean[c]) / sqrt(var[c] + 1e-5);
    }
}

static void tells_running_statistics_from_those_of_the_batch(void **state)
{
    static const uint64_t images[] = {4, 3, 16}, channels[] = {3};
    static const double running[] = {0.3, -0.2, 0.1}, spread[] = {1.5, 0.7, 2};
    static const double ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    struct scene *scene = scene_new();
    double x[192], batch[192], kept[192], mean[3] = {0, 0, 0}, var[3] = {0, 0, 0};
    uint64_t random = 9;

    (void)state;
    for (int i = 0; i < 192; i++) {
        x[i] = (double)(float)scene_normal(&random);
        mean[i / 16 % 3] += x[i] / 64;
    }
    for (int i = 0; i < 192; i++)
        var[i / 16 % 3] += (x[i] - mean[i / 16 % 3]) * (x[i] - mean[i / 16 % 3]) / 64;
    batch_norm(x, mean, var, batch);
    batch_norm(x, running, spread, kept);
    scene_layer(scene, "bn", "BatchNorm1d");
    scene_number(scene, 0, "eps", 1e-5);
    scene_number(scene, 0, "training", 0);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 3, images, x, x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 3, images, kept, batch);
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 1, channels, ones, NULL);
    scene_slot(scene, "param.bias", ND_DTYPE_f32, 1, channels, zeros, NULL);
    scene_slot(scene, "state.running_mean", ND_DTYPE_f32, 1, channels, running, NULL);
    scene_slot(scene, "state.running_var", ND_DTYPE_f32, 1, channels, spread, NULL);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 0);
    assert_string_equal(diagnosis->causes[0].id, "running_vs_batch");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
    const struct nd_finding *line = scene_finding(diagnosis, "statistics");
    assert_int_equal(line->status, ND_CHECK_MISMATCH);
    assert_string_equal(line->declared[0], "running");
    assert_null(line->declared[1]);
    assert_string_equal(line->recovered[0], "running");
    assert_string_equal(line->recovered[1], "batch");
    scene_free(scene);
}

static void names_a_tail_that_was_not_written(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    memcpy(t->other, t->y, sizeof t->y);
    for (int i = N - 32; i < N; i++)
        t->other[i] = 0;
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_string_equal(diagnosis->causes[0].id, "tail_not_written");
    assert_true(scene_parameter(&diagnosis->causes[0], "count") == 32);
    scene_free(scene);
    free(t);
}

static void sees_growth_where_inputs_are_missing(void **state)
{
    static const double sizes[] = {2e-7, 3e-7, 4e-7, 1e-3, 1.2e-3};
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();
    uint64_t random = 5;

    (void)state;
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < N; i++)
            t->other[i] = t->x[i] * (1 + sizes[k] * scene_normal(&random));
        scene_layer(scene, "layer", "Linear");
        scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->other);
    }
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 3);
    assert_int_equal(diagnosis->roles[4], ND_ROLE_INHERITED);
    assert_true(isnan(diagnosis->input_drift));
    scene_free(scene);
    free(t);
}

static void proves_an_earlier_output_to_be_the_missing_input(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();
    uint64_t random = 3;

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(t->x, t->w, t->b, 1.02e-5, t->other); /* far below the noise before it */
    scene_layer(scene, "noisy", "Linear");
    for (int i = 0; i < N; i++)
        t->b[i % COLUMNS] = scene_normal(&random); /* any numbers: another layer's output */
    scene_slot(scene, "output.0", ND_DTYPE_f32, 1, vector, t->w, t->b);
    scene_layer(scene, "first", "Linear");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(scene, "norm", "LayerNorm");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->roles[2], ND_ROLE_ORIGIN);
    scene_free(scene);
    free(t);
}

static void never_blames_a_container(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    layer_norm(t->x, t->w, t->b, 1e-3, t->other);
    scene_layer(scene, "block", "Block");
    scene_container(scene);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->other, true);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->roles[0], ND_ROLE_CONTAINER);
    assert_int_equal(diagnosis->origin, 2);
    scene_free(scene);
    free(t);
}

static void offers_the_commands_that_would_settle_open_steps(void **state)
{
    struct tensors *t = tensors_new();
    struct scene *scene = scene_new();

    (void)state;
    layer_norm(t->x, t->w, t->b, 1e-5, t->y);
    add_norm(scene, t, ND_DTYPE_f32, t->y, t->y, true);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->step_count, 4);
    assert_string_equal(diagnosis->steps[0].id, "randomness");
    assert_int_equal(diagnosis->steps[0].status, ND_STEP_OPEN);
    assert_string_equal(diagnosis->steps[0].argv[1], "gpu");
    assert_string_equal(diagnosis->steps[0].argv[3], "--rerun-candidate");
    assert_int_equal(diagnosis->steps[1].status, ND_STEP_DONE);
    scene_free(scene);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_another_eps_and_both_values),
        cmocka_unit_test(finds_the_reference_to_be_the_wrong_side),
        cmocka_unit_test(names_another_eps_without_weights),
        cmocka_unit_test(finds_no_origin_in_a_clean_bfloat16_pair),
        cmocka_unit_test(clears_a_layer_that_only_passes_on_its_input),
        cmocka_unit_test(says_gap_where_nothing_made_the_input_differ),
        cmocka_unit_test(says_different_input_before_anything_else),
        cmocka_unit_test(names_weights_that_stand_out),
        cmocka_unit_test(finds_where_nan_appears_first),
        cmocka_unit_test(names_float32_values_on_the_bfloat16_grid),
        cmocka_unit_test(tells_running_statistics_from_those_of_the_batch),
        cmocka_unit_test(names_a_tail_that_was_not_written),
        cmocka_unit_test(sees_growth_where_inputs_are_missing),
        cmocka_unit_test(proves_an_earlier_output_to_be_the_missing_input),
        cmocka_unit_test(never_blames_a_container),
        cmocka_unit_test(offers_the_commands_that_would_settle_open_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
