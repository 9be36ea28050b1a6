/*
 * Rows and replay of the norms, in float64.
 */
#include "ops/norm.h"

#include <math.h>
#include <string.h>

static bool norm_is_channels_last(const struct layer_view *layer)
{
    const struct attribute *format = nd_layer_attribute(layer, "data_format");

    if (format == NULL || format->kind != ATTRIBUTE_TEXT || format->text == NULL)
        return false;
    return strcmp(format->text, "NHWC") == 0 || strcmp(format->text, "NLC") == 0 ||
           strcmp(format->text, "NDHWC") == 0 || strcmp(format->text, "channels_last") == 0;
}

/* The parameter that tells how many trailing axes share their statistics; NULL: not dumped.
 */
static const struct nd_shape *norm_weight_shape(const struct layer_view *layer)
{
    static const char *const names[] = {"param.weight", "param.gamma", "param.scale"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct slot_view *slot = nd_layer_slot(layer, names[i]);
        if (slot != NULL && slot->has_tensor)
            return &slot->tensor.shape;
    }
    return NULL;
}

static bool shape_ends_with(const struct nd_shape *shape, const struct nd_shape *tail)
{
    if (tail->rank == 0 || tail->rank > shape->rank)
        return false;
    for (uint32_t k = 0; k < tail->rank; k++)
        if (tail->dim[k] != shape->dim[shape->rank - tail->rank + k])
            return false;
    return true;
}

/* How many trailing axes: declared, else as the weight's shape says, else one; 0 where the
 * weight fits axis 1 alone (norms over the channels of an image). */
static uint32_t norm_trailing_axes(const struct layer_view *layer,
                                   const struct nd_shape *shape)
{
    const struct attribute *declared = nd_layer_attribute(layer, "normalized_shape");
    const struct nd_shape *weight = norm_weight_shape(layer);

    if (declared != NULL && declared->kind == ATTRIBUTE_LIST && declared->list != NULL &&
        declared->list_len >= 1 && declared->list_len <= shape->rank) {
        struct nd_shape tail = {.rank = (uint32_t)declared->list_len};
        for (uint32_t k = 0; k < tail.rank; k++)
            tail.dim[k] = declared->list[k] > 0 && declared->list[k] < 1e15
                              ? (uint64_t)declared->list[k]
                              : 0;
        if (shape_ends_with(shape, &tail))
            return tail.rank;
    }
    if (weight != NULL && shape_ends_with(shape, weight))
        return weight->rank;
    if (weight != NULL && weight->rank == 1 && shape->rank == 4 &&
        weight->dim[0] == shape->dim[1])
        return 0;
    return 1;
}

/* axis moved to the front (to_front) or to the back, the others in their order. */
static void order_move(struct op_rows *rows, uint32_t axis, bool to_front)
{
    uint32_t at = 0;

    if (to_front)
        rows->order[at++] = axis;
    for (uint32_t k = 0; k < rows->rank; k++)
        if (k != axis)
            rows->order[at++] = k;
    if (!to_front)
        rows->order[at] = axis;
}

static bool rows_trailing(const struct layer_view *layer, const struct nd_shape *shape,
                          uint64_t count, struct op_rows *rows)
{
    const uint32_t axes = norm_trailing_axes(layer, shape);

    rows->row_len = 1;
    if (axes == 0) {
        order_move(rows, 1, false);
        rows->row_len = shape->dim[1];
    }
    for (uint32_t k = 0; k < axes; k++)
        rows->row_len *= shape->dim[shape->rank - 1 - k];
    rows->rows = count / rows->row_len;
    rows->period = 1;
    rows->per_row = 0;
    rows->span = 1;
    rows->channels = rows->row_len;
    return true;
}

/* BatchNorm: a row is a channel over the whole batch. */
static bool rows_channel(const struct nd_shape *shape, uint32_t axis, uint64_t count,
                         struct op_rows *rows)
{
    order_move(rows, axis, true);
    rows->rows = rows->period = rows->channels = shape->dim[axis];
    rows->row_len = rows->span = count / rows->rows;
    rows->per_row = 1;
    return true;
}

/* GroupNorm and InstanceNorm (as many groups as channels): a row is a group of a sample. */
static bool rows_groups(const struct nd_shape *shape, uint32_t axis, uint64_t groups,
                        uint64_t count, struct op_rows *rows)
{
    const uint64_t channels = shape->dim[axis];

    if (groups == 0 || channels % groups != 0)
        return false;
    if (axis != 1) { /* channels last: (n, c, the others) */
        uint32_t at = 0;
        rows->order[at++] = 0;
        rows->order[at++] = axis;
        for (uint32_t k = 1; k < axis; k++)
            rows->order[at++] = k;
    }
    rows->rows = shape->dim[0] * groups;
    rows->row_len = count / rows->rows;
    rows->period = groups;
    rows->per_row = channels / groups;
    rows->span = rows->row_len / rows->per_row;
    rows->channels = channels;
    return true;
}

