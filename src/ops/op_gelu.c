/*
 * GELU: the exact form, the tanh approximation and the sigmoid one.  Which of them a name
 * means differs between frameworks, so the reference's own output decides.
 */
#include "ops/op.h"

#include <math.h>

enum { GELU_ERF, GELU_TANH, GELU_SIGMOID, GELU_VARIANTS };

static void gelu_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                     double *out)
{
    const double root_half = sqrt(0.5), root_2_pi = sqrt(2 / acos(-1.0));

    for (uint64_t i = 0; i < n; i++) {
        const double x = inputs[0][i];
        if (call->variant == GELU_ERF)
            out[i] =
                0.5 * x * erfc(-x * root_half); /* erfc keeps the digits of the left tail */
        else if (call->variant == GELU_TANH)
            out[i] = 0.5 * x * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)));
        else
            out[i] = x / (1 + exp(-1.702 * x));
    }
}

const struct op nd_op_gelu = {
    .name = "gelu",
    .types = "*gelu *gelu[0-9] *geluactivation *fastgelu* *quickgelu*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .inputs = 1,
    .variants = GELU_VARIANTS,
    .plan = nd_op_plan_elementwise,
    .row = gelu_row,
};
