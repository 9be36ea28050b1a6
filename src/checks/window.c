/*
 * Choosing and cutting the part.
 */
#include "checks/window.h"

#include <stdlib.h>
#include <string.h>

#include "ops/norm.h"

/* Which axes of the output may be cut, and which slots are cut with each. */
struct cutting {
    const struct op *op;
    struct nd_shape whole;                /* of the output */
    bool allowed[ND_MAX_RANK];            /* by axis of the output */
    bool is_linear, is_conv;              /* a weight of 2 or of 4 axes */
    bool is_turned;                       /* a linear weight [in, out] */
    const struct nd_shape *left, *weight; /* of products; NULL: none */
    uint64_t from[ND_MAX_RANK], len[ND_MAX_RANK];
};

static const struct tensor_view *window_tensor(const struct layer_view *layer,
                                               const char *name)
{
    const struct slot_view *slot = layer == NULL ? NULL : nd_layer_slot(layer, name);

    return slot != NULL && slot->has_tensor ? &slot->tensor : NULL;
}

/* --- which axes ---------------------------------------------------------------------- */

/* Axes that lie across rows: what stands before the row in its order of axes. */
static void allow_across_rows(struct cutting *cut, const struct op_rows *rows)
{
    uint64_t inside = 1;

    for (uint32_t k = rows->rank; k-- > 0;) {
        const uint32_t axis = rows->order[k];
        cut->allowed[axis] = inside >= rows->row_len;
        inside *= cut->whole.dim[axis];
    }
}

static void allow_norm(struct cutting *cut, const struct layer_view *layer)
{
    struct op_rows rows;

    if (!nd_norm_rows(cut->op, layer, &cut->whole, 0, &rows) &&
        !nd_norm_rows(cut->op, layer, &cut->whole, 1, &rows))
        return;
    if (cut->op->norm->grouping == NORM_GROUPS)
        cut->allowed[0] = true; /* groups may be unknown: channels stay together */
    else
        allow_across_rows(cut, &rows);
}

static void allow_product(struct cutting *cut, const struct layer_view *layer)
{
    const struct tensor_view *left = window_tensor(layer, "input.0");
    const struct tensor_view *weight = window_tensor(layer, "param.weight");
    const uint32_t rank = cut->whole.rank;

    cut->left = left == NULL ? NULL : &left->shape;
    cut->weight = weight == NULL ? NULL : &weight->shape;
    if (rank < 2)
        return;
    if (weight != NULL && weight->shape.rank == 2) {
        cut->is_turned = weight->shape.dim[0] != cut->whole.dim[rank - 1];
        cut->is_linear =
            weight->shape.dim[cut->is_turned ? 1 : 0] == cut->whole.dim[rank - 1];
    } else if (weight != NULL && rank >= 3 && weight->shape.rank == rank && left != NULL) {
        cut->is_conv = weight->shape.dim[0] == cut->whole.dim[1] &&
                       left->shape.rank == rank &&
                       weight->shape.dim[1] == left->shape.dim[1]; /* one group */
        cut->allowed[0] = true;
        cut->allowed[1] = cut->is_conv;
        return;
    }
    for (uint32_t k = 0; k + 1 < rank; k++)
        cut->allowed[k] = true;
    cut->allowed[rank - 1] = cut->is_linear;
}

static void allow_axes(struct cutting *cut, const struct layer_view *layer)
{
    const struct op *op = cut->op;
    struct op_rows rows;
    struct op_call call;

    if (op != NULL && op->norm != NULL) {
        allow_norm(cut, layer);
    } else if (op != NULL && op->product) {
        allow_product(cut, layer);
    } else if (op != NULL && strcmp(op->name, "softmax") == 0) {
        if (op->plan(layer, &cut->whole, &rows, &call))
            allow_across_rows(cut, &rows);
    } else {
        for (uint32_t k = 0; k < cut->whole.rank; k++)
            cut->allowed[k] = true;
    }
}

/* A link joins two axes; neither can be cut alone. */
static void keep_linked(struct cutting *cut, const struct layer_pair_view *pair,
                        const char *output)
{
    for (int side = 0; side < 2; side++) {
        const struct tensor_view *view = window_tensor(pair->side[side], output);
        if (view == NULL || !view->link.is)
            continue;
        for (uint32_t k = 0; k < cut->whole.rank; k++)
            if (view->link.from == k || view->link.to == k)
                cut->allowed[k] = false;
    }
}

/* --- how much ------------------------------------------------------------------------ */

static uint64_t cut_count(const struct cutting *cut)
{
    uint64_t count = 1;

    for (uint32_t k = 0; k < cut->whole.rank; k++)
        count *= cut->len[k];
    return count;
}

