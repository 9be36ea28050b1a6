/*
 * The pass runs over a fixed number of stripes, each by one thread, whose sums are added in
 * their order: the figures do not depend on the number of threads.
 */
#include "checks/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"
#include "base/pool.h"

enum {
    SURVEY_STRIPES = 64,
    SURVEY_PIECE = 4096,      /* elements decoded at a time */
    SURVEY_MEDIAN = 4096,     /* elements that the usual error is taken from */
    SURVEY_CHANNELS = 1 << 14 /* sums are kept for each in each stripe */
};

/* As many times the usual error as a damaged element is judged by (flat.c). */
static const double BAD_RMS = 12, BAD_OWN = 8;

struct pair_sum {
    double ee, zz;
};

struct stripe {
    uint64_t bad, first, last, zeros, zeros_after; /* zeros_after: the first bad one */
    uint64_t low[ND_MAX_RANK], high[ND_MAX_RANK];
    struct pair_sum all, before, behind, good; /* behind: the last bad one */
    struct pair_sum *channel;
};

struct surveying {
    const struct tensor_view *actual, *expected;
    uint64_t inner, channels; /* of the channel axis */
    double floor, rms;
    struct stripe *stripes;
};

/* The median error and the rms, from evenly spaced elements; false where so many of them
 * are wrong that no part stands out. */
static bool survey_level(struct surveying *of, double floor)
{
    const uint64_t count =
        of->actual->count < SURVEY_MEDIAN ? of->actual->count : SURVEY_MEDIAN;
    double *error = malloc(SURVEY_MEDIAN * sizeof *error), squares = 0;
    uint64_t n = 0, bad = 0;

    if (error == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        /* Not a multiple of any axis: every channel gets its turn. */
        const uint64_t at =
            i * (of->actual->count / count) + i % (of->actual->count / count);
        const double z = nd_view_at(of->expected, at);
        const double e = fabs(nd_view_at(of->actual, at) - z);
        error[i] = isfinite(e) ? e : 0;
        if (isfinite(z)) {
            squares += z * z;
            n++;
        }
    }
    qsort(error, count, sizeof *error, ascending);
    of->rms = n > 0 ? sqrt(squares / (double)n) : 0;
    of->floor = fmax(floor, 1e-7);
    if (of->rms > 0)
        of->floor = fmax(of->floor, fmin(1.5 * error[count / 2] / of->rms, 1e-2));
    while (bad < count && error[count - 1 - bad] > BAD_RMS * of->floor * of->rms)
        bad++;
    free(error);
    return of->rms > 0 && bad <= count - count / 20;
}

static void stripe_bad(const struct surveying *of, struct stripe *stripe, uint64_t at)
{
    const uint32_t last = of->actual->shape.rank - 1;
    const uint64_t width = of->actual->shape.dim[last], column = at % width;
    uint64_t index[ND_MAX_RANK];

    if (stripe->bad == 0 || at / width != stripe->last / width) {
        nd_shape_unravel(&of->actual->shape, at, index);
        for (uint32_t k = 0; k <= last; k++) {
            if (stripe->bad == 0 || index[k] < stripe->low[k])
                stripe->low[k] = index[k];
            if (stripe->bad == 0 || index[k] > stripe->high[k])
                stripe->high[k] = index[k];
        }
    } else if (column > stripe->high[last]) { /* further on in the same row */
        stripe->high[last] = column;
    }
    if (stripe->bad++ == 0) {
        stripe->first = at;
        stripe->before = stripe->all;
    }
    stripe->last = at;
    stripe->behind = (struct pair_sum){0, 0};
}

/* Element by element: pieces with a bad one in them. */
static void piece_bad(const struct surveying *of, struct stripe *stripe, uint64_t from,
                      uint64_t n, const double *y, const double *z)
{
    const double least = BAD_RMS * of->floor * of->rms;

    for (uint64_t i = 0; i < n; i++) {
        const double e = y[i] - z[i];
        const bool counts = isfinite(e);
        if (fabs(e) > least && fabs(e) > BAD_OWN * of->floor * fabs(z[i])) {
            stripe_bad(of, stripe, from + i);
        } else if (counts) {
            stripe->good.ee += e * e;
            stripe->good.zz += z[i] * z[i];
            stripe->behind.ee += e * e;
            stripe->behind.zz += z[i] * z[i];
        }
        stripe->zeros_after += stripe->bad > 0 && y[i] == 0;
        stripe->all.ee += counts ? e * e : 0;
        stripe->all.zz += counts ? z[i] * z[i] : 0;
    }
}

