/*
 * Is another mask applied to the attention scores?  The positions that one side hides
 * (-infinity, or a number far below all others) differ, and in every sample and head by the
 * same pattern.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/flat.h"

/* Finite values that stand for -infinity: beyond what a score reaches. */
static const double MASK_LEAST = -1e4;

static bool mask_hides(double value)
{
    return value <= MASK_LEAST; /* -infinity too */
}

struct mask {
    uint64_t hidden_more, hidden_less; /* on the side in question */
    bool same;                         /* the same pattern throughout */
};

static void mask_compare(const struct subject *subject, uint64_t plane, struct mask *ret)
{
    *ret = (struct mask){.same = true};
    for (uint64_t i = 0; i < subject->count; i++) {
        const uint64_t at = i % plane;
        const bool now = mask_hides(subject->actual[i]);
        const bool due = mask_hides(subject->expected[i]);
        ret->hidden_more += now && !due;
        ret->hidden_less += !now && due;
        if (isnan(subject->actual[i]) != isnan(subject->expected[i]) ||
            now != mask_hides(subject->actual[at]) ||
            due != mask_hides(subject->expected[at]))
            ret->same = false;
    }
}

/* What neither side hides must agree: the mask is all that is wrong. */
static double mask_rest(const struct subject *subject)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = subject->actual[i], z = subject->expected[i];
        if (mask_hides(y) || mask_hides(z) || !isfinite(y) || !isfinite(z))
            continue;
        error += (y - z) * (y - z);
        size += z * z;
    }
    return size > 0 ? sqrt(error / size) : HUGE_VAL;
}

static void mask_run(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_shape *shape = &subject->shape;
    struct mask mask;

    (void)finding;
    if (subject->actual == NULL || nd_flat_outside(subject) || shape->rank < 2)
        return;
    const uint64_t plane = shape->dim[shape->rank - 2] * shape->dim[shape->rank - 1];
    mask_compare(subject, plane, &mask);
    if (!mask.same || mask.hidden_more + mask.hidden_less == 0)
        return;
    const double rest = mask_rest(subject);
    const bool repeats = subject->count / plane > 1;
    const bool agrees = rest <= fmax(4 * subject->floor, 1e-6);
    const struct hypothesis other = {
        .id = "attention_mask",
        .residual = rest,
        .is_certain = repeats && agrees, /* the pattern repeats, and nothing else differs */
        .penalty = -5,                   /* before "nonfinite" */
        .side = nd_subject_side(subject)};
    if (!repeats || !(rest < 0.1))
        return;
    ND_PROPOSE(subject, other, ND_NUMBER("more", (double)mask.hidden_more),
               ND_NUMBER("less", (double)mask.hidden_less),
               ND_NUMBER("count", (double)subject->count));
}

const struct check nd_check_mask = {.id = "mask", .run = mask_run};
