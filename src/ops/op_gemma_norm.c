/*
 * RMSNorm whose weight is kept about zero and applied as 1 + weight: Gemma, Gemma 2 and 3
 * (not Gemma 3n), Qwen3-Next, npu_gemma_rms_norm.
 */
#include "ops/op.h"

static const struct norm_facts gemma_norm_facts = {
    .grouping = NORM_TRAILING, .centre = false, .default_eps = 1e-6, .one_plus = 1};

const struct op nd_op_gemma_norm = {
    .name = "rmsnorm",
    .types = "*gemmarmsnorm* *gemma2rmsnorm* *gemma3rmsnorm* *qwen3nextrmsnorm*",
    .bound = BOUND_NORM,
    .norm = &gemma_norm_facts,
};