/* The most elements that an axis' length is multiplied with in a tensor that it is cut in.
 */
static uint64_t cut_load(const struct cutting *cut, uint32_t axis)
{
    const uint32_t rank = cut->whole.rank, last = rank - 1;
    const uint64_t count = cut_count(cut);
    uint64_t load = count;

    if ((cut->is_linear || cut->is_conv) && axis == (cut->is_linear ? last : 1)) {
        uint64_t weight = cut->len[axis];
        for (uint32_t k = 0; k < cut->weight->rank; k++)
            if (k != (cut->is_linear && cut->is_turned ? 1u : 0u))
                weight *= cut->weight->dim[k];
        load = weight;
    } else if (cut->left != NULL && cut->left->rank == rank) {
        uint64_t left = 1; /* images differ in size, but are cut by samples alone */
        for (uint32_t k = 0; k < rank; k++)
            left *=
                k == 0 || (k != last && !cut->is_conv) ? cut->len[k] : cut->left->dim[k];
        load = left > load ? left : load;
    }
    return load;
}

static void cut_axis(struct cutting *cut, uint32_t axis, uint64_t limit)
{
    const uint64_t load = cut_load(cut, axis);

    if (!cut->allowed[axis] || load <= limit)
        return;
    const double share = (double)limit / (double)load;
    const uint64_t len = (uint64_t)((double)cut->len[axis] * share);
    cut->len[axis] = len > 0 ? len : 1;
}

/* Rows of the last axis but one first, so that samples and channels stay whole where that
 * is enough; a weight that is too large by itself comes before all. */
static void cut_lengths(struct cutting *cut, uint64_t limit)
{
    const uint32_t rank = cut->whole.rank;

    if (cut->is_linear)
        cut_axis(cut, rank - 1, limit);
    if (cut->is_conv)
        cut_axis(cut, 1, limit);
    for (uint32_t k = rank - 1; k-- > 0;)
        cut_axis(cut, k, limit);
    if (!cut->is_linear)
        cut_axis(cut, rank - 1, limit);
}

/* --- where --------------------------------------------------------------------------- */

/* The slot's own axis that is cut with an axis of the output; ND_NO_AXIS: none. */
static uint32_t slot_axis(const struct cutting *cut, const struct slot_view *slot,
                          uint32_t axis)
{
    const struct nd_shape *shape = &slot->tensor.shape;
    const uint32_t rank = cut->whole.rank;
    const bool is_input = strncmp(slot->name, "input.", 6) == 0;
    const bool is_own = is_input || strncmp(slot->name, "output.", 7) == 0;
    const bool is_weight = strcmp(slot->name, "param.weight") == 0;

    if (!slot->has_tensor)
        return ND_NO_AXIS;
    if (cut->op != NULL && cut->op->product) {
        const uint32_t channel = cut->is_conv ? 1 : rank - 1;
        const bool of_first = strcmp(slot->name, "input.0") == 0;
        if (axis == channel && (cut->is_linear || cut->is_conv)) {
            if (is_weight)
                return cut->is_linear && cut->is_turned ? 1 : 0;
            if (is_input || (!is_own && shape->rank != 1))
                return ND_NO_AXIS;
            if (!is_own)
                return shape->dim[0] == cut->whole.dim[axis] ? 0 : ND_NO_AXIS;
        }
        if (!is_own || shape->rank != rank || shape->dim[axis] != cut->whole.dim[axis])
            return ND_NO_AXIS;
        /* Rows of a product come from its first operand alone. */
        return is_input && !of_first && axis + 2 >= rank ? ND_NO_AXIS : axis;
    }
    if (is_own)
        return nd_shape_equal(shape, &cut->whole) ? axis : ND_NO_AXIS;
    /* Parameters and statistics of norms over channels. */
    return cut->op != NULL && cut->op->norm != NULL &&
                   cut->op->norm->grouping != NORM_TRAILING && axis != 0 &&
                   shape->rank == 1 && shape->dim[0] == cut->whole.dim[axis]
               ? 0
               : ND_NO_AXIS;
}

/* Device layouts store an axis in blocks: a part begins with one. */
static uint64_t cut_step(const struct cutting *cut, const struct layer_pair_view *pair,
                         uint32_t axis)
{
    uint64_t step = 1;

    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < pair->side[side]->slot_count; i++) {
            const struct slot_view *slot = &pair->side[side]->slots[i];
            const uint32_t own = slot_axis(cut, slot, axis);
            const uint64_t block = own == ND_NO_AXIS ? 1 : slot->tensor.axis[own].block;
            if (block > step && block < cut->whole.dim[axis])
                step = block % step == 0 ? block : block * step;
        }
    return step;
}

