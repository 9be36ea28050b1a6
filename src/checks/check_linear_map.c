/*
 * Do the weights of a linear layer or a convolution differ although none were dumped?  Then
 * the error is a fixed linear map of the input: rows with like inputs have like errors.
 * Rounding of the operands is half of that, an accumulator or a rounded output nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/flat.h"

enum { MAP_ROWS = 96, MAP_LEAST = 10 };

/* Cosine of the errors over cosine of the inputs (Gram slope): 1 for a fixed linear map,
 * one half where both operands were rounded, 0 for errors of single elements. */
static const double MAP_LIKE = 0.72, MAP_UNLIKE = 1.6, MAP_LIKE_ROUNDING = 0.93;
/* Where the output's rows stand for the input's the slope is smaller. */
static const double MAP_HINT = 0.3;

/* Rows of the output: all channels of one position. */
struct map_rows {
    uint64_t count, width;
    uint64_t inner; /* positions that follow each other within one sample; 1: last axis */
};

static double map_at(const struct map_rows *rows, const double *values, uint64_t row,
                     uint64_t channel)
{
    return values[(row / rows->inner * rows->width + channel) * rows->inner +
                  row % rows->inner];
}

/* `taken` rows, evenly spaced, less their mean: a constant shift is no map of the input. */
static void map_take(const struct map_rows *rows, const double *y, const double *less,
                     uint64_t taken, double *ret)
{
    for (uint64_t i = 0; i < taken; i++)
        for (uint64_t c = 0; c < rows->width; c++) {
            const uint64_t row = i * rows->count / taken;
            const double value = map_at(rows, y, row, c) -
                                 (less == NULL ? 0 : map_at(rows, less, row, c));
            ret[i * rows->width + c] = isfinite(value) ? value : 0;
        }
    for (uint64_t c = 0; c < rows->width; c++) {
        double mean = 0;
        for (uint64_t i = 0; i < taken; i++)
            mean += ret[i * rows->width + c] / (double)taken;
        for (uint64_t i = 0; i < taken; i++)
            ret[i * rows->width + c] -= mean;
    }
}

