/*
 * Do the statistics run over the right elements of memory, and divide by their number?
 * Shards of a row, a few elements of the next one, another divisor, an overflowing sum.
 */
#include "checks/norm_recipe.h"

#include <math.h>

static bool shards_explain(const struct subject *subject, double residual)
{
    return residual < 0.5 * subject->unexplained;
}

/* --- shards -------------------------------------------------------------------------- */

enum { MOST_SHARDS = 64 };

/* Tensor parallelism cuts the channels of a row, data parallelism the batch of a
 * BatchNorm: both are equal stretches of a row here. */
static void shards_split(struct subject *subject, const struct recipe_bench *bench)
{
    const uint64_t n = subject->formula.sample.rows.row_len;

    if (bench->model->var != NULL || subject->norm->grouping == NORM_GROUPS)
        return;
    for (uint64_t shards = 2; shards <= MOST_SHARDS && shards * 2 <= n; shards++) {
        if (n % shards != 0)
            continue;
        const struct norm_recipe recipe = {.model = *bench->model, .shards = shards};
        const struct hypothesis split = {.id = "shard_statistics",
                                         .residual = nd_recipe_misfit(bench, &recipe),
                                         .penalty = 0.02,
                                         .side = nd_subject_side(subject)};
        if (shards_explain(subject, split.residual))
            ND_PROPOSE(subject, split, ND_NUMBER("shards", (double)shards),
                       ND_NUMBER("elements", (double)(n / shards)));
    }
}

/* --- neighbours ---------------------------------------------------------------------- */

static void shards_neighbour(struct subject *subject, const struct recipe_bench *bench,
                             int64_t reach)
{
    const struct sample *sample = &subject->formula.sample;
    const int64_t n = (int64_t)sample->rows.row_len;
    const struct norm_recipe recipe = {.model = *bench->model, .neighbour = reach};

    if (reach == 0 || reach > n / 2 || -reach > n / 2 || (reach > 0 && !sample->whole))
        return;
    const struct hypothesis reached = {.id = "neighbour_in_statistics",
                                       .residual = nd_recipe_misfit(bench, &recipe),
                                       .penalty = 0.02,
                                       .side = nd_subject_side(subject)};
    if (shards_explain(subject, reached.residual))
        ND_PROPOSE(subject, reached, ND_NUMBER("elements", (double)reach),
                   ND_NUMBER("expected", (double)n), ND_NUMBER("found", (double)(n + reach)));
}

static uint64_t padded_to(uint64_t n, uint64_t block)
{
    return (n + block - 1) / block * block;
}

static void shards_neighbours(struct subject *subject, const struct recipe_bench *bench)
{
    const uint64_t n = subject->formula.sample.rows.row_len;

    if (bench->model->var != NULL || subject->norm->grouping == NORM_CHANNEL || n < 4 ||
        n > (uint64_t)1 << 32)
        return;
    for (int64_t reach = 1; reach <= 128; reach = reach < 16 ? reach + 1 : 2 * reach) {
        shards_neighbour(subject, bench, reach);
        shards_neighbour(subject, bench, -reach);
    }
    for (uint64_t block = 32; block <= 128; block *= 2) {
        const int64_t more = (int64_t)(padded_to(n, block) - n);
        const int64_t less = (int64_t)(n % block);
        if (more > 16)
            shards_neighbour(subject, bench, more);
        if (less > 16)
            shards_neighbour(subject, bench, -less);
    }
}

/* --- divisors ------------------------------------------------------------------------ */

static void shards_divisor(struct subject *subject, const struct recipe_bench *bench,
                           double divisor, bool is_free)
{
    const double n = (double)subject->formula.sample.rows.row_len;
    const struct norm_recipe recipe = {.model = *bench->model, .var_factor = n / divisor};

    if (!(divisor > 0) || divisor == n)
        return;
    const bool unbiased = divisor == n - 1 && bench->model->centre;
    const struct hypothesis other = {.id = unbiased ? "unbiased_variance" : "wrong_divisor",
                                     .residual = nd_recipe_misfit(bench, &recipe),
                                     .penalty = is_free ? 0.5 : 0.02,
                                     .is_free = is_free,
                                     .side = nd_subject_side(subject)};
    if (!shards_explain(subject, other.residual) ||
        (is_free && other.residual > 4 * subject->floor))
        return;
    if (unbiased)
        ND_PROPOSE(subject, other, ND_NUMBER("n", n));
    else
        ND_PROPOSE(subject, other, ND_NUMBER("expected", n),
                   ND_NUMBER("divisor", divisor));
}

/* Weights fitted to a side that divides by n - 1 make the other one look too large. */
static void shards_other_unbiased(struct subject *subject, const struct recipe_bench *bench)
{
    const double n = (double)subject->formula.sample.rows.row_len;
    const struct norm_recipe recipe = {.model = *bench->model,
                                       .var_factor = (n - 1) / n};

    if (!bench->model->centre || n < 2)
        return;
    const struct hypothesis other = {.id = "unbiased_variance",
                                     .residual = nd_recipe_misfit(bench, &recipe),
                                     .penalty = 0.02,
                                     .side = subject->side == 1 ? ND_SIDE_REFERENCE
                                                                : ND_SIDE_CANDIDATE};
    if (shards_explain(subject, other.residual))
        ND_PROPOSE(subject, other, ND_NUMBER("n", n));
}

