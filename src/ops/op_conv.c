/*
 * Convolutions; 8 times the relative error is twice the worst that honest pairs showed.
 */
#include "ops/op.h"

const struct op nd_op_conv = {
    .name = "conv",
    .types = "conv* *conv1d* *conv2d* *conv3d* *convolution* *convtranspose* *convnd* "
             "*depthwiseconv*",
    .bound = BOUND_RELATIVE,
    .gain = 8,
    .product = true,
    .bias = true,
};
