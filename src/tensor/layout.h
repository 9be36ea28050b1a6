/*
 * Storage layouts: from the shape as stored and the logical shape to a view that reads
 * in logical order.  Rows of layouts.def.
 */
#ifndef ND_TENSOR_LAYOUT_H
#define ND_TENSOR_LAYOUT_H

#include "tensor/view.h"

struct layout {
    const char *name;
    const char *logical; /* axis letters; of a form for whole tensors in the first row */
    const char *storage; /* digits */
};

size_t nd_layout_count(void);
const struct layout *nd_layout_at(size_t i);
const struct layout *nd_layout_by_name(const char *name); /* any case; NULL: unknown */
bool nd_layout_padded(const struct layout *layout);
/* Does one of the layout's forms take tensors of this many logical axes? */
bool nd_layout_takes_rank(const struct layout *layout, uint32_t rank);

/*
 * Turns a contiguous view of the storage into a view in logical order.  `storage` is the
 * shape of the bytes; `logical` may have rank 0 where the layout is not padded (then it is
 * derived).  c0 0: taken from the last storage dimension.  On a contradiction returns
 * false and *ret_why is a static text.
 */
bool nd_layout_apply(struct tensor_view *view, const struct layout *layout,
                     const struct nd_shape *storage, const struct nd_shape *logical,
                     uint32_t *inout_c0, const char **ret_why);
/* The same for the weight of a convolution in `groups` groups (0 and 1: none). */
bool nd_layout_apply_groups(struct tensor_view *view, const struct layout *layout,
                            const struct nd_shape *storage, const struct nd_shape *logical,
                            uint64_t groups, uint32_t *inout_c0, const char **ret_why);

/* The storage shape that logical data needs under one form of a layout and a block size;
 * false where the form takes tensors of another rank. */
bool nd_layout_storage(const struct layout *layout, const struct nd_shape *logical,
                       uint32_t c0, struct nd_shape *ret_storage);
bool nd_layout_storage_groups(const struct layout *layout, const struct nd_shape *logical,
                              uint64_t groups, uint32_t c0, struct nd_shape *ret_storage);

/* Counts non-zero (or NaN) elements in the padding lanes of a blocked layout. */
uint64_t nd_layout_padding_nonzero(const struct tensor_view *storage_view,
                                   const struct layout *layout,
                                   const struct nd_shape *logical, uint32_t c0);
uint64_t nd_layout_padding_nonzero_groups(const struct tensor_view *storage_view,
                                          const struct layout *layout,
                                          const struct nd_shape *logical, uint64_t groups,
                                          uint32_t c0);

#endif
