/*
 * A BatchNorm in evaluation mode of which neither weights nor statistics are dumped: faults
 * put in by plain loops in float, and the names that scales and shifts alone give them.
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

enum { CHANNELS = 48, PLANE = 64, IMAGES = 2, N = IMAGES * CHANNELS * PLANE };
static const uint64_t images[] = {IMAGES, CHANNELS, 8, 8};
static const float EPS = 1e-5f;

struct batch {
    double x[N], y[N], faulty[N];
    float w[CHANNELS], b[CHANNELS], mean[CHANNELS], var[CHANNELS]; /* running ones */
    float own_mean[CHANNELS], own_var[CHANNELS];                  /* of the batch */
};

static int channel_of(int i)
{
    return i / PLANE % CHANNELS;
}

/* Statistics of the batch, and running ones that lie about them as those of a few more
 * images do. */
static void batch_statistics(struct batch *t, uint64_t *state)
{
    for (int c = 0; c < CHANNELS; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < N; i++)
            mean += channel_of(i) == c ? t->x[i] / (IMAGES * PLANE) : 0;
        for (int i = 0; i < N; i++)
            var += channel_of(i) == c
                       ? (t->x[i] - mean) * (t->x[i] - mean) / (IMAGES * PLANE)
                       : 0;
        t->own_mean[c] = (float)mean;
        t->own_var[c] = (float)var;
        t->mean[c] = (float)(mean + 0.2 * sqrt(var) * scene_normal(state));
        t->var[c] = (float)(var * exp(0.2 * scene_normal(state)));
    }
}

static struct batch *batch_new(void)
{
    struct batch *t = calloc(1, sizeof *t);
    uint64_t state = 71;
    double size[CHANNELS], centre[CHANNELS];

    assert_non_null(t);
    for (int c = 0; c < CHANNELS; c++) {
        size[c] = exp(1.5 * scene_normal(&state)); /* some channels are nearly dead */
        centre[c] = scene_normal(&state) * size[c];
        t->w[c] = (float)(0.6 * exp(0.35 * scene_normal(&state)));
        t->b[c] = (float)(0.3 * scene_normal(&state));
    }
    for (int i = 0; i < N; i++)
        t->x[i] = (double)(float)(centre[channel_of(i)] +
                                  size[channel_of(i)] * scene_normal(&state));
    batch_statistics(t, &state);
    return t;
}

/* One channel's arithmetic: (x - mean) * factor * w + b. */
struct channel_rule {
    float mean, factor, w, b;
};

typedef void rule_fn(const struct batch *t, int c, struct channel_rule *rule);

static void apply(const struct batch *t, rule_fn *change, double *out)
{
    for (int i = 0; i < N; i++) {
        const int c = channel_of(i);
        struct channel_rule rule = {t->mean[c], 1 / sqrtf(t->var[c] + EPS), t->w[c],
                                    t->b[c]};
        if (change != NULL)
            change(t, c, &rule);
        out[i] = (double)(((float)t->x[i] - rule.mean) * rule.factor * rule.w + rule.b);
    }
}

static const struct diagnosis *diagnose(struct scene *scene, const struct batch *t,
                                        const double *reference, const double *candidate)
{
    scene_layer(scene, "conv", "Conv2d");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 4, images, t->x, t->x);
    scene_layer(scene, "bn", "BatchNorm2d");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 4, images, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 4, images, reference, candidate);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    return diagnosis;
}

/* Whose other statistics, or roundings, they are cannot be seen without parameters. */
static bool is_blamed(const char *id)
{
    return strcmp(id, "running_vs_batch") != 0 && strcmp(id, "rstd_rounded") != 0;
}