/* The divisor that the overall size of the output asks for. */
static double shards_best_divisor(const struct recipe_bench *bench)
{
    const struct subject *subject = bench->subject;
    const struct op_rows *rows = &subject->formula.sample.rows;
    const double n = (double)rows->row_len;
    double up = 0, down = 0;
    double *z = nd_arena_alloc(subject->arena, rows->row_len, sizeof *z);

    for (uint64_t i = 0; z != NULL && i < bench->window.count; i++) {
        const double *y = bench->window.out[subject->side] + i * rows->row_len;
        struct op_channel at = nd_op_channel_first(rows, bench->window.row[i]);
        nd_norm_row(bench->model, rows, bench->window.row[i],
                    bench->window.in[subject->side][0] + i * rows->row_len, z);
        for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &at)) {
            const double bias = nd_norm_bias(bench->model, at.at);
            if (!isfinite(y[j]) || !isfinite(z[j]))
                continue;
            up += (y[j] - bias) * (z[j] - bias);
            down += (z[j] - bias) * (z[j] - bias);
        }
    }
    const double scale = down > 0 ? up / down : 0;
    return scale > 0 ? n * scale * scale : (double)NAN;
}

static void shards_divisors(struct subject *subject, const struct recipe_bench *bench)
{
    const struct op_rows *rows = &subject->formula.sample.rows;
    const uint64_t n = rows->row_len;
    const double length = (double)n;

    if (bench->model->var != NULL)
        return;
    shards_divisor(subject, bench, 1, false);
    if (subject->formula.study.weights_known)
        shards_divisor(subject, bench, length + 1, false);
    else
        shards_other_unbiased(subject, bench);
    if (!bench->model->centre || subject->formula.study.mode == NORM_MODE_AFFINE)
        shards_divisor(subject, bench, length - 1, false);
    for (uint64_t block = 8; block <= 128; block *= 2) {
        const uint64_t padded = padded_to(n, block);
        /* Without a mean, a padded divisor is what counting the zeros makes. */
        if (bench->model->centre || block != 16)
            shards_divisor(subject, bench, (double)padded, false);
        shards_divisor(subject, bench, (double)(padded / block), false);
        shards_divisor(subject, bench, (double)(n / block), false);
    }
    for (double ranks = 2; ranks <= 64; ranks *= 2) {
        shards_divisor(subject, bench, length * ranks, false);
        shards_divisor(subject, bench, length / ranks, false);
    }
    if (rows->span > 1) {
        shards_divisor(subject, bench, (double)rows->span, false);
        shards_divisor(subject, bench, length / (double)rows->span, false);
    }
    const double best = shards_best_divisor(bench);
    /* Next to n the unbiased variance stands. */
    if (fabs(best / length - 1) > 1e-3 && fabs(best - length) > 1.5)
        shards_divisor(subject, bench, best, true);
}

/* --- overflow ------------------------------------------------------------------------ */

static void shards_overflow(struct subject *subject, const struct recipe_bench *bench)
{
    static const char *const outcomes[] = {"", "infinity", "saturated"};
    struct norm_recipe recipe = {.model = *bench->model};
    const double rows = (double)subject->formula.sample.count;

    if (bench->model->var != NULL)
        return;
    const double over = (double)nd_recipe_overflows(bench, &recipe);
    if (over == 0)
        return;
    for (int squares = SQUARES_INFINITE; squares <= SQUARES_SATURATE; squares++)
        for (int wide = 0; wide < 2; wide++) {
            recipe.squares = (enum recipe_squares)squares;
            recipe.wide_squares = wide == 1;
            const struct hypothesis overflow = {
                .id = "sumsq_overflow",
                .residual = nd_recipe_misfit(bench, &recipe),
                .floor = nd_recipe_floor(subject, nd_grid_roundoff(GRID_F16)),
                .penalty = 0.02,
                .side = nd_subject_side(subject)};
            if (shards_explain(subject, overflow.residual))
                ND_PROPOSE(subject, overflow, ND_NUMBER("rows", over),
                           ND_NUMBER("of", rows), ND_WORD("becomes", outcomes[squares]));
        }
}

/* eps that was added before a row's scaling by its largest value was taken back. */
static void shards_rescaled_eps(struct subject *subject, const struct recipe_bench *bench)
{
    const struct norm_recipe recipe = {.model = *bench->model, .eps_by_square = true};
    struct hypothesis rescaled = {.id = "eps",
                                  .residual = nd_recipe_misfit(bench, &recipe),
                                  .penalty = 0.01,
                                  .side = nd_subject_side(subject)};
    const struct nd_param params[] = {
        ND_NUMBER("reference", bench->model->eps), ND_WORD("rescaled", "max^2"),
        ND_NUMBER("residual", rescaled.residual),
        ND_NUMBER("is_candidate", subject->side)};

    if (!shards_explain(subject, rescaled.residual))
        return;
    rescaled.summary = nd_phrase_make(subject->arena, "summary.eps.rescaled", params, 4);
    nd_propose_with(subject, &rescaled, params, 2);
}

static void shards_run(struct subject *subject, struct nd_finding *finding)
{
    struct recipe_bench bench;

    (void)finding;
    if (!nd_recipe_bench(subject, &bench))
        return;
    shards_split(subject, &bench);
    shards_neighbours(subject, &bench);
    shards_divisors(subject, &bench);
    shards_overflow(subject, &bench);
    shards_rescaled_eps(subject, &bench);
}

const struct check nd_check_shards = {.id = "shards", .of_norms = true, .run = shards_run};
