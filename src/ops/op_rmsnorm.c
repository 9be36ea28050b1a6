/*
 * RMSNorm: LlamaRMSNorm, Qwen2RMSNorm, npu_rms_norm, modules called RMS,
 * and T5LayerNorm, which subtracts no mean in spite of its name.
 */
#include "ops/op.h"

/* Ascend RmsNorm and npu_rms_norm 1e-6; torch.nn.RMSNorm finfo(dtype).eps, which is
 * 1.2e-7 in float32; ATB 1e-5. */
static const struct norm_facts rmsnorm_facts = {
    .grouping = NORM_TRAILING, .centre = false, .default_eps = 1e-6};

const struct op nd_op_rmsnorm = {
    .name = "rmsnorm",
    .types = "*rmsnorm* rms llamarms *t5layernorm* *t5fusedlayernorm* *simplifiedlayernorm*",
    .bound = BOUND_NORM,
    .norm = &rmsnorm_facts,
};
