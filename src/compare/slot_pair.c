/*
 * Opening pairs.
 */
#include "compare/slot_pair.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void pair_reason(struct pair_views *views, unsigned side, const struct nd_error *err)
{
    static const char *const names[2] = {"reference", "candidate"};

    snprintf(views->reason, sizeof views->reason, "%s: %s%s%s%s%s", names[side],
             err->at[0] != '\0' ? err->at : "", err->at[0] != '\0' ? ": " : "", err->found,
             err->expected[0] != '\0' ? "; expected " : "", err->expected);
}

static void pair_reconcile(struct pair_views *views)
{
    struct tensor_view *r = &views->view[0], *c = &views->view[1];

    if (nd_shape_equal(&r->shape, &c->shape)) {
        views->ready = true;
        return;
    }
    const struct nd_shape a = nd_shape_squeezed(&r->shape), b = nd_shape_squeezed(&c->shape);
    if (nd_shape_equal(&a, &b)) {
        nd_view_squeeze_to(c, &r->shape);
        views->ready = views->squeezed = true;
        return;
    }
    views->search = true;
    if (views->contradicts)
        return; /* the reason stands */
    char text_r[400], text_c[400];
    snprintf(views->reason, sizeof views->reason, "shapes %s and %s",
             nd_shape_text(&r->shape, text_r, sizeof text_r),
             nd_shape_text(&c->shape, text_c, sizeof text_c));
}

static void pair_count_padding(const struct dump_slot *slot, unsigned side,
                               struct pair_views *views)
{
    const struct tensor_view *storage = &views->open[side].storage;

    if (slot->layout == NULL || !nd_layout_padded(slot->layout))
        return;
    views->padding[side] = nd_layout_padding_nonzero_groups(
        storage, slot->layout, slot->logical != NULL ? slot->logical : &views->view[side].shape,
        slot->groups, (uint32_t)storage->shape.dim[storage->shape.rank - 1]);
}

/* The bytes as they lie, where the layout that the dump declares does not fit them. */
static bool pair_open_plain(const struct dump *dump, const struct dump_slot *slot, unsigned side,
                            struct pair_views *views)
{
    struct dump_slot plain = *slot;
    struct nd_error  err = {0};

    if (slot->strided || (slot->layout == NULL && !slot->layout_broken))
        return false;
    plain.layout = NULL;
    plain.broken = NULL;
    plain.logical = NULL;
    plain.has_order = false;
    if (nd_slot_open(dump, &plain, &views->open[side], &err) != ND_OK)
        return false;
    views->is_open[side] = views->contradicts = true;
    views->view[side] = views->open[side].view;
    views->real[side] = nd_slot_dtype(slot);
    return true;
}

static bool pair_open_side(const struct dump *dump, const struct dump_slot *slot, unsigned side,
                           struct pair_views *views)
{
    struct nd_error err = {0};

    if (slot->broken != NULL)
        nd_fail(&err, ND_ERR_UNSUPPORTED, NULL, "%s", slot->broken);
    else if (nd_slot_open(dump, slot, &views->open[side], &err) == ND_OK) {
        views->is_open[side] = true;
        views->view[side] = views->open[side].view;
        views->real[side] = nd_slot_dtype(slot);
        pair_count_padding(slot, side, views);
        return true;
    }
    if (!views->contradicts)
        pair_reason(views, side, &err);
    if (pair_open_plain(dump, slot, side, views))
        return true;
    views->unreadable = true;
    return false;
}

/* --- concat(q, k, v; axis) --------------------------------------------------------- */

static const struct dump_slot *part_slot(const struct dump_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    return NULL;
}

/* Writes the parts to a spool file, outer index by outer index, so that it reads as their
 * concatenation. */
static bool join_parts(const struct open_slot *parts, size_t count, uint32_t axis, int fd)
{
    const unsigned size = nd_dtype_info(parts[0].view.dtype)->size;
    uint64_t       outer = 1;
    unsigned char  buffer[16384];

    for (uint32_t k = 0; k < axis; k++)
        outer *= parts[0].view.shape.dim[k];
    for (uint64_t o = 0; o < outer; o++)
        for (size_t p = 0; p < count; p++) {
            const uint64_t run = parts[p].view.count / outer;
            for (uint64_t at = 0; at < run;) {
                const uint64_t room = sizeof buffer / size;
                const uint64_t n = run - at < room ? run - at : room;
                nd_view_gather(&parts[p].view, o * run + at, n, buffer);
                if (!nd_spool_write(fd, buffer, n * size))
                    return false;
                at += n;
            }
        }
    return true;
}

