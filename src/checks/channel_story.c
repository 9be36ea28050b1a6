/*
 * A story's score is the log likelihood of both sides' scales and levels under it.
 */
#include "checks/channel_story.h"

#include "checks/channel_view.h"

#include <math.h>
#include <stdlib.h>

/*
 * Running statistics of networks in use lie so far from a batch's: in log deviation, and
 * of the mean in deviations; and by chance, over the root of a channel's values, as
 * neighbouring pixels count for one another.
 */
static const double LOG_SPREAD = 0.2, LOG_CHANCE = 1.6;
static const double MEAN_SPREAD = 0.35, MEAN_CHANCE = 2;
static const double MOST_LOG_SHIFT = 0.5;
/* Weights of one layer that are all alike could be dropped unnoticed. */
static const double LEAST_WEIGHT_SPREAD = 0.1;
static const double LEAST_SPREAD = CHANNEL_LEAST_SPREAD, FREE_MOST = 64;
/* Other statistics move scales too, if they move levels: by this share of it at least. */
static const double FREE_SHARE = 0.03;
static const double MOVED = 6; /* times the noise */

/* Base values of eps that frameworks give a BatchNorm: PyTorch, Keras, CANN's IR, Caffe. */
static const double story_bases[] = {1e-5, 1e-3, 1e-4, 1e-6};

/* Scales change about the statistics' own mean: where a scale stays, so does the level. */
static double pivot_score(const struct channel_view *view)
{
    for (uint64_t c = 0; c < view->count; c++)
        view->unit[c] =
            fabs(exp(view->gain[c]) * (view->is_turned[c] ? -1 : 1) - 1);
    return nd_channel_spread(view, view->lift, view->unit, LEAST_SPREAD, view->mean_most);
}

/*
 * Statistics over more data lie all a little above or below those of one batch: what they
 * share is taken out of the residuals, `unit` being how a residual moves with it.
 */
static void share_out(const struct channel_view *view)
{
    double up = 0, down = 0;

    for (uint64_t c = 0; c < view->count; c++) {
        const double weight =
            1 / (view->noise[c] * view->noise[c] + view->unit[c] * view->unit[c] / 25);
        if (fabs(view->residual[c]) < 2 * fabs(view->unit[c])) {
            up += weight * view->residual[c] * view->unit[c];
            down += weight * view->unit[c] * view->unit[c];
        }
    }
    const double shift =
        down > 0 ? fmin(fmax(up / down, -MOST_LOG_SHIFT), MOST_LOG_SHIFT) : 0;
    for (uint64_t c = 0; c < view->count; c++)
        view->residual[c] -= shift * view->unit[c];
}

static double shared_score(const struct channel_view *view)
{
    share_out(view);
    return nd_channel_spread(view, view->residual, view->unit, LEAST_SPREAD,
                             view->log_most);
}

static double free_score(const struct channel_view *view)
{
    double least = 0;

    for (uint64_t c = 0; c < view->count; c++)
        least += fmin(fabs(view->lift[c]), 1) * FREE_SHARE / (double)view->count;
    return nd_channel_spread(view, view->gain, NULL, fmax(least, LEAST_SPREAD), FREE_MOST) +
           nd_channel_spread(view, view->lift, NULL, LEAST_SPREAD, FREE_MOST);
}

/* --- stories -------------------------------------------------------------------------- */

static double shift_score(const struct channel_view *view, enum story story)
{
    for (uint64_t c = 0; c < view->count; c++)
        view->residual[c] = story == STORY_BIAS ? view->level[c]
                                                : view->lift[c] - view->offset[c];
    /* No spread: the scales agree to the noise. */
    return nd_channel_spread(view, view->gain, NULL, 0, 0) +
           nd_channel_spread(view, view->residual, NULL, LEAST_SPREAD, view->mean_most);
}

/* A wrong sign, or a scale that no value of the spread makes. */
static const double IMPOSSIBLE = 16;

static double cautious_log(double x)
{
    return x > 0 ? log(x) : -IMPOSSIBLE;
}

/*
 * Where a story gives each channel's weight and true deviation, both have to make sense:
 * deviations about those of the batch (residual holds the log of the ratio), weights about
 * one another (unit holds their log).
 */
static double implied_score(const struct channel_view *view)
{
    const double middle = nd_channel_middle(view, view->residual);
    const double shift = fmin(fmax(middle, -MOST_LOG_SHIFT), MOST_LOG_SHIFT);
    const double weight = nd_channel_middle(view, view->unit);

    for (uint64_t c = 0; c < view->count; c++) {
        view->residual[c] -= shift;
        view->unit[c] -= weight;
    }
    return nd_channel_spread(view, view->residual, NULL, LEAST_SPREAD, view->log_most) +
           nd_channel_spread(view, view->unit, NULL, LEAST_WEIGHT_SPREAD, FREE_MOST);
}