bool nd_norm_rows(const struct op *op, const struct layer_view *layer,
                  const struct nd_shape *shape, uint64_t groups, struct op_rows *ret_rows)
{
    struct op_rows rows = {.rank = shape->rank};
    uint64_t count;
    bool good = false;

    if (!nd_shape_count(shape, &count) || count == 0 || shape->rank == 0)
        return false;
    for (uint32_t k = 0; k < shape->rank; k++)
        rows.order[k] = k;
    const uint32_t axis = norm_is_channels_last(layer) ? shape->rank - 1 : 1;
    if (op->norm->grouping == NORM_TRAILING)
        good = rows_trailing(layer, shape, count, &rows);
    else if (shape->rank < 2)
        return false;
    else if (op->norm->grouping == NORM_CHANNEL)
        good = rows_channel(shape, axis, count, &rows);
    else if (op->norm->grouping == NORM_INSTANCE)
        good = rows_groups(shape, axis, shape->dim[axis], count, &rows);
    else {
        const double declared = nd_op_number(layer, "num_groups groups group", 0);
        if (groups == 0 && declared >= 1 && declared <= (double)shape->dim[axis])
            groups = (uint64_t)declared;
        good = rows_groups(shape, axis, groups, count, &rows);
    }
    if (good)
        *ret_rows = rows;
    return good;
}

/* Four sums that do not wait for one another: the loop runs at the speed of the loads. */
static double sum_of(const double *x, uint64_t n)
{
    double sum[4] = {0, 0, 0, 0};
    uint64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += x[i + (uint64_t)k];
    for (; i < n; i++)
        sum[0] += x[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double squares_about(const double *x, uint64_t n, double centre)
{
    double sum[4] = {0, 0, 0, 0};
    uint64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) {
            const double d = x[i + (uint64_t)k] - centre;
            sum[k] += d * d;
        }
    for (; i < n; i++)
        sum[0] += (x[i] - centre) * (x[i] - centre);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void nd_norm_moments(const double *x, uint64_t n, double *ret_mean, double *ret_var)
{
    const double mean = n == 0 ? 0 : sum_of(x, n) / (double)n;

    *ret_mean = mean;
    *ret_var = n == 0 ? 0 : squares_about(x, n, mean) / (double)n;
}

double nd_norm_scale(const struct norm_model *model, double var)
{
    return model->eps_outside ? 1 / (sqrt(var) + model->eps) : 1 / sqrt(var + model->eps);
}

void nd_norm_statistics(const struct norm_model *model, const struct op_rows *rows,
                        uint64_t row, const double *x, double *ret_centre, double *ret_var)
{
    const uint64_t n = rows->row_len;
    double mean = 0, var;

    if (model->var != NULL) {
        const uint64_t channel = nd_op_channel(rows, row, 0);
        mean = model->mean[channel];
        var = model->var[channel];
    } else if (model->centre) {
        nd_norm_moments(x, n, &mean, &var);
    } else {
        var = squares_about(x, n, 0) / (double)n;
    }
    if (model->padded > 1) { /* zeros beside the row's elements, counted like them */
        const double moved = mean / model->padded;
        var = (var + (mean - moved) * (mean - moved)) / model->padded +
              (1 - 1 / model->padded) * moved * moved;
        mean = moved;
    }
    if (model->unbiased && n > 1)
        var = var * (double)n / (double)(n - 1);
    *ret_centre = model->centre ? mean : 0;
    *ret_var = var;
}

void nd_norm_row(const struct norm_model *model, const struct op_rows *rows, uint64_t row,
                 const double *x, double *out)
{
    double centre, var;

    nd_norm_statistics(model, rows, row, x, &centre, &var);
    const double scale = nd_norm_scale(model, var);
    for (uint64_t at = 0; at < rows->row_len;) {
        /* A run of elements of one channel, or (span 1) of consecutive channels. */
        const uint64_t channel = nd_op_channel(rows, row, at);
        if (rows->span == 1) {
            for (uint64_t j = 0; j < rows->row_len; j++)
                out[j] = (x[j] - centre) * scale * nd_norm_weight(model, channel + j) +
                         nd_norm_bias(model, channel + j);
            return;
        }
        const double weight = nd_norm_weight(model, channel);
        const double bias = nd_norm_bias(model, channel);
        const uint64_t end =
            at + rows->span < rows->row_len ? at + rows->span : rows->row_len;
        for (; at < end; at++)
            out[at] = (x[at] - centre) * scale * weight + bias;
    }
}