/* The shape of the concatenation; false if the parts do not fit together. */
static bool join_shape(const struct open_slot *parts, size_t count, uint32_t axis,
                       struct nd_shape *ret_shape)
{
    *ret_shape = parts[0].view.shape;
    for (size_t p = 1; p < count; p++) {
        const struct tensor_view *view = &parts[p].view;
        if (view->shape.rank != ret_shape->rank || view->dtype != parts[0].view.dtype)
            return false;
        for (uint32_t k = 0; k < view->shape.rank; k++)
            if (k != axis && view->shape.dim[k] != ret_shape->dim[k])
                return false;
        ret_shape->dim[axis] += view->shape.dim[axis];
    }
    return true;
}

static void join_opened(const struct layer_pair *layer, const struct open_slot *parts,
                        struct pair_views *views)
{
    const int64_t   rank = parts[0].view.shape.rank;
    const int64_t   axis = layer->part_axis_asked < 0 ? layer->part_axis_asked + rank
                                                      : layer->part_axis_asked;
    struct nd_shape shape;
    struct nd_error err = {0};
    int             fd = -1;

    views->unreadable = true;
    if (axis < 0 || axis >= rank || !join_shape(parts, layer->part_count, (uint32_t)axis, &shape)) {
        snprintf(views->reason, sizeof views->reason,
                 "candidate: the parts of concat() differ in shape or dtype");
        return;
    }
    fd = nd_spool_new();
    if (fd < 0 || !join_parts(parts, layer->part_count, (uint32_t)axis, fd) ||
        nd_map_fd(fd, &views->joined, &err) != ND_OK) {
        snprintf(views->reason, sizeof views->reason,
                 "candidate: concat() needs room for a temporary file");
    } else {
        views->is_joined = true;
        views->unreadable = false;
        nd_view_contiguous(&views->view[1], views->joined.bytes, views->joined.size,
                           parts[0].view.dtype, &shape);
    }
    if (fd >= 0)
        close(fd);
}

static bool pair_open_parts(const struct layer_pair *layer, const struct slot_pair *slot,
                            const struct dump *dump, struct pair_views *views)
{
    struct open_slot *parts = calloc(layer->part_count, sizeof *parts);
    size_t            opened = 0;
    struct nd_error   err = {0};

    if (parts == NULL)
        nd_fail_memory(&err);
    for (; parts != NULL && opened < layer->part_count; opened++) {
        const struct dump_slot *part = part_slot(layer->parts[opened], slot->side[0]->name);
        if (part == NULL || part->evidence != ND_EVIDENCE_VALUES || part->broken != NULL) {
            nd_fail(&err, ND_ERR_UNSUPPORTED, NULL, "part %s of concat() has no values of %s",
                    layer->parts[opened]->name, slot->side[0]->name);
            break;
        }
        if (nd_slot_open(dump, part, &parts[opened], &err) != ND_OK)
            break;
        views->real[1] = nd_slot_dtype(part);
    }
    if (parts != NULL && opened == layer->part_count)
        join_opened(layer, parts, views);
    else {
        pair_reason(views, 1, &err);
        views->unreadable = true;
    }
    for (size_t i = 0; i < opened; i++)
        (void)nd_slot_close(&parts[i]);
    free(parts);
    return !views->unreadable;
}

/* --- statistics ------------------------------------------------------------------------- */

/* One value a channel or a row: more than this is no statistic. */
static const uint64_t STATISTIC_ELEMENTS = 1 << 24;

double *nd_rstd_of(const struct tensor_view *view, double eps)
{
    if (view->count > STATISTIC_ELEMENTS || nd_dtype_info(view->dtype)->kind != ND_KIND_FLOAT)
        return NULL;
    double *values = malloc((size_t)(view->count + 1) * sizeof *values);
    if (values == NULL)
        return NULL;
    nd_view_decode(view, 0, view->count, values);
    for (uint64_t i = 0; i < view->count; i++)
        values[i] = 1 / sqrt(values[i] + eps);
    return values;
}

