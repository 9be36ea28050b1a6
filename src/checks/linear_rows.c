/*
 * Rows of a product's inputs beside the errors of its outputs.
 */
#include "checks/linear_fit.h"

#include <math.h>
#include <stdlib.h>

/* Multiply-adds of one pass over the rows, numbers that are kept of them (32 MiB), rows that
 * say anything, and all that are read. */
enum { ROWS_WORK = 1 << 26, ROWS_NUMBERS = 1 << 22, ROWS_LEAST = 16, ROWS_MOST = 1 << 13 };

void nd_linear_done(struct linear_rows *rows)
{
    free(rows->input);
    free(rows->error);
    free(rows->plain);
    *rows = (struct linear_rows){.count = 0};
}

static bool rows_allocate(struct linear_rows *rows, bool has_plain)
{
    rows->input = malloc(rows->groups * rows->count * rows->terms * sizeof(double));
    rows->error = malloc(rows->channels * rows->count * sizeof(double));
    rows->plain = has_plain ? malloc(rows->channels * rows->count * sizeof(double)) : NULL;
    if (rows->input != NULL && rows->error != NULL && (rows->plain != NULL || !has_plain))
        return true;
    nd_linear_done(rows);
    return false;
}

/* Any weights are fitted by more rows than a channel has weights (nd_linear_full); where
 * there are not so many, the other forms want a few. */
static uint64_t rows_useful(uint64_t count, uint64_t terms)
{
    const uint64_t fit = (terms + 1) / 4 * 7 + 16, few = 128;

    if (count < fit)
        return few;
    return 4 * terms > 2 * few ? 4 * terms : 2 * few;
}

/* As many rows as work and memory allow and the fits can use, evenly spaced. */
static uint64_t rows_affordable(uint64_t all, const struct linear_rows *rows)
{
    const uint64_t width = rows->groups * rows->terms + 2 * rows->channels;
    uint64_t count = ROWS_WORK / rows->terms / rows->channels;

    if (count > ROWS_NUMBERS / width)
        count = ROWS_NUMBERS / width;
    count = count > ROWS_MOST ? ROWS_MOST : count;
    count = count > all ? all : count;
    const uint64_t useful = rows_useful(count, rows->terms);
    return count > useful ? useful : count;
}

/* --- rows of a product --- */

static bool rows_measure(struct linear_rows *rows, const struct product *product,
                         const struct tensor_view *out, int side)
{
    const bool is_conv = product->form == PRODUCT_CONV;
    const uint64_t inner = is_conv ? out->shape.dim[2] * out->shape.dim[3] : 1;
    const uint64_t all = out->count / rows->channels;
    const uint64_t each = rows->channels / rows->groups;
    double squares = 0;

    for (uint64_t r = 0; r < rows->count; r++) {
        const uint64_t at = r * all / rows->count;
        for (uint64_t c = 0; c < rows->channels; c++) {
            const uint64_t flat = (at / inner * rows->channels + c) * inner + at % inner;
            double *x = rows->input + (c / each * rows->count + r) * rows->terms;
            if (c % each == 0)
                nd_product_operands(product, side, flat, x);
            const double plain = nd_product_weigh(product, side, c, x);
            const double y = nd_view_at(out, flat);
            const double z = plain + nd_product_bias_at(product, side, c);
            if (!isfinite(y) || !isfinite(z))
                return false;
            rows->plain[c * rows->count + r] = plain;
            rows->error[c * rows->count + r] = y - z;
            squares += y * y;
        }
    }
    rows->size = sqrt(squares / (double)rows->count / (double)rows->channels);
    return rows->size > 0;
}

bool nd_linear_of_product(const struct product *product, const struct layer_pair_view *pair,
                          int side, struct linear_rows *ret_rows)
{
    const struct slot_view *out = nd_layer_slot(pair->side[side], "output.0");
    const bool is_conv = product->form == PRODUCT_CONV;
    struct linear_rows rows = {.groups = is_conv ? product->conv.groups : 1,
                               .terms = product->terms};

    if (out == NULL || product->terms == 0)
        return false;
    rows.channels = out->tensor.shape.dim[is_conv ? 1 : out->tensor.shape.rank - 1];
    rows.count = rows_affordable(out->tensor.count / rows.channels, &rows);
    if (rows.count < ROWS_LEAST || !rows_allocate(&rows, true))
        return false;
    if (!rows_measure(&rows, product, &out->tensor, side)) {
        nd_linear_done(&rows);
        return false;
    }
    *ret_rows = rows;
    return true;
}

bool nd_linear_of_views(const struct tensor_view *input, const struct nd_shape *shape,
                        const double *actual, const double *expected, uint64_t max_bytes,
                        struct linear_rows *ret_rows)
{
    const uint32_t rank = shape->rank, last = rank - 1;
    struct linear_rows rows = {.groups = 1, .channels = shape->dim[last]};
    uint64_t all = 1;
    double squares = 0;

    if (input->shape.rank != rank || rows.channels == 0)
        return false;
    for (uint32_t k = 0; k < last; k++) {
        if (input->shape.dim[k] != shape->dim[k])
            return false;
        all *= shape->dim[k];
    }
    rows.terms = input->shape.dim[last];
    if (rows.terms == 0 || rows.terms > max_bytes / 64 / ROWS_MOST)
        return false;
    rows.count = rows_affordable(all, &rows);
    if (rows.count < ROWS_LEAST || !rows_allocate(&rows, false))
        return false;
    for (uint64_t r = 0; r < rows.count; r++) {
        const uint64_t at = r * all / rows.count;
        nd_view_decode(input, at * rows.terms, rows.terms, rows.input + r * rows.terms);
        for (uint64_t c = 0; c < rows.channels; c++) {
            const double y = actual[at * rows.channels + c];
            const double e = y - expected[at * rows.channels + c];
            rows.error[c * rows.count + r] = isfinite(e) ? e : 0;
            squares += isfinite(y) ? y * y : 0;
        }
    }
    rows.size = sqrt(squares / (double)rows.count / (double)rows.channels);
    if (!(rows.size > 0)) {
        nd_linear_done(&rows);
        return false;
    }
    *ret_rows = rows;
    return true;
}
