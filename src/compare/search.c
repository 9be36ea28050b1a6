/*
 * The layout search: when shapes contradict each other, or a plain comparison is hopeless,
 * the bytes of one side are read under every layout that their count allows, and the one
 * that makes the sides agree is named.  Samples choose; the caller proves it on the whole.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/slot_pair.h"

enum { SAMPLES = 512, MAX_PERMUTED_RANK = 5, MAX_GROUPS = 4096 };

/* A layout is only worth naming if it explains nearly everything: under 1e-1 (the guides'
 * bound between a wrong layout and anything else), and four times better than before. */
static const double FIT_BOUND = 1e-1, FIT_GAIN = 0.25;

/* Blocks of the cube unit: 16 (16 bits), 32 (8 bits), 8 (32 bits on some), 4 (C04), 64. */
static const uint32_t block_sizes[] = {16, 32, 8, 4, 64};

struct search {
    const struct pair_views *views;
    unsigned side; /* whose bytes are read anew */
    uint64_t at[SAMPLES];
    double other[2 * SAMPLES]; /* the other side's values there */
    unsigned count, parts;
    double best;
    struct found_layout *found;
};

/* Multiplying by 2^64 / golden ratio scatters positions over every axis. */
static void search_positions(struct search *search)
{
    const struct tensor_view *other = &search->views->view[!search->side];

    search->count = other->count < SAMPLES ? (unsigned)other->count : SAMPLES;
    search->parts = nd_dtype_info(other->dtype)->kind == ND_KIND_COMPLEX ? 2 : 1;
    for (unsigned i = 0; i < search->count; i++) {
        search->at[i] =
            other->count <= SAMPLES ? i : i * 0x9E3779B97F4A7C15ull % other->count;
        nd_view_decode(other, search->at[i], 1, search->other + search->parts * i);
    }
}

static double sampled_drift(const struct search *search, const struct tensor_view *view)
{
    double error = 0, size = 0, value[2];

    for (unsigned i = 0; i < search->count; i++) {
        nd_view_decode(view, search->at[i], 1, value);
        for (unsigned p = 0; p < search->parts; p++) {
            const double a = search->other[search->parts * i + p], b = value[p];
            const double r = search->side == 1 ? a : b;
            if (!isfinite(a) || !isfinite(b))
                continue;
            error += (a - b) * (a - b);
            size += r * r;
        }
    }
    return size == 0 ? (error == 0 ? 0 : (double)INFINITY) : sqrt(error / size);
}

static bool search_offer(struct search *search, const struct tensor_view *view,
                         const char *label, const char *other_label, uint32_t c0)
{
    const double drift = sampled_drift(search, view);

    if (!(drift < search->best))
        return false;
    search->best = drift;
    search->found->layout = NULL;
    search->found->side = search->side;
    search->found->view[search->side] = *view;
    search->found->view[!search->side] = search->views->view[!search->side];
    snprintf(search->found->label[search->side], sizeof search->found->label[0], "%s",
             label);
    snprintf(search->found->label[!search->side], sizeof search->found->label[0], "%s",
             other_label);
    search->found->c0 = c0;
    search->found->sampled_drift = drift;
    return true;
}

/* Do the elements lie in logical order, with gaps?  Then any tensor cut out of a larger one
 * agrees with it, and only the stored shape tells a block from what was cut off. */
static bool keeps_order(const struct tensor_view *view)
{
    int64_t least = 0; /* the step that the axis before needs */

    if (view->link.is)
        return false;
    for (uint32_t k = view->shape.rank; k-- > 0;) {
        const struct axis_map *axis = &view->axis[k];
        if (view->shape.dim[k] == 1)
            continue;
        if (axis->block != 1 || axis->outer < least)
            return false;
        least = axis->outer * (int64_t)view->shape.dim[k];
    }
    return true;
}

