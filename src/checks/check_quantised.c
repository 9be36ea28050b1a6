/*
 * Do one side's values stand on few levels?  Integers of 8 or 4 bits times a step, one for
 * the tensor or one a channel; or the grids of the 8-bit floating-point types.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"
#include "base/mix.h"
#include "base/room.h"
#include "checks/flat.h"

enum { QUANTISED_LEVELS = 256, QUANTISED_LEAST = 64, QUANTISED_DISTINCT = 4 };

/* A level is hit by rounding of the stored type only: 256 steps of 2^-24 and less. */
static const double QUANTISED_SLACK = 1e-3;

/* The values seen, each once, until they are more than a step could make. */
enum { LEVEL_SLOTS = 1024 }; /* four times as many: few meet */

struct levels {
    double value[QUANTISED_LEVELS + 1];
    uint64_t count;
    uint32_t fill; /* slots of an earlier fill are free */
    uint32_t filled[LEVEL_SLOTS];
    uint16_t at[LEVEL_SLOTS];
};

static void levels_clear(struct levels *levels)
{
    levels->count = 0;
    if (++levels->fill == 0) {
        memset(levels->filled, 0, sizeof levels->filled);
        levels->fill = 1;
    }
}

/* False: too many. */
static bool levels_add(struct levels *levels, double value)
{
    uint64_t bits;

    value = value == 0 ? 0 : value; /* of both zeros one */
    memcpy(&bits, &value, sizeof bits);
    uint64_t slot = mix64(bits) % LEVEL_SLOTS;
    while (levels->filled[slot] == levels->fill) {
        if (levels->value[levels->at[slot]] == value)
            return true;
        slot = (slot + 1) % LEVEL_SLOTS;
    }
    levels->filled[slot] = levels->fill;
    levels->at[slot] = (uint16_t)levels->count;
    levels->value[levels->count++] = value;
    return levels->count <= QUANTISED_LEVELS;
}

static bool quantised_step_fits(const double *levels, uint64_t count, double step)
{
    for (uint64_t i = 0; i < count; i++) {
        const double at = levels[i] / step;
        if (fabs(at - nearbyint(at)) > QUANTISED_SLACK)
            return false;
    }
    return true;
}

/* The step whose multiples all levels are; 0: none. */
static double quantised_step(const double *levels, uint64_t count)
{
    double least = HUGE_VAL;
    const double range = levels[count - 1] - levels[0];

    for (uint64_t i = 1; i < count; i++)
        least = fmin(least, levels[i] - levels[i - 1]);
    for (unsigned k = 1; k <= 4; k++) {
        /* The least gap carries the rounding of two values: refine it on the range. */
        const double steps = nearbyint(range / (least / k));
        if (steps < 1 || steps > QUANTISED_LEVELS)
            return 0;
        if (quantised_step_fits(levels, count, range / steps))
            return range / steps;
        const double top = fmax(fabs(levels[0]), fabs(levels[count - 1]));
        const double high = nearbyint(top / (least / k));
        if (high >= 1 && quantised_step_fits(levels, count, top / high))
            return top / high;
    }
    return 0;
}

/* --- integers --- */

struct quantised {
    const double *y, *z;
    struct levels levels; /* of one group */
    double *moved;  /* z on the levels */
    uint64_t told; /* elements in groups whose step says something */
    uint64_t most; /* levels of a group */
    double noise;  /* steps squared, summed over the elements */
};

/* Takes the finite values of one group: `inner` in a row, every `inner * groups`; sorts
 * what is found.  0: more values than levels. */
static uint64_t quantised_gather(struct quantised *of, uint64_t count, uint64_t inner,
                                 uint64_t groups, uint64_t group)
{
    uint64_t n = 0;

    levels_clear(&of->levels);
    for (uint64_t i = group * inner; i < count; i += inner * groups)
        for (uint64_t j = i; j < i + inner; j++) {
            if (!isfinite(of->y[j]))
                continue;
            if (!levels_add(&of->levels, of->y[j]))
                return 0;
            n++;
        }
    qsort(of->levels.value, of->levels.count, sizeof *of->levels.value, ascending);
    return n;
}

/* Puts the expected values of a group on its own levels; false: it has none. */
static bool quantised_group(struct quantised *of, uint64_t count, uint64_t inner,
                            uint64_t groups, uint64_t group)
{
    const uint64_t n = quantised_gather(of, count, inner, groups, group);
    const uint64_t distinct = of->levels.count;
    const double *values = of->levels.value;
    const double step = n > 0 && distinct > 1 ? quantised_step(values, distinct) : 0;

    if (n == 0 || (step == 0 && distinct > 1))
        return false;
    const double low = values[0], high = values[distinct - 1];
    for (uint64_t i = group * inner; i < count; i += inner * groups)
        for (uint64_t j = i; j < i + inner; j++) {
            const double z = of->z[j];
            const double level = step > 0 ? nearbyint(z / step) * step : low;
            of->moved[j] = isnan(z) ? z : fmin(fmax(level, low), high);
        }
    /* Few values lie on the multiples of something anyway. */
    if (distinct >= 2 * QUANTISED_DISTINCT ||
        (distinct >= QUANTISED_DISTINCT && n > 2 * distinct))
        of->told += n;
    of->most = of->most > distinct ? of->most : distinct;
    of->noise += step * step * (double)n;
    return true;
}

