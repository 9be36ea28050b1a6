/*
 * Linear layers under the names of the frameworks (Dense is MindSpore and Keras).
 */
#include "ops/op.h"

const struct op nd_op_linear = {
    .name = "linear",
    .types = "*linear* *dense* conv1dgpt* addmm *innerproduct* *fullyconnected*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .product = true,
    .bias = true,
};
