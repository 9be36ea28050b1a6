/*
 * Loading and recomputing products.
 */
#include "checks/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "base/room.h"

/* Multiply-adds of one pass over the outputs taken; a diagnosis makes under a dozen, which
 * stays near 2^24: thousands of outputs, which tell one precision from the next. */
enum { PASS_TERMS = 1 << 21, MOST_OUTPUTS = 1 << 16 };

/* Scores this low are masked positions: a mask of -1e4 may have been added to a score. */
static const double MASKED = -5e3;

static const struct tensor_view *product_tensor(const struct layer_pair_view *pair,
                                                int side, const char *name)
{
    const struct slot_view *slot =
        pair->side[side] == NULL ? NULL : nd_layer_slot(pair->side[side], name);

    return slot != NULL && slot->has_tensor && slot->tensor.count > 0 &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? &slot->tensor
               : NULL;
}

/* --- one output ---------------------------------------------------------------------- */

static double conv_output(const struct product *product, const double *left,
                          const double *right, const uint64_t *index)
{
    const uint64_t *x = product->left_shape.dim, *w = product->right_shape.dim;
    const struct conv_facts *conv = &product->conv;
    const uint64_t first = index[1] / (w[0] / conv->groups) * w[1];
    double sum = 0;

    for (uint64_t c = 0; c < w[1]; c++)
        for (uint64_t i = 0; i < w[2]; i++) {
            const uint64_t row = index[2] * conv->stride[0] + i * conv->dilation[0];
            if (row < conv->pad[0] || row - conv->pad[0] >= x[2])
                continue;
            const double *line =
                left + ((index[0] * x[1] + first + c) * x[2] + row - conv->pad[0]) * x[3];
            const double *taps = right + ((index[1] * w[1] + c) * w[2] + i) * w[3];
            for (uint64_t j = 0; j < w[3]; j++) {
                const uint64_t at = index[3] * conv->stride[1] + j * conv->dilation[1];
                if (at >= conv->pad[1] && at - conv->pad[1] < x[3])
                    sum += line[at - conv->pad[1]] * taps[j];
            }
        }
    return sum;
}

/* Eight sums side by side, folded in a fixed order: the same on every machine. */
double nd_product_dot(const double *a, const double *b, uint64_t terms)
{
    double sum[8] = {0};
    uint64_t k = 0;

    for (; k + 8 <= terms; k += 8)
        for (uint64_t lane = 0; lane < 8; lane++)
            sum[lane] += a[k + lane] * b[k + lane];
    for (; k < terms; k++)
        sum[0] += a[k] * b[k];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) +
           ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

static double product_output(const struct product *product, const double *left,
                             const double *right, uint64_t flat)
{
    const uint64_t terms = product->terms;
    const uint64_t columns = product->out_shape.dim[product->out_shape.rank - 1];
    const uint64_t row = flat / columns, column = flat % columns;
    const bool by_rows = product->form == PRODUCT_LINEAR || product->form == PRODUCT_SCORES;
    uint64_t base = 0;
    double sum = 0;

    if (product->form == PRODUCT_TIMES || product->form == PRODUCT_SCORES)
        base = row / product->out_shape.dim[product->out_shape.rank - 2] * terms * columns;
    const double *a = left + row * terms;
    if (by_rows)
        return nd_product_dot(a, right + base + column * terms, terms);
    const double *b = right + base + column;
    for (uint64_t k = 0; k < terms; k++)
        sum += a[k] * b[k * columns];
    return sum;
}

double nd_product_at(const struct product *product, int side, double scale, uint64_t flat)
{
    const bool is_conv = product->form == PRODUCT_CONV;
    const uint32_t axis = is_conv ? 1 : product->out_shape.rank - 1;
    const double *left = product->left[side], *right = product->right[side];
    uint64_t index[ND_MAX_RANK];
    double plain;

    nd_shape_unravel(&product->out_shape, flat, index);
    plain = is_conv ? conv_output(product, left, right, index)
                    : product_output(product, left, right, flat);
    return scale * plain + nd_product_bias_at(product, side, index[axis]);
}

/* nd_grid_round on the bits of a float32, which operands mostly are: millions of them are
 * rounded, once for each grid. */
static double product_round(enum grid grid, double value)
{
    const unsigned drop = 24 + (unsigned)ilogb(nd_grid_roundoff(grid));
    const double size = fabs(value);
    const float narrow = (float)value;
    uint32_t bits;
    float result;

    /* Beyond the normal numbers of float16 its grid is another. */
    if ((double)narrow != value || !(size >= 0x1p-14 && size < 65000))
        return nd_grid_round(grid, value);
    memcpy(&bits, &narrow, sizeof bits);
    bits += (UINT32_C(1) << (drop - 1)) - 1 + (bits >> drop & 1);
    bits &= ~((UINT32_C(1) << drop) - 1);
    memcpy(&result, &bits, sizeof result);
    return (double)result;
}

