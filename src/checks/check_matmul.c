/*
 * A product in lower precision: operands rounded to a narrower type, or sums kept in one.
 * With both operands at hand it is recomputed; without them the size of the error is a
 * fingerprint.
 */
#include "checks/product.h"
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"

static const double SINGLE = 0x1p-24;
/* rms of one rounding of both operands over their roundoff; of one rounding 0.4247. */
static const double BOTH_OPERANDS = 0.6006;

/* float16 and TF32 have the same significand: the wider of the two is named unless only the
 * other fits. */
static const enum grid grids[] = {GRID_TF32, GRID_F16, GRID_HF32, GRID_BF16};

enum { GRID_CHOICES = sizeof grids / sizeof *grids, GRAM_PAIRS = 2000 };

/* --- recomputed ---------------------------------------------------------------------- */

static void matmul_operands(struct subject *subject, struct product *product, int bad)
{
    double best = HUGE_VAL;
    enum grid found = GRID_NONE;

    for (int g = 0; g < GRID_CHOICES; g++) {
        nd_product_plain(product, bad, grids[g], product->values);
        const double residual =
            nd_product_misfit(product, bad, product->values, product->scale[!bad]);
        if (residual < best / (grids[g] == GRID_F16 ? 1.3 : 1)) {
            best = residual;
            found = grids[g];
        }
    }
    if (found == GRID_NONE)
        return;
    const struct nd_param params[] = {ND_WORD("dtype", nd_grid_name(found)),
                                      ND_NUMBER("is_candidate", bad),
                                      ND_NUMBER("residual", best)};
    const struct hypothesis operands = {
        .id = "matmul_lowp",
        .residual = best,
        .floor = fmax(product->residual[!bad], fmax(subject->own->floor, 3 * SINGLE)),
        .penalty = 0.05,
        .side = bad == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .params = params,
        .param_count = 1,
        .summary = nd_phrase_make(subject->arena, "summary.matmul_lowp.recomputed", params,
                                  sizeof params / sizeof *params)};
    nd_propose(subject, &operands);
}

/* Share of a side's sums, before bias and scale, that lie on the float16 grid. */
static double sums_on_grid(const struct product *product, int side)
{
    const double scale = product->scale[!side];
    uint64_t on = 0, all = 0;

    for (uint64_t i = 0; i < product->count; i++) {
        const double y = product->out[side][i], bias = nd_product_bias(product, side, i);
        const double sum = (y - bias) / scale;
        if (!isfinite(sum) || y == 0)
            continue;
        const double blur = 2 * SINGLE * fmax(fabs(y), fabs(bias)) / fabs(scale);
        all++;
        on += fabs(sum - nd_grid_round(GRID_F16, sum)) <= blur;
    }
    return all >= 16 ? (double)on / (double)all : 0;
}

static void propose_sums(struct subject *subject, int side, double drift, bool is_shown)
{
    const struct nd_param params[] = {ND_WORD("dtype", nd_grid_name(GRID_F16)),
                                      ND_NUMBER("drift", drift)};
    const struct hypothesis sums = {
        .id = "matmul_lowp",
        .residual = (double)NAN,
        .penalty = is_shown ? -0.5 : 0,
        .is_fingerprint = is_shown,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .params = params,
        .param_count = 1,
        .summary = nd_phrase_make(subject->arena, "summary.matmul_lowp.accumulated", params,
                                  sizeof params / sizeof *params)};

    nd_propose(subject, &sums);
}

/* Outputs over their sums alone: a large bias makes the error of the sums look small. */
static double matmul_share(struct product *product, int side)
{
    double whole = 0, sums = 0;

    nd_product_plain(product, side, GRID_NONE, product->values);
    for (uint64_t i = 0; i < product->count; i++) {
        const double sum = product->scale[!side] * product->values[i];
        const double y = product->out[side][i];
        if (!isfinite(sum) || !isfinite(y))
            continue;
        whole += y * y;
        sums += sum * sum;
    }
    return sums > 0 ? sqrt(whole / sums) : 1;
}

