/*
 * The padding lanes of blocked layouts: what lies in the bytes beside the tensor.
 */
#include <string.h>

#include "tensor/layout_form.h"

enum { PADDING_STEP = 2048 };

static uint64_t count_nonzero(const struct tensor_view *view, uint64_t count)
{
    double values[2 * PADDING_STEP];
    const unsigned parts = nd_dtype_info(view->dtype)->kind == ND_KIND_COMPLEX ? 2 : 1;
    uint64_t nonzero = 0;

    for (uint64_t at = 0; at < count; at += PADDING_STEP) {
        const uint64_t n = count - at < PADDING_STEP ? count - at : PADDING_STEP;
        nd_view_decode(view, at, n, values);
        for (uint64_t i = 0; i < n * parts; i++)
            nonzero += values[i] != 0; /* true for NaN */
    }
    return nonzero;
}

static int64_t axis_step(const struct tensor_view *view, uint32_t k)
{
    const struct axis_map *axis = &view->axis[k];

    return axis->block == 1 ? axis->outer : axis->inner;
}

/* Axes from the widest step to the narrowest: the order in which the bytes lie. */
static void slab_sort(struct tensor_view *slab)
{
    uint32_t order[ND_MAX_RANK];

    for (uint32_t k = 0; k < slab->shape.rank; k++) {
        uint32_t at = k;
        for (; at > 0 && axis_step(slab, order[at - 1]) < axis_step(slab, k); at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    nd_view_permute(slab, order);
}

/* What lies in `full`, but not where the index along `axis` is below `from`; none of the
 * indices from there on leaves the last block. */
static uint64_t slab_nonzero(const struct tensor_view *full, uint32_t axis, uint64_t from)
{
    struct tensor_view slab = *full;

    slab.base += (uint64_t)nd_axis_offset(&slab.axis[axis], from);
    slab.shape.dim[axis] -= from;
    slab.axis[axis] = (struct axis_map){.block = 1, .outer = axis_step(full, axis)};
    if (!nd_view_check(&slab) || slab.count == 0)
        return 0;
    slab_sort(&slab);
    return count_nonzero(&slab, slab.count);
}

/* The number of stored elements along a logical axis. */
static uint64_t form_padded(const struct form *form, uint32_t axis)
{
    const char letter = axis < form->lead ? '\0' : form->letters[axis - form->lead];

    for (uint32_t k = 0; k < form->count; k++)
        if (form->digit[k].letter == letter && form->digit[k].part == '/')
            return form->digit[k].size * form->block[(unsigned char)letter % FORM_LETTERS];
    return 0;
}

/* Axes that share their blocks, a diagonal, or an axis of size 1 in blocks: the padding is
 * no box, and what is not zero is counted in all of the bytes and in the tensor. */
static bool form_is_boxed(const struct form *form)
{
    if (form->groups > 1)
        return false;
    for (uint32_t k = 0; k < form->count; k++) {
        const struct digit *digit = &form->digit[k];
        if (digit->part == '%' && (digit->letter == '4' || digit->size > 1) &&
            strchr(form->letters, digit->letter) == NULL)
            return false;
        for (uint32_t j = 0; j < k; j++)
            if (digit->part == '%' && form->digit[j].part == '%' &&
                form->digit[j].letter == digit->letter)
                return false;
    }
    return true;
}

uint64_t nd_layout_padding_nonzero_groups(const struct tensor_view *storage_view,
                                          const struct layout *layout,
                                          const struct nd_shape *logical, uint64_t groups,
                                          uint32_t c0)
{
    const struct nd_shape *storage = &storage_view->shape;
    struct tensor_view view = *storage_view;
    struct nd_shape padded = *logical;
    struct form form;
    const char *why;
    uint64_t nonzero = 0;

    if (nd_form_fit(layout, storage, logical, groups, &form) != NULL ||
        !nd_layout_apply_groups(&view, layout, storage, logical, groups, &c0, &why))
        return 0;
    if (!form_is_boxed(&form)) {
        const uint64_t all = count_nonzero(storage_view, storage_view->count);
        const uint64_t inside = count_nonzero(&view, view.count);
        return all > inside ? all - inside : 0;
    }
    for (uint32_t a = 0; a < logical->rank; a++)
        padded.dim[a] = form_padded(&form, a) > 0 ? form_padded(&form, a) : logical->dim[a];
    view = *storage_view;
    if (!nd_layout_apply(&view, layout, storage, &padded, &c0, &why))
        return 0;
    /* One slab per blocked axis: there that axis runs through its padding, the axes before
     * it through their real size, those behind it through all of it. */
    for (uint32_t a = 0; a < logical->rank; a++) {
        if (padded.dim[a] > logical->dim[a])
            nonzero += slab_nonzero(&view, a, logical->dim[a]);
        view.shape.dim[a] = logical->dim[a];
    }
    return nonzero;
}

uint64_t nd_layout_padding_nonzero(const struct tensor_view *storage_view,
                                   const struct layout *layout,
                                   const struct nd_shape *logical, uint32_t c0)
{
    return nd_layout_padding_nonzero_groups(storage_view, layout, logical, 1, c0);
}
