/*
 * Is the output right but for a part of it?  NaN and infinity, a tail that was not written,
 * one channel, or nothing at all.
 */
#include "checks/damage_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"
#include "base/room.h"

struct damage {
    double *error; /* |actual - expected| */
    bool *keep;    /* scratch: elements that a hypothesis leaves in */
    double rms;    /* of the expected output */
    double floor;  /* relative */
    double slack;  /* how many times that an undamaged element may be off */
    bool is_stale; /* a tail with NaN or infinity has to hold other wrong values too */
};

/* A few elements of an honest tensor stand out where some channels are far larger than the
 * others: what lies in one piece is looked for with more and more of them excused. */
static const double SLACKS[] = {1, 8, 64};
enum { SLACK_COUNT = sizeof SLACKS / sizeof *SLACKS };

/* --- NaN and infinity ----------------------------------------------------------------- */

static uint64_t nonfinite_of(const struct nd_slot *slot, int side)
{
    return slot->nonfinite[side].nan + slot->nonfinite[side].pos_inf +
           slot->nonfinite[side].neg_inf;
}

/* Attention scores hold -infinity by design: one in another place is a misplaced value. */
static bool damage_is_mask(const struct subject *subject)
{
    const struct nd_slot *slot = subject->slot;
    const struct op *op = subject->own->op;
    const bool is_scores = op != NULL && op->product && !op->bias;
    bool is_mask = slot->masked > 0 || is_scores;

    for (int side = 0; side < 2; side++)
        is_mask = is_mask && slot->nonfinite[side].nan == 0 &&
                  slot->nonfinite[side].pos_inf == 0;
    return is_mask;
}

/* False: look for damaged parts too. */
static bool damage_nonfinite(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_slot *slot = subject->slot;

    if (slot == NULL || slot->nonfinite_mismatches == 0)
        return false;
    const bool is_mask = damage_is_mask(subject);
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
                                .is_certain = !is_mask,
                                .penalty = -3,
                                .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
                                .params = params,
                                .param_count = sizeof params / sizeof *params});
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.nonfinite", params[0], params[1],
                  params[2], params[3], ND_NUMBER("is_candidate", side));
    finding->advice = nd_phrase_plain("advice.nonfinite");
    return !is_mask;
}

/* --- parts --------------------------------------------------------------------------- */

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

    ret->error = nd_room_take(subject->count, sizeof *ret->error);
    ret->keep = nd_room_take(subject->count, sizeof *ret->keep);
    if (ret->error == NULL || ret->keep == NULL)
        return false;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double z = subject->expected[i], y = subject->actual[i], e = fabs(y - z);
        const bool is_alike = y == z || (isnan(y) && isnan(z));
        ret->error[i] = isfinite(e) ? e : is_alike ? 0 : HUGE_VAL;
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

    const double floor = damage->floor * damage->slack;

    return isinf(damage->error[i]) ||
           damage->error[i] > fmax(12 * floor * damage->rms, 8 * floor * z);
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
                                             .is_certain = damage->is_stale,
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
    for (uint64_t i = first; i < subject->count; i++) {
        bad += is_bad(subject, damage, i) &&
               !(damage->is_stale && isinf(damage->error[i]));
        zeros += subject->actual[i] == 0;
    }
    /* Zeros alone are no values: half a batch may be missing. */
    if (len == 0 || (double)bad <= 0.25 * (double)len ||
        (double)len >= (zeros == len ? 0.95 : 0.4) * (double)subject->count)
        return false;
    for (uint64_t i = 0; i < subject->count; i++)
        damage->keep[i] = i < first;
    if (damage->slack > 1 &&
        !(nd_flat_misfit(subject, subject->expected, damage->keep) <= 2 * damage->floor))
        return false;
    const struct nd_param params[] = {ND_NUMBER("first", (double)first),
                                      ND_NUMBER("count", (double)len),
                                      ND_WORD("content", zeros == len ? "zeros" : "stale")};
    damage_propose(subject, damage, "tail_not_written",
                   (double)len / (double)subject->count,
                   damage->is_stale ? -5 : zeros == len ? -0.3 : 0, params,
                   sizeof params / sizeof *params);
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.tail", params[0], params[1]);
    finding->advice = nd_phrase_plain("advice.tail");
    return true;
}

static bool damage_tails(struct subject *subject, struct damage *damage,
                         struct nd_finding *finding)
{
    bool found = false;

    for (size_t k = 0; k < SLACK_COUNT && !found; k++) {
        damage->slack = SLACKS[k];
        found = damage_tail(subject, damage, finding);
    }
    damage->slack = 1;
    return found;
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

/* A channel is wrong in every sample; a range inside of one sample is something else. */
static bool channel_recurs(const struct subject *subject, const struct damage *damage,
                           const struct channels *channels, uint64_t channel)
{
    const uint64_t step = channels->count * channels->inner;
    const uint64_t samples = subject->count / step;
    uint64_t wrong = 0;

    for (uint64_t n = 0; n < samples; n++) {
        const uint64_t first = n * step + channel * channels->inner;
        uint64_t i = first;
        while (i < first + channels->inner && !is_bad(subject, damage, i))
            i++;
        wrong += i < first + channels->inner;
    }
    return samples < 2 || wrong > 1;
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
    if (!(residual < 0.5 * subject->unexplained) ||
        !channel_recurs(subject, damage, &channels, worst))
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

/* One channel stands above the others although theirs are off too, by what came in. */
static void damage_gap(struct subject *subject)
{
    const struct channel_gap *gap = &subject->own->gap;
    const struct hypothesis channel = {.id = "one_channel",
                                       .residual = (double)NAN,
                                       .is_fingerprint = true,
                                       .penalty = -0.8,
                                       .side = nd_subject_side(subject)};

    if (nd_channel_stands_out(gap) && gap->wrong == 1)
        ND_PROPOSE(subject, channel, ND_NUMBER("channel", (double)gap->channel),
                   ND_NUMBER("count", (double)gap->channels));
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
    struct damage damage = {.slack = 1};

    if (damage_nonfinite(subject, finding)) {
        damage.is_stale = true; /* an old buffer brings its infinities with it */
        if (subject->actual != NULL && !subject->window.is &&
            damage_measure(subject, &damage))
            (void)damage_tail(subject, &damage, finding);
        nd_room_give(damage.error);
        nd_room_give(damage.keep);
        return;
    }
    if (subject->actual == NULL) {
        finding->evidence = nd_phrase_plain("finding.damage.no_values");
        return;
    }
    if (finding->status != ND_CHECK_MISMATCH) {
        finding->status = ND_CHECK_OK;
        finding->evidence = nd_phrase_plain("finding.damage.spread");
    }
    if (subject->window.is) { /* what stands out may lie outside of it */
        if (!damage_zeroed(subject, finding))
            (void)nd_damage_survey(subject, finding);
        return;
    }
    if (!damage_zeroed(subject, finding) && damage_measure(subject, &damage) &&
        !damage_tails(subject, &damage, finding))
        damage_channel(subject, &damage, finding);
    damage_gap(subject);
    nd_room_give(damage.error);
    nd_room_give(damage.keep);
}

const struct check nd_check_damage = {.id = "damage", .is_line = true, .run = damage_run};