/* Sums on the float16 grid, but further off than one rounding: they were kept on it. */
static void matmul_sums(struct subject *subject, struct product *product, int bad)
{
    const double u = nd_grid_roundoff(GRID_F16);
    const double drift = product->residual[bad] * matmul_share(product, bad);
    double rounded;

    if (!(drift > 0.3 * u && drift < 40 * u) || sums_on_grid(product, bad) < 0.99)
        return;
    nd_product_plain(product, bad, GRID_NONE, product->values);
    for (uint64_t i = 0; i < product->count; i++)
        product->values[i] = nd_grid_round(GRID_F16, product->values[i]);
    rounded = nd_product_misfit(product, bad, product->values, product->scale[!bad]);
    if (rounded > 0.3 * product->residual[bad])
        propose_sums(subject, bad, drift, true);
}

/* --- fingerprints -------------------------------------------------------------------- */

/*
 * The median channel's error over the rms of all: near 1 where rounding hits every channel
 * alike, far below where a few are wrong.
 */
static double matmul_evenness(const struct subject *subject)
{
    const struct nd_shape *shape = &subject->shape;
    const uint64_t channels =
        shape->rank == 0 ? 0 : shape->dim[shape->rank == 4 ? 1 : shape->rank - 1];
    double squares = 0, even = 0;

    if (channels < 4)
        return 0;
    const uint64_t inner = shape->rank == 4 ? shape->dim[2] * shape->dim[3] : 1;
    double *errors = calloc(channels, sizeof *errors),
           *sizes = calloc(channels, sizeof *sizes);
    for (uint64_t i = 0; errors != NULL && sizes != NULL && i < subject->count; i++) {
        const uint64_t c = i / inner % channels;
        const double z = subject->expected[i], e = subject->actual[i] - z;
        errors[c] += isfinite(e) ? e * e : 0;
        sizes[c] += isfinite(e) ? z * z : 0;
    }
    if (errors != NULL && sizes != NULL) {
        for (uint64_t c = 0; c < channels; c++) {
            errors[c] = sizes[c] > 0 ? errors[c] / sizes[c] : 0;
            squares += errors[c];
        }
        qsort(errors, channels, sizeof *errors, ascending);
        even = squares > 0 ? sqrt(errors[channels / 2] / (squares / (double)channels)) : 0;
    }
    free(errors);
    free(sizes);
    return even;
}

/* Cosines between two rows of outputs and between their errors; rows are the vectors over
 * the channels, `step` apart. */
static bool gram_pair(const struct subject *subject, const uint64_t at[2], uint64_t length,
                      uint64_t step, double *ret_outputs, double *ret_errors)
{
    double y[3] = {0}, e[3] = {0};

    for (uint64_t k = 0; k < length; k++) {
        const uint64_t i = at[0] + k * step, j = at[1] + k * step;
        const double a = subject->expected[i], b = subject->expected[j];
        const double c = subject->actual[i] - a, d = subject->actual[j] - b;
        if (!isfinite(a) || !isfinite(b) || !isfinite(c) || !isfinite(d))
            continue;
        y[0] += a * a, y[1] += b * b, y[2] += a * b;
        e[0] += c * c, e[1] += d * d, e[2] += c * d;
    }
    if (!(y[0] > 0 && y[1] > 0 && e[0] > 0 && e[1] > 0))
        return false;
    *ret_outputs = y[2] / sqrt(y[0] * y[1]);
    *ret_errors = e[2] / sqrt(e[0] * e[1]);
    return true;
}

/*
 * Slope of the errors' cosines over the outputs': near 1 where the error is a fixed linear
 * map of the input (other weights), one half where both operands were rounded, 0 where
 * every output has its own error.
 */
static double matmul_gram(const struct subject *subject)
{
    const struct nd_shape *shape = &subject->shape;
    const bool images = shape->rank == 4 && strcmp(subject->own->op->name, "conv") == 0;
    const uint64_t length = shape->dim[images ? 1 : shape->rank - 1];
    const uint64_t step = images ? shape->dim[2] * shape->dim[3] : 1;
    const uint64_t rows = length == 0 ? 0 : subject->count / length;
    double cross = 0, square = 0;

    for (uint64_t p = 0; p < GRAM_PAIRS && rows > 1; p++) {
        uint64_t at[2] = {p * 7919 % rows, 0};
        at[1] = (at[0] + 1 + p % (rows < 16 ? rows - 1 : 15)) % rows;
        for (int k = 0; k < 2; k++)
            at[k] = images ? at[k] / step * step * length + at[k] % step : at[k] * length;
        double a, b;
        if (at[0] == at[1] || !gram_pair(subject, at, length, step, &a, &b))
            continue;
        cross += a * b;
        square += a * a;
    }
    return square > 0 ? cross / square : 0;
}

