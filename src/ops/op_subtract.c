/*
 * Differences: absolute errors add up, the relative error has no limit.
 */
#include "ops/op.h"

const struct op nd_op_subtract = {
    .name = "subtract",
    .types = "sub sub[0-9] rsub subtract*",
    .bound = BOUND_ABSOLUTE,
};