/* The variance's side as the reciprocal standard deviation that stands on the other. */
static void pair_convert(const struct slot_pair *slot, struct pair_views *views)
{
    const unsigned      side = slot->to_rstd == TO_RSTD_REFERENCE ? 0 : 1;
    struct tensor_view *view = &views->view[side];

    if (slot->to_rstd == TO_RSTD_NONE || !views->ready)
        return;
    views->converted = nd_rstd_of(view, slot->scatter_eps);
    if (views->converted == NULL)
        return;
    const struct nd_shape shape = view->shape;
    nd_view_contiguous(view, views->converted, view->count * sizeof *views->converted,
                       ND_DTYPE_f64, &shape);
}

void nd_pair_open(const struct comparison *comparison, const struct layer_pair *layer,
                  const struct slot_pair *slot, struct pair_views *ret)
{
    *ret = (struct pair_views){0};
    for (unsigned side = 0; side < 2; side++) {
        const struct dump_slot *dumped =
            slot->adjusted[side] != NULL ? slot->adjusted[side] : slot->side[side];
        if (side == 1 && layer->part_count > 0) {
            if (!pair_open_parts(layer, slot, comparison->dump[1], ret))
                return;
        } else if (!pair_open_side(comparison->dump[side], dumped, side, ret)) {
            return;
        }
    }
    pair_reconcile(ret);
    pair_convert(slot, ret);
}

/* --- streams ------------------------------------------------------------------------------ */

static const struct dump_slot *slot_seen(const struct slot_pair *slot, unsigned side)
{
    return slot->adjusted[side] != NULL ? slot->adjusted[side] : slot->side[side];
}

bool nd_pair_streams(const struct layer_pair *layer, const struct slot_pair *slot)
{
    struct tensor_view view[2];
    struct nd_shape    shape[2];

    if (layer->part_count > 0 || slot->to_rstd != TO_RSTD_NONE ||
        (!nd_slot_streams(slot_seen(slot, 0)) && !nd_slot_streams(slot_seen(slot, 1))))
        return false;
    for (unsigned side = 0; side < 2; side++) {
        const struct dump_slot *seen = slot_seen(slot, side);
        if (seen->broken != NULL || seen->layout != NULL || seen->strided ||
            nd_slot_view_of(seen, &view[side], NULL) != ND_OK)
            return false;
        shape[side] = nd_shape_squeezed(&view[side].shape);
    }
    return view[0].count > 0 && nd_shape_equal(&shape[0], &shape[1]);
}

void nd_pair_open_stream(const struct comparison *comparison, const struct slot_pair *slot,
                         struct pair_views *ret)
{
    struct nd_error err = {0};

    *ret = (struct pair_views){0};
    for (unsigned side = 0; side < 2; side++) {
        const struct dump_slot *seen = slot_seen(slot, side);
        if (!nd_slot_streams(seen)) {
            if (!pair_open_side(comparison->dump[side], seen, side, ret))
                return;
        } else if (nd_slot_view_of(seen, &ret->view[side], &err) == ND_OK) {
            ret->real[side] = nd_slot_dtype(seen);
        } else {
            nd_pair_fail(ret, side, &err);
            return;
        }
    }
    pair_reconcile(ret);
}

void nd_pair_fail(struct pair_views *views, unsigned side, const struct nd_error *err)
{
    pair_reason(views, side, err);
    views->ready = false;
    views->unreadable = true;
}

const char *nd_pair_close(struct pair_views *views)
{
    const char *shrunk = NULL;

    for (unsigned side = 0; side < 2; side++)
        if (views->is_open[side]) {
            const struct open_slot *const open = &views->open[side];
            const char *const             path = open->dump->files[open->file].path;
            if (!nd_slot_close(&views->open[side]) && shrunk == NULL)
                shrunk = path;
        }
    if (views->is_joined)
        nd_map_close(&views->joined);
    free(views->converted);
    *views = (struct pair_views){0};
    return shrunk;
}
