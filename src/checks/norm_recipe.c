/*
 * One row of a recipe, and its misfit: first on a window of rows, since most recipes can be
 * turned down there.
 */
#include "checks/norm_recipe.h"

#include <math.h>
#include <string.h>

static const double HALF_MAX = 65504; /* largest float16 */

static double rounded(const struct norm_recipe *recipe, unsigned place, double value)
{
    return (recipe->places & place) != 0 ? nd_grid_round(recipe->grid, value) : value;
}

/* --- statistics ------------------------------------------------------------------------ */

/* A row, or a shard of one, and what lies behind it in memory (NULL: nothing). */
struct stretch {
    const double *x, *next;
    uint64_t n;
};

static double squares_in_half(const struct norm_recipe *recipe, const double *x, uint64_t n,
                              double centre)
{
    const bool saturates = recipe->squares == SQUARES_SATURATE;
    double sum = 0;

    for (uint64_t j = 0; j < n; j++) {
        double square = x[j] - centre;
        if (recipe->wide_squares) {
            sum += square * square;
            continue;
        }
        square = nd_grid_round(GRID_F16, square);
        square = nd_grid_round(GRID_F16, square * square);
        sum += saturates ? fmin(square, HALF_MAX) : square;
    }
    return saturates ? fmin(sum, HALF_MAX) : nd_grid_round(GRID_F16, sum);
}

static double row_mean(const struct norm_recipe *recipe, const double *x, uint64_t n)
{
    double sum = 0;

    for (uint64_t j = 0; j < n; j++)
        sum += rounded(recipe, PLACE_INPUT, x[j]);
    return n > 0 ? sum / (double)n : 0;
}

static double row_squares(const struct norm_recipe *recipe, const double *x, uint64_t n,
                          double centre)
{
    double sum = 0;

    for (uint64_t j = 0; j < n; j++) {
        const double d =
            rounded(recipe, PLACE_CENTRED, rounded(recipe, PLACE_INPUT, x[j]) - centre);
        sum += rounded(recipe, PLACE_SQUARE, d * d);
    }
    return sum;
}

/* Mean and variance over a row and some of the next, or over part of it. */
static void neighbour_statistics(const struct norm_recipe *recipe,
                                 const struct stretch *row, double *ret_centre,
                                 double *ret_var)
{
    const int64_t k = recipe->neighbour;
    const uint64_t own = k < 0 ? row->n - (uint64_t)-k : row->n;
    const uint64_t extra = k > 0 && row->next != NULL ? (uint64_t)k : 0;
    const double count = (double)(own + extra);
    double mean = 0;

    if (recipe->model.centre)
        mean = (row_mean(recipe, row->x, own) * (double)own +
                row_mean(recipe, row->next, extra) * (double)extra) /
               count;
    *ret_centre = mean;
    *ret_var = (row_squares(recipe, row->x, own, mean) +
                row_squares(recipe, row->next, extra, mean)) /
               count;
}

static void recipe_statistics(const struct norm_recipe *recipe, const struct op_rows *rows,
                              uint64_t row, const struct stretch *stretch,
                              double *ret_centre, double *ret_var)
{
    double centre = 0, var;

    if (recipe->model.var != NULL) { /* held in float32: nothing is rounded */
        nd_norm_statistics(&recipe->model, rows, row, stretch->x, ret_centre, ret_var);
        return;
    }
    if (recipe->neighbour != 0) {
        neighbour_statistics(recipe, stretch, ret_centre, ret_var);
        return;
    }
    if (recipe->model.centre)
        centre = rounded(recipe, PLACE_MEAN, row_mean(recipe, stretch->x, stretch->n));
    if (recipe->squares != SQUARES_WIDE)
        var = squares_in_half(recipe, stretch->x, stretch->n, centre);
    else
        var = row_squares(recipe, stretch->x, stretch->n, centre);
    var /= (double)stretch->n;
    if (recipe->var_factor > 0)
        var *= recipe->var_factor;
    *ret_centre = centre;
    *ret_var = rounded(recipe, PLACE_VAR, var);
}

/* --- the root -------------------------------------------------------------------------- */

static double root_newton(double v, unsigned steps)
{
    const float single = (float)v;
    uint32_t bits;
    float guess;

    memcpy(&bits, &single, sizeof bits);
    bits = 0x5f3759dfu - (bits >> 1); /* the constant of the well-known trick */
    memcpy(&guess, &bits, sizeof guess);
    double y = (double)guess;
    for (unsigned i = 0; i < steps; i++)
        y *= 1.5 - 0.5 * v * y * y;
    return y;
}

static double recipe_root(const struct norm_recipe *recipe, double v)
{
    int exponent;

    if (recipe->root == ROOT_NEWTON)
        return root_newton(v, recipe->bits);
    if (recipe->root != ROOT_EXACT && isfinite(v) && v > 0) {
        const double mantissa = frexp(v, &exponent);
        const double cell = floor(ldexp(mantissa, (int)recipe->bits)) +
                            (recipe->root == ROOT_MIDDLE ? 0.5 : 0);
        v = ldexp(cell, exponent - (int)recipe->bits);
    }
    return 1 / sqrt(v);
}

