/*
 * Flat arrays.
 */
#include "checks/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"

bool nd_flat_outside(const struct subject *subject)
{
    return !subject->is_rounded_input &&
           (subject->kind == ORIGIN_INPUT || subject->kind == ORIGIN_GAP ||
            subject->kind == ORIGIN_UPDATE);
}

bool nd_flat_asked(const struct subject *subject)
{
    return subject->actual != NULL && !nd_flat_outside(subject) &&
           subject->unexplained > 2 * subject->floor;
}

double nd_flat_rms(const double *values, uint64_t count)
{
    double squares = 0;
    uint64_t n = 0;

    for (uint64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            squares += values[i] * values[i];
            n++;
        }
    return n > 0 ? sqrt(squares / (double)n) : 0;
}

double nd_flat_allowed(double floor, double rms, double value)
{
    /* As many times the floor as a damaged element is judged by. */
    return fmax(12 * floor * rms, 8 * floor * fabs(value));
}

enum { FLAT_SAMPLE = 4096 };

double nd_flat_floor(const struct subject *subject)
{
    if (subject->flat_floor > 0)
        return subject->flat_floor;
    const double rms = nd_flat_rms(subject->expected, subject->count);
    const double least = fmax(subject->floor, 1e-7);
    const uint64_t count = subject->count < FLAT_SAMPLE ? subject->count : FLAT_SAMPLE;
    double picked[FLAT_SAMPLE];

    if (!(rms > 0) || count == 0)
        return least;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = i * subject->count / count;
        const double error = fabs(subject->actual[at] - subject->expected[at]);
        picked[i] = isfinite(error) ? error : 0;
    }
    qsort(picked, count, sizeof *picked, ascending);
    return fmax(least, fmin(1.5 * picked[count / 2] / rms, 1e-2));
}

static bool flat_alike(double y, double z)
{
    return isnan(y) ? isnan(z) : y == z;
}

bool nd_flat_differs(double floor, double rms, double y, double z)
{
    if (!isfinite(y) || !isfinite(z))
        return !flat_alike(y, z);
    return fabs(y - z) > nd_flat_allowed(floor, rms, z);
}

double nd_flat_distance(const double *y, const double *z, const bool *keep, uint64_t count)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (keep != NULL && !keep[i])
            continue;
        if (isfinite(y[i]) && isfinite(z[i])) {
            error += (y[i] - z[i]) * (y[i] - z[i]);
            size += z[i] * z[i];
        } else if (!flat_alike(y[i], z[i])) {
            return HUGE_VAL;
        }
    }
    return size > 0 ? sqrt(error / size) : error > 0 ? HUGE_VAL : 0;
}

uint32_t nd_flat_channel_axis(const struct subject *subject)
{
    const struct nd_shape *shape = &subject->shape;
    const struct op *op = subject->own->op;
    const bool is_image = shape->rank >= 3 && subject->norm != NULL &&
                          subject->norm->grouping != NORM_TRAILING;
    /* A linear layer works on the last axis, of images with their channels last too. */
    const bool is_convolution = shape->rank >= 4 && op != NULL && op->product && op->bias &&
                                strcmp(op->name, "linear") != 0;

    return is_image || is_convolution ? 1 : shape->rank - 1;
}

uint64_t nd_flat_inner(const struct nd_shape *shape, uint32_t axis)
{
    uint64_t inner = 1;

    for (uint32_t k = axis + 1; k < shape->rank; k++)
        inner *= shape->dim[k];
    return inner;
}
