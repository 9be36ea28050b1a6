/*
 * ReLU, its capped form ReLU6 and the leaky one.
 */
#include "ops/op.h"

#include <math.h>
#include <string.h>

static bool relu_plan(const struct layer_view *layer, const struct nd_shape *shape,
                      struct op_rows *ret_rows, struct op_call *ret_call)
{
    if (!nd_op_plan_elementwise(layer, shape, ret_rows, ret_call))
        return false;
    const bool capped = strstr(layer->type, "6") != NULL;
    const bool leaky = strstr(layer->type, "eaky") != NULL;
    /* Slope below zero (torch.nn.LeakyReLU: 0.01) and the cap. */
    ret_call->number[0] = leaky ? nd_op_number(layer, "negative_slope alpha", 0.01) : 0;
    ret_call->number[1] = capped ? 6 : HUGE_VAL;
    return true;
}

static void relu_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                     double *out)
{
    for (uint64_t i = 0; i < n; i++) {
        const double x = inputs[0][i];
        const double y = x < 0 ? call->number[0] * x : x;
        out[i] = y > call->number[1] ? call->number[1] : y;
    }
}

const struct op nd_op_relu = {
    .name = "relu",
    .types = "relu relu6 relu6* relu_* leakyrelu* *.relu threshold",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .inputs = 1,
    .variants = 1,
    .plan = relu_plan,
    .row = relu_row,
};
