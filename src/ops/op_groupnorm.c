/*
 * GroupNorm: a row is one group of channels of one sample.
 */
#include "ops/op.h"

/* torch.nn.GroupNorm 1e-5 (Ascend IR: GroupNorm 1e-4, GroupNormV2 1e-5). */
static const struct norm_facts groupnorm_facts = {
    .grouping = NORM_GROUPS, .centre = true, .default_eps = 1e-5};

const struct op nd_op_groupnorm = {
    .name = "groupnorm",
    .types = "*groupnorm*",
    .bound = BOUND_NORM,
    .norm = &groupnorm_facts,
};
