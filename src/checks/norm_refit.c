/*
 * Which side tells the formula, and what is not known of its parameters?  The reference,
 * unless it follows none and the candidate does: then the study is made with the sides
 * exchanged and turned back.
 */
#include "checks/norm_study.h"

#include <math.h>

static void refit_exchange(double **pointers)
{
    double *const first = pointers[0];

    pointers[0] = pointers[1];
    pointers[1] = first;
}

static void refit_exchange_numbers(double *numbers)
{
    const double first = numbers[0];

    numbers[0] = numbers[1];
    numbers[1] = first;
}

static void refit_turn_sample(struct sample *sample)
{
    double *const out = sample->out[0];

    for (unsigned k = 0; k < sample->inputs; k++) {
        double *const in = sample->in[0][k];
        sample->in[0][k] = sample->in[1][k];
        sample->in[1][k] = in;
    }
    sample->out[0] = sample->out[1];
    sample->out[1] = out;
}

static void refit_turn_study(struct norm_study *study)
{
    const struct norm_model model = study->model[0];
    const struct residual residual = study->residual[0];

    study->model[0] = study->model[1];
    study->model[1] = model;
    study->residual[0] = study->residual[1];
    study->residual[1] = residual;
    refit_exchange_numbers(study->declared_eps);
    refit_exchange_numbers(study->declared_mode);
    refit_exchange(study->weight);
    refit_exchange(study->bias);
    refit_exchange(study->mean);
    refit_exchange(study->var);
    study->fitted_on = 1;
}

bool nd_norm_study_refit(const struct op *op, const struct layer_pair_view *pair,
                         const struct op_rows *rows, uint64_t count, double roundoff,
                         double enough, struct sample *inout_sample,
                         struct norm_study *inout_study)
{
    const struct layer_pair_view turned = {
        .side = {pair->side[1], pair->side[0]}
    };
    const struct op_rows chosen_rows = inout_sample->rows;
    const uint64_t chosen_count = inout_sample->count;
    struct norm_study other;

    /* Estimates on a reference that does not follow tell nothing of the candidate. */
    const bool is_fitted =
        !inout_study->weights_known || inout_study->mode == NORM_MODE_AFFINE;
    const double rel = inout_study->residual[0].rel;
    /* In 16 bits enough is wide: more than one rounding left deserves a look. */
    const bool is_doubtful =
        is_fitted && roundoff > 0x1p-24 && rel > roundoff && rel <= enough;
    if (!is_doubtful &&
        (rel <= enough || (inout_study->residual[1].rel <= enough && !is_fitted)))
        return true;
    refit_turn_sample(inout_sample);
    inout_sample->rows = *rows;
    inout_sample->count = count;
    const bool made = nd_norm_study_make(op, &turned, inout_sample, roundoff, &other);
    refit_turn_sample(inout_sample);
    if (made && other.residual[0].rel <= (is_doubtful ? rel / 3 : enough) &&
        other.residual[0].mismatches == 0) {
        refit_turn_study(&other);
        nd_norm_study_done(inout_study);
        *inout_study = other;
        return true;
    }
    if (made)
        nd_norm_study_done(&other);
    /* Regrouping leaves the values where they are, and the row numbers of a whole sample
     * count up. */
    inout_sample->rows = chosen_rows;
    inout_sample->count = chosen_count;
    return made || is_doubtful;
}
