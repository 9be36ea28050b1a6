/*
 * Finding the reference's formula: parameters from the dumps, else by least squares on the
 * reference; then the first of a few formulas that reproduces the reference.
 */
#include "checks/norm_study.h"

#include <math.h>
#include <stdlib.h>

#include "checks/affine_fit.h"
#include "checks/eps_fit.h"

double nd_declared_eps(const struct layer_view *layer)
{
    return nd_op_number(layer, "eps epsilon variance_epsilon layer_norm_eps rms_norm_eps",
                        (double)NAN);
}

double nd_declared_mode(const struct layer_view *layer)
{
    const double training = nd_op_number(layer, "training is_training", (double)NAN);

    if (nd_op_number(layer, "track_running_stats", 1) == 0)
        return 1; /* there are no others */
    if (nd_op_number(layer, "use_global_stats", 0) == 1)
        return 0;
    return nd_op_number(layer, "use_batch_statistics", training);
}

/* A parameter as doubles, under the first of the names that is there; NULL: not dumped. */
static double *study_parameter(const struct layer_view *layer, const char *const *names,
                               uint64_t channels)
{
    for (; *names != NULL; names++) {
        const struct slot_view *slot = nd_layer_slot(layer, *names);
        if (slot == NULL || !slot->has_tensor || slot->tensor.count != channels ||
            nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT)
            continue;
        double *values = malloc(channels * sizeof *values);
        if (values != NULL)
            nd_view_decode(&slot->tensor, 0, channels, values);
        return values;
    }
    return NULL;
}

static void study_read(struct norm_study *study, const struct layer_pair_view *pair)
{
    static const char *const weight[] = {"param.weight", "param.gamma", "param.scale",
                                         NULL};
    static const char *const bias[] = {"param.bias", "param.beta", "param.offset", NULL};
    static const char *const mean[] = {"state.running_mean", "state.moving_mean",
                                       "state.mean", NULL};
    static const char *const var[] = {"state.running_var", "state.moving_variance",
                                      "state.variance", "state.var", NULL};

    for (int side = 0; side < 2; side++) {
        const struct layer_view *layer = pair->side[side];
        study->weight[side] = study_parameter(layer, weight, study->channels);
        study->bias[side] = study_parameter(layer, bias, study->channels);
        study->mean[side] = study_parameter(layer, mean, study->channels);
        study->var[side] = study_parameter(layer, var, study->channels);
        study->declared_eps[side] = nd_declared_eps(layer);
        study->declared_mode[side] = nd_declared_mode(layer);
    }
    const double affine = nd_op_number(pair->side[0], "affine elementwise_affine", 1);
    study->weights_known =
        study->weight[0] != NULL || study->weight[1] != NULL || affine == 0;
    study->running_known = (study->mean[0] != NULL && study->var[0] != NULL) ||
                           (study->mean[1] != NULL && study->var[1] != NULL);
}

/* A side's own parameter, or the other's where it has none: both runs load one checkpoint.
 */
static const double *study_own(double *const *parameter, int side)
{
    return parameter[side] != NULL ? parameter[side] : parameter[!side];
}

/* Sets both models for one formula; weights as known or fitted. */
static void study_set(struct norm_study *study, enum norm_mode mode, double eps,
                      double plus)
{
    study->mode = mode;
    for (int side = 0; side < 2; side++) {
        struct norm_model *model = &study->model[side];
        *model = (struct norm_model){
            .eps = eps, .centre = study->op->norm->centre, .plus = plus};
        if (study->weights_known && mode != NORM_MODE_AFFINE) {
            model->weight = study_own(study->weight, side);
            model->bias = study_own(study->bias, side);
        } else {
            model->weight = study->fitted_weight;
            model->bias = study->op->norm->centre ? study->fitted_bias : NULL;
        }
        if (mode == NORM_MODE_RUNNING) {
            const int from =
                study->mean[side] != NULL && study->var[side] != NULL ? side : !side;
            model->mean = study->mean[from];
            model->var = study->var[from];
        } else if (mode == NORM_MODE_AFFINE) { /* y = weight x + bias */
            model->mean = study->zero;
            model->var = study->one;
            model->eps = 0;
        }
    }
}

struct expectation {
    const struct sample *sample;
    const struct norm_model *model;
    int side;
};

static void expected_row(const void *user, uint64_t i, double *out)
{
    const struct expectation *of = user;
    const struct op_rows *rows = &of->sample->rows;

    nd_norm_row(of->model, rows, of->sample->row[i],
                of->sample->in[of->side][0] + i * rows->row_len, out);
}

bool nd_norm_residual(const struct sample *sample, int side, const struct norm_model *model,
                      struct residual *ret)
{
    const struct expectation of = {.sample = sample, .model = model, .side = side};

    return nd_residual_measure(sample, sample->out[side], expected_row, &of, ret);
}

/* Tries one formula on the reference; keeps it as the best if it comes closer. */
static bool study_try(struct norm_study *study, const struct sample *sample,
                      enum norm_mode mode, double eps, double plus, double *inout_best,
                      struct norm_study *best)
{
    struct residual residual;

