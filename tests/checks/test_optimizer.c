/*
 * Steps of an optimiser, made here in float32 by their published formulas, and what the
 * diagnosis recovers of them from the weights on both sides of the step.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checks/scene.h"

enum { ROWS = 40, WIDTH = 48, W = ROWS * WIDTH, X = 8 * WIDTH, Y = 8 * ROWS, STEPS = 4 };

static const uint64_t x_shape[] = {8, WIDTH}, y_shape[] = {8, ROWS},
                      w_shape[] = {ROWS, WIDTH};

/* One side's training: weights before each step, gradients of each, what Adam remembers. */
struct side {
    double w[STEPS][W], g[STEPS][W], m[W], v[W];
};

struct settings {
    double lr, decay, momentum, eps, beta1, beta2;
    bool is_coupled, is_raw, is_bf16;
};

static const struct settings ADAMW = {
    .lr = 1e-3, .decay = 1e-2, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999};

static double single(double value)
{
    return (double)(float)value;
}

static struct side *side_new(bool on_bf16)
{
    struct side *side = calloc(1, sizeof *side);
    uint64_t seed = 11;

    for (int i = 0; i < W; i++) {
        const double w = single(0.1 * scene_normal(&seed));
        side->w[0][i] = on_bf16 ? nd_dtype_round(ND_DTYPE_bf16, w) : w;
        for (int step = 0; step < STEPS; step++)
            side->g[step][i] = single(1e-3 * scene_normal(&seed));
    }
    return side;
}

/* torch.optim.SGD: buf = momentum buf + g + decay w; w -= lr buf. */
static void sgd(struct side *side, int step, const struct settings *with)
{
    for (int i = 0; i < W; i++) {
        const double w = side->w[step][i];
        side->m[i] = single(with->momentum * side->m[i] +
                            single(side->g[step][i] + single(with->decay * w)));
        side->w[step + 1][i] = single(w - single(with->lr * side->m[i]));
    }
}

/* Kingma and Ba, algorithm 1; Loshchilov and Hutter, algorithm 2, for the decay. */
static void adam(struct side *side, int step, const struct settings *with)
{
    const double one = with->is_raw ? 1 : 1 - pow(with->beta1, step + 1);
    const double two = with->is_raw ? 1 : 1 - pow(with->beta2, step + 1);

    for (int i = 0; i < W; i++) {
        double w = side->w[step][i], g = side->g[step][i];
        if (with->is_coupled)
            g = single(g + single(with->decay * w));
        else
            w = single(w * (1 - with->lr * with->decay));
        side->m[i] = single(with->beta1 * side->m[i] + (1 - with->beta1) * g);
        side->v[i] = single(with->beta2 * side->v[i] + (1 - with->beta2) * single(g * g));
        const double root = single(single(sqrt(side->v[i]) / sqrt(two)) + with->eps);
        w = single(w - single(with->lr / one * single(side->m[i] / root)));
        side->w[step + 1][i] = with->is_bf16 ? nd_dtype_round(ND_DTYPE_bf16, w) : w;
    }
}

static void multiply(const double *x, const double *w, double *y)
{
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < ROWS; c++) {
            double sum = 0;
            for (int k = 0; k < WIDTH; k++)
                sum += x[r * WIDTH + k] * w[c * WIDTH + k];
            y[r * ROWS + c] = sum;
        }
}

static void add_step(struct scene *scene, const struct side *const *sides, int step)
{
    double x[X], y[2][Y];
    uint64_t seed = 5;

    for (int i = 0; i < X; i++)
        x[i] = single(scene_normal(&seed));
    multiply(x, sides[0]->w[step], y[0]);
    multiply(x, sides[1]->w[step], y[1]);
    scene_layer(scene, "fc", "Linear");
    scene_step(scene, step);
    scene_slot(scene, "input.0", ND_DTYPE_f32, 2, x_shape, x, x);
    scene_slot(scene, "output.0", ND_DTYPE_f32, 2, y_shape, y[0], y[1]);
    scene_slot(scene, "param.weight", ND_DTYPE_f32, 2, w_shape, sides[0]->w[step],
               sides[1]->w[step]);
    scene_layer(scene, "fc", "Linear");
    scene_backward(scene);
    scene_step(scene, step);
    scene_slot(scene, "grad.weight", ND_DTYPE_f32, 2, w_shape, sides[0]->g[step],
               sides[1]->g[step]);
}