static double recipe_scale(const struct norm_recipe *recipe, const struct stretch *stretch,
                           double var)
{
    double eps = recipe->model.eps, top = 0;

    if (recipe->eps_by_square) {
        for (uint64_t j = 0; j < stretch->n; j++)
            top = fmax(top, fabs(stretch->x[j]));
        eps *= top * top;
    }
    return rounded(recipe, PLACE_RSTD, recipe_root(recipe, var + eps));
}

/* --- rows ------------------------------------------------------------------------------ */

static void recipe_row(const struct norm_recipe *recipe, const struct op_rows *rows,
                       uint64_t row, const double *x, const double *next, double *out)
{
    const uint64_t shards = recipe->shards > 1 ? recipe->shards : 1;
    const uint64_t length = rows->row_len / shards;
    struct op_channel channel = nd_op_channel_first(rows, row);

    for (uint64_t at = 0; at + length <= rows->row_len; at += length) {
        const struct stretch stretch = {x + at, next, length};
        double centre, var;
        recipe_statistics(recipe, rows, row, &stretch, &centre, &var);
        const double scale = recipe_scale(recipe, &stretch, var);
        for (uint64_t j = at; j < at + length; j++, nd_op_channel_next(rows, &channel)) {
            double y = rounded(recipe, PLACE_INPUT, x[j]) - centre;
            y = rounded(recipe, PLACE_XHAT, rounded(recipe, PLACE_CENTRED, y) * scale);
            if (recipe->model.weight != NULL)
                y = rounded(recipe, PLACE_WEIGHTED,
                            y * nd_norm_weight(&recipe->model, channel.at));
            if (recipe->model.bias != NULL)
                y += nd_norm_bias(&recipe->model, channel.at);
            out[j] = rounded(recipe, PLACE_OUT, y);
        }
    }
}

/* --- misfit ---------------------------------------------------------------------------- */

enum { WINDOW_ELEMENTS = 1 << 13 };

struct trial {
    const struct recipe_bench *bench;
    const struct norm_recipe *recipe;
    uint64_t first;
};

static void trial_row(const void *user, uint64_t i, double *out)
{
    const struct trial *of = user;
    const struct sample *sample = &of->bench->subject->formula.sample;
    const uint64_t n = sample->rows.row_len, at = of->first + i;
    const double *x = sample->in[of->bench->subject->side][0] + at * n;
    /* Only a whole sample has a row's neighbour beside it. */
    const double *next = sample->whole && at + 1 < sample->count ? x + n : NULL;

    recipe_row(of->recipe, &sample->rows, sample->row[at], x, next, out);
}

/* The row of the sample that is furthest off. */
static uint64_t worst_row(const struct subject *subject, double *row)
{
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len;
    uint64_t worst = 0;
    double highest = -1;

    for (uint64_t i = 0; i < sample->count; i++) {
        const double *y = sample->out[subject->side] + i * n;
        double error = 0;
        nd_formula_row(&subject->formula, subject->side, i, row);
        for (uint64_t j = 0; j < n; j++)
            error += isfinite(y[j] - row[j]) ? (y[j] - row[j]) * (y[j] - row[j]) : 0;
        if (error > highest) {
            highest = error;
            worst = i;
        }
    }
    return worst;
}

static struct sample bench_window(const struct sample *sample, uint64_t worst,
                                  uint64_t *ret_first)
{
    struct sample window = *sample;
    const uint64_t n = sample->rows.row_len;
    uint64_t count = WINDOW_ELEMENTS / n;

    count = count < 1 ? 1 : count > sample->count ? sample->count : count;
    uint64_t first = worst > count / 2 ? worst - count / 2 : 0;
    first = first + count > sample->count ? sample->count - count : first;
    window.row += first;
    window.count = count;
    for (int side = 0; side < 2; side++) {
        window.in[side][0] += first * n;
        window.out[side] += first * n;
    }
    *ret_first = first;
    return window;
}

/*
 * A BatchNorm of unknown mode and parameters is known as a scale and a shift per channel of
 * its input.  On one batch that is the same as statistics of the batch and other weights.
 */
const struct norm_model *nd_recipe_batch_model(const struct subject *subject)
{
    const struct norm_study *study = &subject->formula.study;
    const struct sample *sample = &subject->formula.sample;
    const double declared = study->declared_eps[study->fitted_on];
    struct norm_model *model = nd_arena_alloc(subject->arena, 1, sizeof *model);
    double *weight = nd_arena_alloc(subject->arena, study->channels, sizeof *weight);
    double *bias = nd_arena_alloc(subject->arena, study->channels, sizeof *bias);

    if (model == NULL || weight == NULL || bias == NULL || study->declared_mode[0] == 0 ||
        study->declared_mode[1] == 0 || !sample->whole ||
        study->mode != NORM_MODE_AFFINE)
        return NULL;
    *model = (struct norm_model){.eps = isnan(declared) ? subject->norm->default_eps
                                                        : declared,
                                 .centre = true,
                                 .weight = weight,
                                 .bias = bias};
    for (uint64_t i = 0; i < sample->count; i++) {
        const uint64_t channel = nd_op_channel(&sample->rows, sample->row[i], 0);
        double mean, var;
        nd_norm_moments(sample->in[study->fitted_on][0] + i * sample->rows.row_len,
                        sample->rows.row_len, &mean, &var);
        weight[channel] = study->fitted_weight[channel] * sqrt(var + model->eps);
        bias[channel] = study->fitted_bias[channel] + study->fitted_weight[channel] * mean;
    }
    return model;
}

