/*
 * Softmax and log-softmax-free relatives over one axis (the last where none is declared).
 */
#include "ops/op.h"

#include <math.h>

static bool softmax_plan(const struct layer_view *layer, const struct nd_shape *shape,
                         struct op_rows *ret_rows, struct op_call *ret_call)
{
    struct op_rows rows = {.rank = shape->rank, .period = 1, .span = 1};
    uint64_t count;

    if (shape->rank == 0 || !nd_shape_count(shape, &count) || count == 0)
        return false;
    const double declared = nd_op_number(layer, "dim axis", -1);
    const double axis = declared < 0 ? declared + shape->rank : declared;
    if (!(axis >= 0 && axis < shape->rank))
        return false;
    uint32_t at = 0;
    for (uint32_t k = 0; k < shape->rank; k++)
        if (k != (uint32_t)axis)
            rows.order[at++] = k;
    rows.order[at] = (uint32_t)axis;
    rows.row_len = rows.channels = shape->dim[(uint32_t)axis];
    rows.rows = count / rows.row_len;
    *ret_rows = rows;
    *ret_call = (struct op_call){0};
    return true;
}

static void softmax_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                        double *out)
{
    double max = -HUGE_VAL, sum = 0;

    (void)call;
    for (uint64_t i = 0; i < n; i++)
        if (inputs[0][i] > max)
            max = inputs[0][i];
    for (uint64_t i = 0; i < n; i++)
        sum += out[i] = exp(inputs[0][i] - max);
    for (uint64_t i = 0; i < n; i++)
        out[i] /= sum;
}

const struct op nd_op_softmax = {
    .name = "softmax",
    .types = "softmax softmax[0-9] *softmaxv2 nnsoftmax *.softmax softmax2d",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .inputs = 1,
    .variants = 1,
    .plan = softmax_plan,
    .row = softmax_row,
};
