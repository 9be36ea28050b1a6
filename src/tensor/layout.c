/*
 * Storage layouts as digits: each storage axis is a logical axis ("h"), the quotient of
 * one by its block ("c/") or the remainder ("c%").
 */
#include "tensor/layout.h"

#include <string.h>

static const struct layout layouts[] = {
#define ND_LAYOUT(word, logical, storage) {#word, logical, storage},
#include "tensor/layouts.def"
#undef ND_LAYOUT
};

enum { FRACTAL_BLOCK = 16 }; /* the cube unit's edge, for axes other than c */

size_t nd_layout_count(void)
{
    return sizeof layouts / sizeof *layouts;
}

const struct layout *nd_layout_at(size_t i)
{
    return i < nd_layout_count() ? &layouts[i] : NULL;
}

const struct layout *nd_layout_by_name(const char *name)
{
    for (size_t i = 0; i < nd_layout_count(); i++) {
        const char *a = layouts[i].name, *b = name;
        while (*a != '\0' && (*b >= 'a' && *b <= 'z' ? *b - 32 : *b) == *a)
            a++, b++;
        if (*a == '\0' && *b == '\0')
            return &layouts[i];
    }
    return NULL;
}

bool nd_layout_padded(const struct layout *layout)
{
    return strchr(layout->storage, '%') != NULL;
}

struct digit {
    uint32_t axis; /* logical */
    char     part; /* 0 whole, '/' quotient, '%' remainder */
};

/* Reads the row's digits; returns their number (the storage rank). */
static uint32_t layout_digits(const struct layout *layout, struct digit *ret_digits)
{
    uint32_t count = 0;

    for (const char *p = layout->storage; *p != '\0'; p++) {
        ret_digits[count].axis = (uint32_t)(strchr(layout->logical, *p) - layout->logical);
        ret_digits[count].part = p[1] == '/' || p[1] == '%' ? p[1] : '\0';
        if (ret_digits[count].part != '\0')
            p++;
        count++;
    }
    return count;
}

/* The block of each logical axis: the stored size of its remainder digit. */
static void layout_blocks(const struct digit *digits, uint32_t rank,
                          const struct nd_shape *storage, uint64_t *ret_block)
{
    for (uint32_t k = 0; k < rank; k++)
        if (digits[k].part == '%')
            ret_block[digits[k].axis] = storage->dim[k];
}

static const char *layout_contradiction(const struct digit *digits, uint32_t rank,
                                        const struct nd_shape *storage,
                                        const struct nd_shape *logical, const uint64_t *block)
{
    for (uint32_t k = 0; k < rank; k++) {
        const uint64_t dim = logical->dim[digits[k].axis], b = block[digits[k].axis];
        if (digits[k].part == '\0' && storage->dim[k] != dim)
            return "a stored dimension differs from the logical one";
        if (digits[k].part == '%' && b == 0)
            return "the block dimension is 0";
        if (digits[k].part == '/' && storage->dim[k] != dim / b + (dim % b != 0))
            return "the stored block count does not fit the logical dimension";
    }
    return NULL;
}

bool nd_layout_apply(struct tensor_view *view, const struct layout *layout,
                     const struct nd_shape *storage, const struct nd_shape *logical,
                     uint32_t *inout_c0, const char **ret_why)
{
    struct digit    digits[ND_MAX_RANK];
    const uint32_t  rank = layout_digits(layout, digits);
    struct nd_shape shape = {.rank = (uint32_t)strlen(layout->logical)};
    uint64_t        block[ND_MAX_RANK];
    int64_t         stride = 1;

    if (storage->rank != rank) {
        *ret_why = "the stored shape has another rank than the layout";
        return false;
    }
    for (uint32_t k = 0; k < ND_MAX_RANK; k++)
        block[k] = 1;
    layout_blocks(digits, rank, storage, block);
    if (logical->rank == shape.rank) {
        shape = *logical;
    } else if (logical->rank != 0 || nd_layout_padded(layout)) {
        *ret_why = logical->rank == 0 ? "a padded layout needs the logical shape"
                                      : "the logical shape has another rank than the layout";
        return false;
    } else {
        for (uint32_t k = 0; k < rank; k++)
            shape.dim[digits[k].axis] = storage->dim[k];
    }
    *ret_why = layout_contradiction(digits, rank, storage, &shape, block);
    if (*ret_why != NULL)
        return false;
    view->shape = shape;
    for (uint32_t k = 0; k < shape.rank; k++)
        view->axis[k] = (struct axis_map){.block = block[k]};
    for (uint32_t k = rank; k-- > 0;) {
        struct axis_map *axis = &view->axis[digits[k].axis];
        if (digits[k].part == '%') {
            axis->inner = stride;
            if (*inout_c0 != 0 && layout->storage[strlen(layout->storage) - 2] == 'c' &&
                k == rank - 1 && storage->dim[k] != *inout_c0) {
                *ret_why = "C0 differs from the last stored dimension";
                return false;
            }
            *inout_c0 = (uint32_t)storage->dim[k];
        } else {
            axis->outer = stride;
        }
        stride *= (int64_t)(storage->dim[k] == 0 ? 1 : storage->dim[k]);
    }
    if (!nd_view_check(view)) {
        *ret_why = "the bytes are fewer than the layout needs";
        return false;
    }
    return true;
}

