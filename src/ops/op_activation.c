/*
 * Other activations; all of them have a slope of about one.
 */
#include "ops/op.h"

const struct op nd_op_activation = {
    .name = "activation",
    .types =
        "*tanh *sigmoid *elu *hardswish* *mish* *softplus* *softsign* *swiglu* *geglu* "
        "*glu",
    .bound = BOUND_RELATIVE,
    .gain = 8,
};
