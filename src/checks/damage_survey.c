/*
 * The whole output is surveyed once, against the other side's, and a region that stands out
 * is named as the checks of small outputs name it: a tail, a range, a block, one channel.
 */
#include "checks/damage_survey.h"

#include <math.h>

#include "checks/flat.h"
#include "checks/survey.h"

/* Fewer wrong elements than this are no region. */
enum { REGION_LEAST = 4 };

static const struct tensor_view *survey_view(const struct subject *subject, int side)
{
    const struct slot_view *slot =
        nd_layer_slot(subject->whole->side[side], subject->slot->name);

    return slot != NULL && slot->has_tensor ? &slot->tensor : NULL;
}

static void survey_propose(struct subject *subject, const struct survey *survey,
                           const char *id, double residual, double share,
                           struct nd_phrase summary, const struct nd_param *params,
                           size_t count)
{
    nd_propose(subject, &(struct hypothesis){.id = id,
                                             .residual = residual,
                                             .floor = fmax(survey->floor, subject->floor),
                                             .penalty = 2 * share - 0.3,
                                             .side = nd_subject_side(subject),
                                             .summary = summary,
                                             .params = params,
                                             .param_count = count});
}

/* Everything wrong lies behind one place near the end. */
static bool survey_tail(struct subject *subject, const struct survey *survey,
                        struct nd_finding *finding)
{
    const uint64_t len = survey->count - survey->first;
    const struct nd_param params[] = {
        ND_NUMBER("first", (double)survey->first), ND_NUMBER("count", (double)len),
        ND_WORD("content", survey->zeros == len ? "zeros" : "stale")};

    /* Bad elements to the very end, but for some that agree by chance.  Zeros alone are no
     * values: half a batch may be missing. */
    if ((double)len >= (survey->zeros == len ? 0.95 : 0.4) * (double)survey->count ||
        (double)survey->bad <= 0.25 * (double)len ||
        survey->count - 1 - survey->last > len / 16)
        return false;
    survey_propose(subject, survey, "tail_not_written", survey->before,
                   (double)len / (double)survey->count, nd_phrase_plain(NULL), params,
                   sizeof params / sizeof *params);
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.tail", params[0], params[1]);
    finding->advice = nd_phrase_plain("advice.tail");
    return true;
}

static bool survey_range(struct subject *subject, const struct survey *survey,
                         struct nd_finding *finding)
{
    const uint64_t len = survey->last + 1 - survey->first;
    const struct nd_param params[] = {ND_NUMBER("first", (double)survey->first),
                                      ND_NUMBER("count", (double)len),
                                      ND_NUMBER("total", (double)survey->count)};

    if (len < REGION_LEAST || len > survey->count / 4 || survey->bad * 2 < len)
        return false;
    survey_propose(subject, survey, "memory_overwritten", survey->outside,
                   (double)len / (double)survey->count, nd_phrase_plain(NULL), params,
                   sizeof params / sizeof *params);
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.range", params[0], params[1], params[2]);
    finding->advice = nd_phrase_plain("cause.memory_overwritten.advice");
    return true;
}

static bool survey_channel(struct subject *subject, const struct survey *survey,
                           struct nd_finding *finding)
{
    const struct nd_param params[] = {ND_NUMBER("channel", (double)survey->channel),
                                      ND_NUMBER("count", (double)survey->channels)};

    /* A channel is wrong in every sample; a range inside of one is something else. */
    if (!(survey->off_channel < 0.5 * survey->all) || survey->bad < REGION_LEAST ||
        (survey->shape.dim[0] > 1 && survey->low[0] == survey->high[0]))
        return false;
    survey_propose(subject, survey, "one_channel", survey->off_channel,
                   1 / (double)survey->channels, nd_phrase_plain(NULL), params,
                   sizeof params / sizeof *params);
    if (survey->off_channel > 4 * survey->floor)
        return false;
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.channel", params[0], params[1]);
    finding->advice = nd_phrase_plain("advice.channel");
    return true;
}

/* "[0:4, 100:164, 64:128]" */
static const char *box_text(struct subject *subject, const struct survey *survey,
                            uint32_t rank)
{
    const char *text = "";

    for (uint32_t k = 0; k < rank; k++)
        text = nd_arena_format(subject->arena, "%s%s%llu:%llu", text == NULL ? "" : text,
                               k == 0 ? "" : ", ", (unsigned long long)survey->low[k],
                               (unsigned long long)survey->high[k] + 1);
    return text == NULL ? "" : text;
}

/* A block of several axes: a tile that one core did not write, or wrote twice. */
static bool survey_box(struct subject *subject, const struct survey *survey, uint32_t rank,
                       struct nd_finding *finding)
{
    uint64_t volume = 1;

    for (uint32_t k = 0; k < rank; k++)
        volume *= survey->high[k] + 1 - survey->low[k];
    if (survey->bad < REGION_LEAST || volume > survey->count / 4 ||
        survey->bad * 2 < volume)
        return false;
    const struct nd_param params[] = {
        ND_WORD("block", box_text(subject, survey, rank)),
        ND_NUMBER("count", (double)volume), ND_NUMBER("total", (double)survey->count),
        ND_NUMBER("residual", survey->good), ND_NUMBER("is_candidate", subject->side)};
    survey_propose(subject, survey, "memory_overwritten", survey->good,
                   (double)volume / (double)survey->count,
                   nd_phrase_make(subject->arena, "summary.memory_overwritten.block",
                                  params, sizeof params / sizeof *params),
                   params, 3);
    finding->evidence =
        ND_PHRASE(subject->arena, "finding.damage.block", params[0], params[1], params[2]);
    finding->advice = nd_phrase_plain("advice.tail");
    return true;
}

bool nd_damage_survey(struct subject *subject, struct nd_finding *finding)
{
    const struct tensor_view *actual = survey_view(subject, subject->side);
    const struct tensor_view *expected = survey_view(subject, !subject->side);
    const double inherited = subject->own->in.count > 0 ? subject->own->in.rel : 0;
    struct survey survey;

    if (actual == NULL || expected == NULL || nd_flat_outside(subject) ||
        !nd_shape_equal(&actual->shape, &expected->shape) || actual->shape.rank == 0)
        return false;
    const uint32_t last = actual->shape.rank - 1;
    const uint32_t channel = nd_flat_channel_axis(subject);
    if (!nd_survey(actual, expected, channel > last ? last : channel,
                   fmax(subject->floor, inherited), subject->input->jobs, &survey) ||
        !(survey.good < 0.5 * survey.all))
        return false;
    const bool found = survey_tail(subject, &survey, finding) ||
                       survey_range(subject, &survey, finding) ||
                       survey_channel(subject, &survey, finding) ||
                       survey_box(subject, &survey, last + 1, finding);
    if (found)
        finding->status = ND_CHECK_MISMATCH;
    return found;
}
