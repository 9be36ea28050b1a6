/*
 * The verdict, its reason in words, and the exit status.  The reason claims no more than what
 * was counted: a layer that is excused still reaches the bound, and what statistics are too
 * coarse to show does not agree.
 */
#include "compare/verdict.h"

#include "base/text.h"

/* A bound as people and the guides write it: 1e-1, not 0.1. */
static const char *bound_text(struct arena *arena, double bound)
{
    static const double powers[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9};
    char                buf[32];

    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        if (bound == powers[i])
            return nd_arena_format(arena, "1e-%zu", i + 1);
    return nd_arena_string(arena, nd_number_text(bound, buf));
}

/* The bound that the reason speaks of. */
static double spoken_bound(const struct nd_options *options)
{
    switch (options->fail_on) {
    case ND_FAIL_ON_NUMBER:
        return options->fail_on_number;
    case ND_FAIL_ON_ELEVATED:
        return options->tiers[1];
    default:
        return options->tiers[2];
    }
}

static struct nd_phrase reason_of(const struct comparison *comparison, const char *id,
                                  size_t count, size_t part, size_t missing)
{
    const char *const bound = bound_text(comparison->arena, spoken_bound(comparison->options));
    struct nd_param  *params = nd_arena_alloc(comparison->arena, 4, sizeof *params);

    if (params == NULL || bound == NULL)
        return (struct nd_phrase){0};
    params[0] = (struct nd_param){"count", NULL, (double)count};
    params[1] = (struct nd_param){"bound", bound, 0};
    params[2] = (struct nd_param){"missing", NULL, (double)missing};
    params[3] = (struct nd_param){"part", NULL, (double)part};
    return (struct nd_phrase){id, params, 4};
}

/* All that fails, fails because its drift reaches the one bound there is. */
static bool by_the_bound(const struct nd_options *options, const struct tally *tally)
{
    return tally->kind[ND_FAIL_DRIFT] == tally->failing && tally->origins == 0 &&
           options->tol.count == 0 && options->fail_on != ND_FAIL_ON_ANY &&
           options->fail_on != ND_FAIL_ON_ELEVATED;
}

/* One sentence if all that fails is of one kind. */
static const char *one_kind(const struct nd_options *options, const struct tally *tally)
{
    static const struct {
        enum nd_fail kind;
        const char  *id;
    } rows[] = {{ND_FAIL_SHAPE, "reason.shape"},         {ND_FAIL_NONFINITE, "reason.nonfinite"},
                {ND_FAIL_INTEGER, "reason.integer"},     {ND_FAIL_DTYPE, "reason.dtype"},
                {ND_FAIL_LOCALISED, "reason.localised"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tally->kind[rows[i].kind] == tally->failing)
            return rows[i].id;
    if (tally->origins == tally->failing)
        return "reason.origin";
    if (tally->kind[ND_FAIL_DRIFT] == tally->failing && options->tol.count == 0) {
        if (options->fail_on == ND_FAIL_ON_ANY)
            return "reason.any";
        if (options->fail_on == ND_FAIL_ON_ELEVATED)
            return "reason.elevated";
    }
    return tally->kind[ND_FAIL_DRIFT] > tally->origins && options->tol.count == 0 &&
                   options->fail_on != ND_FAIL_ON_ANY && options->fail_on != ND_FAIL_ON_ELEVATED
               ? "reason.fails.part"
               : "reason.fails";
}

static struct nd_phrase drift_reason(const struct comparison *comparison,
                                     const struct tally *tally)
{
    const bool  bound = by_the_bound(comparison->options, tally);
    const char *id = bound ? "reason.drift" : one_kind(comparison->options, tally);

    if (tally->missing > 0)
        id = bound ? "reason.drift.incomplete" : "reason.fails.incomplete";
    return reason_of(comparison, id, tally->failing, tally->kind[ND_FAIL_DRIFT] - tally->origins,
                     tally->missing);
}

static struct nd_phrase agree_reason(const struct comparison *comparison,
                                     const struct tally *tally, const struct nd_result *result)
{
    const size_t open = result->summary[ND_TIER_UNRESOLVED] + result->summary[ND_TIER_CHECKSUM];

    if (result->coverage.tensors_compared == 0)
        return reason_of(comparison, "reason.agree.none", 0, 0, 0);
    if (tally->excused > 0)
        return reason_of(comparison, "reason.agree.excused", tally->excused, 0, 0);
    return open > 0 ? reason_of(comparison, "reason.agree.open", open, 0, 0)
                    : reason_of(comparison, "reason.agree", 0, 0, 0);
}

void nd_verdict(const struct comparison *comparison, const struct tally *tally,
                struct nd_result *result)
{
    if (tally->failing > 0) {
        result->verdict = ND_VERDICT_DRIFT;
        result->reason = drift_reason(comparison, tally);
    } else if (tally->missing > 0) {
        result->verdict = ND_VERDICT_INCOMPLETE;
        result->reason = reason_of(comparison, "reason.incomplete", tally->missing, 0,
                                   tally->missing);
    } else if (result->first.layer != ND_NO_INDEX) {
        result->verdict = ND_VERDICT_SUSPECT;
        result->reason = tally->excused > 0
                             ? reason_of(comparison, "reason.suspect.excused", tally->excused, 0, 0)
                             : reason_of(comparison, "reason.suspect", 0, 0, 0);
    } else {
        result->verdict = ND_VERDICT_AGREE;
        result->reason = agree_reason(comparison, tally, result);
    }
    result->exit_code = tally->failing > 0 || tally->missing > 0;
}
