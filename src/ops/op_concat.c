/*
 * Joining tensors: the relative error of the result is no more than the largest.
 */
#include "ops/op.h"

const struct op nd_op_concat = {
    .name = "concat",
    .types = "*concat* cat stack hstack vstack *rope* *rotary*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
};
