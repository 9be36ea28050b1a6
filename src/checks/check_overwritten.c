/*
 * Did something else write into the output?  One flat range holds other values and all
 * around it agrees.  A range at the end is a tail that was not written (check_damage.c), a
 * whole channel one channel.
 */
#include <math.h>

#include "base/room.h"
#include "checks/flat.h"

enum { OVERWRITTEN_LEAST = 4 };

struct range {
    uint64_t first, end, bad; /* end: behind the last wrong one */
};

static struct range overwritten_range(const struct subject *subject, double floor,
                                      double rms)
{
    struct range range = {subject->count, 0, 0};

    for (uint64_t i = 0; i < subject->count; i++) {
        if (!nd_flat_differs(floor, rms, subject->actual[i], subject->expected[i]))
            continue;
        if (range.first == subject->count)
            range.first = i;
        range.end = i + 1;
        range.bad++;
    }
    return range;
}

/* A tail of which the last values agree by chance, as zeros of an activation do. */
static bool overwritten_is_tail(const struct subject *subject, const struct range *range)
{
    if ((subject->count - range->end) * 2 <= range->end - range->first)
        return true;
    for (uint64_t i = range->end; i < subject->count; i++)
        if (subject->expected[i] != 0)
            return false;
    return true;
}

/* One channel of the only sample is a range too; so is a whole sample. */
static bool overwritten_is_slice(const struct subject *subject, const struct range *range)
{
    const struct nd_shape *shape = &subject->shape;
    const uint32_t axis = nd_flat_channel_axis(subject);
    const uint64_t inner = nd_flat_inner(shape, axis);

    /* Other samples have that channel too, and there it is right. */
    if (axis > 0 && shape->dim[axis] > 2 && subject->count / inner / shape->dim[axis] > 1)
        return false;
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

/* Wrong throughout, apart from values that agree by chance; short against the rest. */
static bool overwritten_fits(const struct subject *subject, const struct range *range)
{
    const uint64_t length = range->end > range->first ? range->end - range->first : 0;

    return length >= OVERWRITTEN_LEAST && length * 4 <= subject->count &&
           range->bad * 2 >= length && !overwritten_is_tail(subject, range) &&
           !overwritten_is_slice(subject, range) && !overwritten_is_input(subject, range);
}

static bool overwritten_propose(struct subject *subject, const struct range *range,
                                double floor, bool is_strict)
{
    const uint64_t length = range->end - range->first;
    bool *keep = nd_room_take(subject->count, sizeof *keep);

    if (keep == NULL)
        return false;
    for (uint64_t i = 0; i < subject->count; i++)
        keep[i] = i < range->first || i >= range->end;
    const struct hypothesis overwritten = {
        .id = "memory_overwritten",
        .residual =
            nd_flat_distance(subject->actual, subject->expected, keep, subject->count),
        .floor = floor,
        .penalty = 2 * (double)length / (double)subject->count,
        .side = nd_subject_side(subject)};
    nd_room_give(keep);
    if (is_strict && !(overwritten.residual <= 2 * floor))
        return false;
    ND_PROPOSE(subject, overwritten, ND_NUMBER("first", (double)range->first),
               ND_NUMBER("count", (double)length),
               ND_NUMBER("total", (double)subject->count));
    return true;
}

static void overwritten_run(struct subject *subject, struct nd_finding *finding)
{
    /* Honest elements stand out where some channels are far larger than the others. */
    static const double slacks[] = {1, 8, 64};
    bool found = false;

    (void)finding;
    if (!nd_flat_asked(subject) || subject->window.is) /* damage_survey.c sees all of it */
        return;
    const double rms = nd_flat_rms(subject->expected, subject->count);
    if (!(rms > 0))
        return;
    const double floor = nd_flat_floor(subject);
    for (size_t k = 0; k < sizeof slacks / sizeof *slacks && !found; k++) {
        const struct range range = overwritten_range(subject, floor * slacks[k], rms);
        found = overwritten_fits(subject, &range) &&
                overwritten_propose(subject, &range, floor, k > 0);
    }
}

const struct check nd_check_overwritten = {.id = "overwritten", .run = overwritten_run};