/* How much larger the outputs are with what all rows of a channel have in common: the bias,
 * which no precision of the product touches. */
static double matmul_bias(const struct subject *subject)
{
    const struct nd_shape *shape = &subject->shape;
    const uint64_t channels = shape->dim[shape->rank == 4 ? 1 : shape->rank - 1];
    const uint64_t inner = shape->rank == 4 ? shape->dim[2] * shape->dim[3] : 1;
    double *means = calloc(channels, sizeof *means), whole = 0, common = 0;

    for (uint64_t i = 0; means != NULL && i < subject->count; i++) {
        const double y = subject->expected[i];
        means[i / inner % channels] += isfinite(y) ? y : 0;
        whole += isfinite(y) ? y * y : 0;
    }
    const double rows = (double)(subject->count / channels);
    for (uint64_t c = 0; means != NULL && c < channels; c++)
        common += means[c] * means[c] / rows;
    free(means);
    return whole > common && common > 0 ? sqrt(whole / (whole - common)) : 1;
}

/* Of the size that rounded operands make, whatever the number of terms. */
static bool fingerprint_operands(struct subject *subject, double drift, double even,
                                 double gram)
{
    bool is_shown = false;

    for (int g = 0; g < GRID_CHOICES; g++) {
        const double ratio = drift / (BOTH_OPERANDS * nd_grid_roundoff(grids[g]));
        if (grids[g] == GRID_F16 || ratio < 0.75 || ratio > 1.33)
            continue;
        const bool fits = even > 0.35 && gram < 0.9 && ratio > 0.8 && ratio < 1.25;
        const struct hypothesis operands = {.id = "matmul_lowp",
                                            .residual = (double)NAN,
                                            .penalty = fabs(log(ratio)) - 0.5,
                                            .is_fingerprint = fits};
        ND_PROPOSE(subject, operands, ND_WORD("dtype", nd_grid_name(grids[g])),
                   ND_NUMBER("ratio", ratio));
        is_shown = is_shown || fits;
    }
    return is_shown;
}

static void matmul_fingerprint(struct subject *subject)
{
    const struct layer_facts *own = subject->own;
    const double rel = own->out.rel, in = own->in.count > 0 ? own->in.rel : 0;
    const double u = nd_grid_roundoff(GRID_F16);

    if (subject->actual == NULL || subject->shape.rank < 2 || !(rel > 2 * in))
        return;
    const double drift = sqrt(rel * rel - in * in);
    const double even = matmul_evenness(subject), gram = matmul_gram(subject);
    const enum grid narrow = own->grid[0] < own->grid[1] ? own->grid[0] : own->grid[1];
    /* One side's results lie on a grid and are off by one rounding to it: not the product.
     */
    if (own->grid[0] != own->grid[1] && drift < 0.55 * nd_grid_roundoff(narrow))
        return;
    const bool one = own->grid[0] != own->grid[1] && narrow == GRID_F16;
    const int side = one && own->grid[0] == narrow ? 0 : one ? 1 : subject->side;
    const double product = own->op->bias ? drift * matmul_bias(subject) : drift;
    const bool sums = even >= 0.35 && gram <= 0.35 && product > 0.3 * u && drift < 40 * u;
    if (one && sums)
        propose_sums(subject, side, drift, true);
    else if (!fingerprint_operands(subject, drift, even, gram) &&
             !(product > drift && fingerprint_operands(subject, product, even, gram)) &&
             sums)
        propose_sums(subject, side, drift, false);
}

static void matmul_run(struct subject *subject, struct nd_finding *finding)
{
    struct product product;

    (void)finding;
    if (subject->own->roundoff > SINGLE || !nd_subject_is_own(subject) ||
        subject->slot == NULL)
        return;
    if (!nd_product_open(subject->pair, 64 * SINGLE, subject->input->max_mem,
                         subject->index, &product)) {
        matmul_fingerprint(subject);
        return;
    }
    const int bad = product.residual[1] >= product.residual[0];
    if (product.residual[!bad] <= 64 * SINGLE) {
        matmul_operands(subject, &product, bad);
        matmul_sums(subject, &product, bad);
    }
    nd_product_close(&product);
}

const struct check nd_check_matmul = {
    .id = "matmul", .of_products = true, .run = matmul_run};
