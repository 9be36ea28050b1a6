/*
 * Views: how the bytes of a tensor are seen in logical order, and how the layers of two
 * dumps are shown to the checks.  A view owns nothing.
 */
#ifndef ND_TENSOR_VIEW_H
#define ND_TENSOR_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/*
 * Where index i along one logical axis lies: (i / block) * outer + (i % block) * inner
 * elements from the base.  Strided tensors have block 1 and use `outer` alone (it may be
 * 0 for expanded axes); blocked device layouts (NC1HWC0, FRACTAL_NZ) split an axis in two.
 * An element's place is the sum over the axes, so one description serves every layout.
 */
struct axis_map {
    uint64_t block;
    int64_t  outer, inner;
};

/*
 * One more digit, of an index that two axes make together: (i / div % mod) * times + j for
 * index i along `from` and j along `to`.  The layouts that need it pack several groups, or
 * the pixels of several rows, into one block (FRACTAL_Z of a grouped convolution,
 * FRACTAL_Z_C04); the axis `to` has no map of its own then.
 */
struct axis_link {
    bool            is;
    uint32_t        from, to; /* ND_NO_AXIS: an axis of size 1 that was squeezed out */
    uint64_t        div, mod, times;
    struct axis_map map;
};
#define ND_NO_AXIS UINT32_MAX

struct tensor_view {
    const unsigned char *data;      /* the first byte of the extent; may be unaligned */
    uint64_t             data_size; /* bytes readable there */
    enum nd_dtype        dtype;     /* of the bytes */
    bool                 swapped;   /* big-endian elements */
    struct nd_shape      shape;     /* logical */
    uint64_t             count;     /* elements of shape */
    uint64_t             base;      /* element offset of logical index 0 */
    struct axis_map      axis[ND_MAX_RANK];
    struct axis_link     link;
    bool                 contiguous; /* logical order is byte order from base */
};

/* A row-major view of shape at data; the caller has checked that the bytes are there. */
void nd_view_contiguous(struct tensor_view *view, const void *data, uint64_t data_size,
                        enum nd_dtype dtype, const struct nd_shape *shape);
/*
 * Sets strides (in elements) for view->shape and checks that every element lies inside
 * data_size; false if not.  Recomputes `contiguous`.
 */
bool nd_view_set_strides(struct tensor_view *view, uint64_t base, const int64_t *strides);
/* The same for maps that were filled in by hand. */
bool nd_view_check(struct tensor_view *view);

/* Reorders the axes: logical axis k of the result is axis order[k] of the source. */
void nd_view_permute(struct tensor_view *view, const uint32_t *order);
/* Lays the axes that are not of size 1 under the like dimensions of `shape`, which differs
 * from the view's in dimensions of size 1 alone. */
void nd_view_squeeze_to(struct tensor_view *view, const struct nd_shape *shape);

/* Where index i along an axis lies, in elements. */
static inline int64_t nd_axis_offset(const struct axis_map *axis, uint64_t i)
{
    if (axis->block == 1)
        return (int64_t)i * axis->outer;
    return (int64_t)(i / axis->block) * axis->outer + (int64_t)(i % axis->block) * axis->inner;
}
/* How far an index along the link's `from` moves the index along its `to`. */
static inline uint64_t nd_link_shift(const struct axis_link *link, uint64_t i)
{
    return i / link->div % link->mod * link->times;
}

/*
 * Copies `count` elements from logical flat index `first` to dst, in logical order and
 * host byte order.  Needs no alignment.
 */
void nd_view_gather(const struct tensor_view *view, uint64_t first, uint64_t count, void *dst);
/* How many elements of logical order share their cache lines with one another: gathering
 * fewer at a time loads lines more than once.  1: no need. */
uint64_t nd_view_reach(const struct tensor_view *view);
/* How many of at most `most` elements from `first` on are best gathered together. */
uint64_t nd_view_cut(const struct tensor_view *view, uint64_t first, uint64_t most);
/* What nd_view_gather() copies, as doubles (complex: two each). */
void nd_view_decode(const struct tensor_view *view, uint64_t first, uint64_t count, double *dst);
/* One element by flat index; a complex one as its modulus. */
double nd_view_at(const struct tensor_view *view, uint64_t flat);

/* --- layers as the checks see them ------------------------------------------------ */

enum attribute_kind { ATTRIBUTE_NULL, ATTRIBUTE_BOOL, ATTRIBUTE_NUMBER, ATTRIBUTE_TEXT, ATTRIBUTE_LIST };
struct attribute {
    const char         *key;
    enum attribute_kind kind;
    double              number; /* BOOL: 0 or 1 */
    const char         *text;   /* TEXT, and how LIST was written */
    const double       *list;   /* LIST of numbers; NULL where it holds other things */
    size_t              list_len;
};

/* An absent statistic is NAN without is_nan; half_unit is half of the last printed digit's
 * unit (0 for exact numbers). */
enum statistic { STATISTIC_MAX, STATISTIC_MIN, STATISTIC_MEAN, STATISTIC_NORM, STATISTIC_COUNT };
struct statistics {
    double value[STATISTIC_COUNT];
    double half_unit[STATISTIC_COUNT];
    bool   is_nan[STATISTIC_COUNT]; /* present and printed as NaN: value is NAN all the same */
    uint64_t nan_count;             /* NaNs that the print counts; 0: none, or not counted */
};

struct slot_view {
    const char               *name;
    bool                      has_tensor;
    struct tensor_view        tensor;
    enum nd_dtype             real_dtype; /* what the run computed in; = tensor.dtype if unsaid */
    const char               *layout;     /* of the bytes; NULL: logical */
    uint32_t                  c0;
    const uint64_t           *valid;  /* declared: positions of a sample that mean something */
    size_t                    valid_count; /* 1: the same for every sample; 0: undeclared */
    const struct statistics  *statistics; /* NULL: none */
};

struct layer_view {
    const char             *name, *type, *direction;
    int64_t                 call;
    const struct attribute *attributes;
    size_t                  attribute_count;
    const struct slot_view *slots;
    size_t                  slot_count;
    bool                    container;
};

/* NULL where the layer has no such attribute or slot. */
const struct attribute *nd_layer_attribute(const struct layer_view *layer, const char *key);
const struct slot_view *nd_layer_slot(const struct layer_view *layer, const char *name);

/* A pair of layers; an unpaired one has a NULL candidate. */
struct layer_pair_view {
    const struct layer_view *side[2]; /* reference, candidate */
};

/*
 * The pairs by number.  Views are made as they are asked for: a pair and all that it points
 * to stay until the same worker has looked at ND_LOOKS_KEPT others since it last looked at
 * this one.
 */
enum { ND_LOOKS_KEPT = 128 };
typedef const struct layer_pair_view *nd_look_fn(void *layers, unsigned worker, size_t index);

#endif
