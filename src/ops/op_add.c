/*
 * Sums of two tensors: the absolute errors add up.
 */
#include "ops/op.h"

static void add_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                    double *out)
{
    (void)call;
    for (uint64_t i = 0; i < n; i++)
        out[i] = inputs[0][i] + inputs[1][i];
}

const struct op nd_op_add = {
    .name = "add",
    .types = "add add[0-9]* *addition* tensoradd residualadd *.add iadd *shortcut",
    .bound = BOUND_ABSOLUTE,
    .gain = 1,
    .inputs = 2,
    .variants = 1,
    .plan = nd_op_plan_elementwise,
    .row = add_row,
};