/* The bytes as a row-major tensor whose axes are the logical ones in another order. */
static void try_permutation(struct search *search, const uint32_t *order)
{
    const struct tensor_view *bytes = &search->views->open[search->side].storage;
    const struct nd_shape *shape = &search->views->view[!search->side].shape;
    struct nd_shape stored = {.rank = shape->rank};
    uint32_t inverse[ND_MAX_RANK];
    struct tensor_view view;
    char label[2][64];

    for (uint32_t k = 0; k < shape->rank; k++) {
        stored.dim[k] = shape->dim[order[k]];
        inverse[order[k]] = k;
    }
    nd_view_contiguous(&view, bytes->data, bytes->data_size, bytes->dtype, &stored);
    view.swapped = bytes->swapped;
    view.base = bytes->base;
    if (!nd_view_check(&view))
        return;
    nd_view_permute(&view, inverse);
    if (keeps_order(&view))
        return; /* only axes of size 1 moved */
    nd_name_permutation(order, shape, &bytes->shape, label[0], label[1], sizeof label[0]);
    (void)search_offer(search, &view, label[0], label[1], 0);
}

/* All orders of up to five axes, in lexicographic order; the plain one is left out. */
static void try_permutations(struct search *search)
{
    const uint32_t rank = search->views->view[!search->side].shape.rank;
    uint32_t order[MAX_PERMUTED_RANK];

    if (rank < 2 || rank > MAX_PERMUTED_RANK)
        return;
    for (uint32_t k = 0; k < rank; k++)
        order[k] = k;
    for (;;) {
        uint32_t i = rank - 1;
        while (i > 0 && order[i - 1] >= order[i])
            i--;
        if (i == 0)
            return;
        uint32_t k = rank - 1;
        while (order[k] <= order[i - 1])
            k--;
        const uint32_t kept = order[i - 1];
        order[i - 1] = order[k];
        order[k] = kept;
        for (uint32_t a = i, b = rank - 1; a < b; a++, b--) {
            const uint32_t turned = order[a];
            order[a] = order[b];
            order[b] = turned;
        }
        try_permutation(search, order);
    }
}

/* The other side's shape as its framework may have ordered the axes of a layout. */
struct axis_order {
    const char *axes, *label; /* NULL: in the layout's own order */
};

static void try_form(struct search *search, const struct layout *layout,
                     const struct axis_order *order, uint64_t groups, uint32_t c0)
{
    const struct tensor_view *bytes = &search->views->open[search->side].storage;
    const struct nd_shape *shape = &search->views->view[!search->side].shape;
    struct nd_shape logical = *shape, stored;
    uint32_t axis[ND_MAX_RANK] = {0};
    uint64_t count;
    const char *why;

    for (uint32_t k = 0; order->axes != NULL && k < shape->rank; k++) {
        axis[k] = (uint32_t)(strchr(layout->logical, order->axes[k]) - layout->logical);
        logical.dim[axis[k]] = shape->dim[k];
    }
    if (!nd_layout_storage_groups(layout, &logical, groups, c0, &stored) ||
        !nd_shape_count(&stored, &count) || count != bytes->count)
        return;
    struct tensor_view view;
    nd_view_contiguous(&view, bytes->data, bytes->data_size, bytes->dtype, &stored);
    view.swapped = bytes->swapped;
    view.base = bytes->base;
    if (!nd_layout_apply_groups(&view, layout, &stored, &logical, groups, &c0, &why) ||
        !nd_shape_equal(&view.shape, &logical) ||
        (keeps_order(&view) && !nd_shape_equal(&stored, &bytes->shape)))
        return;
    if (order->axes != NULL)
        nd_view_permute(&view, axis);
    if (!search_offer(search, &view, layout->name, order->label, c0))
        return;
    search->found->layout = layout;
    search->found->logical = logical;
    search->found->stored = stored;
    search->found->groups = groups;
    search->found->has_order = order->axes != NULL;
    memcpy(search->found->order, axis, sizeof axis);
}

/* Groups of a convolution: they divide the output channels. */
static void try_groups(struct search *search, const struct layout *layout,
                       const struct axis_order *order, uint32_t c0)
{
    const struct nd_shape *shape = &search->views->view[!search->side].shape;
    const uint64_t n =
        shape->dim[order->axes == NULL ? 0 : strchr(order->axes, 'n') - order->axes];

    try_form(search, layout, order, 1, c0);
    if (strchr(layout->storage, 'g') == NULL)
        return;
    for (uint64_t groups = 2; groups <= n && groups <= MAX_GROUPS; groups++)
        if (n % groups == 0)
            try_form(search, layout, order, groups, c0);
}