static void quantised_propose(struct subject *subject, const struct quantised *of, int side,
                              const char *how, double step, double levels)
{
    const double rms = nd_flat_rms(of->z, subject->count);
    const double residual = nd_flat_distance(of->y, of->moved, NULL, subject->count);
    /* Rounding the other way where a value lay close to the middle. */
    const double flips = rms > 0 ? 2 * sqrt(subject->floor * step / rms) : 0;
    const struct hypothesis quantised = {.id = "quantised",
                                         .residual = residual,
                                         .floor = fmax(subject->floor, flips),
                                         .penalty = -0.6,
                                         .side = side == 1 ? ND_SIDE_CANDIDATE
                                                           : ND_SIDE_REFERENCE};

    ND_PROPOSE(subject, quantised, ND_WORD("grid", how), ND_NUMBER("levels", levels));
}

static bool quantised_integers(struct subject *subject, struct quantised *of, int side,
                               uint32_t axis)
{
    const bool whole = axis >= subject->shape.rank;
    const uint64_t groups = whole ? 1 : subject->shape.dim[axis];
    const uint64_t inner = whole ? subject->count : nd_flat_inner(&subject->shape, axis);

    of->told = of->most = 0;
    of->noise = 0;
    for (uint64_t g = 0; g < groups; g++)
        if (!quantised_group(of, subject->count, inner, groups, g))
            return false;
    if (of->told < QUANTISED_LEAST || of->told * 2 < subject->count)
        return false;
    quantised_propose(subject, of, side, whole ? "integers" : "integers a channel",
                      sqrt(of->noise / (double)subject->count), (double)of->most);
    return true;
}

/* --- 8-bit floating point --- */

/* OCP 8-bit floating point: digits after the first, smallest normal exponent, largest. */
struct small_float {
    const char *name;
    int digits, low;
    double high;
};
static const struct small_float small_floats[] = {
    {"float8 e5m2", 2, -14,  57344  },
    {"float8 e4m3", 3, -6,   448    },
    {"float8 e5m2", 2, -999, HUGE_VAL}, /* scaled, so that nothing underflows */
    {"float8 e4m3", 3, -999, HUGE_VAL}
};

static double small_float_round(const struct small_float *type, double value)
{
    int exponent;

    if (!isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    exponent = exponent - 1 < type->low ? type->low : exponent - 1;
    const double step = ldexp(1, exponent - type->digits);
    return fmin(fmax(nearbyint(value / step) * step, -type->high), type->high);
}

static bool quantised_small_float(struct subject *subject, struct quantised *of, int side,
                                  const struct small_float *type)
{
    uint64_t finite = 0, expected = 0;

    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = of->y[i];
        if (isfinite(y) && y != 0) {
            if (small_float_round(type, y) != y)
                return false;
            finite++;
        }
        expected += small_float_round(type, of->z[i]) == of->z[i];
        /* Types without infinities, and conversions that saturate, end at the largest. */
        of->moved[i] = isinf(of->z[i]) && isfinite(y) ? copysign(type->high, of->z[i])
                                                      : small_float_round(type, of->z[i]);
    }
    if (finite < QUANTISED_LEAST || expected * 2 > subject->count)
        return false;
    quantised_propose(subject, of, side, type->name,
                      nd_flat_rms(of->z, subject->count) * ldexp(1, -type->digits), 256);
    return true;
}

static void quantised_side(struct subject *subject, struct quantised *of, int side)
{
    for (size_t i = 0; i < sizeof small_floats / sizeof *small_floats; i++)
        if (quantised_small_float(subject, of, side, &small_floats[i]))
            return;
    if (quantised_integers(subject, of, side, subject->shape.rank) ||
        subject->shape.rank < 2)
        return;
    const uint32_t axis = nd_flat_channel_axis(subject);
    /* Heads, or the channels of what stands between images. */
    if (!quantised_integers(subject, of, side, axis) && axis != 1 &&
        subject->shape.rank == 4)
        (void)quantised_integers(subject, of, side, 1);
}

static void quantised_run(struct subject *subject, struct nd_finding *finding)
{
    struct quantised of = {.y = subject->actual, .z = subject->expected};

    (void)finding;
    /* Wide values only: those of 16 bits do not keep a step. */
    if (!nd_flat_asked(subject) || subject->own->roundoff > 0x1p-20 ||
        subject->count < QUANTISED_LEAST)
        return;
    of.moved = nd_room_take(subject->count, sizeof *of.moved);
    if (of.moved != NULL) {
        quantised_side(subject, &of, subject->side);
        of.y = subject->expected;
        of.z = subject->actual;
        if (!subject->is_replayed)
            quantised_side(subject, &of, !subject->side);
    }
    nd_room_give(of.moved);
}

const struct check nd_check_quantised = {.id = "quantised", .run = quantised_run};
