/*
 * LayerNorm in all its classes; also LayerNorm2d, which works over the channels of an
 * image.
 */
#include "ops/op.h"

/* torch.nn.LayerNorm 1e-5 (Ascend IR: LayerNorm 1e-7, LayerNormV3 and V4 1e-5; MindSpore
 * nn.LayerNorm 1e-7; Keras 1e-3; Flax 1e-6; BERT checkpoints 1e-12). */
static const struct norm_facts layernorm_facts = {
    .grouping = NORM_TRAILING, .centre = true, .default_eps = 1e-5};

const struct op nd_op_layernorm = {
    .name = "layernorm",
    .types = "*layernorm*",
    .bound = BOUND_NORM,
    .norm = &layernorm_facts,
};