static const struct diagnosis *diagnose(struct scene *scene, const struct side *reference,
                                        const struct side *candidate, int steps)
{
    const struct side *const sides[2] = {reference, candidate};

    for (int step = 0; step < steps; step++)
        add_step(scene, sides, step);
    const struct diagnosis *diagnosis = scene_diagnose(scene);
    assert_non_null(diagnosis);
    return diagnosis;
}

/* The weight of that step is the origin, and the optimiser the only cause that is named. */
static const struct nd_cause *only_cause(const struct diagnosis *diagnosis, size_t layer,
                                         enum nd_cause_status status, const char *summary)
{
    assert_int_equal(diagnosis->origin, layer);
    assert_int_equal(diagnosis->origin_slot, 2);
    assert_true(diagnosis->cause_count > 0);
    assert_string_equal(diagnosis->causes[0].id, "optimizer_update");
    assert_int_equal(diagnosis->causes[0].status, status);
    assert_string_equal(diagnosis->causes[0].summary.id, summary);
    for (size_t i = 1; i < diagnosis->cause_count; i++)
        assert_int_equal(diagnosis->causes[i].status, ND_CAUSE_POSSIBLE);
    return &diagnosis->causes[0];
}

static void assert_near(double value, double expected, double share)
{
    if (!(fabs(value - expected) <= share * fabs(expected)))
        fail_msg("%g is not %g", value, expected);
}

/* Makes `steps` dumps by Adam on both sides and asserts a pair of rules. */
static void adam_rules(const struct settings *reference, const struct settings *candidate,
                       int steps, const double *expected)
{
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    for (int step = 0; step + 1 < steps; step++) {
        adam(sides[0], step, reference);
        adam(sides[1], step, candidate);
    }
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], steps), 2 * ((size_t)steps - 1),
                   ND_CAUSE_CONFIRMED, "summary.optimizer_update.rules");
    assert_near(scene_parameter(cause, "reference_lr"), expected[0], 1e-3);
    assert_near(scene_parameter(cause, "candidate_lr"), expected[1], 1e-3);
    assert_near(scene_parameter(cause, "reference_decay"), expected[2], 0.02);
    assert_near(scene_parameter(cause, "candidate_decay"), expected[3], 0.02);
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void rate_and_decay_of_sgd_are_recovered_on_both_sides(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    sgd(sides[0], 0, &(struct settings){.lr = 0.1, .decay = 0.01});
    sgd(sides[1], 0, &(struct settings){.lr = 0.1});
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 2), 2, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.rules");
    assert_near(scene_parameter(cause, "reference_lr"), 0.1, 1e-3);
    assert_near(scene_parameter(cause, "candidate_lr"), 0.1, 1e-3);
    assert_near(scene_parameter(cause, "reference_decay"), 0.01, 0.01);
    assert_true(scene_parameter(cause, "candidate_decay") == 0);
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

