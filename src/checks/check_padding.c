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
        const double y = subject->actual[i], z = subject->expected[i];
        if (isfinite(y) && isfinite(z))
            squares += (y - z) * (y - z);
        else if (y != z && !(isnan(y) && isnan(z)))
            return true;
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
            const bool differs =
                padding_differs(subject, s * of->positions + t, of->width, allowed);
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

/* Samples, positions and what a position holds; false: the shape has no positions. */
static bool padding_shape(const struct subject *subject, struct padding *ret)
{
    const struct nd_shape *shape = &subject->shape;

    if (shape->rank < 2 || shape->dim[0] < 1 || shape->dim[1] < 2)
        return false;
    *ret = (struct padding){.samples = shape->dim[0],
                            .positions = shape->dim[1],
                            .width = nd_flat_inner(shape, 1)};
    return true;
}

/* The dump says how many positions count, and only others differ. */
static bool padding_is_declared(const struct subject *subject, const struct padding *of,
                                double allowed)
{
    const struct slot_view *slot = NULL;
    uint64_t differ = 0;

    for (int side = 0; side < 2 && (slot == NULL || slot->valid_count == 0); side++)
        slot = nd_layer_slot(subject->pair->side[side], subject->slot->name);
    if (slot == NULL || (slot->valid_count != 1 && slot->valid_count != of->samples))
        return false;
    for (uint64_t s = 0; s < of->samples; s++) {
        const uint64_t valid = slot->valid[slot->valid_count == 1 ? 0 : s];
        for (uint64_t t = 0; t < of->positions; t++) {
            const bool differs =
                padding_differs(subject, s * of->positions + t, of->width, allowed);
            if (differs && t < valid)
                return false;
            differ += differs;
        }
    }
    return differ > 0;
}

static void padding_propose(struct subject *subject, const struct padding *of,
                            const bool *keep, bool is_declared)
{
    const struct hypothesis padded = {
        .id = "padded_positions",
        .residual =
            nd_flat_distance(subject->actual, subject->expected, keep, subject->count),
        .floor = nd_flat_floor(subject),
        .penalty = is_declared ? -7 : 0.2, /* before what stands there: NaN, stale values */
        .is_certain = is_declared,
        .side = nd_subject_side(subject)};

    ND_PROPOSE(subject, padded, ND_NUMBER("padded", (double)of->padded),
               ND_NUMBER("count", (double)(of->samples * of->positions)));
}

static void padding_run(struct subject *subject, struct nd_finding *finding)
{
    struct padding of;

    (void)finding;
    if (subject->actual == NULL || nd_flat_outside(subject) || subject->window.is ||
        !padding_shape(subject, &of))
        return;
    const double rms = nd_flat_rms(subject->expected, subject->count);
    const double allowed = 6 * nd_flat_floor(subject) * rms;
    const bool is_declared = padding_is_declared(subject, &of, allowed);
    bool *keep = malloc(subject->count * sizeof *keep);
    if (keep != NULL && padding_measure(subject, &of, allowed, keep) &&
        (is_declared ||
         (nd_flat_asked(subject) && subject->shape.rank == 3 &&
          of.samples >= PADDING_SAMPLES && of.touched * 2 > of.samples &&
          of.touched >= PADDING_SAMPLES && of.padded * 2 <= of.samples * of.positions)))
        padding_propose(subject, &of, keep, is_declared);
    free(keep);
}

const struct check nd_check_padding = {.id = "padding", .run = padding_run};
