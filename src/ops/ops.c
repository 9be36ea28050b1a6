/*
 * The operator table and the look-up by type name.
 */
#include "ops/op.h"
#include "ops/type_memo.h"
#include "ops/type_name.h"

#define ND_OP(word) extern const struct op nd_op_##word;
#include "ops/ops.def"
#undef ND_OP

static const struct op *const ops_rows[] = {
#define ND_OP(word) &nd_op_##word,
#include "ops/ops.def"
#undef ND_OP
};

static const void *find_op(const char *type)
{
    char plain[128];

    if (nd_type_plain(type, plain, sizeof plain) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof ops_rows / sizeof *ops_rows; i++)
        if (nd_type_listed(ops_rows[i]->types, plain))
            return ops_rows[i];
    return NULL;
}

const struct op *nd_op_for(const char *type)
{
    static _Thread_local struct type_memo met[ND_TYPE_MEMO];

    return nd_type_recall(met, type, find_op);
}

double nd_op_number(const struct layer_view *layer, const char *keys, double otherwise)
{
    char key[64];

    while (nd_type_word(&keys, key, sizeof key)) {
        const struct attribute *attribute = nd_layer_attribute(layer, key);
        if (attribute != NULL &&
            (attribute->kind == ATTRIBUTE_NUMBER || attribute->kind == ATTRIBUTE_BOOL))
            return attribute->number;
    }
    return otherwise;
}

/* More than this in one row would make sampling by rows coarse. */
enum { ELEMENTWISE_ROW = 4096 };

bool nd_op_plan_elementwise(const struct layer_view *layer, const struct nd_shape *shape,
                            struct op_rows *ret_rows, struct op_call *ret_call)
{
    struct op_rows rows = {.rank = shape->rank, .row_len = 1, .period = 1, .span = 1};
    uint64_t count;
    uint32_t axis = shape->rank;

    (void)layer;
    if (!nd_shape_count(shape, &count) || count == 0)
        return false;
    for (uint32_t k = 0; k < shape->rank; k++)
        rows.order[k] = k;
    /* Channels are axis 1 of images, the last axis of everything else. */
    const uint32_t first = shape->rank == 4 ? 2 : shape->rank > 0 ? shape->rank - 1 : 0;
    while (axis > first && rows.row_len * shape->dim[axis - 1] <= ELEMENTWISE_ROW)
        rows.row_len *= shape->dim[--axis];
    rows.rows = count / rows.row_len;
    if (shape->rank == 4 && axis == 2) {
        rows.period = rows.channels = shape->dim[1];
        rows.per_row = 1;
        rows.span = rows.row_len;
    } else if (shape->rank != 4 && axis == first) {
        rows.channels = rows.row_len;
    } else { /* too long for one row: one channel, so no evidence by channels */
        rows.channels = 1;
        rows.span = rows.row_len;
    }
    *ret_rows = rows;
    *ret_call = (struct op_call){0};
    return true;
}
