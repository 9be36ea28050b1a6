/*
 * A BatchNorm known as scale and shift per channel only, of which one side rounds on the
 * way: which step, the sizes of the errors have to tell.  A value rounded before weight and
 * bias errs by at most one roundoff of its distance from the mean.
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>

/* Values that a channel needs to say something, and as many as are looked at. */
enum { LEAST_VALUES = 16, MOST_VALUES = 512, MOST_CHANNELS = 64, LEAST_CHANNELS = 4 };
enum { PIVOT_STEPS = 160, PIVOT_ROUNDS = 3 };

static const double PIVOT_REACH = 2; /* deviations that a running mean lies off at most */
static const double PASSING = 0.8;   /* share of channels */

/* One rounding leaves 0.29 to 0.58 roundoffs, by where in a binade the values lie. */
static const double LEAST_SIZE = 0.2, MOST_SIZE = 0.62;

struct rounding {
    double x[MOST_VALUES], error[MOST_VALUES], noise[MOST_VALUES];
    double mean, deviation, slope;
    uint64_t n;
};

/* One channel: its errors, at even steps. */
static bool rounding_load(const struct subject *subject, uint64_t row, double *expected,
                          struct rounding *ret)
{
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len, take = n < MOST_VALUES ? n : MOST_VALUES;
    const double *x = sample->in[subject->side][0] + row * n;
    const double *y = sample->out[subject->side] + row * n;
    uint64_t low = 0, high = 0;

    nd_formula_row(&subject->formula, subject->side, row, expected);
    *ret = (struct rounding){.n = 0};
    for (uint64_t i = 0; i < n; i++) {
        low = x[i] < x[low] ? i : low;
        high = x[i] > x[high] ? i : high;
    }
    ret->slope = (expected[high] - expected[low]) / (x[high] - x[low]);
    for (uint64_t k = 0; k < take; k++) {
        const uint64_t i = k * n / take;
        const double noise = 0x1p-22 * (fabs(expected[i]) + fabs(ret->slope * x[i]));
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        ret->x[ret->n] = x[i];
        ret->noise[ret->n] = noise;
        ret->error[ret->n++] = fabs(y[i] - expected[i]);
        ret->mean += x[i];
    }
    ret->mean /= (double)ret->n;
    for (uint64_t i = 0; i < ret->n; i++)
        ret->deviation += (ret->x[i] - ret->mean) * (ret->x[i] - ret->mean);
    ret->deviation = sqrt(ret->deviation / (double)ret->n);
    return ret->n >= LEAST_VALUES && ret->deviation > 0 && isfinite(ret->slope) &&
           ret->slope != 0;
}

/* The largest error over its distance from `pivot`, both in the input's units. */
static double pivot_worst(const struct rounding *of, double pivot)
{
    double worst = 0;

    for (uint64_t i = 0; i < of->n; i++) {
        const double over = of->error[i] - of->noise[i];
        if (over > worst * fabs(of->slope * (of->x[i] - pivot)))
            worst = over / fabs(of->slope * (of->x[i] - pivot));
    }
    return worst;
}

/* The mean that the errors grow away from. */
static double pivot_find(const struct rounding *of, double *ret_worst)
{
    double best = of->mean, reach = PIVOT_REACH * of->deviation;

    *ret_worst = HUGE_VAL;
    for (int round = 0; round < PIVOT_ROUNDS; round++) {
        const double middle = best, step = 2 * reach / PIVOT_STEPS;
        for (int k = 0; k <= PIVOT_STEPS; k++) {
            const double pivot = middle - reach + k * step;
            const double worst = pivot_worst(of, pivot);
            if (worst < *ret_worst) {
                *ret_worst = worst;
                best = pivot;
            }
        }
        reach = 2 * step;
    }
    return best;
}

static double pivot_size(const struct rounding *of, double pivot)
{
    double squares = 0;

    for (uint64_t i = 0; i < of->n; i++) {
        const double ratio = of->error[i] / (of->slope * (of->x[i] - pivot));
        squares += ratio * ratio;
    }
    return sqrt(squares / (double)of->n);
}

/* Channels looked at, and those whose errors are roundings about a pivot, by grid. */
struct survey {
    uint64_t channels, passing[2];
};

static const enum grid rounding_grids[] = {GRID_BF16, GRID_F16};

