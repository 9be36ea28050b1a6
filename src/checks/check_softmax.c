/*
 * Softmax computed in a narrower type: its steps rounded one by one.  Where a kernel rounds
 * is not known, so a few orders are tried.
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which results are rounded. */
enum softmax_step {
    ROUND_INPUT = 1,
    ROUND_DIFFERENCE = 2,
    ROUND_EXP = 4,
    ROUND_SUM = 8,
    ROUND_OUTPUT = 16
};

static const unsigned orders[] = {
    ROUND_INPUT | ROUND_DIFFERENCE | ROUND_EXP | ROUND_SUM | ROUND_OUTPUT,
    ROUND_INPUT | ROUND_DIFFERENCE | ROUND_EXP | ROUND_SUM,
    ROUND_DIFFERENCE | ROUND_EXP | ROUND_SUM | ROUND_OUTPUT,
    ROUND_DIFFERENCE | ROUND_EXP | ROUND_SUM,
    ROUND_DIFFERENCE | ROUND_EXP | ROUND_OUTPUT,
    ROUND_EXP | ROUND_SUM | ROUND_OUTPUT,
    ROUND_EXP | ROUND_SUM,
    ROUND_EXP | ROUND_OUTPUT,
    ROUND_EXP,
    ROUND_INPUT | ROUND_OUTPUT,
    ROUND_INPUT,
    ROUND_DIFFERENCE | ROUND_OUTPUT,
    ROUND_DIFFERENCE,
};

static double rounded(unsigned order, unsigned step, enum grid grid, double value)
{
    return (order & step) != 0 && isfinite(value) ? nd_grid_round(grid, value) : value;
}

static void softmax_lowp(unsigned order, enum grid grid, const double *x, uint64_t n,
                         double *out)
{
    double max = -HUGE_VAL, sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        out[i] = rounded(order, ROUND_INPUT, grid, x[i]);
        max = out[i] > max ? out[i] : max;
    }
    for (uint64_t i = 0; i < n; i++) {
        const double below = rounded(order, ROUND_DIFFERENCE, grid, out[i] - max);
        sum += out[i] = rounded(order, ROUND_EXP, grid, exp(below));
    }
    sum = rounded(order, ROUND_SUM, grid, sum);
    for (uint64_t i = 0; i < n; i++)
        out[i] = rounded(order, ROUND_OUTPUT, grid, out[i] / sum);
}

static double softmax_misfit(const struct subject *subject, unsigned order, enum grid grid,
                             double *row)
{
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len;
    double error = 0, size = 0;

    for (uint64_t r = 0; r < sample->count; r++) {
        const double *y = sample->out[subject->side] + r * n;
        softmax_lowp(order, grid, sample->in[subject->side][0] + r * n, n, row);
        for (uint64_t i = 0; i < n; i++) {
            if (!isfinite(y[i]) || !isfinite(row[i]))
                continue;
            error += (y[i] - row[i]) * (y[i] - row[i]);
            size += row[i] * row[i];
        }
    }
    return size > 0 ? sqrt(error / size) : (double)NAN;
}

static void softmax_run(struct subject *subject, struct nd_finding *finding)
{
    static const enum grid grids[] = {GRID_BF16, GRID_F16, GRID_TF32};
    double best = HUGE_VAL, *row;
    enum grid found = GRID_NONE;

    (void)finding;
    if (!subject->has_formula || !subject->is_trusted || !nd_subject_is_own(subject) ||
        strcmp(subject->own->op->name, "softmax") != 0 || subject->own->roundoff > 0x1p-24)
        return;
    row = malloc(subject->formula.sample.rows.row_len * sizeof *row);
    for (size_t g = 0; row != NULL && g < sizeof grids / sizeof *grids; g++)
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
            const double residual = softmax_misfit(subject, orders[k], grids[g], row);
            if (residual < best) {
                best = residual;
                found = grids[g];
            }
        }
    free(row);
    if (found == GRID_NONE)
        return;
    /* A value near the middle between two steps falls to either side: a step of 2 u in a
     * share of floor / u of the values. */
    const double u = nd_grid_roundoff(found);
    const struct hypothesis inside = {
        .id = "softmax_lowp",
        .residual = best,
        .floor = fmax(subject->floor, 2 * sqrt(subject->floor * u)),
        .penalty = 0.1,
        .side = nd_subject_side(subject)};
    ND_PROPOSE(subject, inside, ND_WORD("dtype", nd_grid_name(found)));
}

const struct check nd_check_softmax = {.id = "softmax", .run = softmax_run};