/* The first step of SGD does not show its momentum; the second does. */
static void momentum_is_recovered_at_the_second_step(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    for (int step = 0; step < 2; step++) {
        sgd(sides[0], step, &(struct settings){.lr = 0.1, .momentum = 0.9});
        sgd(sides[1], step, &(struct settings){.lr = 0.1, .momentum = 0.8});
    }
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 3), 4, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.rules");
    assert_string_equal(cause->params[0].text, "SGD(lr=0.1, momentum=0.9, weight_decay=0)");
    assert_string_equal(cause->params[1].text, "SGD(lr=0.1, momentum=0.8, weight_decay=0)");
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void a_decay_that_adamw_lost_is_recovered(void **state)
{
    (void)state;
    struct settings without = ADAMW;

    without.decay = 0;
    adam_rules(&ADAMW, &without, 2, (const double[]){1e-3, 1e-3, 1e-2, 0});
    adam_rules(&without, &ADAMW, 2, (const double[]){1e-3, 1e-3, 0, 1e-2});
}

static void decay_in_the_gradient_is_told_from_decay_beside_it(void **state)
{
    (void)state;
    struct settings coupled = ADAMW;

    coupled.is_coupled = true;
    adam_rules(&ADAMW, &coupled, 2, (const double[]){1e-3, 1e-3, 1e-2, 1e-2});
}

static void other_betas_show_at_the_second_step(void **state)
{
    (void)state;
    struct settings other = ADAMW;

    other.beta2 = 0.95;
    adam_rules(&ADAMW, &other, 3, (const double[]){1e-3, 1e-3, 1e-2, 1e-2});
}

static void a_missing_correction_of_the_start_is_named(void **state)
{
    (void)state;
    struct settings raw = ADAMW;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    raw.is_raw = true;
    adam_rules(&ADAMW, &raw, 2, (const double[]){1e-3, 1e-3, 1e-2, 1e-2});
    adam(sides[0], 0, &raw);
    adam(sides[1], 0, &ADAMW);
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 2), 2, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.rules");
    assert_int_equal(cause->side, ND_SIDE_REFERENCE);
    assert_non_null(strstr(cause->params[0].text, "bias_correction=False"));
    assert_null(strstr(cause->params[1].text, "bias_correction"));
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void weights_kept_in_bfloat16_are_named_with_what_was_lost(void **state)
{
    (void)state;
    struct settings half = ADAMW, slow = ADAMW;
    struct side *sides[2] = {side_new(true), side_new(true)};
    struct scene *scene = scene_new();
    int lost = 0;

    slow.lr = half.lr = 1e-4; /* under half a spacing of weights over 2^-5 or so */
    half.is_bf16 = true;
    adam(sides[0], 0, &slow);
    adam(sides[1], 0, &half);
    for (int i = 0; i < W; i++)
        lost += sides[1]->w[0][i] == sides[1]->w[1][i];
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 2), 2, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.kept");
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    assert_true(lost > W / 4);
    assert_true(fabs(scene_parameter(cause, "lost") - 100.0 * lost / W) < 0.1);
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void a_step_that_one_side_skipped_is_named(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    adam(sides[0], 0, &ADAMW);
    memcpy(sides[1]->w[1], sides[1]->w[0], sizeof sides[1]->w[0]);
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 2), 2, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.skipped");
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    assert_true(scene_parameter(cause, "count") == 1);
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void a_step_by_no_known_rule_is_supported_and_never_confirmed(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();
    uint64_t seed = 77;

    adam(sides[0], 0, &ADAMW);
    for (int i = 0; i < W; i++)
        sides[1]->w[1][i] = sides[1]->w[0][i] + 1e-3 * scene_normal(&seed);
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 2), 2, ND_CAUSE_SUPPORTED,
                   "summary.optimizer_update.one_rule");
    assert_int_equal(cause->side, ND_SIDE_CANDIDATE);
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