static double weight_score(const struct channel_view *view, enum story story, double base)
{
    double jacobian = 0;

    for (uint64_t c = 0; c < view->count; c++) {
        const double deviation = sqrt(view->deviation[c] * view->deviation[c] + base);
        const double size = view->scale[c] * deviation;
        const double gain = exp(view->gain[c]) * (view->is_turned[c] ? -1 : 1);
        const double moved = fmax(fabs(gain - 1), view->noise[c]);
        if (story == STORY_WEIGHT) {
            view->residual[c] = cautious_log(size * gain);
            view->unit[c] = -view->gain[c];
            continue;
        }
        view->residual[c] = cautious_log(size * (gain - 1));
        view->unit[c] = -log(moved);
        jacobian += view->gain[c] - log(moved);
    }
    return implied_score(view) + jacobian;
}

/* 1 / sqrt(v + e), or 1 / (sqrt(v) + e). */
static double log_scale(double deviation, double eps, bool outside)
{
    return outside ? -log(deviation + eps) : -0.5 * log(deviation * deviation + eps);
}

static double eps_gain(double deviation, double base, double eps, bool outside)
{
    return log_scale(deviation, eps, outside) - log_scale(deviation, base, false);
}

static double eps_score(const struct channel_view *view, double base, double eps,
                        bool outside)
{
    const double step = 1.25; /* about the spread that running statistics have */

    for (uint64_t c = 0; c < view->count; c++) {
        const double deviation = view->deviation[c];
        const double expected = eps_gain(deviation, base, eps, outside);
        const double up = eps_gain(deviation * step, base, eps, outside) - expected;
        const double down = expected - eps_gain(deviation / step, base, eps, outside);
        view->residual[c] = view->is_turned[c] ? IMPOSSIBLE : view->gain[c] - expected;
        view->unit[c] = (fabs(up) > fabs(down) ? up : down) / log(step);
    }
    return shared_score(view);
}

/* Mean 0 and variance 1, which running statistics begin with: the scale is the weight. */
static double initial_score(const struct channel_view *view)
{
    for (uint64_t c = 0; c < view->count; c++) {
        view->residual[c] =
            view->is_turned[c]
                ? -IMPOSSIBLE
                : view->gain[c] + log_scale(view->deviation[c], story_bases[0], false);
        view->unit[c] = view->gain[c] + log(fabs(view->scale[c]));
    }
    const double score = implied_score(view);
    for (uint64_t c = 0; c < view->count; c++)
        view->residual[c] = view->lift[c] - exp(view->gain[c]) * view->offset[c];
    return score +
           nd_channel_spread(view, view->residual, NULL, LEAST_SPREAD, view->mean_most);
}

static double rstd_score(const struct channel_view *view, double roundoff)
{
    double score = 0;

    for (uint64_t c = 0; c < view->count; c++) {
        const bool is_within =
            !view->is_turned[c] &&
            fabs(view->gain[c]) <= 1.01 * roundoff + 4 * view->noise[c];
        score += is_within ? -log(2 * roundoff + view->noise[c]) : -50;
    }
    return score;
}

/* --- the best of each ----------------------------------------------------------------- */

static void told_keep(struct told *told, struct told one, double params, uint64_t count)
{
    one.score -= params * 0.5 * log((double)count); /* Schwarz's charge */
    /* Two free numbers are the same story from either side: the lower figure is the one
     * that owes nothing to the choice. */
    const bool is_first = isinf(told[one.story].score);
    const bool is_higher = one.score > told[one.story].score;
    if (is_first || is_higher == (one.story != STORY_FREE))
        told[one.story] = one;
}

enum { EPS_STEPS = 32 };

static void tell_eps(const struct channel_view *view, double pivot, struct told one,
                     struct told *told)
{
    for (size_t i = 0; i < sizeof story_bases / sizeof *story_bases; i++) {
        one.story = STORY_EPS;
        one.eps[0] = story_bases[i];
        for (int k = -1; k <= EPS_STEPS; k++) {
            one.eps[1] = k < 0 ? 0 : pow(10, -9 + 8.0 * k / EPS_STEPS);
            one.score = pivot + eps_score(view, story_bases[i], one.eps[1], false);
            told_keep(told, one, 3 + (k >= 0) + (i > 0), view->count);
        }
        one.story = STORY_EPS_OUTSIDE;
        one.eps[1] = story_bases[i];
        one.score = pivot + eps_score(view, story_bases[i], story_bases[i], true);
        told_keep(told, one, 4 + (i > 0), view->count); /* rare: one more to its charge */
    }
}

/* What is the same for all stories of one side: see common_scores. */
struct common {
    double weights, levels;
};

static void tell_all(const struct channel_view *view, int wrong, struct common with,
                     struct told *told)
{
    static const double roundoffs[] = {0x1p-8, 0x1p-11}; /* of bfloat16, float16 */
    const double common = with.weights + with.levels;
    const double turned = pivot_score(view), pivot = turned + common;
    struct told one = {.wrong = wrong};