bool nd_layout_storage(const struct layout *layout, const struct nd_shape *logical, uint32_t c0,
                       struct nd_shape *ret_storage)
{
    struct digit   digits[ND_MAX_RANK];
    const uint32_t rank = layout_digits(layout, digits);

    if (logical->rank != strlen(layout->logical))
        return false;
    ret_storage->rank = rank;
    for (uint32_t k = 0; k < rank; k++) {
        const uint64_t dim = logical->dim[digits[k].axis];
        const uint64_t block = layout->logical[digits[k].axis] == 'c' ? c0 : FRACTAL_BLOCK;
        if (digits[k].part != '\0' && block == 0)
            return false;
        ret_storage->dim[k] = digits[k].part == '\0'  ? dim
                              : digits[k].part == '/' ? dim / block + (dim % block != 0)
                                                      : block;
    }
    return true;
}

static uint64_t count_nonzero(const struct tensor_view *view, uint64_t first, uint64_t count)
{
    double   values[2 * 512];
    uint64_t nonzero = 0;

    while (count > 0) {
        const uint64_t n = count < 512 ? count : 512;
        nd_view_decode(view, first, n, values);
        const uint64_t parts = nd_dtype_info(view->dtype)->kind == ND_KIND_COMPLEX ? 2 : 1;
        for (uint64_t i = 0; i < n * parts; i++)
            nonzero += values[i] != 0; /* true for NaN */
        first += n;
        count -= n;
    }
    return nonzero;
}

/*
 * The padding splits into one slab per blocked axis: there the axis runs through its
 * padding, the axes before it through their real size, those behind through all of it.
 * With that axis moved to the front, a slab is one range of flat indices.
 */
uint64_t nd_layout_padding_nonzero(const struct tensor_view *storage_view,
                                   const struct layout *layout, const struct nd_shape *logical,
                                   uint32_t c0)
{
    struct tensor_view full = *storage_view;
    struct nd_shape    padded = *logical;
    const char        *why;
    uint64_t           nonzero = 0;
    struct digit       digits[ND_MAX_RANK];
    const uint32_t     rank = layout_digits(layout, digits);

    for (uint32_t k = 0; k < rank; k++)
        if (digits[k].part == '/')
            for (uint32_t j = 0; j < rank; j++)
                if (digits[j].part == '%' && digits[j].axis == digits[k].axis)
                    padded.dim[digits[k].axis] = storage_view->shape.dim[k] * storage_view->shape.dim[j];
    if (!nd_layout_apply(&full, layout, &storage_view->shape, &padded, &c0, &why))
        return 0;
    for (uint32_t a = 0; a < logical->rank; a++) {
        if (padded.dim[a] == logical->dim[a])
            continue;
        struct tensor_view slab = full;
        uint32_t           order[ND_MAX_RANK];
        uint64_t           rest = 1;
        for (uint32_t k = 0; k < a; k++)
            slab.shape.dim[k] = logical->dim[k];
        order[0] = a;
        for (uint32_t k = 0, to = 1; k < logical->rank; k++)
            if (k != a)
                order[to++] = k;
        nd_view_permute(&slab, order);
        for (uint32_t k = 1; k < logical->rank; k++)
            rest *= slab.shape.dim[k];
        slab.contiguous = false; /* the range lies in padding, not from base */
        nonzero += count_nonzero(&slab, logical->dim[a] * rest, (padded.dim[a] - logical->dim[a]) * rest);
    }
    return nonzero;
}
