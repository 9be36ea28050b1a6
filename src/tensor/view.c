/*
 * Views: gathering elements in logical order out of any storage.
 */
#include "tensor/view.h"

#include <math.h>
#include <string.h>

void nd_view_contiguous(struct tensor_view *view, const void *data, uint64_t data_size,
                        enum nd_dtype dtype, const struct nd_shape *shape)
{
    uint64_t stride = 1;

    *view = (struct tensor_view){.data = data, .data_size = data_size, .dtype = dtype,
                                 .shape = *shape, .contiguous = true};
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
    if (axis->block > 1 && dim <= axis->block)
        *axis = (struct axis_map){.block = 1, .outer = axis->inner};
}

static bool is_contiguous(const struct tensor_view *view)
{
    int64_t expected = 1;

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
    uint64_t      *reach = stride < 0 ? low : high;

    if (size != 0 && steps > (uint64_t)INT64_MAX / size)
        return false;
    if (*reach > (uint64_t)INT64_MAX - size * steps)
        return false;
    *reach += size * steps;
    return true;
}

bool nd_view_check(struct tensor_view *view)
{
    uint64_t       high = view->base, low = 0;
    const unsigned size = nd_dtype_info(view->dtype)->size;

    if (!nd_shape_count(&view->shape, &view->count) || view->base > (uint64_t)INT64_MAX)
        return false;
    if (view->count == 0) {
        view->contiguous = true;
        return true;
    }
    for (uint32_t k = 0; k < view->shape.rank; k++) {
        const uint64_t last = view->shape.dim[k] - 1;
        axis_simplify(&view->axis[k], view->shape.dim[k]);
        const struct axis_map *axis = &view->axis[k];
        if (axis->block == 0 || !reach_add(axis->outer, last / axis->block, &high, &low))
            return false;
        if (axis->block > 1 && !reach_add(axis->inner, axis->block - 1, &high, &low))
            return false;
    }
    if (low > view->base || high >= view->data_size / size)
        return false;
    view->contiguous = is_contiguous(view);
    return true;
}

bool nd_view_set_strides(struct tensor_view *view, uint64_t base, const int64_t *strides)
{
    view->base = base;
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
    }
    view->contiguous = is_contiguous(view);
}

static int64_t axis_offset(const struct axis_map *axis, uint64_t i)
{
    if (axis->block == 1)
        return (int64_t)i * axis->outer;
    return (int64_t)(i / axis->block) * axis->outer + (int64_t)(i % axis->block) * axis->inner;
}

#define COPY_STRIDED(type)                                                               \
    for (uint64_t i = 0; i < n; i++)                                                     \
        memcpy(out + i * sizeof(type), in + (int64_t)i * step * (int64_t)sizeof(type),   \
               sizeof(type));

/* n elements of `size` bytes, `step` elements apart. */
static void copy_strided(const unsigned char *in, int64_t step, uint64_t n, unsigned size,
                         unsigned char *out)
{
    if (step == 1) {
        memcpy(out, in, n * size);
        return;
    }
    switch (size) {
    case 1: COPY_STRIDED(uint8_t) break;
    case 2: COPY_STRIDED(uint16_t) break;
    case 4: COPY_STRIDED(uint32_t) break;
    case 8: COPY_STRIDED(uint64_t) break;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + i * size, in + (int64_t)i * step * (int64_t)size, size);
    }
}

/* Elements [from, from + n) along one axis, starting at `at` for index 0. */
static void copy_axis(const struct axis_map *axis, const unsigned char *at, uint64_t from,
                      uint64_t n, unsigned size, unsigned char *out)
{
    while (n > 0) {
        const uint64_t within = from % axis->block;
        const uint64_t run = axis->block == 1 ? n
                             : n < axis->block - within ? n : axis->block - within;
        const int64_t step = axis->block == 1 ? axis->outer : axis->inner;
        copy_strided(at + axis_offset(axis, from) * (int64_t)size, step, run, size, out);
        out += run * size;
        from += run;
        n -= run;
    }
}

static void gather_mapped(const struct tensor_view *view, uint64_t first, uint64_t count,
                          unsigned size, unsigned char *out)
{
    const uint32_t rank = view->shape.rank;
    uint64_t       index[ND_MAX_RANK];

    if (rank == 0) {
        memcpy(out, view->data + view->base * size, size);
        return;
    }
    nd_shape_unravel(&view->shape, first, index);
    while (count > 0) {
        int64_t offset = (int64_t)view->base;
        for (uint32_t k = 0; k + 1 < rank; k++)
            offset += axis_offset(&view->axis[k], index[k]);
        const uint64_t left = view->shape.dim[rank - 1] - index[rank - 1];
        const uint64_t n = left < count ? left : count;
        copy_axis(&view->axis[rank - 1], view->data + offset * (int64_t)size, index[rank - 1], n,
                  size, out);
        out += n * size;
        count -= n;
        index[rank - 1] = 0;
        for (uint32_t k = rank - 1; k-- > 0;) {
            if (++index[k] < view->shape.dim[k])
                break;
            index[k] = 0;
        }
    }
}

static void swap_bytes(unsigned char *bytes, uint64_t n, unsigned size)
{
    for (uint64_t i = 0; i < n; i++, bytes += size)
        for (unsigned k = 0; k < size / 2; k++) {
            const unsigned char byte = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = byte;
        }
}

void nd_view_gather(const struct tensor_view *view, uint64_t first, uint64_t count, void *dst)
{
    const struct dtype_info *info = nd_dtype_info(view->dtype);

    if (count == 0)
        return;
    if (view->contiguous)
        memcpy(dst, view->data + (view->base + first) * info->size, count * info->size);
    else
        gather_mapped(view, first, count, info->size, dst);
    if (view->swapped && info->kind == ND_KIND_COMPLEX)
        swap_bytes(dst, 2 * count, info->size / 2);
    else if (view->swapped)
        swap_bytes(dst, count, info->size);
}

void nd_view_decode(const struct tensor_view *view, uint64_t first, uint64_t count, double *dst)
{
    const struct dtype_info *info = nd_dtype_info(view->dtype);
    const unsigned           parts = info->kind == ND_KIND_COMPLEX ? 2 : 1;
    unsigned char            buffer[8192];

    if (view->contiguous) {
        nd_dtype_decode(view->dtype, view->swapped, view->data + (view->base + first) * info->size,
                        (size_t)count, dst);
        return;
    }
    while (count > 0) {
        const uint64_t room = sizeof buffer / info->size;
        const uint64_t n = count < room ? count : room;
        nd_view_gather(view, first, n, buffer);
        nd_dtype_decode(view->dtype, false, buffer, (size_t)n, dst);
        first += n;
        count -= n;
        dst += n * parts;
    }
}

double nd_view_at(const struct tensor_view *view, uint64_t flat)
{
    double value[2] = {0, 0};

    nd_view_decode(view, flat, 1, value);
    return nd_dtype_info(view->dtype)->kind == ND_KIND_COMPLEX ? hypot(value[0], value[1]) : value[0];
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
