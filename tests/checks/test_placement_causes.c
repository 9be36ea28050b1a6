/*
 * Values in other places, and values that something else destroyed: a layer whose output is
 * damaged by hand, in the way that the cause says.
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
static const uint64_t matrix[] = {ROWS, COLUMNS};

struct tensors {
    double x[N], w[COLUMNS * COLUMNS], y[N], other[N];
    struct scene *scene;
};

static void multiply(const double *x, const double *w, double *ret)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += x[r * COLUMNS + k] * w[k * COLUMNS + c];
            ret[r * COLUMNS + c] = sum;
        }
}

static struct tensors *tensors_new(void)
{
    struct tensors *t = calloc(1, sizeof *t);
    uint64_t state = 11;

    for (int i = 0; i < N; i++)
        t->x[i] = (double)(float)scene_normal(&state);
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        t->w[i] = scene_normal(&state) / 7;
    multiply(t->x, t->w, t->y);
    memcpy(t->other, t->y, sizeof t->y);
    t->scene = scene_new();
    return t;
}

/* "first" hands on x; "layer" makes y of it, and `other` in the candidate. */
static const struct diagnosis *diagnose(struct tensors *t, const char *type)
{
    scene_layer(t->scene, "first", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(t->scene, "layer", type);
    scene_slot(t->scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, t->y, t->other);
    return scene_diagnose(t->scene);
}

static void tensors_free(struct tensors *t)
{
    scene_free(t->scene);
    free(t);
}

static void assert_confirmed(const struct diagnosis *diagnosis, const char *cause)
{
    assert_int_equal(diagnosis->first, 1);
    assert_true(diagnosis->cause_count > 0);
    assert_string_equal(diagnosis->causes[0].id, cause);
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_CONFIRMED);
}

static void names_rows_that_moved_round(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < N; i++)
        t->other[(i + COLUMNS) % N] = t->y[i];
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "batch_permuted");
    assert_true(scene_parameter(&diagnosis->causes[0], "axis") == 0);
    assert_true(scene_parameter(&diagnosis->causes[0], "moved") == ROWS);
    tensors_free(t);
}

static void names_two_channels_that_were_swapped(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int r = 0; r < ROWS; r++) {
        t->other[r * COLUMNS + 5] = t->y[r * COLUMNS + 40];
        t->other[r * COLUMNS + 40] = t->y[r * COLUMNS + 5];
    }
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "channels_permuted");
    assert_true(scene_parameter(&diagnosis->causes[0], "axis") == 1);
    assert_true(scene_parameter(&diagnosis->causes[0], "moved") == 2);
    tensors_free(t);
}

static void names_the_distance_that_all_values_are_off(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < N; i++)
        t->other[i] = i + 3 < N ? t->y[i + 3] : 0;
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "offset");
    assert_true(scene_parameter(&diagnosis->causes[0], "distance") == 3);
    tensors_free(t);
}

static void names_the_layer_whose_output_stands_in_the_buffer(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    memcpy(t->other, t->x, sizeof t->x);
    assert_confirmed(diagnose(t, "Linear"), "stale_buffer");
    tensors_free(t);
}

static void names_the_operand_that_a_sum_lost(void **state)
{
    struct tensors *t = tensors_new();
    static double sum[N];

    (void)state;
    for (int i = 0; i < N; i++)
        sum[i] = t->x[i] + t->y[i];
    scene_layer(t->scene, "first", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(t->scene, "sum", "Add");
    scene_slot(t->scene, "input.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_slot(t->scene, "input.1", ND_DTYPE_f32, 2, matrix, t->y, t->y);
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, sum, t->y);
    assert_confirmed(scene_diagnose(t->scene), "residual_missing");
    tensors_free(t);
}

static void names_dropout_and_its_share(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < N; i++) /* 11 is prime to 20: five of twenty in turn */
        t->other[i] = i * 11 % 20 < 5 ? 0 : t->y[i] / 0.75;
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "dropout");
    assert_true(fabs(scene_parameter(&diagnosis->causes[0], "p") - 0.25) < 1e-6);
    tensors_free(t);
}

static void takes_the_reference_for_the_side_that_drops_out(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < N; i++)
        t->y[i] = i * 11 % 20 < 5 ? 0 : t->other[i] / 0.75;
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_string_equal(diagnosis->causes[0].id, "dropout");
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_REFERENCE);
    tensors_free(t);
}

static void names_a_limit_that_values_stop_at(void **state)
{
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < N; i++)
        t->other[i] = fmin(fmax(t->y[i], -1.25), 1.25);
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "saturated");
    assert_true(scene_parameter(&diagnosis->causes[0], "limit") == 1.25);
    tensors_free(t);
}

static void names_a_range_that_was_overwritten(void **state)
{
    struct tensors *t = tensors_new();
    uint64_t seed = 5;

    (void)state;
    for (int i = 512; i < 512 + 128; i++)
        t->other[i] = scene_normal(&seed);
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_confirmed(diagnosis, "memory_overwritten");
    assert_true(scene_parameter(&diagnosis->causes[0], "first") == 512);
    assert_true(scene_parameter(&diagnosis->causes[0], "count") == 128);
    tensors_free(t);
}