    study_set(study, mode, eps, plus);
    if (!study->weights_known || mode == NORM_MODE_AFFINE) {
        if (!nd_affine_fit(sample, 0, &study->model[0], study->fitted_weight,
                           study->fitted_bias))
            return false;
    }
    if (!nd_norm_residual(sample, 0, &study->model[0], &residual))
        return false;
    study->residual[0] = residual;
    if (residual.rel < *inout_best) {
        *inout_best = residual.rel;
        *best = *study;
    }
    return true;
}

/* Values that frameworks use; the first are the commonest. */
static const double study_eps[] = {1e-5, 1e-6, 1e-12, 1e-3, 1e-8, 1e-4, 1e-7, 1e-2};

/* More than that is no matter of which eps was tried. */
static const double SMALL_MISFIT = 1e-2;

/* Tries the formulas that fit what is declared until one reproduces the reference. */
static bool study_formula(struct norm_study *study, const struct sample *sample,
                          double roundoff, enum norm_mode mode)
{
    const double enough = 1.5 * roundoff; /* honest layers stay under 1.4 u */
    const double declared = study->declared_eps[0];
    const size_t tries = isnan(declared) && mode != NORM_MODE_AFFINE
                             ? sizeof study_eps / sizeof *study_eps
                             : 1;
    struct norm_study best = *study;
    double closest = HUGE_VAL;

    for (int plus = 0; plus <= (study->weights_known && study->weight[0] != NULL); plus++)
        for (size_t i = 0; i < tries && closest > enough; i++)
            if (!study_try(study, sample, mode, isnan(declared) ? study_eps[i] : declared,
                           plus, &closest, &best))
                return false;
    *study = best;
    /* The last fit may not be the best one: the arrays are shared. */
    if (!study->weights_known || mode == NORM_MODE_AFFINE)
        return nd_affine_fit_pair(sample, &study->model[0], study->fitted_weight,
                                  study->fitted_bias);
    return true;
}

/* Both sides against the chosen formula. */
static bool study_measure(struct norm_study *study, const struct sample *sample)
{
    return nd_norm_residual(sample, 0, &study->model[0], &study->residual[0]) &&
           nd_norm_residual(sample, 1, &study->model[1], &study->residual[1]);
}

/*
 * An eps that no list holds.  With parameters fitted too the search would be nested; the
 * list covers the values in use there.
 */
static bool study_search_eps(struct norm_study *study, const struct sample *sample,
                             double roundoff)
{
    struct eps_fit fit;

    if (!study->weights_known || study->mode == NORM_MODE_AFFINE ||
        !isnan(study->declared_eps[0]) || study->residual[0].rel <= 3 * roundoff)
        return true;
    if (!nd_eps_fit(sample, 0, &study->model[0], roundoff, &fit))
        return false;
    if (fit.residual < 0.5 * study->residual[0].rel)
        study->model[0].eps = study->model[1].eps = fit.eps;
    return true;
}

/* Weights that are estimated take up any eps where a channel has one variance, as in a
 * BatchNorm of a batch: the reference fits whatever eps is tried first, and the candidate,
 * whose variances differ a little, does not.  An eps that fits both is theirs. */
static bool study_shared_eps(struct norm_study *study, const struct sample *sample,
                             double roundoff)
{
    const double most = fmax(1.5 * roundoff, 1.3 * study->residual[0].rel);
    double best = study->residual[1].rel, eps = study->model[0].eps;

    if (study->weights_known || study->mode != NORM_MODE_BATCH ||
        !isnan(study->declared_eps[0]) || !(best > roundoff) || best > SMALL_MISFIT)
        return true;
    for (size_t i = 0; i <= sizeof study_eps / sizeof *study_eps; i++) {
        const bool is_last = i == sizeof study_eps / sizeof *study_eps;
        study_set(study, NORM_MODE_BATCH, is_last ? eps : study_eps[i],
                  study->model[0].plus);
        if (!nd_affine_fit_pair(sample, &study->model[0], study->fitted_weight,
                                study->fitted_bias) ||
            !study_measure(study, sample))
            return false;
        if (study->residual[0].rel > most || !(study->residual[1].rel < best))
            continue;
        best = study->residual[1].rel;
        eps = study->model[0].eps;
    }
    return true;
}

/*
 * One batch of the reference cannot tell batch from running statistics when neither they
 * nor the weights are dumped: both are a scale and a shift per channel.  The mode that
 * explains the candidate better is taken.
 */
static bool study_unknown_mode(struct norm_study *study, const struct sample *sample,
                               double roundoff)
{
    if (!study_formula(study, sample, roundoff, NORM_MODE_AFFINE) ||
        !study_measure(study, sample))
        return false;
    const struct residual affine = study->residual[1];
    if (!study_formula(study, sample, roundoff, NORM_MODE_BATCH) ||
        !study_measure(study, sample) || !study_shared_eps(study, sample, roundoff))
        return false;
    if (study->residual[1].rel < affine.rel)
        return true;
    return study_formula(study, sample, roundoff, NORM_MODE_AFFINE) &&
           study_measure(study, sample);
}

