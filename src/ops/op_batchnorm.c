/*
 * BatchNorm, SyncBatchNorm and the names that Ascend gives their parts.  A row is a channel
 * over the whole batch; in inference the running statistics stand in for the row's own.
 */
#include "ops/op.h"

/* torch.nn.BatchNorm1d/2d/3d and MindSpore nn.BatchNorm2d: 1e-5 (the Ascend IR operator
 * BatchNorm itself defaults to 1e-4, tf.nn.fused_batch_norm and Keras to 1e-3). */
static const struct norm_facts batchnorm_facts = {
    .grouping = NORM_CHANNEL, .centre = true, .running = true, .default_eps = 1e-5};

const struct op nd_op_batchnorm = {
    .name = "batchnorm",
    .types = "*batchnorm* *bninfer* *bntrainingupdate*",
    .bound = BOUND_NORM,
    .norm = &batchnorm_facts,
};
