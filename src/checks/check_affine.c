/*
 * Are weight and bias applied, and as they are meant?  Dropped, or scaled by (1 + weight).
 */
#include "checks/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct affine_try {
    const char *id, *found;
    struct norm_model model;
    bool is_reverse; /* it is the right side's formula that is not the operator's */
};

enum { AFFINE_TRIES = 4 };

/*
 * A weight that was fitted to one side is what that side multiplies by: 1 + weight, if it
 * does so, and then the other side's is one less.
 */
static size_t affine_tries(const struct norm_study *study, const struct norm_model *model,
                           struct affine_try *ret)
{
    const double usual = study->op->norm->one_plus;
    size_t count = 0;

    if (model->weight != NULL) {
        ret[count] = (struct affine_try){
            .id = "weight_dropped", .found = "no weight", .model = *model};
        ret[count++].model.weight = NULL;
        ret[count] = (struct affine_try){
            .id = "one_plus_weight",
            .found = model->plus == 0 ? "1 + weight" : "weight",
            .model = *model,
            .is_reverse = study->weights_known ? model->plus != usual : usual == 1};
        ret[count++].model.plus = 1 - model->plus;
        if (!study->weights_known) {
            ret[count] = (struct affine_try){.id = "one_plus_weight",
                                             .found = "weight",
                                             .model = *model,
                                             .is_reverse = usual == 0};
            ret[count++].model.plus = -1;
        }
    }
    if (model->bias != NULL) {
        ret[count] = (struct affine_try){
            .id = "bias_dropped", .found = "no bias", .model = *model};
        ret[count++].model.bias = NULL;
    }
    return count;
}

/* --- linear layers and convolutions -------------------------------------------------- */

/* Where the channels of a product's output lie. */
struct product_axis {
    uint64_t channels, inner; /* elements behind one of them */
};

static struct product_axis product_axis_of(const struct subject *subject)
{
    const struct nd_shape *shape = &subject->shape;

    if (shape->rank == 0)
        return (struct product_axis){0, 1};
    const uint32_t axis = nd_flat_channel_axis(subject);
    return (struct product_axis){shape->dim[axis], nd_flat_inner(shape, axis)};
}

/* The bias as dumped; else the mean shift of each channel, which fits too easily. */
static bool product_bias(const struct subject *subject, struct product_axis axis,
                         double *ret_bias)
{
    const uint64_t channels = axis.channels;

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
            ret_bias[i / axis.inner % channels] +=
                (subject->expected[i] - subject->actual[i]) * (double)channels /
                (double)subject->count;
    return false;
}

/* Residual with the bias taken away from what was expected, or added to it. */
static double product_without(const struct subject *subject, struct product_axis axis,
                              const double *bias, double sign, double *moved)
{
    for (uint64_t i = 0; i < subject->count; i++)
        moved[i] = subject->expected[i] + sign * bias[i / axis.inner % axis.channels];
    return nd_flat_misfit(subject, moved, NULL);
}

static void affine_product(struct subject *subject, struct nd_finding *finding)
{
    const struct product_axis axis = product_axis_of(subject);
    const uint64_t channels = axis.channels;

    finding->evidence = nd_phrase_plain("finding.affine.product");
    if (subject->actual == NULL || channels == 0 || !subject->own->op->bias)
        return;
    double *bias = calloc(channels, sizeof *bias);
    double *moved = malloc(subject->count * sizeof *moved);
    if (bias != NULL && moved != NULL) {
        const bool known = product_bias(subject, axis, bias);
        double residual = product_without(subject, axis, bias, -1, moved);
        enum nd_side side = nd_subject_side(subject);
        /* Against the other side's output either may be the one that lacks the bias. */
        if (known && !subject->is_replayed) {
            const double reverse = product_without(subject, axis, bias, 1, moved);
            if (reverse < residual) {
                residual = reverse;
                side = subject->side == 1 ? ND_SIDE_REFERENCE : ND_SIDE_CANDIDATE;
            }
        }
        /* One number a channel, where a folded norm has two. */
        const double free_penalty = subject->count >= 4 * channels ? -0.4 : 0.3;
        const struct hypothesis dropped = {.id = "bias_dropped",
                                           .residual = residual,
                                           .penalty = known ? 0 : free_penalty,
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

/* --- norms --------------------------------------------------------------------------- */

/*
 * 1 + w is a larger output: against it any error looks smaller.  It has to halve the error;
 * and where the weight was fitted to the reference, and carries the reference's own fault,
 * to leave nothing.
 */
static bool affine_is_tested(const struct subject *subject, const struct affine_try *try,
                             double residual)
{
    if (strcmp(try->id, "one_plus_weight") != 0)
        return !isnan(residual);
    return residual < 0.5 * subject->unexplained &&
           (subject->formula.study.weights_known || residual <= 4 * subject->floor);
}

/* The best of the forms that leaves the least; NULL: there is none. */
static const struct affine_try *affine_best(struct subject *subject,
                                            const struct affine_try *tries, size_t count,
                                            double *ret_residual)
{
    const struct affine_try *best = NULL;

    *ret_residual = HUGE_VAL;
    for (size_t i = 0; i < count; i++) {
        const struct hypothesis form = {
            .id = tries[i].id,
            .residual = nd_norm_misfit(subject, &tries[i].model, NULL),
            .side = (subject->side == 1) != tries[i].is_reverse ? ND_SIDE_CANDIDATE
                                                               : ND_SIDE_REFERENCE};
        if (!affine_is_tested(subject, &tries[i], form.residual))
            continue;
        nd_propose(subject, &form);
        if (form.residual < *ret_residual) {
            *ret_residual = form.residual;
            best = &tries[i];
        }
    }
    return best;
}

static void affine_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    struct affine_try tries[AFFINE_TRIES];
    double left;

    if (subject->norm == NULL) {
        affine_product(subject, finding);
        return;
    }
    if (model == NULL || !subject->is_trusted) {
        finding->evidence = nd_phrase_plain("finding.affine.no_input");
        return;
    }
    const size_t count = affine_tries(&subject->formula.study, model, tries);
    const struct affine_try *best = affine_best(subject, tries, count, &left);
    const bool other = best != NULL && left < 0.5 * subject->unexplained &&
                       left < 4 * subject->floor;
    const bool follows = subject->unexplained < 4 * subject->floor;
    if (other)
        finding->recovered[subject->side] = best->found;
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