static void try_blocked(struct search *search)
{
    static const struct axis_order orders[] = {
        {"nchw",  "NCHW" },
        {"nhwc",  "NHWC" },
        {"hwcn",  "HWCN" },
        {"ncdhw", "NCDHW"},
        {"ndhwc", "NDHWC"},
        {"dhwcn", "DHWCN"}
    };
    static const struct axis_order own = {NULL, ""};
    const uint32_t rank = search->views->view[!search->side].shape.rank;

    for (size_t l = 0; l < nd_layout_count(); l++) {
        const struct layout *layout = nd_layout_at(l);
        const size_t axes = strlen(layout->logical);
        if (!nd_layout_padded(layout))
            continue;
        for (size_t b = 0; b < sizeof block_sizes / sizeof *block_sizes; b++) {
            if (axes < 4)
                try_form(search, layout, &own, 1, block_sizes[b]);
            for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
                if (axes == strlen(orders[o].axes) && axes == rank)
                    try_groups(search, layout, &orders[o], block_sizes[b]);
        }
    }
}

/* Leading dimensions merged on one side, [4, 128, 768] as [512, 768]: tokens of all samples in
 * one axis.  Any other reshape is another tensor, even where the elements agree in order. */
static bool merges_leading(const struct nd_shape *a, const struct nd_shape *b)
{
    const struct nd_shape *longer = a->rank > b->rank ? a : b, *shorter = a->rank > b->rank ? b : a;

    if (longer->rank == shorter->rank || shorter->rank < 2)
        return false;
    for (uint32_t k = 1; k < shorter->rank; k++)
        if (shorter->dim[shorter->rank - k] != longer->dim[longer->rank - k])
            return false;
    return true;
}

/* Heads split on one side only: [B, S, H] beside [B, S, N, D] or [T, N, D], where H = N * D
 * and T = B * S.  Names what a and b are then. */
static bool splits_heads(const struct nd_shape *a, const struct nd_shape *b, const char **ret_a,
                         const char **ret_b)
{
    if (a->rank != 3)
        return b->rank == 3 && splits_heads(b, a, ret_b, ret_a);
    *ret_a = "BSH";
    if (b->rank == 4 && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] &&
        b->dim[2] > 1 && b->dim[3] > 1) {
        *ret_b = "BSND";
        return true;
    }
    *ret_b = "TND";
    if (b->rank != 3 || a->dim[0] == 1 || a->dim[1] == 1 || b->dim[1] == 1)
        return false;
    if (a->dim[0] * a->dim[1] == b->dim[0] && a->dim[2] > b->dim[2])
        return true;
    *ret_a = "TND";
    *ret_b = "BSH";
    return b->dim[0] > 1 && a->dim[0] == b->dim[0] * b->dim[1] && a->dim[2] < b->dim[2];
}

static void try_reshape(struct search *search)
{
    struct tensor_view view = search->views->open[search->side].storage;
    const struct nd_shape shape = search->views->view[!search->side].shape;
    const char *label = "reshaped", *other = "";
    struct tensor_view flat;

    if (!merges_leading(&view.shape, &shape) &&
        !splits_heads(&view.shape, &shape, &label, &other))
        return;
    nd_view_contiguous(&flat, view.data, view.data_size, view.dtype, &shape);
    flat.swapped = view.swapped;
    flat.base = view.base;
    if (nd_view_check(&flat))
        (void)search_offer(search, &flat, label, other, 0);
}

bool nd_search_layout(const struct pair_views *views, double plain_drift,
                      struct found_layout *ret)
{
    struct search search = {
        .views = views,
        .found = ret,
        .best = plain_drift * FIT_GAIN < FIT_BOUND ? plain_drift * FIT_GAIN : FIT_BOUND};
    *ret = (struct found_layout){.sampled_drift = (double)INFINITY};

    /* The candidate is the likelier side; the reference is tried when it does not fit. */
    for (unsigned k = 0; k < 2 && ret->sampled_drift > FIT_BOUND; k++) {
        search.side = 1 - k;
        if (!views->is_open[search.side] || !views->open[search.side].storage.contiguous)
            continue;
        search_positions(&search);
        if (views->open[search.side].storage.count == views->view[!search.side].count) {
            try_reshape(&search);
            try_permutations(&search);
        }
        try_blocked(&search);
    }
    return ret->sampled_drift < FIT_BOUND;
}