/* The fault on either side is named first, as likely and no more, and rightly blamed. */
static void expect(rule_fn *fault, const char *id)
{
    struct batch *t = batch_new();

    apply(t, NULL, t->y);
    apply(t, fault, t->faulty);
    for (int faulty = 0; faulty < 2; faulty++) {
        struct scene *scene = scene_new();
        const struct diagnosis *diagnosis =
            faulty == 1 ? diagnose(scene, t, t->y, t->faulty)
                        : diagnose(scene, t, t->faulty, t->y);
        assert_true(diagnosis->cause_count >= 1);
        assert_string_equal(diagnosis->causes[0].id, id);
        assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_SUPPORTED);
        if (is_blamed(id))
            assert_int_equal(diagnosis->causes[0].side,
                             faulty == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE);
        scene_free(scene);
    }
    free(t);
}

static void no_bias(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->b = 0;
}

static void no_mean(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->mean = 0;
}

static void no_weight(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->w = 1;
}

static void plus_one(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->w += 1;
}

static void larger_eps(const struct batch *t, int c, struct channel_rule *rule)
{
    rule->factor = 1 / sqrtf(t->var[c] + 1e-3f);
}

static void eps_outside(const struct batch *t, int c, struct channel_rule *rule)
{
    rule->factor = 1 / (sqrtf(t->var[c]) + EPS);
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

static void narrow_root(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->factor = bfloat16(rule->factor);
}

static void own_statistics(const struct batch *t, int c, struct channel_rule *rule)
{
    rule->mean = t->own_mean[c];
    rule->factor = 1 / sqrtf(t->own_var[c] + EPS);
}

static void initial_statistics(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t, (void)c;
    rule->mean = 0;
    rule->factor = 1 / sqrtf(1 + EPS);
}

static void names_a_bias_that_was_dropped(void **state)
{
    (void)state;
    expect(no_bias, "bias_dropped");
}

static void names_a_mean_that_was_kept(void **state)
{
    (void)state;
    expect(no_mean, "mean_not_subtracted");
}

static void names_a_weight_that_was_dropped(void **state)
{
    (void)state;
    expect(no_weight, "weight_dropped");
}

static void names_a_weight_with_one_added(void **state)
{
    (void)state;
    expect(plus_one, "one_plus_weight");
}

static void names_another_eps(void **state)
{
    (void)state;
    expect(larger_eps, "eps");
}

static void names_eps_outside_the_root(void **state)
{
    (void)state;
    expect(eps_outside, "eps_outside_sqrt");
}

static void names_factors_rounded_to_bfloat16(void **state)
{
    (void)state;
    expect(narrow_root, "rstd_rounded");
}

static void names_statistics_of_the_batch(void **state)
{
    (void)state;
    expect(own_statistics, "running_vs_batch");
}

static void names_initial_statistics(void **state)
{
    (void)state;
    expect(initial_statistics, "running_vs_batch");
}

/* --- roundings on the way ------------------------------------------------------------- */

static void rounded(const struct batch *t, bool is_inside, double *out)
{
    for (int i = 0; i < N; i++) {
        const int c = channel_of(i);
        float x = (float)t->x[i] - t->mean[c], factor = 1 / sqrtf(t->var[c] + EPS);
        if (is_inside) {
            x = bfloat16(x);
            factor = bfloat16(factor);
        }
        const float xhat = bfloat16(x * factor);
        const float y = xhat * t->w[c] + t->b[c];
        out[i] = (double)(is_inside ? bfloat16(y) : y);
    }
}

static const char *word_of(const struct nd_cause *cause, const char *key)
{
    for (size_t i = 0; i < cause->param_count; i++)
        if (strcmp(cause->params[i].key, key) == 0)
            return cause->params[i].text;
    return "";
}

static void expect_rounding(bool is_inside, const char *id)
{
    struct batch *t = batch_new();
    struct scene *scene = scene_new();

    apply(t, NULL, t->y);
    rounded(t, is_inside, t->faulty);
    const struct diagnosis *diagnosis = diagnose(scene, t, t->y, t->faulty);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, id);
    assert_int_equal(diagnosis->causes[0].status, ND_CAUSE_SUPPORTED);
    assert_string_equal(word_of(&diagnosis->causes[0], "dtype"), "bfloat16");
    scene_free(scene);
    free(t);
}

