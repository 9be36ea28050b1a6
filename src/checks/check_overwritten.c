/*
 * Did something else write into the output?  One flat range holds other values and all
 * around it agrees.  A range at the end is a tail that was not written (check_damage.c), a
 * whole channel one channel.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/flat.h"

enum { OVERWRITTEN_LEAST = 4, OVERWRITTEN_SAMPLE = 4096 };

static int ascending(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* The floor that half of the elements set, as for every damage. */
static double overwritten_floor(const struct subject *subject, double rms)
{
    double picked[OVERWRITTEN_SAMPLE];
    const uint64_t count =
        subject->count < OVERWRITTEN_SAMPLE ? subject->count : OVERWRITTEN_SAMPLE;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = i * subject->count / count;
        const double error = fabs(subject->actual[at] - subject->expected[at]);
        picked[i] = isfinite(error) ? error : 0;
    }
    qsort(picked, count, sizeof *picked, ascending);
    return fmax(fmax(subject->floor, 1e-7), fmin(1.5 * picked[count / 2] / rms, 1e-2));
}

struct range {
    uint64_t first, end, bad; /* end: behind the last wrong one */
};

static struct range overwritten_range(const struct subject *subject, double floor,
                                      double rms)
{
    struct range range = {subject->count, 0, 0};

    for (uint64_t i = 0; i < subject->count; i++) {
        const double z = subject->expected[i], error = fabs(subject->actual[i] - z);
        if (!(error > nd_flat_allowed(floor, rms, z)))
            continue;
        if (range.first == subject->count)
            range.first = i;
        range.end = i + 1;
        range.bad++;
    }
    return range;
}

/* One channel of the only sample is a range too; so is a whole sample. */
static bool overwritten_is_slice(const struct subject *subject, const struct range *range)
{
    const struct nd_shape *shape = &subject->shape;
    const uint32_t axis = nd_flat_channel_axis(subject);
    const uint64_t inner = nd_flat_inner(shape, axis);

    return inner > 1 && range->first / inner == (range->end - 1) / inner &&
           (double)range->bad > 0.5 * (double)inner;
}

/* Whole rows of the model's first layer: its input may differ there. */
static bool overwritten_is_input(const struct subject *subject, const struct range *range)
{
    const struct nd_shape *shape = &subject->shape;
    const uint64_t row = shape->rank > 1 ? shape->dim[shape->rank - 1] : 1;

    for (size_t i = 0; i < subject->index; i++)
        if (!subject->facts[i].container && subject->facts[i].out.seen > 0)
            return false;
    return subject->own->in.seen == 0 && range->first % row == 0 && range->end % row == 0;
}

static void overwritten_propose(struct subject *subject, const struct range *range,
                                double floor)
{
    const uint64_t length = range->end - range->first;
    bool *keep = malloc(subject->count * sizeof *keep);

    if (keep == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++)
        keep[i] = i < range->first || i >= range->end;
    const struct hypothesis overwritten = {
        .id = "memory_overwritten",
        .residual =
            nd_flat_distance(subject->actual, subject->expected, keep, subject->count),
        .floor = floor,
        .penalty = 2 * (double)length / (double)subject->count,
        .side = nd_subject_side(subject)};
    free(keep);
    ND_PROPOSE(subject, overwritten, ND_NUMBER("first", (double)range->first),
               ND_NUMBER("count", (double)length),
               ND_NUMBER("total", (double)subject->count));
}

static void overwritten_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    if (!nd_flat_asked(subject))
        return;
    const double rms = nd_flat_rms(subject->expected, subject->count);
    if (!(rms > 0))
        return;
    const double floor = overwritten_floor(subject, rms);
    const struct range range = overwritten_range(subject, floor, rms);
    const uint64_t length = range.end > range.first ? range.end - range.first : 0;
    /* Wrong throughout, apart from values that agree by chance; short against the rest. */
    if (length < OVERWRITTEN_LEAST || length * 4 > subject->count ||
        range.end == subject->count || range.bad * 2 < length ||
        overwritten_is_slice(subject, &range) || overwritten_is_input(subject, &range))
        return;
    overwritten_propose(subject, &range, floor);
}

const struct check nd_check_overwritten = {.id = "overwritten", .run = overwritten_run};
