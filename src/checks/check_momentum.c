/*
 * How fast do running statistics follow the batch?  After the step they are
 * before + m (batch - before): the m of each side comes out of the numbers.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/subject.h"

struct momentum {
    double *batch_mean, *batch_var; /* per channel; var over n - 1 */
    double *before, *after;         /* scratch */
    uint64_t channels;
};

static bool momentum_read(const struct layer_view *layer, const char *name,
                          uint64_t channels, double *ret)
{
    const struct slot_view *slot = nd_layer_slot(layer, name);

    if (slot == NULL || !slot->has_tensor || slot->tensor.count != channels ||
        nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT)
        return false;
    nd_view_decode(&slot->tensor, 0, channels, ret);
    return true;
}

static void momentum_batch(const struct sample *sample, int side, struct momentum *momentum)
{
    const double n = (double)sample->rows.row_len;

    for (uint64_t i = 0; i < sample->count; i++) {
        const uint64_t c = sample->row[i];
        nd_norm_moments(sample->in[side][0] + i * sample->rows.row_len,
                        sample->rows.row_len, &momentum->batch_mean[c],
                        &momentum->batch_var[c]);
        momentum->batch_var[c] *= n > 1 ? n / (n - 1) : 1;
    }
}

/* The m that carries `before` to `after`, by least squares over the channels. */
static double momentum_of(const struct subject *subject, int side, const char *before,
                          const char *after, const double *batch, struct momentum *momentum)
{
    const struct layer_view *const *sides = subject->pair->side;
    double along = 0, size = 0;

    if ((!momentum_read(sides[side], before, momentum->channels, momentum->before) &&
         !momentum_read(sides[!side], before, momentum->channels, momentum->before)) ||
        !momentum_read(sides[side], after, momentum->channels, momentum->after))
        return (double)NAN;
    for (uint64_t c = 0; c < momentum->channels; c++) {
        const double d = batch[c] - momentum->before[c];
        along += d * (momentum->after[c] - momentum->before[c]);
        size += d * d;
    }
    return size > 0 ? along / size : (double)NAN;
}

/* The variance over n where that over n - 1 was meant: only it keeps the mean's pace. */
static bool momentum_is_biased(const struct subject *subject, int side, double rate,
                               double var, struct momentum *momentum)
{
    const double n = (double)subject->formula.sample.rows.row_len;

    for (uint64_t c = 0; c < momentum->channels; c++)
        momentum->batch_var[c] *= (n - 1) / n;
    const double biased = momentum_of(subject, side, "state.running_var",
                                      "state_after.running_var", momentum->batch_var,
                                      momentum);
    return n > 1 && fabs(biased - rate) < 0.2 * fabs(var - rate);
}

/* Both follow the mean alike; one takes in the biased variance. */
static void momentum_propose_biased(struct subject *subject, int side)
{
    const double n = (double)subject->formula.sample.rows.row_len;
    const struct hypothesis biased = {
        .id = "unbiased_variance",
        .residual = (double)NAN,
        .is_certain = true,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .summary = ND_PHRASE(subject->arena, "summary.unbiased_variance.running",
                             ND_NUMBER("n", n), ND_NUMBER("is_candidate", side))};

    ND_PROPOSE(subject, biased, ND_NUMBER("n", n));
}

static void momentum_propose(struct subject *subject, struct momentum *momentum)
{
    double mean[2], var[2];
    bool biased[2];

    for (int side = 0; side < 2; side++) {
        momentum_batch(&subject->formula.sample, side, momentum);
        mean[side] =
            momentum_of(subject, side, "state.running_mean", "state_after.running_mean",
                        momentum->batch_mean, momentum);
        var[side] = momentum_of(subject, side, "state.running_var",
                                "state_after.running_var", momentum->batch_var, momentum);
        biased[side] =
            momentum_is_biased(subject, side, mean[side], var[side], momentum);
    }
    if (isnan(mean[0]) || isnan(mean[1]))
        return;
    if (biased[0] != biased[1] && fabs(mean[0] - mean[1]) < 1e-3 * fabs(mean[0])) {
        momentum_propose_biased(subject, biased[1]);
        return;
    }
    const struct hypothesis rate = {.id = "momentum",
                                    .residual = (double)NAN,
                                    .is_certain = true,
                                    .side = ND_SIDE_CANDIDATE};
    ND_PROPOSE(subject, rate, ND_NUMBER("reference", mean[0]),
               ND_NUMBER("candidate", mean[1]), ND_NUMBER("reference_variance", var[0]),
               ND_NUMBER("candidate_variance", var[1]));
}

static void momentum_run(struct subject *subject, struct nd_finding *finding)
{
    struct momentum momentum = {.batch_mean = NULL};
    double *room;

    (void)finding;
    if (subject->kind != ORIGIN_AFTER || subject->norm == NULL || !subject->norm->running ||
        !subject->has_formula || !subject->formula.sample.whole)
        return;
    momentum.channels = subject->formula.sample.rows.channels;
    room = calloc(4 * momentum.channels, sizeof *room);
    if (room == NULL)
        return;
    momentum.batch_mean = room;
    momentum.batch_var = room + momentum.channels;
    momentum.before = room + 2 * momentum.channels;
    momentum.after = room + 3 * momentum.channels;
    momentum_propose(subject, &momentum);
    free(room);
}

const struct check nd_check_momentum = {.id = "momentum", .run = momentum_run};