static bool study_batch_norm(struct norm_study *study, const struct sample *sample,
                             double roundoff)
{
    const double declared = study->declared_mode[0];
    struct norm_study batch;

    if (declared == 1)
        return study_formula(study, sample, roundoff, NORM_MODE_BATCH);
    if (declared == 0)
        return study_formula(study, sample, roundoff,
                             study->running_known ? NORM_MODE_RUNNING : NORM_MODE_AFFINE);
    if (!study->running_known || !study->weights_known)
        return study_unknown_mode(study, sample, roundoff);
    if (!study_formula(study, sample, roundoff, NORM_MODE_BATCH))
        return false;
    batch = *study;
    if (!study_formula(study, sample, roundoff, NORM_MODE_RUNNING))
        return false;
    if (batch.residual[0].rel < study->residual[0].rel)
        *study = batch;
    return true;
}

/* A GroupNorm of unknown groups: the divisor of the channels that fits the reference best.
 */
static bool study_groups(struct norm_study *study, struct sample *sample, double roundoff,
                         uint64_t channels)
{
    const struct op_rows whole = sample->rows;
    const uint64_t count = sample->count;
    double best = HUGE_VAL;
    uint64_t groups = 1;

    for (uint64_t g = 1; g <= channels; g++) {
        if (channels % g != 0 || !nd_sample_regroup(sample, channels, g))
            continue;
        if (!study_formula(study, sample, roundoff, NORM_MODE_BATCH))
            return false;
        if (study->residual[0].rel < best) {
            best = study->residual[0].rel;
            groups = g;
        }
        sample->rows = whole;
        sample->count = count;
    }
    return nd_sample_regroup(sample, channels, groups) &&
           study_formula(study, sample, roundoff, NORM_MODE_BATCH);
}

bool nd_sample_regroup(struct sample *sample, uint64_t channels, uint64_t groups)
{
    struct op_rows *rows = &sample->rows;

    if (!sample->whole || groups == 0 || channels % groups != 0)
        return false;
    uint64_t *row = realloc(sample->row, rows->rows * channels * sizeof *row);
    if (row == NULL)
        return false;
    sample->row = row;
    const uint64_t plane = rows->row_len / channels;
    rows->rows *= groups;
    rows->row_len /= groups;
    rows->period = groups;
    rows->per_row = channels / groups;
    rows->span = plane;
    rows->channels = channels;
    sample->count = rows->rows;
    for (uint64_t i = 0; i < sample->count; i++)
        sample->row[i] = i;
    return true;
}

static bool study_allocate(struct norm_study *study)
{
    double **const arrays[] = {&study->fitted_weight, &study->fitted_bias, &study->zero,
                               &study->one};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = calloc(study->channels, sizeof(double));
        if (*arrays[i] == NULL)
            return false;
    }
    for (uint64_t c = 0; c < study->channels; c++)
        study->one[c] = 1;
    return true;
}

bool nd_norm_study_make(const struct op *op, const struct layer_pair_view *pair,
                        struct sample *inout_sample, double roundoff,
                        struct norm_study *ret_study)
{
    struct norm_study study = {.op = op, .channels = inout_sample->rows.channels};
    bool good = study_allocate(&study);
    double fit = 0;

    if (good) {
        study_read(&study, pair);
        if (op->norm->running)
            good = study_batch_norm(&study, inout_sample, roundoff);
        else if (op->norm->grouping == NORM_GROUPS && inout_sample->rows.period == 1 &&
                 nd_op_number(pair->side[0], "num_groups groups group", 0) == 0)
            good = study_groups(&study, inout_sample, roundoff, study.channels);
        else
            good = study_formula(&study, inout_sample, roundoff, NORM_MODE_BATCH);
    }
    good = good && study_search_eps(&study, inout_sample, roundoff) &&
           study_measure(&study, inout_sample);
    if (good && (!study.weights_known || study.mode == NORM_MODE_AFFINE))
        good = nd_affine_predict(inout_sample, &study.model[0], roundoff, &fit);
    /* The real one subtracts a mean first, in float32 whatever the output is. */
    if (study.mode == NORM_MODE_AFFINE)
        fit = fmax(fit, fmax(2 * 0x1p-24, 0.5 * roundoff));
    /* Of unknown statistics those of the rows tell how much cancels, more or less. */
    const struct norm_model rows = {.eps = study_eps[0], .centre = true};
    if (good)
        study.leeway = nd_norm_conditioning(
            inout_sample, 1, study.mode == NORM_MODE_AFFINE ? &rows : &study.model[1]);
    study.leeway.fit = fit;
    if (!good)
        nd_norm_study_done(&study);
    else
        *ret_study = study;
    return good;
}

void nd_norm_study_done(struct norm_study *study)
{
    for (int side = 0; side < 2; side++) {
        free(study->weight[side]);
        free(study->bias[side]);
        free(study->mean[side]);
        free(study->var[side]);
    }
    free(study->fitted_weight);
    free(study->fitted_bias);
    free(study->zero);
    free(study->one);
    *study = (struct norm_study){.op = NULL};
}