    one.story = STORY_FREE;
    one.score = free_score(view) + common;
    told_keep(told, one, 2, view->count);
    one.story = STORY_INITIAL;
    one.score = initial_score(view) + with.levels;
    told_keep(told, one, 4, view->count);
    for (int story = STORY_BIAS; story <= STORY_MEAN; story++) {
        one.story = (enum story)story;
        one.score = shift_score(view, one.story) + common;
        told_keep(told, one, 1, view->count);
    }
    for (int story = STORY_WEIGHT; story <= STORY_PLUS; story++) {
        one.story = (enum story)story;
        for (size_t i = 0; i < sizeof story_bases / sizeof *story_bases; i++) {
            one.score =
                turned + with.levels + weight_score(view, one.story, story_bases[i]);
            told_keep(told, one, 4 + (story == STORY_PLUS) + (i > 0), view->count);
        }
    }
    tell_eps(view, pivot, one, told);
    one.story = STORY_RSTD;
    for (size_t i = 0; i < sizeof roundoffs / sizeof *roundoffs; i++) {
        one.roundoff = roundoffs[i];
        one.score = pivot + rstd_score(view, one.roundoff);
        told_keep(told, one, 1, view->count);
    }
}

/* --- what is common ------------------------------------------------------------------- */

/* Root mean square about the mean, or about zero. */
static double spread_of(const double *x, uint64_t count, bool about_zero)
{
    double mean = 0, squares = 0;

    for (uint64_t c = 0; c < count && !about_zero; c++)
        mean += x[c] / (double)count;
    for (uint64_t c = 0; c < count; c++)
        squares += (x[c] - mean) * (x[c] - mean);
    return sqrt(squares / (double)count);
}

/*
 * The right side's own scales and levels are no part of any story, but the two sides have
 * to be charged alike for them: `wide` are the larger spreads of the two, and the last
 * term turns the wrong side's levels, in the right side's units, into plain ones.
 */
static struct common common_scores(const struct channel_view *view, const double *weight,
                                   const double *level, const double wide[2])
{
    struct common ret = {0, 0};
    double mean = 0;

    for (uint64_t c = 0; c < view->count; c++)
        mean += weight[c] / (double)view->count;
    for (uint64_t c = 0; c < view->count; c++) {
        ret.weights += nd_channel_density(weight[c] - mean, wide[0]);
        ret.levels += nd_channel_density(level[c], wide[1]) -
                      log(fabs(view->scale[c]) * view->deviation[c]);
    }
    return ret;
}

/* Log of scale times deviation, and level, of the right side. */
static void view_own(const struct channel_view *view, double *weight, double *level)
{
    for (uint64_t c = 0; c < view->count; c++) {
        weight[c] = log(fabs(view->scale[c]) *
                        sqrt(view->deviation[c] * view->deviation[c] + story_bases[0]));
        level[c] = (view->level[c] - view->lift[c]) * view->scale[c] * view->deviation[c];
    }
}

static uint64_t view_moved(const struct channel_view *view)
{
    uint64_t moved = 0;

    for (uint64_t c = 0; c < view->count; c++)
        moved += fabs(view->gain[c]) > MOVED * view->noise[c] ||
                 fabs(view->lift[c]) > MOVED * view->noise[c];
    return moved;
}

static int told_compare(const void *a, const void *b)
{
    const struct told *left = a, *right = b;

    if (left->score != right->score)
        return left->score > right->score ? -1 : 1;
    return left->story < right->story ? -1 : 1;
}

static bool tell_sides(const struct channel_table *table, struct channel_view *view,
                       struct told *told)
{
    double wide[2] = {0.01, 0.01};

    for (int wrong = 0; wrong < 2; wrong++) {
        nd_channel_view_fill(table, wrong, view);
        view_own(view, view->residual, view->unit);
        wide[0] = fmax(wide[0], spread_of(view->residual, view->count, false));
        wide[1] = fmax(wide[1], spread_of(view->unit, view->count, true));
    }
    const uint64_t moved = view_moved(view);
    if (moved <= 1 + view->count / 64)
        return false;
    for (int wrong = 1; wrong >= 0; wrong--) {
        nd_channel_view_fill(table, wrong, view);
        view_own(view, view->residual, view->unit);
        tell_all(view, wrong, common_scores(view, view->residual, view->unit, wide), told);
    }
    return true;
}

bool nd_channel_stories(const struct channel_table *table,
                        struct told ret_told[STORY_COUNT])
{
    struct channel_view view;

    for (int i = 0; i < STORY_COUNT; i++)
        ret_told[i] = (struct told){.story = (enum story)i, .score = -HUGE_VAL};
    if (!nd_channel_view_open(table, &view))
        return false;
    view.log_most = LOG_SPREAD + LOG_CHANCE / sqrt(table->values);
    view.mean_most = MEAN_SPREAD + MEAN_CHANCE / sqrt(table->values);
    const bool good = tell_sides(table, &view, ret_told);
    nd_channel_view_close(&view);
    if (good)
        qsort(ret_told, STORY_COUNT, sizeof *ret_told, told_compare);
    return good;
}
