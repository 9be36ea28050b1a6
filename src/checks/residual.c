/*
 * One pass over a sample against its expected values.
 */
#include "checks/residual.h"

#include <math.h>
#include <stdlib.h>

struct channel_sum {
    double ez, zz;
};

struct residual_sums {
    double rms; /* of the output */
    double max, ee, zz, ez, zzee, zzze, zzzz;
};

double nd_finite_rms(const double *values, uint64_t n)
{
    double squares = 0;
    uint64_t finite = 0;

    for (uint64_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            squares += values[i] * values[i];
            finite++;
        }
    return finite > 0 ? sqrt(squares / (double)finite) : 0;
}

static bool agrees(double y, double z)
{
    return y == z || (isnan(y) && isnan(z));
}

static void residual_row(const struct sample *sample, uint64_t i, const double *y,
                         const double *z, struct residual_sums *sums,
                         struct channel_sum *channels, struct residual *ret)
{
    const struct op_rows *rows = &sample->rows;
    struct op_channel at = nd_op_channel_first(rows, sample->row[i]);

    for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &at)) {
        const double e = y[j] - z[j], square = z[j] * z[j];
        if (!isfinite(y[j]) || !isfinite(z[j])) {
            ret->mismatches += !agrees(y[j], z[j]);
            continue;
        }
        ret->n++;
        if (e != 0 && fabs(e) > sums->max * (fabs(z[j]) + sums->rms))
            sums->max = fabs(e) / (fabs(z[j]) + sums->rms);
        sums->ee += e * e;
        sums->zz += square;
        sums->ez += e * z[j];
        sums->zzee += square * e * e;
        sums->zzze += square * z[j] * e;
        sums->zzzz += square * square;
        struct channel_sum *channel = &channels[at.at];
        channel->ez += e * z[j];
        channel->zz += square;
    }
}

/* t of the mean of the channels' slopes; infinite below eight channels (no evidence). */
static double channels_t(const struct channel_sum *channels, uint64_t count)
{
    double sum = 0, squares = 0;
    uint64_t n = 0;

    for (uint64_t c = 0; c < count; c++) {
        if (!(channels[c].zz > 0))
            continue;
        n++;
        sum += channels[c].ez / channels[c].zz;
    }
    if (n < 8)
        return HUGE_VAL;
    const double mean = sum / (double)n;
    for (uint64_t c = 0; c < count; c++)
        if (channels[c].zz > 0) {
            const double d = channels[c].ez / channels[c].zz - mean;
            squares += d * d;
        }
    const double error = sqrt(squares / (double)n / (double)n);
    return error > 0 ? fabs(mean) / error : mean == 0 ? 0 : HUGE_VAL;
}

bool nd_residual_measure(const struct sample *sample, const double *out,
                         residual_fn *expected, const void *user, struct residual *ret)
{
    const struct op_rows *rows = &sample->rows;
    struct residual_sums sums = {.rms = nd_finite_rms(out, nd_sample_elements(sample))};
    double *z = malloc(rows->row_len * sizeof *z);
    struct channel_sum *channels = calloc(rows->channels, sizeof *channels);

    *ret = (struct residual){0};
    if (z == NULL || channels == NULL) {
        free(z);
        free(channels);
        return false;
    }
    for (uint64_t i = 0; i < sample->count; i++) {
        expected(user, i, z);
        residual_row(sample, i, out + i * rows->row_len, z, &sums, channels, ret);
    }
    ret->sum_ee = sums.ee;
    ret->sum_zz = sums.zz;
    if (sums.ee > 0)
        ret->rel = sums.zz > 0 ? sqrt(sums.ee / sums.zz) : HUGE_VAL;
    ret->local = sums.max;
    if (sums.zz > 0) {
        const double d = sums.ez / sums.zz;
        const double error =
            sqrt(fmax(sums.zzee - 2 * d * sums.zzze + d * d * sums.zzzz, 0)) / sums.zz;
        ret->slope = d;
        ret->slope_z = error > 0 ? fabs(d) / error : d == 0 ? 0 : HUGE_VAL;
    }
    ret->channel_t = channels_t(channels, rows->channels);
    free(z);
    free(channels);
    return true;
}
