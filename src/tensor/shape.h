/*
 * Shapes: overflow-checked counts, equality, text.  A shape of rank 0 has one element.
 */
#ifndef ND_TENSOR_SHAPE_H
#define ND_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "normdiff/types.h"

/* Product of the dimensions; false if it does not fit in 63 bits.  A 0 dimension gives 0,
 * whatever stands beside it. */
bool nd_shape_count(const struct nd_shape *shape, uint64_t *ret_count);
/* Elements times element size; false if that does not fit in 63 bits. */
bool nd_shape_bytes(const struct nd_shape *shape, unsigned element_size, uint64_t *ret_bytes);

bool nd_shape_equal(const struct nd_shape *a, const struct nd_shape *b);
/* The same without the dimensions of size 1. */
struct nd_shape nd_shape_squeezed(const struct nd_shape *shape);

/* Splits a flat logical (row-major) index into a multi-index of shape->rank numbers. */
void nd_shape_unravel(const struct nd_shape *shape, uint64_t flat, uint64_t *ret_index);

/* "[4, 128, 768]"; "[]" for rank 0.  Returns buf; 400 bytes always suffice. */
char *nd_shape_text(const struct nd_shape *shape, char *buf, size_t size);

#endif
