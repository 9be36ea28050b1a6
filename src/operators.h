/*
 * What the table of operators (src/ops) tells about the slots of a dump: which output is
 * which, and which two statistics stand for the same thing.
 */
#ifndef ND_OPERATORS_H
#define ND_OPERATORS_H

#include "compare/compare.h"
#include "ops/ascend_op.h"

/* Pairs the outputs of two operators by what they are where their orders differ, and marks
 * variances that stand beside reciprocal standard deviations. */
enum nd_status nd_operators_apply(struct comparison *comparison, struct nd_error *err);

/* Pairs an operator's inputs with the parameters and running statistics that a framework's
 * module has in their place; what does not have as many elements stays alone. */
void nd_operators_pair_inputs(const struct comparison *comparison, struct layer_pair *layer,
                              const struct ascend_op *const *op);

/* The kind of operator that a type is, the same for a class of modules and for the function
 * that it calls: "LlamaRMSNorm" and "npu_rms_norm" are both "rmsnorm".  False: no type. */
bool nd_operator_family(const char *type, char *buf, size_t size);

/* Names the outputs in a listing: "rstd", "batch_variance". */
enum nd_status nd_operators_list(struct arena *arena, struct nd_listing *listing,
                                 struct nd_error *err);

#endif