static void survey_channel(const struct rounding *of, struct survey *survey)
{
    double worst;
    const double pivot = pivot_find(of, &worst);
    const double size = pivot_size(of, pivot);

    survey->channels++;
    for (int g = 0; g < 2; g++) {
        const double u = nd_grid_roundoff(rounding_grids[g]);
        survey->passing[g] +=
            worst <= 1.02 * u && size > LEAST_SIZE * u && size < MOST_SIZE * u;
    }
}

static void rounding_xhat(struct subject *subject, const struct survey *survey)
{
    for (int g = 0; g < 2; g++) {
        const char *const dtype = nd_grid_name(rounding_grids[g]);
        const struct hypothesis cast = {
            .id = "cast_before_weight",
            .residual = (double)NAN,
            .is_fingerprint = true,
            .side = nd_subject_side(subject),
            .summary = ND_PHRASE(subject->arena, "summary.cast_before_weight.free",
                                 ND_WORD("dtype", dtype),
                                 ND_NUMBER("channels", (double)survey->channels),
                                 ND_NUMBER("is_candidate", subject->side))};
        if ((double)survey->passing[g] >= PASSING * (double)survey->channels)
            ND_PROPOSE(subject, cast, ND_WORD("dtype", dtype), ND_WORD("place", "xhat"));
    }
}

/* --- every step ----------------------------------------------------------------------- */

/* Roundings of the input, the centred value, xhat, weight and bias, at their worst. */
static const double STEPS = 8;

/* Is the output on a grid, and further off than that grid makes it? */
static void rounding_inside(struct subject *subject, double *expected)
{
    const enum grid grid = subject->own->grid[subject->side];
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len;
    uint64_t total = 0, beyond = 0, wild = 0;

    if (grid == GRID_NONE || grid == subject->own->grid[!subject->side])
        return;
    const double u = nd_grid_roundoff(grid);
    for (uint64_t row = 0; row < sample->count; row++) {
        const double *x = sample->in[subject->side][0] + row * n;
        const double *y = sample->out[subject->side] + row * n;
        nd_formula_row(&subject->formula, subject->side, row, expected);
        const double slope = (expected[n - 1] - expected[0]) / (x[n - 1] - x[0]);
        const double centre = expected[0] - slope * x[0];
        for (uint64_t i = 0; i < n; i++) {
            const double size =
                fabs(expected[i]) + fabs(expected[i] - centre) + fabs(centre);
            const double error = fabs(y[i] - expected[i]);
            total++;
            beyond += error > 1.05 * u * fabs(expected[i]) + 0x1p-22 * size;
            wild += error > STEPS * u * size;
        }
    }
    if ((double)beyond < 0.05 * (double)total || (double)wild > 1e-3 * (double)total)
        return;
    const struct hypothesis inside = {
        .id = "norm_internal_lowp",
        .residual = (double)NAN,
        .is_fingerprint = true,
        .side = nd_subject_side(subject),
        .summary = ND_PHRASE(subject->arena, "summary.norm_internal_lowp.free",
                             ND_WORD("dtype", nd_grid_name(grid)),
                             ND_NUMBER("beyond", (double)beyond / (double)total),
                             ND_NUMBER("is_candidate", subject->side))};
    ND_PROPOSE(subject, inside, ND_WORD("dtype", nd_grid_name(grid)));
}

static void channel_rounding_run(struct subject *subject, struct nd_finding *finding)
{
    struct rounding *rounding = nd_arena_alloc(subject->arena, 1, sizeof *rounding);
    struct survey survey = {.channels = 0};

    (void)finding;
    if (rounding == NULL || nd_subject_model(subject) == NULL || !subject->is_trusted ||
        !nd_norm_study_is_table(&subject->formula.study) ||
        subject->own->roundoff > 0x1p-24 || !(subject->unexplained > 16 * subject->floor))
        return;
    const struct sample *sample = &subject->formula.sample;
    double *expected =
        nd_arena_alloc(subject->arena, sample->rows.row_len, sizeof *expected);
    if (expected == NULL)
        return;
    rounding_inside(subject, expected);
    if (subject->own->grid[subject->side] != GRID_NONE)
        return; /* an output that was rounded itself errs by its own size */
    const uint64_t take = sample->count < MOST_CHANNELS ? sample->count : MOST_CHANNELS;
    for (uint64_t k = 0; k < take; k++)
        if (rounding_load(subject, k * sample->count / take, expected, rounding))
            survey_channel(rounding, &survey);
    if (survey.channels >= LEAST_CHANNELS)
        rounding_xhat(subject, &survey);
}

const struct check nd_check_channel_rounding = {
    .id = "channel_rounding", .of_norms = true, .run = channel_rounding_run};
