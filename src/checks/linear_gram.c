/*
 * Are the errors of like rows alike?  That is all that too few rows say of a linear map.
 */
#include "checks/linear_fit.h"

#include <math.h>
#include <stdlib.h>

enum { GRAM_ROWS = 96 };

/* Cosine of two rows less their channels' means; `step` from one number to the next. */
static double gram_cosine(const double *values, const double *means, uint64_t a, uint64_t b,
                          uint64_t width, uint64_t row_step, uint64_t step)
{
    double ab = 0, aa = 0, bb = 0;

    for (uint64_t k = 0; k < width; k++) {
        const double x = values[a * row_step + k * step] - means[k];
        const double y = values[b * row_step + k * step] - means[k];
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static void gram_means(const double *values, uint64_t count, uint64_t width,
                       uint64_t row_step, uint64_t step, double *ret_means)
{
    for (uint64_t k = 0; k < width; k++) {
        ret_means[k] = 0;
        for (uint64_t r = 0; r < count; r++)
            ret_means[k] += values[r * row_step + k * step] / (double)count;
    }
}

static double gram_slope(const struct linear_rows *rows, const double *means,
                         double *ret_error)
{
    const uint64_t taken = rows->count < GRAM_ROWS ? rows->count : GRAM_ROWS;
    double ab = 0, aa = 0, bb = 0, pairs = 0;

    for (uint64_t i = 0; i < taken; i++)
        for (uint64_t j = 0; j < i; j++) {
            const uint64_t p = i * rows->count / taken, q = j * rows->count / taken;
            const double a =
                gram_cosine(rows->input, means, p, q, rows->terms, rows->terms, 1);
            const double b = gram_cosine(rows->error, means + rows->terms, p, q,
                                         rows->channels, 1, rows->count);
            ab += a * b;
            aa += a * a;
            bb += b * b;
            pairs++;
        }
    if (!(aa > 0))
        return (double)NAN;
    /* Pairs that share a row are not independent. */
    *ret_error = 2 * sqrt(fmax(bb - ab * ab / aa, 0) / aa / pairs);
    return ab / aa;
}

double nd_linear_gram(const struct linear_rows *rows, double *ret_error)
{
    double *means = rows->groups != 1 || rows->channels < 8
                        ? NULL
                        : malloc((rows->terms + rows->channels) * sizeof *means);
    double slope = (double)NAN;

    *ret_error = HUGE_VAL;
    if (means != NULL) {
        gram_means(rows->input, rows->count, rows->terms, rows->terms, 1, means);
        gram_means(rows->error, rows->count, rows->channels, 1, rows->count,
                   means + rows->terms);
        slope = gram_slope(rows, means, ret_error);
    }
    free(means);
    return slope;
}
