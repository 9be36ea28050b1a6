/*
 * Attention as one operator.
 */
#include "ops/op.h"

const struct op nd_op_attention = {
    .name = "attention",
    .types = "*attention* *sdpa* *flashatt* *attn*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .product = true,
};
