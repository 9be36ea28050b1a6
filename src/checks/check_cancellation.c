/*
 * Was the variance computed as the mean of the squares less the square of the mean?  In
 * float32 that loses 2^-24 mean^2 / variance of it, so each row comes out by a factor of
 * its own.  Factors of that size, and no other error, are the evidence; which factor a row
 * gets depends on the order of the sums, so it stays a free parameter.
 */
#include "checks/norm_recipe.h"

#include <math.h>

/* Ten cases measured lay between 0.38 and 1.05 of the predicted size. */
static const double SMALLEST_SIZE = 0.02, LARGEST_SIZE = 60;
static const double LEAST_RATIO = 50; /* mean^2 / variance, below which nothing cancels */

struct cancellation {
    double error, size; /* with each row's factor taken out */
    double squares;     /* of the factors' variances over what is predicted */
    double ratios;      /* sum of mean^2 / variance */
    uint64_t rows, lost; /* lost: all of the row is NaN */
};

static void cancellation_row(const struct subject *subject, const struct norm_model *model,
                             uint64_t i, double *z, struct cancellation *sums)
{
    const struct sample *sample = &subject->formula.sample;
    const struct op_rows *rows = &sample->rows;
    const double *x = sample->in[subject->side][0] + i * rows->row_len;
    const double *y = sample->out[subject->side] + i * rows->row_len;
    struct op_channel at = nd_op_channel_first(rows, sample->row[i]);
    double mean, var, yy = 0, yz = 0, zz = 0;
    uint64_t finite = 0;

    nd_norm_row(model, rows, sample->row[i], x, z);
    for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &at)) {
        const double bias = nd_norm_bias(model, at.at);
        if (!isfinite(y[j]) || !isfinite(z[j]))
            continue;
        finite++;
        yy += (y[j] - bias) * (y[j] - bias);
        yz += (y[j] - bias) * (z[j] - bias);
        zz += (z[j] - bias) * (z[j] - bias);
    }
    nd_norm_moments(x, rows->row_len, &mean, &var);
    const double ratio = mean * mean / (var + model->eps);
    if (finite == 0) {
        sums->lost++;
        return;
    }
    const double factor = zz > 0 ? yz / zz : 0;
    if (!(factor > 0) || !isfinite(ratio) || !(ratio > 0))
        return;
    sums->rows++;
    sums->error += fmax(yy - factor * yz, 0);
    sums->size += yy;
    sums->ratios += ratio;
    /* The variance that the factor stands for, off by this share of what it could lose. */
    const double predicted = (1 / (factor * factor) - 1) / (0x1p-23 * ratio);
    sums->squares += predicted * predicted;
}

static void cancellation_run(struct subject *subject, struct nd_finding *finding)
{
    struct recipe_bench bench;
    struct cancellation sums = {.rows = 0};

    (void)finding;
    if (!nd_recipe_bench(subject, &bench) || !bench.model->centre ||
        bench.model->var != NULL)
        return;
    double *z = nd_arena_alloc(subject->arena, subject->formula.sample.rows.row_len,
                               sizeof *z);
    for (uint64_t i = 0; z != NULL && i < subject->formula.sample.count; i++)
        cancellation_row(subject, bench.model, i, z, &sums);
    if (sums.rows == 0 || !(sums.size > 0))
        return;
    const double residual = sqrt(sums.error / sums.size);
    const double size = sqrt(sums.squares / (double)sums.rows);
    const double ratio = sums.ratios / (double)sums.rows;
    if (!(ratio > LEAST_RATIO) || !(size > SMALLEST_SIZE && size < LARGEST_SIZE) ||
        !(residual < 0.5 * subject->unexplained) ||
        residual > fmax(4 * subject->floor, 0.02 * subject->unexplained))
        return;
    const struct hypothesis lost = {.id = "cancellation",
                                    .residual = residual,
                                    .penalty = 0.4,
                                    .is_free = true,
                                    .side = nd_subject_side(subject)};
    ND_PROPOSE(subject, lost, ND_NUMBER("ratio", ratio), ND_NUMBER("size", size),
               ND_NUMBER("nan_rows", (double)sums.lost));
}

const struct check nd_check_cancellation = {
    .id = "cancellation", .of_norms = true, .run = cancellation_run};
