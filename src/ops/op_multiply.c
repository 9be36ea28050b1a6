/*
 * Products of two tensors, element by element.
 */
#include "ops/op.h"

static void multiply_row(const struct op_call *call, const double *const *inputs,
                         uint64_t n, double *out)
{
    (void)call;
    for (uint64_t i = 0; i < n; i++)
        out[i] = inputs[0][i] * inputs[1][i];
}

const struct op nd_op_multiply = {
    .name = "multiply",
    .types = "mul mul[0-9]* multiply* *.mul imul *hadamard*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .inputs = 2,
    .variants = 1,
    .plan = nd_op_plan_elementwise,
    .row = multiply_row,
};
