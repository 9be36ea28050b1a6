/*
 * SiLU, also called swish: x * sigmoid(x).
 */
#include "ops/op.h"

#include <math.h>

static void silu_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                     double *out)
{
    (void)call;
    for (uint64_t i = 0; i < n; i++)
        out[i] = inputs[0][i] / (1 + exp(-inputs[0][i]));
}

const struct op nd_op_silu = {
    .name = "silu",
    .types = "*silu *siluactivation swish *npuswish",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .inputs = 1,
    .variants = 1,
    .plan = nd_op_plan_elementwise,
    .row = silu_row,
};
