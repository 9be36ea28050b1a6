/*
 * Shapes.
 */
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>

bool nd_shape_count(const struct nd_shape *shape, uint64_t *ret_count)
{
    uint64_t count = 1;

    for (uint32_t k = 0; k < shape->rank; k++)
        if (shape->dim[k] == 0) {
            *ret_count = 0;
            return true;
        }
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (count > (uint64_t)INT64_MAX / shape->dim[k])
            return false;
        count *= shape->dim[k];
    }
    *ret_count = count;
    return true;
}

bool nd_shape_bytes(const struct nd_shape *shape, unsigned element_size, uint64_t *ret_bytes)
{
    uint64_t count;

    if (!nd_shape_count(shape, &count) || count > (uint64_t)INT64_MAX / element_size)
        return false;
    *ret_bytes = count * element_size;
    return true;
}

bool nd_shape_equal(const struct nd_shape *a, const struct nd_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

struct nd_shape nd_shape_squeezed(const struct nd_shape *shape)
{
    struct nd_shape squeezed = {0};

    for (uint32_t k = 0; k < shape->rank; k++)
        if (shape->dim[k] != 1)
            squeezed.dim[squeezed.rank++] = shape->dim[k];
    return squeezed;
}

void nd_shape_unravel(const struct nd_shape *shape, uint64_t flat, uint64_t *ret_index)
{
    for (uint32_t k = shape->rank; k-- > 0;) {
        const uint64_t dim = shape->dim[k] == 0 ? 1 : shape->dim[k];
        ret_index[k] = flat % dim;
        flat /= dim;
    }
}

char *nd_shape_text(const struct nd_shape *shape, char *buf, size_t size)
{
    size_t len = 0;

    if (size == 0)
        return buf;
    buf[0] = '\0';
    for (uint32_t k = 0; k <= shape->rank && len + 24 < size; k++) {
        const int wrote =
            k == shape->rank
                ? snprintf(buf + len, size - len, "%s]", k == 0 ? "[" : "")
                : snprintf(buf + len, size - len, "%s%" PRIu64, k == 0 ? "[" : ", ", shape->dim[k]);
        len += wrote < 0 ? 0 : (size_t)wrote;
    }
    return buf;
}
