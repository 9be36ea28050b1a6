/*
 * Is the output right but for a part of it?  NaN and infinity, a tail that was not written,
 * one channel, or nothing at all.
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct damage {
    double *error; /* |actual - expected| */
    bool *keep;    /* scratch: elements that a hypothesis leaves in */
    double rms;    /* of the expected output */
    double floor;  /* relative */
};

/* --- NaN and infinity ----------------------------------------------------------------- */

static uint64_t nonfinite_of(const struct nd_slot *slot, int side)
{
    return slot->nonfinite[side].nan + slot->nonfinite[side].pos_inf +
           slot->nonfinite[side].neg_inf;
}

static bool damage_nonfinite(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_slot *slot = subject->slot;

    if (slot == NULL || slot->nonfinite_mismatches == 0)
        return false;
    const int side = nonfinite_of(slot, 1) >= nonfinite_of(slot, 0);
    const struct nd_nonfinite_side *counts = &slot->nonfinite[side];
    const struct nd_param params[] = {
        ND_NUMBER("mismatches", (double)slot->nonfinite_mismatches),
        ND_NUMBER("nan", (double)counts->nan),
        ND_NUMBER("pos_inf", (double)counts->pos_inf),
        ND_NUMBER("neg_inf", (double)counts->neg_inf)};
    if (subject->kind == ORIGIN_NONFINITE || subject->kind == ORIGIN_NONE ||
        subject->kind == ORIGIN_REPLAY)
        nd_propose(subject, &(struct hypothesis){
                                .id = "nonfinite",
                                .residual = (double)NAN,
                                .is_certain = true,
                                .penalty = -3,
                                .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
                                .params = params,
                                .param_count = sizeof params / sizeof *params});
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.nonfinite", params[0], params[1],
                  params[2], params[3], ND_NUMBER("is_candidate", side));
    finding->advice = nd_phrase_plain("advice.nonfinite");
    return true;
}

/* --- parts ------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

enum { MEDIAN_SAMPLE = 4096 };

/* The median error, from evenly spaced elements. */
static double damage_median(const struct subject *subject, const double *error)
{
    double picked[MEDIAN_SAMPLE];
    const uint64_t count = subject->count < MEDIAN_SAMPLE ? subject->count : MEDIAN_SAMPLE;

    for (uint64_t i = 0; i < count; i++)
        picked[i] = error[i * subject->count / count];
    qsort(picked, count, sizeof *picked, ascending);
    return picked[count / 2];
}

static bool damage_measure(const struct subject *subject, struct damage *ret)
{
    double squares = 0;

    ret->error = malloc(subject->count * sizeof *ret->error);
    ret->keep = malloc(subject->count * sizeof *ret->keep);
    if (ret->error == NULL || ret->keep == NULL)
        return false;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double z = subject->expected[i], e = fabs(subject->actual[i] - z);
        ret->error[i] = isfinite(e) ? e : 0;
        squares += isfinite(z) ? z * z : 0;
    }
    ret->rms = sqrt(squares / (double)subject->count);
    /* What is wrong everywhere is no damage: half of the elements set the level. */
    ret->floor = fmax(subject->floor, 1e-7);
    if (ret->rms > 0)
        ret->floor = fmax(ret->floor,
                          fmin(1.5 * damage_median(subject, ret->error) / ret->rms, 1e-2));
    return true;
}

static bool is_bad(const struct subject *subject, const struct damage *damage, uint64_t i)
{
    const double z = fabs(subject->expected[i]);

    return damage->error[i] > fmax(12 * damage->floor * damage->rms, 8 * damage->floor * z);
}

static void damage_propose(struct subject *subject, const struct damage *damage,
                           const char *id, double left_out, double penalty,
                           const struct nd_param *params, size_t count)
{
    nd_propose(subject, &(struct hypothesis){.id = id,
                                             .residual = nd_flat_misfit(
                                                 subject, subject->expected, damage->keep),
                                             .floor = damage->floor,
                                             .penalty = 2 * left_out + penalty,
                                             /* the worst channel of many is no damage */
                                             .is_free = subject->is_one_sided,
                                             .side = nd_subject_side(subject),
                                             .params = params,
                                             .param_count = count});
}

/* Everything wrong lies behind one place near the end. */
static bool damage_tail(struct subject *subject, struct damage *damage,
                        struct nd_finding *finding)
{
    uint64_t first = 0, bad = 0, zeros = 0;

