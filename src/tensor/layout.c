/*
 * Storage layouts: each storage axis is a logical axis ("h"), the quotient of one by its
 * block ("c/") or the remainder ("c%"); layouts.def has the rows.
 */
#include "tensor/layout.h"

#include <string.h>

#include "tensor/layout_form.h"

static const struct layout layouts[] = {
#define ND_LAYOUT(word, logical, storage) {#word, logical, storage},
#include "tensor/layouts.def"
#undef ND_LAYOUT
};

size_t nd_layout_count(void)
{
    return sizeof layouts / sizeof *layouts;
}

const struct layout *nd_layout_at(size_t i)
{
    return i < nd_layout_count() ? &layouts[i] : NULL;
}

static char layout_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

const struct layout *nd_layout_by_name(const char *name)
{
    for (size_t i = 0; i < nd_layout_count(); i++) {
        const char *a = layouts[i].name, *b = name;
        while (*a != '\0' && layout_upper(*b) == layout_upper(*a))
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

bool nd_layout_takes_rank(const struct layout *layout, uint32_t rank)
{
    const struct layout *end = layouts + nd_layout_count();

    for (const struct layout *row = layout;
         row < end && strcmp(row->name, layout->name) == 0; row++) {
        const bool star = row->logical[0] == '*';
        const size_t axes = strlen(row->logical) - star;
        if (star ? rank >= axes : rank == axes)
            return true;
    }
    return false;
}

/* --- applying ------------------------------------------------------------------------ */

/* The logical shape that an unpadded layout's stored one implies. */
static void derive_logical(const struct layout *layout, const struct nd_shape *storage,
                           struct nd_shape *ret_logical)
{
    ret_logical->rank = (uint32_t)strlen(layout->logical);
    for (uint32_t k = 0; k < ret_logical->rank; k++)
        ret_logical->dim[k] =
            storage->dim[strchr(layout->storage, layout->logical[k]) - layout->storage];
}

/* The map of one letter: its digits' strides. */
static struct axis_map form_map(const struct form *form, char letter)
{
    struct axis_map map = {.block = form->block[(unsigned char)letter % FORM_LETTERS]};

    for (uint32_t k = 0; k < form->count; k++) {
        const struct digit *digit = &form->digit[k];
        if (digit->letter != letter)
            continue;
        if (digit->part == '%')
            map.inner += digit->stride; /* two on a diagonal add up */
        else
            map.outer = digit->stride;
    }
    return map;
}

static uint32_t form_axis(const struct form *form, char letter)
{
    return form->lead + (uint32_t)(strchr(form->letters, letter) - form->letters);
}

/*
 * Output channel n lies in group n / out: e groups to a block row, n counting on within
 * them, so that n % (e * out) is a plain stride.  An input channel counts from where its
 * group begins among the merged ones.
 */
static bool form_link_groups(const struct form *form, struct tensor_view *view)
{
    const struct axis_map n = form_map(form, 'n');
    const uint32_t from = form_axis(form, 'n'), to = form_axis(form, 'c');

    if (n.outer != n.inner * (int64_t)n.block)
        return false;
    view->axis[from] = (struct axis_map){
        .block = form->dim['n'], .outer = form_map(form, 'g').outer, .inner = n.inner};
    view->axis[to] = (struct axis_map){.block = 1};
    view->link = (struct axis_link){.is = true,
                                    .from = from,
                                    .to = to,
                                    .div = form->inner[1],
                                    .mod = form->merged,
                                    .times = form->inner[0],
                                    .map = form_map(form, 'c')};
    return true;
}

/* (h * W + w) * 4 + c in blocks of C0: C0 / 4 pixels to a block, c within the pixel. */
static void form_link_pixels(const struct form *form, struct tensor_view *view)
{
    const struct axis_map packed = form_map(form, '4');
    const uint32_t from = form_axis(form, 'h'), to = form_axis(form, 'w');

    view->axis[form_axis(form, 'c')] = (struct axis_map){.block = 1, .outer = packed.inner};
    view->axis[from] = view->axis[to] = (struct axis_map){.block = 1};
    view->link = (struct axis_link){
        .is = true,
        .from = from,
        .to = to,
        .div = 1,
        .mod = UINT64_MAX,
        .times = form->dim['w'],
        .map = {
                .block = packed.block / 4, .outer = packed.outer, .inner = 4 * packed.inner}
    };
}

static bool form_apply(const struct form *form, const struct nd_shape *logical,
                       struct tensor_view *view)
{
    view->shape = *logical;
    view->link = (struct axis_link){.is = false};
    for (uint32_t k = 0; k < form->rank; k++)
        view->axis[k] = k < form->lead
                            ? (struct axis_map){.block = 1, .outer = form->digit[k].stride}
                            : form_map(form, form->letters[k - form->lead]);
    if (strchr(form->layout->storage, '4') != NULL)
        form_link_pixels(form, view);
    if (form->groups > 1 && !form_link_groups(form, view))
        return false;
    return nd_view_check(view);
}

bool nd_layout_apply_groups(struct tensor_view *view, const struct layout *layout,
                            const struct nd_shape *storage, const struct nd_shape *logical,
                            uint64_t groups, uint32_t *inout_c0, const char **ret_why)
{
    struct nd_shape shape = *logical;
    struct form form;

    if (logical->rank == 0 && nd_layout_padded(layout)) {
        *ret_why = "a padded layout needs the logical shape";
        return false;
    }
    if (logical->rank == 0 && storage->rank == strlen(layout->logical))
        derive_logical(layout, storage, &shape);
    *ret_why = logical->rank == 0 && shape.rank == 0
                   ? "the stored shape has another rank than the layout"
                   : nd_form_fit(layout, storage, &shape, groups, &form);
    if (*ret_why != NULL)
        return false;
    const struct digit *last = &form.digit[form.count - 1];
    if (last->part == '%' && *inout_c0 != 0 && last->size != *inout_c0) {
        *ret_why = "C0 differs from the last stored dimension";
        return false;
    }
    struct tensor_view made = *view;
    if (!form_apply(&form, &shape, &made)) {
        *ret_why = "the bytes are fewer than the layout needs";
        return false;
    }
    *view = made;
    if (last->part == '%')
        *inout_c0 = (uint32_t)last->size;
    return true;
}

bool nd_layout_apply(struct tensor_view *view, const struct layout *layout,
                     const struct nd_shape *storage, const struct nd_shape *logical,
                     uint32_t *inout_c0, const char **ret_why)
{
    return nd_layout_apply_groups(view, layout, storage, logical, 1, inout_c0, ret_why);
}

/* --- storage shapes ------------------------------------------------------------------ */

bool nd_layout_storage_groups(const struct layout *layout, const struct nd_shape *logical,
                              uint64_t groups, uint32_t c0, struct nd_shape *ret_storage)
{
    struct form form;

    if (!nd_form_read(layout, logical, groups, &form))
        return false;
    const struct digit *last = &form.digit[form.count - 1];
    if (last->part == '%' && c0 == 0)
        return false;
    for (uint32_t k = 0; k < form.count; k++)
        if (form.digit[k].part == '%')
            form.block[(unsigned char)form.digit[k].letter] =
                form.digit[k].letter == last->letter ? c0 : FORM_BLOCK;
    if (form.stored > ND_MAX_RANK || nd_form_measure(&form) != NULL)
        return false;
    ret_storage->rank = form.stored;
    for (uint32_t k = 0; k < form.stored; k++)
        if (!nd_form_stored(&form, k, &ret_storage->dim[k]))
            return false;
    return true;
}

bool nd_layout_storage(const struct layout *layout, const struct nd_shape *logical,
                       uint32_t c0, struct nd_shape *ret_storage)
{
    return nd_layout_storage_groups(layout, logical, 1, c0, ret_storage);
}