enum { LANES = 4 }; /* sums that do not wait for one another */

/* Adds up a piece; the largest error tells whether it needs a second look.  NaN and
 * infinities make the sums so. */
static struct pair_sum piece_sums(uint64_t n, const double *y, const double *z,
                                  double *ret_most, uint64_t *ret_zeros)
{
    double ee[LANES] = {0}, zz[LANES] = {0}, most[LANES] = {0};
    uint64_t zeros = 0, i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const double e = y[i + (uint64_t)k] - z[i + (uint64_t)k];
            ee[k] += e * e;
            zz[k] += z[i + (uint64_t)k] * z[i + (uint64_t)k];
            most[k] = fabs(e) > most[k] ? fabs(e) : most[k];
            zeros += y[i + (uint64_t)k] == 0;
        }
    for (; i < n; i++) {
        ee[0] += (y[i] - z[i]) * (y[i] - z[i]);
        zz[0] += z[i] * z[i];
        most[0] = fabs(y[i] - z[i]) > most[0] ? fabs(y[i] - z[i]) : most[0];
        zeros += y[i] == 0;
    }
    *ret_most = fmax(fmax(most[0], most[1]), fmax(most[2], most[3]));
    *ret_zeros = zeros;
    return (struct pair_sum){(ee[0] + ee[1]) + (ee[2] + ee[3]),
                             (zz[0] + zz[1]) + (zz[2] + zz[3])};
}

static void sum_add(struct pair_sum *sum, struct pair_sum more)
{
    sum->ee += more.ee;
    sum->zz += more.zz;
}

static void piece_channels(const struct surveying *of, struct stripe *stripe, uint64_t from,
                           uint64_t n, const double *y, const double *z)
{
    uint64_t channel = from / of->inner % of->channels, left = of->inner - from % of->inner;

    for (uint64_t i = 0; i < n;) {
        const uint64_t run = left < n - i ? left : n - i;
        double ee = 0, zz = 0;
        for (const uint64_t end = i + run; i < end; i++) {
            const double e = y[i] - z[i];
            ee += isfinite(e) ? e * e : 0;
            zz += isfinite(e) ? z[i] * z[i] : 0;
        }
        stripe->channel[channel].ee += ee;
        stripe->channel[channel].zz += zz;
        left = of->inner;
        channel = channel + 1 < of->channels ? channel + 1 : 0;
    }
}

static void stripe_piece(const struct surveying *of, struct stripe *stripe, uint64_t from,
                         uint64_t n, const double *y, const double *z)
{
    double most;
    uint64_t zeros;
    const struct pair_sum sum = piece_sums(n, y, z, &most, &zeros);

    stripe->zeros += zeros;
    if (stripe->channel != NULL)
        piece_channels(of, stripe, from, n, y, z);
    if (!isfinite(sum.ee) || !isfinite(sum.zz) || most > BAD_RMS * of->floor * of->rms) {
        piece_bad(of, stripe, from, n, y, z);
        return;
    }
    stripe->zeros_after += stripe->bad > 0 ? zeros : 0;
    sum_add(&stripe->all, sum);
    sum_add(&stripe->good, sum);
    sum_add(&stripe->behind, sum);
}

static void survey_stripe(void *user, size_t index, unsigned worker)
{
    const struct surveying *of = user;
    const uint64_t count = of->actual->count, each = count / SURVEY_STRIPES + 1;
    const uint64_t from = index * each < count ? index * each : count;
    const uint64_t end = count - from < each ? count : from + each;
    double y[SURVEY_PIECE], z[SURVEY_PIECE];

    (void)worker;
    for (uint64_t at = from; at < end; at += SURVEY_PIECE) {
        const uint64_t n = end - at < SURVEY_PIECE ? end - at : SURVEY_PIECE;
        nd_view_decode(of->actual, at, n, y);
        nd_view_decode(of->expected, at, n, z);
        stripe_piece(of, &of->stripes[index], at, n, y, z);
    }
}