static double map_cosine(const double *a, const double *b, uint64_t width)
{
    double ab = 0, aa = 0, bb = 0;

    for (uint64_t c = 0; c < width; c++) {
        ab += a[c] * b[c];
        aa += a[c] * a[c];
        bb += b[c] * b[c];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

struct map_slope {
    double slope, error; /* standard error */
};

static struct map_slope map_gram(const double *inputs, uint64_t input_width,
                                 const double *errors, uint64_t error_width, uint64_t taken)
{
    double ab = 0, aa = 0, bb = 0;
    uint64_t pairs = 0;

    for (uint64_t i = 0; i < taken; i++)
        for (uint64_t j = 0; j < i; j++, pairs++) {
            const double a = map_cosine(inputs + i * input_width, inputs + j * input_width,
                                        input_width);
            const double b = map_cosine(errors + i * error_width, errors + j * error_width,
                                        error_width);
            ab += a * b;
            aa += a * a;
            bb += b * b;
        }
    if (!(aa > 0))
        return (struct map_slope){0, HUGE_VAL};
    const double slope = ab / aa, left = fmax(bb - slope * ab, 0);
    /* Pairs that share a row are not independent: count rows, not pairs. */
    return (struct map_slope){slope, sqrt(left / aa / (double)pairs) * 2};
}

/* The layer's input where it was dumped and has a row for each of the output's. */
static const struct tensor_view *map_input(const struct subject *subject,
                                           const struct map_rows *rows)
{
    const struct slot_view *slot =
        nd_layer_slot(subject->pair->side[subject->side], "input.0");

    if (rows->inner != 1 || slot == NULL || !slot->has_tensor || slot->tensor.count == 0 ||
        nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT ||
        slot->tensor.count % rows->count != 0 || slot->tensor.shape.rank < 2 ||
        slot->tensor.count / rows->count !=
            slot->tensor.shape.dim[slot->tensor.shape.rank - 1] ||
        slot->tensor.count > subject->input->max_mem / 16 / sizeof(double))
        return NULL;
    return &slot->tensor;
}

static struct map_slope map_measure(const struct subject *subject,
                                    const struct map_rows *rows)
{
    const uint64_t taken = rows->count < MAP_ROWS ? rows->count : MAP_ROWS;
    const struct tensor_view *input = map_input(subject, rows);
    const struct map_rows of_input = {
        rows->count, input == NULL ? rows->width : input->count / rows->count, rows->inner};
    struct map_slope slope = {0, HUGE_VAL};
    double *x = input == NULL ? NULL : malloc(input->count * sizeof *x);
    double *inputs = malloc(taken * of_input.width * sizeof *inputs);
    double *errors = malloc(taken * rows->width * sizeof *errors);

    if (x != NULL)
        nd_view_decode(input, 0, input->count, x);
    if (inputs != NULL && errors != NULL && (input == NULL || x != NULL)) {
        map_take(&of_input, x != NULL ? x : subject->expected, NULL, taken, inputs);
        map_take(rows, subject->actual, subject->expected, taken, errors);
        slope = map_gram(inputs, of_input.width, errors, rows->width, taken);
    }
    free(x);
    free(inputs);
    free(errors);
    return slope;
}

/* Channels that are wrong, when all others agree down to the floor; 0: no such thing. */
static uint64_t map_wrong_channels(const struct subject *subject,
                                   const struct map_rows *rows)
{
    const double rms = nd_flat_rms(subject->expected, subject->count);
    const double limit = 4 * fmax(subject->floor, 1e-7) * rms;
    uint64_t wrong = 0;

    for (uint64_t c = 0; c < rows->width; c++) {
        double squares = 0;
        for (uint64_t r = 0; r < rows->count; r++) {
            const double error = map_at(rows, subject->actual, r, c) -
                                 map_at(rows, subject->expected, r, c);
            squares += isfinite(error) ? error * error : 0;
        }
        wrong += sqrt(squares / (double)rows->count) > limit;
    }
    return wrong * 4 <= rows->width ? wrong : 0;
}

static bool map_rows_of(const struct subject *subject, struct map_rows *ret)
{
    const uint32_t axis = nd_flat_channel_axis(subject);

    if (subject->shape.rank < 2)
        return false;
    ret->width = subject->shape.dim[axis];
    ret->inner = nd_flat_inner(&subject->shape, axis);
    ret->count = subject->count / ret->width;
    return ret->width >= 2;
}

/* Nothing dumped stands before: another input makes the same error as other weights. */
static bool map_is_first(const struct subject *subject)
{
    bool is_first = subject->own->in.seen == 0;

    for (size_t i = 0; i < subject->index && is_first; i++)
        is_first = subject->facts[i].container || subject->facts[i].out.seen == 0;
    return is_first;
}

/* The error has the size that operands rounded to a narrower type make (0.6 u): a slope
 * short of 1 is theirs then. */
static bool map_is_rounding(const struct subject *subject)
{
    static const enum grid grids[] = {GRID_TF32, GRID_HF32, GRID_BF16};

    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        const double ratio =
            subject->unexplained / (0.6006 * nd_grid_roundoff(grids[g]));
        if (ratio > 0.75 && ratio < 1.33)
            return true;
    }
    return false;
}

static void map_run(struct subject *subject, struct nd_finding *finding)
{
    const struct slot_group *params = &subject->own->params;
    const struct op *op = subject->own->op;
    struct map_rows rows;

    (void)finding;
    /* Products of two activations have no weights, and dumped ones speak for themselves. */
    if (!nd_flat_asked(subject) || op == NULL || !op->product || !op->bias ||
        params->seen > 0 || map_is_first(subject) || !map_rows_of(subject, &rows))
        return;
    struct map_slope gram = {(double)NAN, HUGE_VAL};
    if (rows.count >= MAP_LEAST)
        gram = map_measure(subject, &rows);
    const struct channel_gap *gap = &subject->own->gap;
    const uint64_t wrong = nd_channel_stands_out(gap) ? gap->wrong
                                                : map_wrong_channels(subject, &rows);
    const double like = map_is_rounding(subject) ? MAP_LIKE_ROUNDING : MAP_LIKE;
    const bool is_map = gram.error < 0.15 && gram.slope > like &&
                        gram.slope < MAP_UNLIKE && gram.slope - 2 * gram.error > 0.5;
    const struct hypothesis weights = {
        .id = "different_weights",
        .residual = (double)NAN,
        /* Size and shape of the error: a fingerprint, behind every formula that fits. */
        .is_fingerprint = is_map || wrong > 0,
        .penalty = is_map || wrong > 0 ? -0.7 : 0.2,
        .side = nd_subject_side(subject),
        .summary = is_map || wrong > 0
                       ? ND_PHRASE(subject->arena, "summary.different_weights.map",
                                   ND_NUMBER("slope", gram.slope),
                                   ND_NUMBER("channels", (double)(wrong > 0 ? wrong
                                                                            : rows.width)),
                                   ND_NUMBER("count", (double)rows.width))
                       : nd_phrase_plain("summary.different_weights.unseen")};
    if (is_map || wrong > 0 || !(gram.error < 0.1) || gram.slope > MAP_HINT)
        ND_PROPOSE(subject, weights, ND_NUMBER("slope", gram.slope));
}

const struct check nd_check_linear_map = {.id = "linear_map", .run = map_run};