static void names_a_cast_before_the_weight(void **state)
{
    (void)state;
    expect_rounding(false, "cast_before_weight");
}

static void names_steps_rounded_inside(void **state)
{
    (void)state;
    expect_rounding(true, "norm_internal_lowp");
}

/* --- no story ------------------------------------------------------------------------- */

static void one_odd_channel(const struct batch *t, int c, struct channel_rule *rule)
{
    (void)t;
    rule->w *= c == 7 ? 1.5f : 1;
}

static void tells_no_story_of_one_channel(void **state)
{
    struct batch *t = batch_new();
    struct scene *scene = scene_new();

    (void)state;
    apply(t, NULL, t->y);
    apply(t, one_odd_channel, t->faulty);
    const struct diagnosis *diagnosis = diagnose(scene, t, t->y, t->faulty);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "one_channel");
    scene_free(scene);
    free(t);
}

/* --- after the step ------------------------------------------------------------------- */

/* Both sides move by 0.1 of the way; one takes the variance over n in, where PyTorch takes
 * the one over n - 1. */
static void names_a_running_variance_over_n(void **state)
{
    static const uint64_t vector[] = {CHANNELS};
    const double n = IMAGES * PLANE;
    struct batch *t = batch_new();
    struct scene *scene = scene_new();
    double before[2][CHANNELS], after[3][CHANNELS];

    (void)state;
    for (int c = 0; c < CHANNELS; c++) {
        const double mean = (double)t->mean[c], var = (double)t->var[c];
        const double biased = (double)t->own_var[c];
        before[0][c] = mean;
        before[1][c] = var;
        after[0][c] = (double)(float)(0.9 * mean + 0.1 * (double)t->own_mean[c]);
        after[1][c] = (double)(float)(0.9 * var + 0.1 * biased * n / (n - 1));
        after[2][c] = (double)(float)(0.9 * var + 0.1 * biased);
    }
    apply(t, own_statistics, t->y);
    scene_layer(scene, "conv", "Conv2d");
    scene_slot(scene, "output.0", ND_DTYPE_f32, 4, images, t->x, t->x);
    scene_layer(scene, "bn", "BatchNorm2d");
    scene_slot(scene, "input.0", ND_DTYPE_f32, 4, images, t->x, t->x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 4, images, t->y, t->y);
    scene_slot(scene, "state.running_mean", ND_DTYPE_f32, 1, vector, before[0], before[0]);
    scene_slot(scene, "state.running_var", ND_DTYPE_f32, 1, vector, before[1], before[1]);
    scene_slot(scene, "state_after.running_mean", ND_DTYPE_f32, 1, vector, after[0],
               after[0]);
    scene_slot(scene, "state_after.running_var", ND_DTYPE_f32, 1, vector, after[1],
               after[2]);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_int_equal(diagnosis->origin, 1);
    assert_true(diagnosis->cause_count >= 1);
    assert_string_equal(diagnosis->causes[0].id, "unbiased_variance");
    assert_int_equal(diagnosis->causes[0].side, ND_SIDE_CANDIDATE);
    scene_free(scene);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_a_bias_that_was_dropped),
        cmocka_unit_test(names_a_mean_that_was_kept),
        cmocka_unit_test(names_a_weight_that_was_dropped),
        cmocka_unit_test(names_a_weight_with_one_added),
        cmocka_unit_test(names_another_eps),
        cmocka_unit_test(names_eps_outside_the_root),
        cmocka_unit_test(names_factors_rounded_to_bfloat16),
        cmocka_unit_test(names_statistics_of_the_batch),
        cmocka_unit_test(names_initial_statistics),
        cmocka_unit_test(names_a_cast_before_the_weight),
        cmocka_unit_test(names_steps_rounded_inside),
        cmocka_unit_test(tells_no_story_of_one_channel),
        cmocka_unit_test(names_a_running_variance_over_n),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