    while (first < subject->count && !is_bad(subject, damage, first))
        first++;
    const uint64_t len = subject->count - first;
    if (len == 0 || (double)len >= 0.4 * (double)subject->count)
        return false;
    for (uint64_t i = first; i < subject->count; i++) {
        bad += is_bad(subject, damage, i);
        zeros += subject->actual[i] == 0;
    }
    if ((double)bad <= 0.25 * (double)len)
        return false;
    for (uint64_t i = 0; i < subject->count; i++)
        damage->keep[i] = i < first;
    const struct nd_param params[] = {ND_NUMBER("first", (double)first),
                                      ND_NUMBER("count", (double)len),
                                      ND_WORD("content", zeros == len ? "zeros" : "stale")};
    damage_propose(subject, damage, "tail_not_written",
                   (double)len / (double)subject->count, zeros == len ? -0.3 : 0, params,
                   sizeof params / sizeof *params);
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.tail", params[0], params[1]);
    finding->advice = nd_phrase_plain("advice.tail");
    return true;
}

/* Elements of channel c: `inner` in a row, every `inner * channels`. */
struct channels {
    uint64_t count, inner;
};

static bool channels_of(const struct subject *subject, struct channels *ret)
{
    const struct nd_shape *shape = &subject->shape;
    const bool is_batch = subject->norm != NULL && subject->norm->grouping != NORM_TRAILING;
    uint32_t axis;

    if (shape->rank < 2)
        return false;
    axis = shape->rank == 4 || is_batch ? 1 : shape->rank - 1;
    ret->count = shape->dim[axis];
    ret->inner = 1;
    for (uint32_t k = axis + 1; k < shape->rank; k++)
        ret->inner *= shape->dim[k];
    return ret->count >= 3;
}

static void damage_channel(struct subject *subject, struct damage *damage,
                           struct nd_finding *finding)
{
    struct channels channels;
    uint64_t worst = 0;
    double highest = -1;

    if (!channels_of(subject, &channels))
        return;
    double *sums = calloc(2 * channels.count, sizeof *sums);
    if (sums == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++) {
        const uint64_t c = i / channels.inner % channels.count;
        const double z = subject->expected[i];
        sums[2 * c] += damage->error[i] * damage->error[i];
        sums[2 * c + 1] += isfinite(z) ? z * z : 0;
    }
    const double each = (double)(subject->count / channels.count);
    for (uint64_t c = 0; c < channels.count; c++) {
        const double size = fmax(sqrt(sums[2 * c + 1] / each), 1e-3 * damage->rms);
        const double rel = size > 0 ? sqrt(sums[2 * c] / each) / size : 0;
        if (rel > highest) {
            highest = rel;
            worst = c;
        }
    }
    free(sums);
    for (uint64_t i = 0; i < subject->count; i++)
        damage->keep[i] = i / channels.inner % channels.count != worst;
    const double residual = nd_flat_misfit(subject, subject->expected, damage->keep);
    if (!(residual < 0.5 * subject->unexplained))
        return;
    const struct nd_param params[] = {ND_NUMBER("channel", (double)worst),
                                      ND_NUMBER("count", (double)channels.count)};
    damage_propose(subject, damage, "one_channel", 1 / (double)channels.count, 0, params,
                   2);
    if (residual > 4 * damage->floor)
        return;
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.channel", params[0], params[1]);
    finding->advice = nd_phrase_plain("advice.channel");
}

/* Nothing was written, on either side. */
static bool damage_zeroed(struct subject *subject, struct nd_finding *finding)
{
    for (int side = 0; side < 2; side++) {
        if (nd_slot_number(subject->slot, "norm", side) != 0 ||
            !(nd_slot_number(subject->slot, "norm", !side) > 0))
            continue;
        const struct hypothesis zeroed = {.id = "zeroed",
                                          .residual = (double)NAN,
                                          .is_certain = true,
                                          .side = side == 1 ? ND_SIDE_CANDIDATE
                                                            : ND_SIDE_REFERENCE};
        nd_propose(subject, &zeroed);
        finding->status = ND_CHECK_MISMATCH;
        finding->evidence = nd_phrase_plain("finding.damage.zeroed");
        finding->advice = nd_phrase_plain("advice.tail");
        return true;
    }
    return false;
}

static void damage_run(struct subject *subject, struct nd_finding *finding)
{
    struct damage damage = {.error = NULL};

    if (damage_nonfinite(subject, finding))
        return;
    if (subject->actual == NULL) {
        finding->evidence = nd_phrase_plain("finding.damage.no_values");
        return;
    }
    finding->status = ND_CHECK_OK;
    finding->evidence = nd_phrase_plain("finding.damage.spread");
    if (!damage_zeroed(subject, finding) && damage_measure(subject, &damage) &&
        !damage_tail(subject, &damage, finding))
        damage_channel(subject, &damage, finding);
    free(damage.error);
    free(damage.keep);
}

const struct check nd_check_damage = {.id = "damage", .is_line = true, .run = damage_run};
