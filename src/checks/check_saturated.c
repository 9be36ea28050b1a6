/*
 * Does one side stop at a largest value?  Where the expected output goes further, the
 * actual one stays at the limit; everything else agrees.
 */
#include <math.h>

#include "base/room.h"
#include "checks/flat.h"

/* Values at the limit: the extreme itself is always there once. */
enum { SATURATED_LEAST = 4 };

/* How many values stand at `limit` although more is expected. */
static uint64_t saturated_count(const double *y, const double *z, uint64_t count,
                                double limit, double slack)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < count; i++)
        at += y[i] == limit && (limit > 0 ? z[i] > limit + slack : z[i] < limit - slack);
    return at;
}

static void saturated_try(struct subject *subject, int side, const double *y,
                          const double *z)
{
    const double slack = subject->floor * nd_flat_rms(z, subject->count);
    double high = -HUGE_VAL, low = HUGE_VAL;

    for (uint64_t i = 0; i < subject->count; i++)
        if (isfinite(y[i])) {
            high = fmax(high, y[i]);
            low = fmin(low, y[i]);
        }
    const uint64_t above =
        high > 0 ? saturated_count(y, z, subject->count, high, slack) : 0;
    const uint64_t below = low < 0 ? saturated_count(y, z, subject->count, low, slack) : 0;
    if (above < SATURATED_LEAST)
        high = HUGE_VAL;
    if (below < SATURATED_LEAST)
        low = -HUGE_VAL;
    if (isinf(high) && isinf(low))
        return;
    /* A limit is met by the extremes: where most values stand at it, the output is constant. */
    if (above + below > subject->count / 2)
        return;
    double *clipped = nd_room_take(subject->count, sizeof *clipped);
    if (clipped == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++)
        clipped[i] = z[i] > high ? high : z[i] < low ? low : z[i];
    const struct hypothesis saturated = {
        .id = "saturated",
        .residual = nd_flat_distance(y, clipped, NULL, subject->count),
        .penalty = -0.3,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};
    nd_room_give(clipped);
    ND_PROPOSE(subject, saturated, ND_NUMBER("limit", isinf(high) ? low : high),
               ND_NUMBER("count", (double)(isinf(high) ? 0 : above) +
                                      (double)(isinf(low) ? 0 : below)));
}

static void saturated_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    if (!nd_flat_asked(subject))
        return;
    saturated_try(subject, subject->side, subject->actual, subject->expected);
    if (!subject->is_replayed)
        saturated_try(subject, !subject->side, subject->expected, subject->actual);
}

const struct check nd_check_saturated = {.id = "saturated", .run = saturated_run};