static void names_integers_of_eight_bits(void **state)
{
    struct tensors *t = tensors_new();
    double top = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        top = fmax(top, fabs(t->y[i]));
    for (int i = 0; i < N; i++)
        t->other[i] = nearbyint(t->y[i] / (top / 127)) * (top / 127);
    assert_confirmed(diagnose(t, "Linear"), "quantised");
    tensors_free(t);
}

static void suspects_weights_where_the_error_is_a_map_of_the_input(void **state)
{
    struct tensors *t = tensors_new();
    uint64_t seed = 21;

    (void)state;
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        t->w[i] += 0.01 * scene_normal(&seed);
    multiply(t->x, t->w, t->other);
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_string_equal(diagnosis->causes[0].id, "different_weights");
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_SUPPORTED);
    tensors_free(t);
}

/* Two samples, two heads, eight by eight positions. */
static void names_a_mask_that_is_alike_in_every_head(void **state)
{
    static const uint64_t heads[] = {2, 2, 8, 8};
    struct tensors *t = tensors_new();

    (void)state;
    for (int i = 0; i < 256; i++)
        if (i % 8 > i / 8 % 8)
            t->y[i] = -HUGE_VAL;
    scene_layer(t->scene, "first", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(t->scene, "scores", "Scores");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 4, heads, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(t->scene);
    assert_string_equal(diagnosis->causes[0].id, "attention_mask");
    assert_true(scene_parameter(&diagnosis->causes[0], "less") == 4 * 28);
    tensors_free(t);
}

/* Four samples of sixteen positions; the last three of each hold something else. */
static void names_positions_at_the_end_of_each_sample(void **state)
{
    static const uint64_t samples[] = {4, 16, COLUMNS};
    struct tensors *t = tensors_new();
    uint64_t seed = 31;

    (void)state;
    for (int i = 0; i < N; i++)
        if (i / COLUMNS % 16 >= 13)
            t->other[i] = scene_normal(&seed);
    scene_layer(t->scene, "first", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 3, samples, t->x, t->x);
    scene_layer(t->scene, "layer", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 3, samples, t->y, t->other);
    const struct diagnosis *diagnosis = scene_diagnose(t->scene);
    assert_confirmed(diagnosis, "padded_positions");
    assert_true(scene_parameter(&diagnosis->causes[0], "padded") == 12);
    tensors_free(t);
}

static void names_an_index_of_fifteen_bits(void **state)
{
    enum { MANY = 40000 };
    static const uint64_t line[] = {MANY};
    struct tensors *t = tensors_new();
    double *y = calloc(2 * MANY, sizeof *y), *other = y + MANY;
    uint64_t seed = 41;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        y[i] = scene_normal(&seed);
        other[i] = y[i % 32768];
    }
    scene_layer(t->scene, "first", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 2, matrix, t->x, t->x);
    scene_layer(t->scene, "layer", "Linear");
    scene_slot(t->scene, "output.0", ND_DTYPE_f32, 1, line, y, other);
    const struct diagnosis *diagnosis = scene_diagnose(t->scene);
    assert_string_equal(diagnosis->causes[0].id, "index_overflow");
    assert_true(scene_parameter(&diagnosis->causes[0], "limit") == 32768);
    tensors_free(t);
    free(y);
}

static void confirms_nothing_of_random_noise(void **state)
{
    struct tensors *t = tensors_new();
    uint64_t seed = 9;

    (void)state;
    for (int i = 0; i < N; i++)
        t->other[i] += 0.02 * scene_normal(&seed);
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    assert_int_equal(diagnosis->first, 1);
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_int_not_equal(diagnosis->causes[i].status, ND_CAUSE_CONFIRMED);
    tensors_free(t);
}

static void confirms_nothing_of_rows_with_a_factor_each(void **state)
{
    struct tensors *t = tensors_new();
    uint64_t seed = 10;

    (void)state;
    for (int r = 0; r < ROWS; r++) {
        const double factor = 1 + 0.05 * scene_normal(&seed);
        for (int c = 0; c < COLUMNS; c++)
            t->other[r * COLUMNS + c] *= factor;
    }
    const struct diagnosis *diagnosis = diagnose(t, "Linear");
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_int_not_equal(diagnosis->causes[i].status, ND_CAUSE_CONFIRMED);
    tensors_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_rows_that_moved_round),
        cmocka_unit_test(names_two_channels_that_were_swapped),
        cmocka_unit_test(names_the_distance_that_all_values_are_off),
        cmocka_unit_test(names_the_layer_whose_output_stands_in_the_buffer),
        cmocka_unit_test(names_the_operand_that_a_sum_lost),
        cmocka_unit_test(names_dropout_and_its_share),
        cmocka_unit_test(takes_the_reference_for_the_side_that_drops_out),
        cmocka_unit_test(names_a_limit_that_values_stop_at),
        cmocka_unit_test(names_a_range_that_was_overwritten),
        cmocka_unit_test(names_integers_of_eight_bits),
        cmocka_unit_test(suspects_weights_where_the_error_is_a_map_of_the_input),
        cmocka_unit_test(names_a_mask_that_is_alike_in_every_head),
        cmocka_unit_test(names_positions_at_the_end_of_each_sample),
        cmocka_unit_test(names_an_index_of_fifteen_bits),
        cmocka_unit_test(confirms_nothing_of_random_noise),
        cmocka_unit_test(confirms_nothing_of_rows_with_a_factor_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
