/*
 * What an operator is: one row of facts and one float64 replay each.  A replay recomputes
 * the operator's output from dumped inputs and parameters; it never judges.
 */
#ifndef ND_OPS_OP_H
#define ND_OPS_OP_H

#include "base/arena.h"
#include "tensor/view.h"

struct op; /* see ops.def */

/* The operator of a layer, by its type's name ("LayerNorm", "LlamaRMSNorm", "layer_norm",
 * "BatchNorm2d", "npu_rms_norm" ...); NULL: not in the table. */
const struct op *nd_op_for(const char *type);

#endif
