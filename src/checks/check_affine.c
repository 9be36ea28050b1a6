/*
 * Are weight and bias applied, and as they are meant?  Dropped, or scaled by (1 + weight).
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/affine_fit.h"

struct affine_try {
    const char *id, *found;
    struct norm_model model;
};

static size_t affine_tries(const struct norm_model *model, struct affine_try *ret)
{
    size_t count = 0;

    if (model->weight != NULL) {
        ret[count] = (struct affine_try){"weight_dropped", "no weight", *model};
        ret[count++].model.weight = NULL;
        ret[count] = (struct affine_try){
            "one_plus_weight", model->plus == 0 ? "1 + weight" : "weight", *model};
        ret[count++].model.plus = 1 - model->plus;
    }
    if (model->bias != NULL) {
        ret[count] = (struct affine_try){"bias_dropped", "no bias", *model};
        ret[count++].model.bias = NULL;
    }
    return count;
}

/* --- linear layers and convolutions ------------------------------------------------------
 */

/* Channel of a flat element: axis 1 of images, else the last. */
static uint64_t product_channel(const struct nd_shape *shape, uint64_t i)
{
    if (shape->rank == 4)
        return i / (shape->dim[2] * shape->dim[3]) % shape->dim[1];
    return i % shape->dim[shape->rank - 1];
}

static uint64_t product_channels(const struct nd_shape *shape)
{
    return shape->rank == 0 ? 0 : shape->dim[shape->rank == 4 ? 1 : shape->rank - 1];
}

/* The bias as dumped; else the mean shift of each channel, which fits too easily. */
static bool product_bias(const struct subject *subject, double *ret_bias, uint64_t channels)
{
    for (int side = 0; side < 2; side++) {
        const struct slot_view *slot =
            nd_layer_slot(subject->pair->side[side], "param.bias");
        if (slot != NULL && slot->has_tensor && slot->tensor.count == channels &&
            nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT) {
            nd_view_decode(&slot->tensor, 0, channels, ret_bias);
            return true;
        }
    }
    for (uint64_t i = 0; i < subject->count; i++)
        if (isfinite(subject->expected[i]) && isfinite(subject->actual[i]))
            ret_bias[product_channel(&subject->shape, i)] +=
                (subject->expected[i] - subject->actual[i]) * (double)channels /
                (double)subject->count;
    return false;
}

/* Residual with the bias taken away from what was expected, or added to it. */
static double product_without(const struct subject *subject, const double *bias,
                              double sign, double *moved)
{
    for (uint64_t i = 0; i < subject->count; i++)
        moved[i] =
            subject->expected[i] + sign * bias[product_channel(&subject->shape, i)];
    return nd_flat_misfit(subject, moved, NULL);
}

static void affine_product(struct subject *subject, struct nd_finding *finding)
{
    const uint64_t channels = product_channels(&subject->shape);

    finding->evidence = nd_phrase_plain("finding.affine.product");
    if (subject->actual == NULL || channels == 0 || !subject->own->op->bias)
        return;
    double *bias = calloc(channels, sizeof *bias);
    double *moved = malloc(subject->count * sizeof *moved);
    if (bias != NULL && moved != NULL) {
        const bool known = product_bias(subject, bias, channels);
        double residual = product_without(subject, bias, -1, moved);
        enum nd_side side = nd_subject_side(subject);
        /* Against the other side's output either may be the one that lacks the bias. */
        if (known && !subject->is_replayed) {
            const double reverse = product_without(subject, bias, 1, moved);
            if (reverse < residual) {
                residual = reverse;
                side = subject->side == 1 ? ND_SIDE_REFERENCE : ND_SIDE_CANDIDATE;
            }
        }
        const struct hypothesis dropped = {.id = "bias_dropped",
                                           .residual = residual,
                                           .penalty = known ? 0 : 0.3,
                                           .is_free = !known,
                                           .side = side};
        /* A shift of each channel halves many an error; only one that leaves nothing
         * counts. */
        if (known || residual <= 4 * subject->floor)
            nd_propose(subject, &dropped);
        if (known && residual < 0.5 * subject->unexplained &&
            residual < 4 * subject->floor) {
            finding->status = ND_CHECK_MISMATCH;
            finding->recovered[side == ND_SIDE_CANDIDATE] = "no bias";
            finding->evidence = nd_phrase_plain("finding.affine.differs");
            finding->advice = nd_phrase_plain("advice.affine");
        }
    }
    free(bias);
    free(moved);
}

/* --- norms -------------------------------------------------------------------------------
 */

/* Running statistics not dumped: the candidate as the reference's own scale, and any shift.
 */
static void affine_shift(struct subject *subject)
{
    struct norm_study *study = &subject->formula.study;
    double *bias = nd_arena_alloc(subject->arena, study->channels, sizeof *bias);
    struct norm_model model = study->model[subject->side];

    if (bias == NULL ||
        !nd_affine_shift(&subject->formula.sample, subject->side, &model, bias))
        return;
    model.bias = bias;
    const double residual = nd_norm_misfit(subject, &model, NULL);
    if (!isnan(residual))
        nd_propose(subject, &(struct hypothesis){
                                .id = "bias_dropped",
                                .residual = residual,
                                .penalty = 0.02,
                                .is_free = true,
                                .side = nd_subject_side(subject),
                                .summary = nd_phrase_plain("summary.bias_dropped.free")});
}

/*
 * 1 + w is a larger output: against it any error looks smaller.  It has to halve the error;
 * and where the weight was fitted to the reference, and carries the reference's own fault,
 * to leave nothing.
 */
static bool affine_is_tested(const struct subject *subject, const struct affine_try *try)
{
    if (strcmp(try->id, "one_plus_weight") != 0)
        return true;
    const double residual = nd_norm_misfit(subject, &try->model, NULL);
    return residual < 0.5 * subject->unexplained &&
           (subject->formula.study.weights_known || residual <= 4 * subject->floor);
}

static void affine_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    struct affine_try tries[3];
    const char *found = NULL;
    double best = HUGE_VAL;

    if (subject->norm == NULL) {
        affine_product(subject, finding);
        return;
    }
    if (model == NULL || !subject->is_trusted) {
        finding->evidence = nd_phrase_plain("finding.affine.no_input");
        return;
    }
    if (subject->formula.study.mode == NORM_MODE_AFFINE)
        affine_shift(subject);
    const size_t count = affine_tries(model, tries);
    for (size_t i = 0; i < count; i++) {
        if (!affine_is_tested(subject, &tries[i]))
            continue;
        const double residual =
            nd_propose_norm(subject, tries[i].id, &tries[i].model, 0, NULL, 0);
        if (residual < best) {
            best = residual;
            found = tries[i].found;
        }
    }
    const bool other = best < 0.5 * subject->unexplained && best < 4 * subject->floor;
    const bool follows = subject->unexplained < 4 * subject->floor;
    if (other)
        finding->recovered[subject->side] = found;
    finding->status = other ? ND_CHECK_MISMATCH : follows ? ND_CHECK_OK : ND_CHECK_UNKNOWN;
    finding->evidence = nd_phrase_plain(other     ? "finding.affine.differs"
                                        : follows ? "finding.affine.alike"
                                                  : "finding.affine.other_fault");
    if (other)
        finding->advice = nd_phrase_plain("advice.affine");
}

const struct check nd_check_affine = {.id = "affine",
                                      .is_line = true,
                                      .of_norms = true,
                                      .of_products = true,
                                      .run = affine_run};
