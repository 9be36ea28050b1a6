/*
 * Matrix products of two activations, and attention scores.
 */
#include "ops/op.h"

const struct op nd_op_matmul = {
    .name = "matmul",
    .types = "*matmul* bmm mm *baddbmm* *einsum* *scores* *gemm*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .product = true,
};