static void cut_places(struct cutting *cut, const struct layer_pair_view *pair,
                       const uint64_t *worst)
{
    for (uint32_t k = 0; k < cut->whole.rank; k++) {
        const uint64_t dim = cut->whole.dim[k];
        if (cut->len[k] == dim)
            continue;
        const uint64_t step = cut_step(cut, pair, k);
        const uint64_t middle = worst == NULL ? dim / 2 : worst[k];
        uint64_t from = middle > cut->len[k] / 2 ? middle - cut->len[k] / 2 : 0;
        if (cut->len[k] < step)
            cut->len[k] = step < dim ? step : dim;
        if (from > dim - cut->len[k])
            from = dim - cut->len[k];
        cut->from[k] = from - from % step;
        if (worst != NULL && worst[k] >= cut->from[k] + cut->len[k])
            cut->len[k] = worst[k] + 1 - cut->from[k];
    }
}

/* --- cutting ------------------------------------------------------------------------- */

static bool view_narrow(struct tensor_view *view, uint32_t axis, uint64_t from, uint64_t n)
{
    const int64_t offset = nd_axis_offset(&view->axis[axis], from);

    if (view->link.is && (view->link.from == axis || view->link.to == axis))
        return false;
    view->base = (uint64_t)((int64_t)view->base + offset);
    view->shape.dim[axis] = n;
    return nd_view_check(view);
}

static bool window_cut(const struct cutting *cut, struct layer_view *layer,
                       struct slot_view *slots)
{
    for (size_t i = 0; i < layer->slot_count; i++) {
        const struct slot_view own = slots[i]; /* axes are looked up in the whole one */
        for (uint32_t k = 0; k < cut->whole.rank; k++) {
            const uint32_t axis =
                cut->len[k] == cut->whole.dim[k] ? ND_NO_AXIS : slot_axis(cut, &own, k);
            if (axis != ND_NO_AXIS &&
                !view_narrow(&slots[i].tensor, axis, cut->from[k], cut->len[k]))
                return false;
        }
    }
    return true;
}

static bool window_make(const struct cutting *cut, const struct layer_pair_view *pair,
                        struct window *ret)
{
    *ret = (struct window){.is = true};
    for (int side = 0; side < 2; side++) {
        const struct layer_view *layer = pair->side[side];
        ret->side[side] = *layer;
        ret->pair.side[side] = &ret->side[side];
        ret->slots[side] = malloc((layer->slot_count + 1) * sizeof **ret->slots);
        if (ret->slots[side] == NULL)
            return false;
        memcpy(ret->slots[side], layer->slots, layer->slot_count * sizeof *layer->slots);
        ret->side[side].slots = ret->slots[side];
        if (!window_cut(cut, &ret->side[side], ret->slots[side]))
            return false;
    }
    return true;
}

bool nd_window_is_large(const struct layer_pair_view *pair, uint64_t limit)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; pair->side[side] != NULL && i < pair->side[side]->slot_count;
             i++)
            if (pair->side[side]->slots[i].has_tensor &&
                pair->side[side]->slots[i].tensor.count > limit)
                return true;
    return false;
}

bool nd_window_open(const struct layer_pair_view *pair, const struct op *op,
                    const char *output, const uint64_t *worst, uint64_t limit,
                    struct window *ret_window)
{
    const struct tensor_view *out[2] = {window_tensor(pair->side[0], output),
                                        window_tensor(pair->side[1], output)};
    struct cutting cut = {.op = op};

    if (out[0] == NULL || out[1] == NULL || out[0]->shape.rank == 0 ||
        !nd_shape_equal(&out[0]->shape, &out[1]->shape) || out[0]->count == 0)
        return false;
    cut.whole = out[0]->shape;
    for (uint32_t k = 0; k < cut.whole.rank; k++)
        cut.len[k] = cut.whole.dim[k];
    allow_axes(&cut, pair->side[0]);
    keep_linked(&cut, pair, output);
    cut_lengths(&cut, limit);
    if (memcmp(cut.len, cut.whole.dim, cut.whole.rank * sizeof *cut.len) == 0)
        return false;
    cut_places(&cut, pair, worst);
    if (window_make(&cut, pair, ret_window))
        return true;
    nd_window_done(ret_window);
    return false;
}

void nd_window_done(struct window *window)
{
    free(window->slots[0]);
    free(window->slots[1]);
    *window = (struct window){.is = false};
}