/* --- adding up ----------------------------------------------------------------------- */

static double ratio(struct pair_sum sum)
{
    return sum.zz > 0 ? sqrt(sum.ee / sum.zz) : sum.ee > 0 ? HUGE_VAL : 0;
}

static void survey_fold(const struct surveying *of, struct survey *ret)
{
    struct pair_sum all = {0, 0}, before = {0, 0}, behind = {0, 0}, good = {0, 0};
    const uint32_t rank = of->actual->shape.rank;

    for (int i = 0; i < SURVEY_STRIPES; i++) {
        const struct stripe *stripe = &of->stripes[i];
        const bool is_first = ret->bad == 0 && stripe->bad > 0;
        sum_add(&all, stripe->all);
        sum_add(&good, stripe->good);
        if (ret->bad == 0)
            sum_add(&before, stripe->bad > 0 ? stripe->before : stripe->all);
        if (stripe->bad > 0)
            behind = stripe->behind;
        else
            sum_add(&behind, stripe->all);
        ret->zeros += is_first ? stripe->zeros_after : ret->bad > 0 ? stripe->zeros : 0;
        if (stripe->bad == 0)
            continue;
        ret->first = is_first ? stripe->first : ret->first;
        ret->last = stripe->last;
        for (uint32_t k = 0; k < rank; k++) {
            if (is_first || stripe->low[k] < ret->low[k])
                ret->low[k] = stripe->low[k];
            if (is_first || stripe->high[k] > ret->high[k])
                ret->high[k] = stripe->high[k];
        }
        ret->bad += stripe->bad;
    }
    ret->all = ratio(all);
    ret->good = ratio(good);
    ret->before = ratio(before);
    sum_add(&before, behind);
    ret->outside = ratio(before);
}

/* The channel with the largest error for its size, and what the others have. */
static void survey_channels(const struct surveying *of, struct survey *ret)
{
    const double each = (double)of->actual->count / (double)of->channels;
    struct pair_sum others = {0, 0}, worst = {0, 0};
    double highest = -1;

    ret->channels = of->channels;
    ret->off_channel = (double)NAN;
    if (of->stripes[0].channel == NULL)
        return;
    for (uint64_t c = 0; c < of->channels; c++) {
        struct pair_sum sum = {0, 0};
        for (int i = 0; i < SURVEY_STRIPES; i++)
            sum_add(&sum, of->stripes[i].channel[c]);
        const double rel = sqrt(sum.ee / each) / fmax(sqrt(sum.zz / each), 1e-3 * of->rms);
        sum_add(&others, sum);
        if (rel > highest) {
            highest = rel;
            worst = sum;
            ret->channel = c;
        }
    }
    ret->off_channel = ratio((struct pair_sum){others.ee - worst.ee, others.zz - worst.zz});
}

bool nd_survey(const struct tensor_view *actual, const struct tensor_view *expected,
               uint32_t axis, double floor, unsigned jobs, struct survey *ret_survey)
{
    struct stripe stripes[SURVEY_STRIPES] = {{.bad = 0}};
    struct surveying of = {.actual = actual,
                           .expected = expected,
                           .inner = 1,
                           .channels = actual->shape.dim[axis],
                           .stripes = stripes};
    struct pair_sum *sums = NULL;

    for (uint32_t k = axis + 1; k < actual->shape.rank; k++)
        of.inner *= actual->shape.dim[k];
    *ret_survey = (struct survey){.shape = actual->shape, .count = actual->count};
    if (!survey_level(&of, floor))
        return false;
    if (of.channels >= 3 && of.channels <= SURVEY_CHANNELS)
        sums = calloc(of.channels * SURVEY_STRIPES, sizeof *sums);
    for (int i = 0; sums != NULL && i < SURVEY_STRIPES; i++)
        stripes[i].channel = sums + (uint64_t)i * of.channels;
    nd_pool_run(jobs, SURVEY_STRIPES, survey_stripe, NULL, &of);
    ret_survey->floor = of.floor;
    ret_survey->rms = of.rms;
    survey_fold(&of, ret_survey);
    survey_channels(&of, ret_survey);
    free(sums);
    return ret_survey->bad > 0;
}
