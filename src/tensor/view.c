/*
 * Views: what makes one, and the proof that every element lies inside the bytes.
 */
#include "tensor/view.h"

#include <string.h>

void nd_view_contiguous(struct tensor_view *view, const void *data, uint64_t data_size,
                        enum nd_dtype dtype, const struct nd_shape *shape)
{
    uint64_t stride = 1;

    *view = (struct tensor_view){.data = data,
                                 .data_size = data_size,
                                 .dtype = dtype,
                                 .shape = *shape,
                                 .contiguous = true};
    if (!nd_shape_count(shape, &view->count))
        view->count = 0;
    for (uint32_t k = shape->rank; k-- > 0;) {
        view->axis[k] = (struct axis_map){.block = 1, .outer = (int64_t)stride};
        stride *= shape->dim[k] == 0 ? 1 : shape->dim[k];
    }
}

/* An axis no longer than its block, or of equal steps, is a plain stride. */
static void axis_simplify(struct axis_map *axis, uint64_t dim)
{
    int64_t whole;

    if (axis->block > 1 &&
        (dim <= axis->block ||
         (axis->block <= INT64_MAX &&
          !__builtin_mul_overflow((int64_t)axis->block, axis->inner, &whole) &&
          whole == axis->outer)))
        *axis = (struct axis_map){.block = 1, .outer = axis->inner};
}

static bool is_contiguous(const struct tensor_view *view)
{
    int64_t expected = 1;

    if (view->count == 0)
        return true;
    if (view->link.is)
        return false;
    for (uint32_t k = view->shape.rank; k-- > 0;) {
        if (view->shape.dim[k] == 1)
            continue;
        if (view->axis[k].block != 1 || view->axis[k].outer != expected)
            return false;
        expected *= (int64_t)view->shape.dim[k];
    }
    return true;
}

/* Adds steps * stride to the reach of its sign; false on overflow. */
static bool reach_add(int64_t stride, uint64_t steps, uint64_t *high, uint64_t *low)
{
    const uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    uint64_t *reach = stride < 0 ? low : high;

    if (size != 0 && steps > (uint64_t)INT64_MAX / size)
        return false;
    if (*reach > (uint64_t)INT64_MAX - size * steps)
        return false;
    *reach += size * steps;
    return true;
}

/* The reach of indices 0 ... last through a map. */
static bool reach_map(const struct axis_map *axis, uint64_t last, uint64_t *high,
                      uint64_t *low)
{
    const uint64_t within = last < axis->block ? last : axis->block - 1;

    return axis->block != 0 && reach_add(axis->outer, last / axis->block, high, low) &&
           (axis->block == 1 || reach_add(axis->inner, within, high, low));
}

static bool reach_link(const struct tensor_view *view, uint64_t *high, uint64_t *low)
{
    const struct axis_link *link = &view->link;
    uint64_t steps, last;

    if (link->div == 0 || link->mod == 0 || link->from >= view->shape.rank ||
        (link->to != ND_NO_AXIS && link->to >= view->shape.rank))
        return false;
    steps = (view->shape.dim[link->from] - 1) / link->div;
    steps = steps < link->mod ? steps : link->mod - 1;
    if (__builtin_mul_overflow(steps, link->times, &last) ||
        __builtin_add_overflow(
            last, link->to == ND_NO_AXIS ? 0 : view->shape.dim[link->to] - 1, &last))
        return false;
    return reach_map(&link->map, last, high, low);
}

/* A link from an axis of one index is a plain map. */
static void link_simplify(struct tensor_view *view)
{
    struct axis_link *link = &view->link;

    if (!link->is || (link->from != ND_NO_AXIS && view->shape.dim[link->from] != 1))
        return;
    if (link->to != ND_NO_AXIS)
        view->axis[link->to] = link->map;
    *link = (struct axis_link){.is = false};
}

bool nd_view_check(struct tensor_view *view)
{
    uint64_t high = view->base, low = 0;
    const unsigned size = nd_dtype_info(view->dtype)->size;

    if (!nd_shape_count(&view->shape, &view->count) || view->base > (uint64_t)INT64_MAX)
        return false;
    if (view->count == 0) {
        view->contiguous = true;
        return true;
    }
    link_simplify(view);
    for (uint32_t k = 0; k < view->shape.rank; k++) {
        axis_simplify(&view->axis[k], view->shape.dim[k]);
        if (!reach_map(&view->axis[k], view->shape.dim[k] - 1, &high, &low))
            return false;
    }
    if (view->link.is && !reach_link(view, &high, &low))
        return false;
    if (low > view->base || high >= view->data_size / size)
        return false;
    view->contiguous = is_contiguous(view);
    return true;
}

bool nd_view_set_strides(struct tensor_view *view, uint64_t base, const int64_t *strides)
{
    view->base = base;
    view->link = (struct axis_link){.is = false};
    for (uint32_t k = 0; k < view->shape.rank; k++)
        view->axis[k] = (struct axis_map){.block = 1, .outer = strides[k]};
    return nd_view_check(view);
}

void nd_view_permute(struct tensor_view *view, const uint32_t *order)
{
    const struct tensor_view from = *view;

    for (uint32_t k = 0; k < from.shape.rank; k++) {
        view->shape.dim[k] = from.shape.dim[order[k]];
        view->axis[k] = from.axis[order[k]];
        if (from.link.is && from.link.from == order[k])
            view->link.from = k;
        if (from.link.is && from.link.to == order[k])
            view->link.to = k;
    }
    view->contiguous = is_contiguous(view);
}

void nd_view_squeeze_to(struct tensor_view *view, const struct nd_shape *shape)
{
    const struct tensor_view was = *view;
    uint32_t from = 0;

    view->link.from = view->link.to = ND_NO_AXIS;
    for (uint32_t k = 0; k < shape->rank; k++) {
        view->axis[k] = (struct axis_map){.block = 1};
        if (shape->dim[k] == 1)
            continue;
        while (was.shape.dim[from] == 1)
            from++;
        view->axis[k] = was.axis[from];
        if (was.link.from == from)
            view->link.from = k;
        if (was.link.to == from)
            view->link.to = k;
        from++;
    }
    view->shape = *shape;
    (void)nd_view_check(view); /* the same elements: cannot fail */
}

const struct attribute *nd_layer_attribute(const struct layer_view *layer, const char *key)
{
    for (size_t i = 0; i < layer->attribute_count; i++)
        if (strcmp(layer->attributes[i].key, key) == 0)
            return &layer->attributes[i];
    return NULL;
}

const struct slot_view *nd_layer_slot(const struct layer_view *layer, const char *name)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    return NULL;
}
