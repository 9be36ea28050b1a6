/*
 * One pass over a sample against its expected values.
 */
#include "checks/residual.h"

#include <math.h>
#include <stdlib.h>

#include "base/room.h"

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

/* A row with NaN or infinities in it: element by element. */
static void residual_row_slow(const struct sample *sample, uint64_t i, const double *y,
                              const double *z, struct residual_sums *sums,
                              struct channel_slope *channels, struct residual *ret)
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
        struct channel_slope *channel = &channels[at.at];
        channel->ez += e * z[j];
        channel->zz += square;
    }
}

enum { LANES = 4 }; /* sums that do not wait for one another */

struct lanes {
    double ee[LANES], zz[LANES], ez[LANES], zzee[LANES], zzze[LANES], zzzz[LANES];
};

static void lanes_add(struct lanes *lanes, int k, double y, double z)
{
    const double e = y - z, square = z * z, cross = e * z;

    lanes->ee[k] += e * e;
    lanes->zz[k] += square;
    lanes->ez[k] += cross;
    lanes->zzee[k] += cross * cross;
    lanes->zzze[k] += square * cross;
    lanes->zzzz[k] += square * square;
}

static double lanes_sum(const double *lane)
{
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* Sums over a row; not finite where an element is not. */
static void lanes_row(const double *y, const double *z, uint64_t n, struct lanes *ret)
{
    uint64_t j = 0;

    *ret = (struct lanes){.ee = {0}};
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++)
            lanes_add(ret, k, y[j + (uint64_t)k], z[j + (uint64_t)k]);
    for (; j < n; j++)
        lanes_add(ret, 0, y[j], z[j]);
}

enum { LOOK = 64 }; /* elements that are asked together for a new maximum */

static void residual_most(const double *y, const double *z, uint64_t n,
                          struct residual_sums *sums)
{
    for (uint64_t from = 0; from < n; from += LOOK) {
        const uint64_t end = n - from < LOOK ? n : from + LOOK;
        const double max = sums->max, rms = sums->rms;
        int more = 0;
        for (uint64_t j = from; j < end; j++)
            more |= fabs(y[j] - z[j]) > max * (fabs(z[j]) + rms);
        for (uint64_t j = from; more && j < end; j++) {
            const double e = fabs(y[j] - z[j]);
            if (e != 0 && e > sums->max * (fabs(z[j]) + rms))
                sums->max = e / (fabs(z[j]) + rms);
        }
    }
}

/* whole: the sums over all of the row. */
static void residual_channels(const struct op_rows *rows, uint64_t row, const double *y,
                              const double *z, const struct lanes *whole,
                              struct channel_slope *channels)
{
    struct channel_slope *channel = channels + nd_op_channel(rows, row, 0);

    if (rows->span >= rows->row_len) {
        channel->ez += lanes_sum(whole->ez);
        channel->zz += lanes_sum(whole->zz);
        return;
    }
    if (rows->span == 1) {
        for (uint64_t j = 0; j < rows->row_len; j++) {
            channel[j].ez += (y[j] - z[j]) * z[j];
            channel[j].zz += z[j] * z[j];
        }
        return;
    }
    for (uint64_t j = 0; j < rows->row_len; channel++) {
        const uint64_t end =
            rows->row_len - j < rows->span ? rows->row_len : j + rows->span;
        struct lanes lanes;
        lanes_row(y + j, z + j, end - j, &lanes);
        channel->ez += lanes_sum(lanes.ez);
        channel->zz += lanes_sum(lanes.zz);
        j = end;
    }
}

static void residual_row(const struct sample *sample, uint64_t i, const double *y,
                         const double *z, struct residual_sums *sums,
                         struct channel_slope *channels, struct residual *ret)
{
    const uint64_t n = sample->rows.row_len;
    struct lanes lanes;

    lanes_row(y, z, n, &lanes);
    const double ee = lanes_sum(lanes.ee), zz = lanes_sum(lanes.zz);
    const double zzzz = lanes_sum(lanes.zzzz), zzee = lanes_sum(lanes.zzee);
    /* Squares may overflow where no element is infinite: the slow way counts them. */
    if (!isfinite(ee) || !isfinite(zz) || !isfinite(zzzz) || !isfinite(zzee)) {
        residual_row_slow(sample, i, y, z, sums, channels, ret);
        return;
    }
    ret->n += n;
    sums->ee += ee;
    sums->zz += zz;
    sums->ez += lanes_sum(lanes.ez);
    sums->zzee += zzee;
    sums->zzze += lanes_sum(lanes.zzze);
    sums->zzzz += zzzz;
    residual_most(y, z, n, sums);
    residual_channels(&sample->rows, sample->row[i], y, z, &lanes, channels);
}

bool nd_channel_slopes(const struct channel_slope *channels, uint64_t count,
                       double *ret_mean, double *ret_error)
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
        return false;
    const double mean = sum / (double)n;
    for (uint64_t c = 0; c < count; c++)
        if (channels[c].zz > 0) {
            const double d = channels[c].ez / channels[c].zz - mean;
            squares += d * d;
        }
    *ret_mean = mean;
    *ret_error = sqrt(squares / (double)n / (double)n);
    return true;
}

/* t of the mean of the channels' slopes; infinite without evidence. */
static double channels_t(const struct channel_slope *channels, uint64_t count)
{
    double mean, error;

    if (!nd_channel_slopes(channels, count, &mean, &error))
        return HUGE_VAL;
    return error > 0 ? fabs(mean) / error : mean == 0 ? 0 : HUGE_VAL;
}

bool nd_residual_measure(const struct sample *sample, const double *out,
                         residual_fn *expected, const void *user, struct residual *ret)
{
    const struct op_rows *rows = &sample->rows;
    struct residual_sums sums = {.rms = nd_finite_rms(out, nd_sample_elements(sample))};
    double *z = nd_room_take(rows->row_len, sizeof *z);
    struct channel_slope *channels = calloc(rows->channels, sizeof *channels);

    *ret = (struct residual){0};
    if (z == NULL || channels == NULL) {
        nd_room_give(z);
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
    nd_room_give(z);
    free(channels);
    return true;
}
