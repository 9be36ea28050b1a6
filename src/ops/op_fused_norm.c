/*
 * Norms fused with what stands before or after them (residual sum, activation,
 * quantisation): the plain formula does not hold between their input and their output, so
 * they are judged by the bound alone.
 */
#include "ops/op.h"

const struct op nd_op_fused_norm = {
    .name = "fused_norm",
    .types = "*add*rmsnorm* *add*layernorm* *deepnorm* *groupnormsilu* *groupnormswish* "
             "*normquant* *layernormgelu* *normlinear*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
};
