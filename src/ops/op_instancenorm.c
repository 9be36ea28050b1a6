/*
 * InstanceNorm: a row is one channel of one sample.
 */
#include "ops/op.h"

/* torch.nn.InstanceNorm 1e-5 (Ascend IR InstanceNorm 1e-6). */
static const struct norm_facts instancenorm_facts = {
    .grouping = NORM_INSTANCE, .centre = true, .default_eps = 1e-5};

const struct op nd_op_instancenorm = {
    .name = "instancenorm",
    .types = "*instancenorm*",
    .bound = BOUND_NORM,
    .norm = &instancenorm_facts,
};
