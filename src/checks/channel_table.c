/*
 * Least squares about the means of each channel, side by side.
 */
#include "checks/channel_table.h"

#include <math.h>
#include <stdlib.h>

/* One channel of one side. */
struct line {
    double mean, deviation; /* of the input */
    double slope, level;
    double squares, error; /* of the output, and what the line leaves of it */
    uint64_t n;
};

static double finite_mean(const double *values, const double *beside, uint64_t n,
                          uint64_t *ret_count)
{
    double sum = 0;
    uint64_t count = 0;

    for (uint64_t i = 0; i < n; i++)
        if (isfinite(values[i]) && isfinite(beside[i])) {
            sum += values[i];
            count++;
        }
    *ret_count = count;
    return count > 0 ? sum / (double)count : 0;
}

static struct line line_fit(const double *x, const double *y, uint64_t n)
{
    struct line line = {0};
    double xx = 0, xy = 0;

    line.mean = finite_mean(x, y, n, &line.n);
    line.level = finite_mean(y, x, n, &line.n);
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && isfinite(y[i])) {
            xx += (x[i] - line.mean) * (x[i] - line.mean);
            xy += (x[i] - line.mean) * (y[i] - line.level);
        }
    line.slope = xx > 0 ? xy / xx : 0;
    line.deviation = line.n > 0 ? sqrt(xx / (double)line.n) : 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && isfinite(y[i])) {
            const double r = y[i] - line.level - line.slope * (x[i] - line.mean);
            line.error += r * r;
            line.squares += y[i] * y[i];
        }
    return line;
}

/* Standard error of the level over slope and deviation; of the slope it is the same. */
static double line_noise(const struct line *line, double roundoff)
{
    const double n = (double)line->n;
    /* Few values may lie on a line by luck: a third of a rounding is always there. */
    const double least = 0.3 * roundoff * sqrt(line->squares / n);
    const double each = fmax(sqrt(line->error / fmax(n - 2, 1)), least);

    return each / (fabs(line->slope) * line->deviation * sqrt(n));
}

/* How far apart the sides are in the middle of the channels, over what is noise. */
static double table_distance(const struct channel *channels, uint64_t count)
{
    double sum = 0;

    for (uint64_t c = 0; c < count; c++) {
        const struct channel *at = &channels[c];
        const double size = fabs(at->scale[0]) * at->deviation;
        const double scale = at->scale[1] / at->scale[0] - 1;
        const double level = (at->level[1] - at->level[0]) / size;
        sum += log1p(fabs(scale) / at->noise) + log1p(fabs(level) / at->noise);
    }
    return sum;
}

/*
 * Statistics of the batch move with the input, running ones do not: the sides' inputs
 * differ a little, so scale and level hold for one of two ways to line them up.
 */
static struct channel channel_of(const struct line lines[2], double roundoff, bool is_batch)
{
    const double single = 0x1p-23;
    struct channel channel = {.mean = lines[0].mean, .deviation = lines[0].deviation};

    for (int side = 0; side < 2; side++) {
        const struct line *line = &lines[side];
        channel.scale[side] = line->slope;
        channel.level[side] = line->level;
        if (is_batch)
            channel.scale[side] *= line->deviation / lines[0].deviation;
        else
            channel.level[side] += line->slope * (lines[0].mean - line->mean);
    }
    channel.noise =
        hypot(line_noise(&lines[0], roundoff), line_noise(&lines[1], roundoff)) +
        single * (1 + fabs(channel.mean) / channel.deviation);
    return channel;
}

static bool line_is_told(const struct line *line)
{
    return line->n >= CHANNEL_LEAST && line->deviation > 0 && line->slope != 0;
}

static void table_fill(const struct sample *sample, double roundoff,
                       struct channel *ret_batch, struct channel_table *table)
{
    const uint64_t n = sample->rows.row_len;
    double error[2] = {0, 0}, squares[2] = {0, 0};

    table->values = (double)n;
    for (uint64_t i = 0; i < sample->count; i++) {
        struct line lines[2];
        for (int side = 0; side < 2; side++) {
            lines[side] =
                line_fit(sample->in[side][0] + i * n, sample->out[side] + i * n, n);
            error[side] += lines[side].error;
            squares[side] += lines[side].squares;
        }
        if (!line_is_told(&lines[0]) || !line_is_told(&lines[1]))
            continue;
        ret_batch[table->count] = channel_of(lines, roundoff, true);
        table->channels[table->count++] = channel_of(lines, roundoff, false);
    }
    for (int side = 0; side < 2; side++)
        table->residual[side] = squares[side] > 0 ? sqrt(error[side] / squares[side]) : 0;
}

bool nd_channel_table_make(const struct sample *sample, double roundoff,
                           struct channel_table *ret_table)
{
    struct channel_table table = {
        .channels = calloc(sample->count, sizeof *table.channels)};
    struct channel *batch = calloc(sample->count, sizeof *batch);

    if (table.channels != NULL && batch != NULL)
        table_fill(sample, roundoff, batch, &table);
    if (table.count < CHANNEL_LEAST) {
        free(table.channels);
        free(batch);
        return false;
    }
    if (table_distance(batch, table.count) < table_distance(table.channels, table.count)) {
        free(table.channels);
        table.channels = batch;
    } else {
        free(batch);
    }
    *ret_table = table;
    return true;
}
