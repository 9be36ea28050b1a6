/*
 * Do only the last positions of each sample differ?  Padding is mostly left undefined: what
 * stands there is nobody's result.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/flat.h"

enum { PADDING_SAMPLES = 2 };

struct padding {
    uint64_t samples, positions, width;
    uint64_t padded, touched; /* positions that differ, samples with any */
};

static bool padding_differs(const struct subject *subject, uint64_t row, uint64_t width,
                            double allowed)
{
    double squares = 0;

    for (uint64_t i = row * width; i < (row + 1) * width; i++) {
        const double error = subject->actual[i] - subject->expected[i];
        squares += isfinite(error) ? error * error : 0;
    }
    return sqrt(squares / (double)width) > allowed;
}

/* False where something differs before the last agreeing position of a sample. */
static bool padding_measure(const struct subject *subject, struct padding *of,
                            double allowed, bool *keep)
{
    for (uint64_t s = 0; s < of->samples; s++) {
        uint64_t first = of->positions;
        for (uint64_t t = 0; t < of->positions; t++) {
            const bool differs = padding_differs(subject, s * of->positions + t, of->width,
                                                 allowed);
            if (!differs && first < of->positions)
                return false;
            if (differs && first == of->positions)
                first = t;
            for (uint64_t c = 0; c < of->width; c++)
                keep[(s * of->positions + t) * of->width + c] = first == of->positions;
        }
        of->padded += of->positions - first;
        of->touched += first < of->positions;
    }
    return true;
}

static void padding_run(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_shape *shape = &subject->shape;

    (void)finding;
    if (!nd_flat_asked(subject) || shape->rank != 3 || shape->dim[0] < PADDING_SAMPLES)
        return;
    struct padding of = {shape->dim[0], shape->dim[1], shape->dim[2], 0, 0};
    const double rms = nd_flat_rms(subject->expected, subject->count);
    const double floor = fmax(subject->floor, 1e-7);
    bool *keep = malloc(subject->count * sizeof *keep);
    if (keep != NULL && padding_measure(subject, &of, 6 * floor * rms, keep) &&
        of.touched * 2 > of.samples && of.touched >= PADDING_SAMPLES &&
        of.padded * 2 <= of.samples * of.positions) {
        const struct hypothesis padded = {
            .id = "padded_positions",
            .residual =
                nd_flat_distance(subject->actual, subject->expected, keep, subject->count),
            .floor = floor,
            .penalty = 0.2,
            .side = nd_subject_side(subject)};
        ND_PROPOSE(subject, padded, ND_NUMBER("padded", (double)of.padded),
                   ND_NUMBER("count", (double)(of.samples * of.positions)));
    }
    free(keep);
}

const struct check nd_check_padding = {.id = "padding", .run = padding_run};
