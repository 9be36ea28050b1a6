/*
 * Is Ascend's operator documented for what it was given?  A line for layers that the table
 * of operators knows: types that no page lists for the product, operators that another one
 * has replaced, and where an operator of 16 bits rounds.
 */
#include <string.h>

#include "checks/ascend_side.h"

struct operator_call {
    const struct ascend_op *op;
    unsigned product;
    enum nd_dtype input, weight;
};

static const struct nd_slot *operator_slot(const struct subject *subject,
                                           const char *const *names)
{
    for (; *names != NULL; names++)
        for (size_t i = 0; i < subject->layer->slot_count; i++)
            if (strcmp(subject->layer->slots[i].name, *names) == 0)
                return &subject->layer->slots[i];
    return NULL;
}

static enum nd_dtype operator_dtype(const struct nd_slot *slot, int side)
{
    const char *name = slot == NULL ? NULL : slot->dtype[side];

    return name == NULL ? ND_DTYPE_NONE : nd_dtype_by_name(name, strlen(name));
}

static bool operator_called(const struct subject *subject, int side,
                            struct operator_call *ret)
{
    static const char *const inputs[] = {"input.0", "output.0", NULL};
    static const char *const weights[] = {"param.weight", NULL};

    ret->op = nd_ascend_side_op(subject, side);
    if (ret->op == NULL)
        return false;
    ret->product = nd_ascend_product(subject->input->result->dump[side].device);
    ret->input = operator_dtype(operator_slot(subject, inputs), side);
    ret->weight = operator_dtype(operator_slot(subject, weights), side);
    return true;
}

static struct nd_phrase operator_phrase(const struct subject *subject,
                                        const struct operator_call *call, const char *id)
{
    const char *product = nd_ascend_product_name(call->product);

    return ND_PHRASE(
        subject->arena, id, ND_WORD("operator", call->op->name),
        ND_WORD("input", call->input == ND_DTYPE_NONE ? "" : nd_dtype_info(call->input)->name),
        ND_WORD("weight",
                call->weight == ND_DTYPE_NONE ? "" : nd_dtype_info(call->weight)->name),
        ND_WORD("product", product == NULL ? "" : product),
        ND_NUMBER("has_product", product == NULL),
        ND_WORD("instead", call->op->instead == NULL ? "" : call->op->instead));
}

static const char *operator_gap(const struct operator_call *call)
{
    static const char *const ids[] = {
        [ASCEND_GAP_PRODUCT] = "finding.operator.product",
        [ASCEND_GAP_DTYPE] = "finding.operator.dtype",
        [ASCEND_GAP_BF16] = "finding.operator.bfloat16",
        [ASCEND_GAP_WEIGHT] = "finding.operator.weight",
    };

    return ids[nd_ascend_gap(call->op, call->product, call->input, call->weight)];
}

/* Where a 16-bit operator rounds; NULL: wider ones round once anyhow. */
static const char *operator_rounding(const struct operator_call *call)
{
    static const char *const ids[] = {
        [ASCEND_ROUND_END] = "finding.operator.end",
        [ASCEND_ROUND_BEFORE_WEIGHT] = "finding.operator.before_weight",
        [ASCEND_ROUND_SUM_TOO] = "finding.operator.sum_too",
        [ASCEND_ROUND_STATISTICS] = "finding.operator.statistics",
    };

    if (call->input != ND_DTYPE_f16 && call->input != ND_DTYPE_bf16)
        return NULL;
    /* In bfloat16 the sum stays in float32 until it is stored. */
    return call->op->rounding == ASCEND_ROUND_SUM_TOO && call->input == ND_DTYPE_bf16
               ? ids[ASCEND_ROUND_BEFORE_WEIGHT]
               : ids[call->op->rounding];
}

static void operator_run(struct subject *subject, struct nd_finding *finding)
{
    struct operator_call call;
    const char *id;

    if (!operator_called(subject, 1, &call) && !operator_called(subject, 0, &call)) {
        finding->id = NULL;
        return;
    }
    if ((id = operator_gap(&call)) != NULL) {
        finding->status = ND_CHECK_MISMATCH;
        finding->evidence = operator_phrase(subject, &call, id);
        finding->advice = operator_phrase(subject, &call, "advice.operator.types");
    } else if (call.op->instead != NULL) {
        finding->status = ND_CHECK_SUSPECT;
        finding->evidence = operator_phrase(subject, &call, "finding.operator.deprecated");
        finding->advice = operator_phrase(subject, &call, "advice.operator.deprecated");
    } else if ((id = operator_rounding(&call)) != NULL) {
        finding->status = ND_CHECK_OK;
        finding->evidence = operator_phrase(subject, &call, id);
    } else {
        finding->id = NULL;
    }
}

const struct check nd_check_operator = {.id = "operator", .is_line = true, .run = operator_run};