bool nd_recipe_bench(const struct subject *subject, struct recipe_bench *ret)
{
    const struct norm_model *model = nd_subject_model(subject);
    const bool is_affine =
        model != NULL && subject->formula.study.mode == NORM_MODE_AFFINE;
    const bool is_outside =
        !subject->is_rounded_input &&
        (subject->kind == ORIGIN_INPUT || subject->kind == ORIGIN_GAP);

    if (model == NULL || !subject->is_trusted || is_outside ||
        !(subject->unexplained > 2 * subject->floor))
        return false;
    if (is_affine)
        model = nd_recipe_batch_model(subject);
    if (model == NULL)
        return false;
    double *row =
        nd_arena_alloc(subject->arena, subject->formula.sample.rows.row_len, sizeof *row);
    if (row == NULL)
        return false;
    *ret = (struct recipe_bench){.subject = subject, .model = model};
    ret->window =
        bench_window(&subject->formula.sample, worst_row(subject, row), &ret->first);
    const struct norm_recipe plain = {.model = *model};
    const struct trial trial = {ret, &plain, ret->first};
    struct residual residual;
    if (!nd_residual_measure(&ret->window, ret->window.out[subject->side], trial_row,
                             &trial, &residual))
        return false;
    ret->baseline = residual.rel;
    return true;
}

enum { WHOLE_PARTS = 16 };

/* Part by part, until the errors alone are more than the limit allows all of it: false
 * then. */
static bool misfit_whole(const struct recipe_bench *bench,
                         const struct norm_recipe *recipe, double limit,
                         struct residual *ret)
{
    const struct subject *subject = bench->subject;
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len, rows = sample->count / WHOLE_PARTS + 1;
    /* A recipe changes the size of the output too, but never twofold. */
    const double most = 4 * limit * limit * subject->formula.residual[subject->side].sum_zz;
    struct residual part;

    *ret = (struct residual){0};
    for (uint64_t at = 0; at < sample->count; at += rows) {
        const struct trial trial = {bench, recipe, at};
        struct sample cut = *sample;
        cut.row += at;
        cut.count = sample->count - at < rows ? sample->count - at : rows;
        if (!nd_residual_measure(&cut, sample->out[subject->side] + at * n, trial_row,
                                 &trial, &part))
            return false;
        ret->sum_ee += part.sum_ee;
        ret->sum_zz += part.sum_zz;
        ret->mismatches += part.mismatches;
        if (ret->sum_ee > most)
            return false;
    }
    ret->rel = ret->sum_zz > 0 ? sqrt(ret->sum_ee / ret->sum_zz)
               : ret->sum_ee > 0 ? HUGE_VAL : 0;
    return true;
}

double nd_recipe_misfit(const struct recipe_bench *bench, const struct norm_recipe *recipe)
{
    const struct subject *subject = bench->subject;
    const struct sample *sample = &subject->formula.sample;
    const struct trial small = {bench, recipe, bench->first};
    struct residual residual;

    if (!nd_residual_measure(&bench->window, bench->window.out[subject->side], trial_row,
                             &small, &residual) ||
        !(residual.rel < 0.9 * bench->baseline))
        return (double)NAN;
    if (bench->window.count < sample->count &&
        !misfit_whole(bench, recipe, 0.9 * subject->unexplained, &residual))
        return (double)NAN;
    return residual.mismatches > subject->formula.residual[subject->side].mismatches ||
                   !(residual.rel < 0.9 * subject->unexplained)
               ? (double)NAN
               : residual.rel;
}

double nd_recipe_floor(const struct subject *subject, double roundoff)
{
    /* A value errs by some 8 u32 before it is rounded to u: 8 u32 / u of them land on the
     * other neighbour, each off by u. */
    return fmax(subject->floor, sqrt(8 * 0x1p-24 * roundoff));
}

uint64_t nd_recipe_overflows(const struct recipe_bench *bench,
                             const struct norm_recipe *recipe)
{
    const struct subject *subject = bench->subject;
    const struct sample *sample = &subject->formula.sample;
    const uint64_t n = sample->rows.row_len;
    uint64_t count = 0;

    for (uint64_t i = 0; i < sample->count; i++) {
        const double *x = sample->in[subject->side][0] + i * n;
        const double centre = recipe->model.centre ? row_mean(recipe, x, n) : 0;
        double sum = 0, top = 0;
        for (uint64_t j = 0; j < n; j++) {
            const double square = (x[j] - centre) * (x[j] - centre);
            sum += square;
            top = fmax(top, square);
        }
        count += sum > HALF_MAX || top > HALF_MAX;
    }
    return count;
}
