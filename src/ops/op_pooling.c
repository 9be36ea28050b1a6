/*
 * Pooling and resizing: means, maxima and copies of elements.
 */
#include "ops/op.h"

const struct op nd_op_pooling = {
    .name = "pooling",
    .types = "*pool* *upsample* *interpolate* *pixelshuffle* *unpool* *resize*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
};
