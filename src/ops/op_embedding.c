/*
 * Look-up of rows: equal indices and equal weights give equal bits.
 */
#include "ops/op.h"

const struct op nd_op_embedding = {
    .name = "embedding",
    .types = "*embedding* *gather* *indexselect* *lookup*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
};