void nd_product_plain(struct product *product, int side, enum grid grid, double *ret_plain)
{
    const double *left = product->left[side], *right = product->right[side];
    uint64_t index[ND_MAX_RANK];

    if (grid == GRID_NONE && product->plain[side] != NULL) {
        memcpy(ret_plain, product->plain[side], product->count * sizeof *ret_plain);
        return;
    }
    if (grid != GRID_NONE) {
        for (uint64_t i = 0; i < product->left_count; i++)
            product->rounded[0][i] = product_round(grid, left[i]);
        for (uint64_t i = 0; i < product->right_count; i++)
            product->rounded[1][i] = product_round(grid, right[i]);
        left = product->rounded[0];
        right = product->rounded[1];
    }
    for (uint64_t i = 0; i < product->count; i++) {
        if (product->form != PRODUCT_CONV) {
            ret_plain[i] = product_output(product, left, right, product->at[i]);
            continue;
        }
        nd_shape_unravel(&product->out_shape, product->at[i], index);
        ret_plain[i] = conv_output(product, left, right, index);
    }
}

double nd_product_bias(const struct product *product, int side, uint64_t i)
{
    const uint32_t rank = product->out_shape.rank;
    uint64_t index[ND_MAX_RANK];

    if (product->bias[side] == NULL)
        return 0;
    nd_shape_unravel(&product->out_shape, product->at[i], index);
    return product->bias[side][index[product->form == PRODUCT_CONV ? 1 : rank - 1]];
}

bool nd_product_counts(double y)
{
    return isfinite(y) && y > MASKED;
}

double nd_product_misfit(const struct product *product, int side, const double *plain,
                         double scale)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < product->count; i++) {
        const double y = product->out[side][i];
        const double z = scale * plain[i] + nd_product_bias(product, side, i);
        if (!nd_product_counts(y) || !isfinite(z))
            continue;
        error += (y - z) * (y - z);
        size += z * z;
    }
    return size > 0 ? sqrt(error / size) : HUGE_VAL;
}

/* --- opening ------------------------------------------------------------------------- */

static double *decode_whole(const struct tensor_view *view)
{
    double *values = nd_room_take(view->count, sizeof *values);

    if (values != NULL)
        nd_view_decode(view, 0, view->count, values);
    return values;
}

/* Where the i-th of `count` slices begins, so that they cover all elements: a tail that no
 * slice holds would be a tail that nobody looks at. */
static uint64_t slice_first(uint64_t all, uint64_t count, uint64_t i)
{
    return all / count * i + all % count * i / count;
}

static bool product_choose(struct product *product, const struct tensor_view *const out[2],
                           uint64_t seed, uint64_t terms)
{
    const uint64_t all = out[0]->count;
    uint64_t count = terms / (product->terms + 1) + 1;

    count = count > all ? all : count;
    count = count > MOST_OUTPUTS ? MOST_OUTPUTS : count;
    product->count = count;
    product->is_whole = count == all;
    product->at = nd_room_take(count, sizeof *product->at);
    product->out[0] = nd_room_take(count, sizeof(double));
    product->out[1] = nd_room_take(count, sizeof(double));
    product->values = nd_room_take(count, sizeof(double));
    if (product->at == NULL || product->out[0] == NULL || product->out[1] == NULL ||
        product->values == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t first = slice_first(all, count, i);
        const uint64_t slice = slice_first(all, count, i + 1) - first;
        product->at[i] = first + mix64(seed + i) % slice;
        for (int side = 0; side < 2; side++)
            product->out[side][i] = nd_view_at(out[side], product->at[i]);
    }
    return true;
}

/* What a side is scaled by, least squares. */
static double product_scale(const struct product *product, int side, const double *plain)
{
    double cross = 0, square = 0;

    for (uint64_t i = 0; i < product->count; i++) {
        if (!nd_product_counts(product->out[side][i]) || !isfinite(plain[i]))
            continue;
        cross += product->out[side][i] * plain[i];
        square += plain[i] * plain[i];
    }
    return square > 0 ? cross / square : 1;
}

static bool product_loaded(const struct layer_pair_view *pair,
                           const struct tensor_view *const left[2],
                           const struct tensor_view *const right[2],
                           struct product *product)
{
    for (int side = 0; side < 2; side++) {
        const struct tensor_view *bias = product_tensor(pair, side, "param.bias");
        if (bias == NULL)
            bias = product_tensor(pair, !side, "param.bias");
        product->left[side] = decode_whole(left[side]);
        product->right[side] = decode_whole(right[side]);
        product->rounded[side] = nd_room_take(
            side == 0 ? product->left_count : product->right_count, sizeof(double));
        if (product->left[side] == NULL || product->right[side] == NULL ||
            product->rounded[side] == NULL)
            return false;
        if (bias == NULL)
            continue;
        const uint32_t rank = product->out_shape.rank;
        if (bias->count != product->out_shape.dim[product->right_shape.rank == 4 &&
                                                          product->left_shape.rank == 4
                                                      ? 1
                                                      : rank - 1])
            return false;
        product->bias[side] = decode_whole(bias);
        if (product->bias[side] == NULL)
            return false;
    }
    return true;
}

