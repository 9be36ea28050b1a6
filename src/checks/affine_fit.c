/*
 * Least squares per channel.
 */
#include "checks/affine_fit.h"

#include <math.h>
#include <stdlib.h>

struct fit {
    double n, h, y, hh, hy, yy; /* sums over the reference; h is the normalised input */
    double weight, bias;
    double residual; /* squares left over the reference */
    double m, away;  /* candidate: values, squares about the reference's mean of h */
    bool is_pooled;  /* sums over both sides */
};

typedef void fit_fn(struct fit *fit, double h, double y);

static void fit_collect(struct fit *fit, double h, double y)
{
    fit->n++;
    fit->h += h;
    fit->y += y;
    fit->hh += h * h;
    fit->hy += h * y;
    fit->yy += y * y;
}

static void fit_residual(struct fit *fit, double h, double y)
{
    const double r = y - fit->weight * h - fit->bias;

    fit->residual += r * r;
}

static void fit_away(struct fit *fit, double h, double y)
{
    const double d = h - fit->h / fit->n;

    (void)y;
    fit->m++;
    fit->away += d * d;
}

/* Calls `take` for every finite pair of normalised input and output of one side. */
static bool fit_walk(const struct sample *sample, int side, const struct norm_model *model,
                     fit_fn *take, struct fit *fits)
{
    const struct op_rows *rows = &sample->rows;
    struct norm_model plain = *model;
    double *h = malloc(rows->row_len * sizeof *h);

    if (h == NULL)
        return false;
    plain.weight = plain.bias = NULL;
    for (uint64_t i = 0; i < sample->count; i++) {
        struct op_channel channel = nd_op_channel_first(rows, sample->row[i]);
        const double *y = sample->out[side] + i * rows->row_len;
        nd_norm_row(&plain, rows, sample->row[i], sample->in[side][0] + i * rows->row_len,
                    h);
        for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &channel))
            if (isfinite(h[j]) && isfinite(y[j]))
                take(&fits[channel.at], h[j], y[j]);
    }
    free(h);
    return true;
}

static double fit_spread(const struct fit *fit)
{
    return fmax(fit->hh - fit->h * fit->h / fit->n, 0);
}

static void fit_solve(struct fit *fit, bool centre)
{
    if (fit->n == 0)
        return;
    if (!centre) {
        fit->weight = fit->hh > 0 ? fit->hy / fit->hh : 0;
        return;
    }
    const double shh = fit_spread(fit);
    fit->weight = shh > 0 ? (fit->hy - fit->h * fit->y / fit->n) / shh : 0;
    fit->bias = (fit->y - fit->weight * fit->h) / fit->n;
}

static struct fit *fit_side(const struct sample *sample, int side,
                            const struct norm_model *model)
{
    const uint64_t channels = sample->rows.channels;
    struct fit *fits = calloc(channels, sizeof *fits);

    if (fits == NULL)
        return NULL;
    if (!fit_walk(sample, side, model, fit_collect, fits)) {
        free(fits);
        return NULL;
    }
    for (uint64_t c = 0; c < channels; c++)
        fit_solve(&fits[c], model->centre);
    return fits;
}

/* A candidate that lies this many times the reference's spread away, squared, cannot be
 * foretold: a channel behind a ReLU may be one constant on one side. */
static const double FARTHEST = 16;

static void fit_pool(struct fit *fit, const struct fit *other, bool centre)
{
    fit->n += other->n;
    fit->h += other->h;
    fit->y += other->y;
    fit->hh += other->hh;
    fit->hy += other->hy;
    fit->yy += other->yy;
    fit->is_pooled = true;
    fit_solve(fit, centre);
}

/* The reference's fits, but of both sides where it does not vary enough by itself: such a
 * channel accuses nobody. */
static struct fit *fit_pair(const struct sample *sample, const struct norm_model *model)
{
    struct fit *fits = fit_side(sample, 0, model), *others = NULL;
    bool good = fits != NULL && fit_walk(sample, 1, model, fit_away, fits);

    for (uint64_t c = 0; good && c < sample->rows.channels && model->centre; c++) {
        struct fit *fit = &fits[c];
        if (fit->n == 0 || !(fit->away * fit->n > FARTHEST * fit_spread(fit) * fit->m))
            continue;
        if (others == NULL)
            others = fit_side(sample, 1, model);
        good = others != NULL;
        if (good)
            fit_pool(fit, &others[c], model->centre);
    }
    free(others);
    if (good)
        return fits;
    free(fits);
    return NULL;
}

static bool fit_give(struct fit *fits, uint64_t channels, double *ret_weight,
                     double *ret_bias)
{
    for (uint64_t c = 0; fits != NULL && c < channels; c++) {
        ret_weight[c] = fits[c].weight;
        ret_bias[c] = fits[c].bias;
    }
    const bool good = fits != NULL;
    free(fits);
    return good;
}

bool nd_affine_fit(const struct sample *sample, int side, const struct norm_model *model,
                   double *ret_weight, double *ret_bias)
{
    return fit_give(fit_side(sample, side, model), sample->rows.channels, ret_weight,
                    ret_bias);
}

bool nd_affine_fit_pair(const struct sample *sample, const struct norm_model *model,
                        double *ret_weight, double *ret_bias)
{
    return fit_give(fit_pair(sample, model), sample->rows.channels, ret_weight, ret_bias);
}

bool nd_affine_shift(const struct sample *sample, int side, const struct norm_model *model,
                     double *ret_bias)
{
    struct fit *fits = fit_side(sample, side, model);

    if (fits == NULL)
        return false;
    for (uint64_t c = 0; c < sample->rows.channels; c++)
        ret_bias[c] = fits[c].n > 0
                          ? (fits[c].y - nd_norm_weight(model, c) * fits[c].h) / fits[c].n
                          : 0;
    free(fits);
    return true;
}

/* Values of a channel: a line fits two of them whatever they are. */
static const double FEWEST = 4;

/* Squares that the prediction of one channel is expected to miss by. */
static double fit_expected(const struct fit *fit, double roundoff)
{
    const double own = 0.2 * roundoff; /* no fit is believed closer than half a rounding */
    const double noise = fit->residual / fmax(fit->n - 2, 1) +
                         own * own * (fit->n > 3 ? fit->yy / fit->n : 0);
    const double shh = fit_spread(fit);
    const double reach = fit->is_pooled || !(fit->m > 0 && shh > 0)
                             ? 0
                             : fit->away / fit->m / shh;
    const double lever = 1 / fit->n + reach;

    return noise * (1 + fmin(lever, 1e6)) * fit->m;
}

bool nd_affine_predict(const struct sample *sample, const struct norm_model *model,
                       double roundoff, double *ret_error)
{
    const uint64_t channels = sample->rows.channels;
    struct fit *fits = fit_pair(sample, model);
    double expected = 0, squares = 0, values = 0;

    if (fits == NULL)
        return false;
    if (!fit_walk(sample, 0, model, fit_residual, fits)) {
        free(fits);
        return false;
    }
    for (uint64_t c = 0; c < channels; c++) {
        if (fits[c].n == 0)
            continue;
        expected += fit_expected(&fits[c], roundoff);
        squares += fits[c].yy;
        values += fits[c].n;
    }
    free(fits);
    *ret_error = values < FEWEST * (double)channels ? HUGE_VAL
                 : squares > 0                  ? sqrt(expected / squares)
                                                : 0;
    return true;
}
