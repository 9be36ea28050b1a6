/*
 * A BatchNorm of which neither weights nor running statistics were dumped is a scale and a
 * shift per channel.  What the scales of the two sides have to do with each other tells
 * faults apart that any other scale and shift would explain alike.
 */
#include "checks/norm_recipe.h"

#include <math.h>

#include "checks/affine_fit.h"
#include "checks/eps_fit.h"

struct scales {
    double residual; /* of the wrong side under its own scale and shift */
    double error;    /* of the ratio of a channel as loud as the output */
    double rms;      /* of the output */
    uint64_t count, above, below;
    double squares, highest; /* of ratio - 1 */
    double sum_log, squares_log;   /* of log |ratio - 1| where it stands out */
    double sum_even, squares_even; /* of log (|ratio - 1| variance) */
};

static bool scales_fit(const struct subject *subject, double *weight, double *bias,
                       struct scales *ret)
{
    const struct norm_study *study = &subject->formula.study;
    struct norm_model model = {.centre = true, .mean = study->zero, .var = study->one};

    if (!nd_affine_fit(&subject->formula.sample, subject->side, &model, weight, bias))
        return false;
    model.weight = weight;
    model.bias = bias;
    ret->residual = nd_norm_misfit(subject, &model, NULL);
    return ret->residual <= 4 * subject->floor &&
           ret->residual < 0.5 * subject->unexplained;
}

static void scales_compare(const struct subject *subject, const double *weight,
                           struct scales *scales)
{
    const struct norm_study *study = &subject->formula.study;
    const struct sample *sample = &subject->formula.sample;

    for (uint64_t i = 0; i < sample->count; i++) {
        const uint64_t channel = nd_op_channel(&sample->rows, sample->row[i], 0);
        const uint64_t at = i * sample->rows.row_len;
        double mean, var;
        nd_norm_moments(sample->in[study->fitted_on][0] + at, sample->rows.row_len, &mean,
                        &var);
        const double expected = study->fitted_weight[channel] *
                                (study->mode == NORM_MODE_AFFINE
                                     ? 1
                                     : nd_norm_scale(&study->model[0], var));
        const double moved = weight[channel] / expected - 1;
        if (!isfinite(moved) || !(var > 0))
            continue;
        scales->count++;
        scales->squares += moved * moved;
        scales->highest = fmax(scales->highest, fabs(moved));
        const double loud = fabs(weight[channel]) * sqrt(var);
        if (!(fabs(moved) > scales->error * fmax(1, scales->rms / loud)))
            continue;
        scales->above += moved > 0;
        scales->below += moved < 0;
        const double size = log(fabs(moved)), even = log(fabs(moved) * var);
        scales->sum_log += size;
        scales->squares_log += size * size;
        scales->sum_even += even;
        scales->squares_even += even * even;
    }
}

static double spread(double sum, double squares, double n)
{
    return sqrt(fmax(squares / n - sum / n * (sum / n), 0));
}

/* Another eps moves all scales one way, and those of small variance most. */
static bool scales_say_eps(const struct scales *scales)
{
    const double n = (double)(scales->above + scales->below);

    if (n < 4 || (scales->above > 0 && scales->below > 0))
        return false;
    const double even = spread(scales->sum_even, scales->squares_even, n);
    const double plain = spread(scales->sum_log, scales->squares_log, n);
    return (even < 1 && even < 0.7 * plain) || (even < 0.3 && plain > 0.05);
}

/* The grid that roundings of this size belong to: from 0.29 to 0.58 u in the mean square,
 * by where in a binade the values lie, and at most u. */
static enum grid scales_grid(const struct scales *scales)
{
    static const enum grid grids[] = {GRID_BF16, GRID_F16};
    const double size = sqrt(scales->squares / (double)scales->count);

    if (scales->count < 8 || scales->above < 2 || scales->below < 2)
        return GRID_NONE;
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const double u = nd_grid_roundoff(grids[i]);
        if (scales->highest <= 1.01 * u + scales->error && size > 0.2 * u &&
            size < 0.7 * u)
            return grids[i];
    }
    return GRID_NONE;
}

/* Statistics of the batch with another eps: nothing is free then but eps. */
static void scale_batch_eps(struct subject *subject)
{
    struct recipe_bench bench;
    struct eps_fit fit;

    if (!nd_recipe_bench(subject, &bench) ||
        !nd_eps_fit(&subject->formula.sample, subject->side, bench.model,
                    subject->own->roundoff, &fit) ||
        !(fit.residual < 0.5 * subject->unexplained))
        return;
    const double found = fit.identifiable ? fit.eps : fit.upper;
    const struct nd_param params[] = {
        ND_NUMBER(subject->side == 1 ? "reference" : "candidate", bench.model->eps),
        ND_NUMBER(subject->side == 1 ? "candidate" : "reference", found),
        ND_NUMBER("uncertainty", 3 * fit.sigma), ND_NUMBER("upper", fit.upper),
        ND_NUMBER("residual", fit.residual), ND_NUMBER("is_candidate", subject->side)};
    const char *const id = fit.identifiable    ? "summary.eps"
                           : subject->side == 1 ? "summary.eps.bound"
                                                : "summary.eps.bound.reference";
    nd_propose(subject, &(struct hypothesis){
                            .id = "eps",
                            .residual = fit.residual,
                            .penalty = 0.03,
                            .side = nd_subject_side(subject),
                            .params = params,
                            .param_count = 4,
                            .summary = nd_phrase_make(subject->arena, id, params, 6)});
}

static void scale_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    struct scales scales = {.error = fmax(8 * subject->floor, 1e-6)};

    (void)finding;
    if (model == NULL || !subject->is_trusted || !subject->norm->running ||
        subject->formula.study.mode == NORM_MODE_RUNNING ||
        subject->formula.study.weights_known)
        return;
    if (subject->formula.study.mode == NORM_MODE_AFFINE)
        scale_batch_eps(subject);
    const uint64_t channels = subject->formula.study.channels;
    double *weight = nd_arena_alloc(subject->arena, channels, sizeof *weight);
    double *bias = nd_arena_alloc(subject->arena, channels, sizeof *bias);
    if (weight == NULL || bias == NULL || !scales_fit(subject, weight, bias, &scales))
        return;
    scales.rms = nd_finite_rms(subject->formula.sample.out[subject->side],
                               nd_sample_elements(&subject->formula.sample));
    scales_compare(subject, weight, &scales);
    if (scales.count == 0)
        return;
    struct hypothesis said = {.residual = scales.residual,
                              .penalty = 0.2,
                              .is_free = true,
                              .side = nd_subject_side(subject)};
    const enum grid grid = scales_grid(&scales);
    if (grid != GRID_NONE) {
        said.id = "rstd_rounded";
        ND_PROPOSE(subject, said, ND_WORD("dtype", nd_grid_name(grid)));
    } else if (scales_say_eps(&scales)) {
        said.id = "eps";
        subject->is_one_sided = true;
        said.summary = ND_PHRASE(subject->arena, "summary.eps.scales",
                                 ND_NUMBER("count", (double)(scales.above + scales.below)),
                                 ND_NUMBER("smaller", scales.above > 0),
                                 ND_NUMBER("is_candidate", subject->side));
        nd_propose(subject, &said);
    }
}

const struct check nd_check_scale = {.id = "scale", .of_norms = true, .run = scale_run};
