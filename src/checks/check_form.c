/*
 * Do the sides hold the same statistic in another form?  Norm operators give back the
 * variance on one platform and 1/sqrt(variance + eps), or the deviation, on another.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/flat.h"

enum { FORM_LEAST = 4 }; /* one eps is fitted: fewer values prove little */

/* Two roundings, one of them through a square or its root, and the reduction's own error
 * (a few units in practice): beyond this the sides do not hold one statistic. */
static const double FORM_UNITS = 16;

/* The rows differ by what the layer was given too: a relative error of x is at most twice
 * that of its variance, and as much of the root.  Beyond a tenth nothing is proved. */
static const double FORM_INHERITED = 2, FORM_LIMIT = 1e-1;

/* The conversion explains most of the difference, or it is another statistic. */
static const double FORM_GAIN = 0.1;

/* Where the sides agree this well they hold the same form already. */
static const double FORM_APART = 1e-2;

/* An eps beyond this is none that any framework sets. */
static const double LARGEST_EPS = 1e-2;

enum form { FORM_VARIANCE, FORM_DEVIATION, FORM_COUNT };

static const char *const form_names[FORM_COUNT] = {"variance", "deviation"};

/* The variance that a value stands for. */
static double form_variance(enum form form, double value)
{
    return form == FORM_VARIANCE ? value : value * value;
}

/* Positive, and of more than one size: eps alone would fit a constant. */
static bool is_statistic(const double *values, uint64_t count)
{
    double least = HUGE_VAL, most = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (!(values[i] > 0) || !isfinite(values[i]))
            return false;
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    return count >= FORM_LEAST && most > 1.05 * least;
}

/* eps = 1/rstd^2 - variance, weighted by 1/variance^2: small variances carry it. */
static double form_eps(const double *rstd, const double *other, enum form form, uint64_t count)
{
    double sum = 0, weights = 0;

    for (uint64_t i = 0; i < count; i++) {
        const double variance = form_variance(form, other[i]), weight = 1 / (variance * variance);
        sum += weight * (1 / (rstd[i] * rstd[i]) - variance);
        weights += weight;
    }
    return sum / weights;
}

/* What the layer's input, mean and value are off by anyhow. */
static double form_inherited(const struct subject *subject)
{
    double worst = subject->own->in.count > 0 ? subject->own->in.rel : 0;

    for (size_t i = 0; i < subject->layer->slot_count; i++) {
        const struct nd_slot *slot = &subject->layer->slots[i];
        if (slot != subject->slot && nd_slot_is(slot, "output") && nd_slot_measured(slot))
            worst = fmax(worst, nd_slot_rel(slot));
    }
    return worst;
}

/* Values of 16 bits are converted with an error of half a unit (a variance) to one (a
 * deviation) and rounded again, so the roundoff of the type stands for both. */
static double form_tolerance(const struct subject *subject)
{
    const double own = FORM_UNITS * subject->own->roundoff;
    const double all = own + FORM_INHERITED * form_inherited(subject);

    return fmin(fmin(all, FORM_LIMIT), fmax(FORM_GAIN * subject->own->out.rel, own));
}

/* Puts forward that one side holds rstd where the other holds `form`. */
static void form_try(struct subject *subject, enum form form, bool actual_is_rstd)
{
    const double *rstd = actual_is_rstd ? subject->actual : subject->expected;
    const double *other = actual_is_rstd ? subject->expected : subject->actual;
    const double  fitted = form_eps(rstd, other, form, subject->count);
    /* Beside 16-bit statistics eps is mostly lost: then none is as good as any. */
    const double  eps = fmin(fmax(fitted, 0), LARGEST_EPS);
    double       *made = malloc(subject->count * sizeof *made);

    if (made == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++)
        made[i] = 1 / sqrt(form_variance(form, other[i]) + eps);
    const struct hypothesis hypothesis = {
        .id = "variance_for_rstd",
        .residual = nd_flat_distance(rstd, made, NULL, subject->count),
        .is_certain = true,
        .side = nd_subject_side(subject)};
    free(made);
    if (!(hypothesis.residual <= form_tolerance(subject)))
        return;
    ND_PROPOSE(subject, hypothesis, ND_NUMBER("eps", eps),
               ND_WORD("form", form_names[form]),
               ND_WORD("rstd_side", actual_is_rstd == (subject->side == 1) ? "candidate"
                                                                          : "reference"));
}

static void form_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    /* The layer's formula is about its first output; these statistics are the others. */
    if (subject->actual == NULL || subject->is_replayed || nd_flat_outside(subject) ||
        !(subject->own->out.rel > FORM_APART) || !is_statistic(subject->actual, subject->count) ||
        !is_statistic(subject->expected, subject->count))
        return;
    for (int form = 0; form < FORM_COUNT; form++) {
        form_try(subject, (enum form)form, true);
        form_try(subject, (enum form)form, false);
    }
}

const struct check nd_check_form = {.id = "form", .run = form_run};