/* Frees what belongs to the outputs taken. */
static void product_drop(struct product *product)
{
    for (int side = 0; side < 2; side++) {
        nd_room_give(product->out[side]);
        nd_room_give(product->plain[side]);
        product->out[side] = product->plain[side] = NULL;
    }
    nd_room_give(product->at);
    nd_room_give(product->values);
    product->at = NULL;
    product->values = NULL;
}

/* Computes a side's product once, for all that ask for it. */
static bool product_keep_plain(struct product *product, int side)
{
    double *plain = nd_room_take(product->count, sizeof *plain);

    if (plain == NULL)
        return false;
    nd_product_plain(product, side, GRID_NONE, plain);
    product->plain[side] = plain;
    return true;
}

/* The first form that fits the shapes and reproduces a side. */
static bool product_form_found(const struct layer_pair_view *pair,
                               const struct tensor_view *const out[2], double gate,
                               uint64_t seed, uint64_t terms, bool weighted,
                               struct product *product)
{
    const int first = weighted ? PRODUCT_LINEAR : PRODUCT_TIMES;
    const int end = weighted ? PRODUCT_TIMES : PRODUCT_FORMS;

    for (int form = first; form < end; form++) {
        product->form = (enum product_form)form;
        if (!nd_product_fits(pair->side[0], product))
            continue;
        product_drop(product);
        if (!product_choose(product, out, seed, terms))
            return false;
        for (int side = 0; side < 2; side++) {
            if (!product_keep_plain(product, side))
                return false;
            const double *plain = product->plain[side];
            product->scale[side] = weighted ? 1 : product_scale(product, side, plain);
            product->residual[side] =
                nd_product_misfit(product, side, plain, product->scale[side]);
        }
        if (product->residual[0] <= gate || product->residual[1] <= gate)
            return true;
    }
    return false;
}

bool nd_product_open(const struct layer_pair_view *pair, double gate, uint64_t max_bytes,
                     uint64_t seed, struct product *ret_product)
{
    return nd_product_open_within(pair, gate, max_bytes, seed, PASS_TERMS, ret_product);
}

bool nd_product_open_within(const struct layer_pair_view *pair, double gate,
                            uint64_t max_bytes, uint64_t seed, uint64_t terms,
                            struct product *ret_product)
{
    const struct tensor_view *left[2], *right[2], *out[2];
    struct product product = {.form = PRODUCT_LINEAR};
    bool weighted[2];

    for (int side = 0; side < 2; side++) {
        left[side] = product_tensor(pair, side, "input.0");
        right[side] = product_tensor(pair, side, "param.weight");
        out[side] = product_tensor(pair, side, "output.0");
        if (right[side] == NULL) /* the other side's weights, if it alone has them */
            right[side] = product_tensor(pair, !side, "param.weight");
        weighted[side] = right[side] != NULL;
        if (right[side] == NULL)
            right[side] = product_tensor(pair, side, "input.1");
        if (left[side] == NULL || right[side] == NULL || out[side] == NULL ||
            out[side]->shape.rank == 0)
            return false;
    }
    if (weighted[0] != weighted[1] || !nd_shape_equal(&left[0]->shape, &left[1]->shape) ||
        !nd_shape_equal(&right[0]->shape, &right[1]->shape) ||
        !nd_shape_equal(&out[0]->shape, &out[1]->shape) ||
        left[0]->count > max_bytes / 128 || right[0]->count > max_bytes / 128)
        return false;
    product.left_shape = left[0]->shape;
    product.right_shape = right[0]->shape;
    product.out_shape = out[0]->shape;
    product.left_count = left[0]->count;
    product.right_count = right[0]->count;
    if (!product_loaded(pair, left, right, &product) ||
        !product_form_found(pair, out, gate, seed, terms, weighted[0], &product)) {
        nd_product_close(&product);
        return false;
    }
    *ret_product = product;
    return true;
}

void nd_product_close(struct product *product)
{
    for (int side = 0; side < 2; side++) {
        nd_room_give(product->left[side]);
        nd_room_give(product->right[side]);
        nd_room_give(product->bias[side]);
        nd_room_give(product->rounded[side]);
    }
    product_drop(product);
    *product = (struct product){.count = 0};
}