/* All but one row moved alike: no rule of an optimiser does that. */
static void one_overwritten_row_is_other_weights_and_not_the_optimiser(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();
    uint64_t seed = 79;

    adam(sides[0], 0, &ADAMW);
    adam(sides[1], 0, &ADAMW);
    for (int i = 7 * WIDTH; i < 8 * WIDTH; i++)
        sides[1]->w[1][i] = single(0.1 * scene_normal(&seed));
    const struct diagnosis *diagnosis = diagnose(scene, sides[0], sides[1], 2);
    assert_int_equal(diagnosis->origin, 2);
    assert_true(diagnosis->cause_count > 0);
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_string_not_equal(diagnosis->causes[i].id, "optimizer_update");
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

/* A rate that fell at the second step scales what momentum carries over. */
static void a_changed_rate_is_not_called_another_momentum(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    for (int step = 0; step < 2; step++) {
        sgd(sides[0], step, &(struct settings){.lr = 0.1, .momentum = 0.9});
        sgd(sides[1], step,
            &(struct settings){.lr = step == 0 ? 0.1 : 0.05, .momentum = 0.9});
    }
    const struct nd_cause *cause =
        only_cause(diagnose(scene, sides[0], sides[1], 3), 4, ND_CAUSE_CONFIRMED,
                   "summary.optimizer_update.rules");
    assert_string_equal(cause->params[0].text, "SGD(lr=0.1, momentum=0.9, weight_decay=0)");
    assert_string_equal(cause->params[1].text,
                        "SGD(lr=0.05, momentum=0.9, weight_decay=0)");
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

/* Adam makes a whole step of a gradient that is noise, in either direction: weights part by
 * thousands of times the gradients' difference, and the optimisers are the same. */
static void one_optimiser_fed_with_noise_is_not_accused(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();
    uint64_t seed = 78;

    for (int i = 0; i < W; i++) {
        const double noise = 1e-9 * scene_normal(&seed);
        if (i % 10 == 0)
            sides[0]->g[0][i] = sides[1]->g[0][i] = 0;
        sides[1]->g[0][i] = single(sides[1]->g[0][i] + noise);
        sides[0]->g[0][i] = single(sides[0]->g[0][i] - noise);
    }
    adam(sides[0], 0, &ADAMW);
    adam(sides[1], 0, &ADAMW);
    const struct diagnosis *diagnosis = diagnose(scene, sides[0], sides[1], 2);
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_string_not_equal(diagnosis->causes[i].id, "optimizer_update");
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

static void gradients_that_differ_leave_the_optimiser_out(void **state)
{
    (void)state;
    struct side *sides[2] = {side_new(false), side_new(false)};
    struct scene *scene = scene_new();

    for (int i = 0; i < W; i++)
        sides[1]->g[0][i] *= 1.5;
    sgd(sides[0], 0, &(struct settings){.lr = 0.1});
    sgd(sides[1], 0, &(struct settings){.lr = 0.2});
    const struct diagnosis *diagnosis = diagnose(scene, sides[0], sides[1], 2);
    for (size_t i = 0; i < diagnosis->cause_count; i++)
        assert_string_not_equal(diagnosis->causes[i].id, "optimizer_update");
    scene_free(scene);
    free(sides[0]);
    free(sides[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_and_decay_of_sgd_are_recovered_on_both_sides),
        cmocka_unit_test(momentum_is_recovered_at_the_second_step),
        cmocka_unit_test(a_decay_that_adamw_lost_is_recovered),
        cmocka_unit_test(decay_in_the_gradient_is_told_from_decay_beside_it),
        cmocka_unit_test(other_betas_show_at_the_second_step),
        cmocka_unit_test(a_missing_correction_of_the_start_is_named),
        cmocka_unit_test(weights_kept_in_bfloat16_are_named_with_what_was_lost),
        cmocka_unit_test(a_step_that_one_side_skipped_is_named),
        cmocka_unit_test(a_step_by_no_known_rule_is_supported_and_never_confirmed),
        cmocka_unit_test(one_overwritten_row_is_other_weights_and_not_the_optimiser),
        cmocka_unit_test(a_changed_rate_is_not_called_another_momentum),
        cmocka_unit_test(one_optimiser_fed_with_noise_is_not_accused),
        cmocka_unit_test(gradients_that_differ_leave_the_optimiser_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
