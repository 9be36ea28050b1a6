/*
 * Dropout, which does nothing outside of training; if the reference shows that it dropped
 * elements, no replay fits it and the layer is judged by the bound.
 */
#include "ops/op.h"

#include <string.h>

static void dropout_row(const struct op_call *call, const double *const *inputs, uint64_t n,
                        double *out)
{
    (void)call;
    memcpy(out, inputs[0], n * sizeof *out);
}

const struct op nd_op_dropout = {
    .name = "dropout",
    .types = "*dropout* *droppath* *stochasticdepth*",
    .bound = BOUND_RELATIVE,
    .gain = 1,
    .inputs = 1,
    .variants = 1,
    .plan = nd_op_plan_elementwise,
    .row = dropout_row,
};
