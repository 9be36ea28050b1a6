/*
 * Tensors of a MindSpore dump put together as layers.
 *
 *   1. an operator that ran several times in an iteration has one name; the k-th file of a
 *      slot by time is the k-th call's.  Input and output of a call have stamps of their
 * own
 *   2. a tensor that lies as a file and as a row is one slot with both
 *   3. a Parameter's name says what it is to its layer: fc1.weight
 *   4. order of execution comes from the tables where they know every operator, else from
 *      the stamps
 */
#include <stdlib.h>

#include "base/text.h"
#include "formats/lone_slot.h"
#include "formats/mindspore.h"

/* --- calls --------------------------------------------------------------------------- */

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_op(const struct ms_item *x, const struct ms_item *y)
{
    int order = compare_number(x->step, y->step);

    if (order == 0)
        order = compare_number(x->rank, y->rank);
    return order != 0 ? order : strcmp(x->op, y->op);
}

static int compare_side(const struct ms_item *x, const struct ms_item *y)
{
    const int order = compare_number(x->is_output, y->is_output);

    return order != 0 ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

/* Files and rows of one slot apart, each by time. */
static int by_slot(const void *a, const void *b)
{
    const struct ms_item *x = a, *y = b;
    int order = compare_op(x, y);

    if (order == 0)
        order = compare_side(x, y);
    if (order == 0)
        order = compare_number(x->is_row, y->is_row);
    if (order == 0)
        order = (x->time > y->time) - (x->time < y->time);
    return order != 0 ? order : (x->source > y->source) - (x->source < y->source);
}

/* Slots of one call together, a file before the row of the same tensor. */
static int by_call(const void *a, const void *b)
{
    const struct ms_item *x = a, *y = b;
    int order = compare_op(x, y);

    if (order == 0)
        order = (x->call > y->call) - (x->call < y->call);
    if (order == 0)
        order = compare_side(x, y);
    return order != 0 ? order : compare_number(x->is_row, y->is_row);
}

static void number_calls(struct ms_items *list)
{
    struct ms_item *const items = list->items;

    if (list->count > 1)
        qsort(items, list->count, sizeof *items, by_slot);
    for (size_t i = 1; i < list->count; i++)
        if (compare_op(&items[i - 1], &items[i]) == 0 &&
            compare_side(&items[i - 1], &items[i]) == 0 &&
            items[i - 1].is_row == items[i].is_row)
            items[i].call = items[i - 1].call + 1;
    if (list->count > 1)
        qsort(items, list->count, sizeof *items, by_call);
}

/* --- layers -------------------------------------------------------------------------- */

/* The items of one call. */
struct group {
    const struct ms_item *items;
    size_t count, place; /* place: in the execution order; SIZE_MAX: not there */
    uint64_t time;
};

static int by_time(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = compare_number(x->items->step, y->items->step);

    if (order == 0)
        order = compare_number(x->items->rank, y->items->rank);
    if (order == 0)
        order = (x->place > y->place) - (x->place < y->place);
    if (order == 0)
        order = (x->time > y->time) - (x->time < y->time);
    if (order == 0)
        order = nd_natural_compare(x->items->op, y->items->op);
    return order != 0 ? order : (x->items > y->items) - (x->items < y->items);
}

static bool same_call(const struct ms_item *a, const struct ms_item *b)
{
    return compare_op(a, b) == 0 && a->call == b->call;
}

static size_t make_groups(const struct ms_items *list, struct group *groups)
{
    size_t count = 0;

    for (size_t first = 0, end; first < list->count; first = end) {
        struct group group = {
            .items = &list->items[first], .place = SIZE_MAX, .time = UINT64_MAX};
        for (end = first;
             end < list->count && same_call(&list->items[first], &list->items[end]); end++)
            if (list->items[end].time < group.time)
                group.time = list->items[end].time;
        group.count = end - first;
        groups[count++] = group;
    }
    return count;
}

/* The execution order counts where it knows every operator; parameters are none. */
static enum nd_order find_places(struct ms_order *places, struct group *groups,
                                 size_t count)
{
    bool all = places->count > 0, any_time = false;

    nd_ms_order_sort(places);
    for (size_t i = 0; i < count; i++) {
        const bool is_parameter = strcmp(groups[i].items->type, "Parameter") == 0;
        groups[i].place = is_parameter ? 0
                                       : nd_ms_order_find(places, groups[i].items->rank,
                                                          groups[i].items->op);
        all = all && groups[i].place != SIZE_MAX;
        any_time = any_time || groups[i].time > 0;
    }
    for (size_t i = 0; !all && i < count; i++)
        groups[i].place = 0;
    return all ? ND_ORDER_RECORDED : any_time ? ND_ORDER_TIMESTAMP : ND_ORDER_NAME;
}

/* A head with the framework's shape over bytes in a device layout, padding and all, as an
 * early writer leaves them: the bytes are more than the shape takes. */
static enum nd_status slot_device_order(struct dump *dump, const char *layout_name,
                                        struct dump_slot *slot, struct nd_error *err)
{
    static const uint32_t blocks[] = {16, 32, 8, 4, 64};
    const struct layout *const layout =
        layout_name == NULL ? NULL : nd_layout_by_name(layout_name);
    const struct nd_shape host = slot->storage;
    uint64_t bytes;

    if (layout == NULL || !nd_layout_padded(layout) || slot->broken != NULL ||
        slot->dtype == ND_DTYPE_NONE || slot->extent.codec != CODEC_STORED)
        return ND_OK;
    const unsigned size = nd_dtype_info(slot->dtype)->size;
    const uint64_t left = dump->files[slot->extent.file].size - slot->extent.offset;
    if (!nd_shape_bytes(&host, size, &bytes) || bytes >= left)
        return ND_OK;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct nd_shape stored;
        if (!nd_layout_storage(layout, &host, blocks[i], &stored) ||
            !nd_shape_bytes(&stored, size, &bytes) || bytes != left)
            continue;
        slot->extent.size = slot->extent.raw_size = left;
        struct nd_shape *const logical = nd_arena_alloc(dump->arena, 1, sizeof *logical);
        if (logical == NULL)
            return nd_fail_memory(err);
        *logical = host;
        slot->storage = stored;
        slot->logical = logical;
        slot->layout = layout;
        slot->layout_text = slot->note = NULL;
        return ND_OK;
    }
    return ND_OK;
}

/* The slot of an item, with the values of its file. */
static enum nd_status item_slot(struct dump *dump, const struct ms_item *item,
                                struct dump_slot *ret_slot, struct nd_error *err)
{
    *ret_slot = item->values;
    if (item->path == NULL)
        return ND_OK;
    ND_TRY(nd_lone_slot(dump, item->path, ret_slot, err));
    if (item->values.real_dtype != ret_slot->dtype)
        ret_slot->real_dtype = item->values.real_dtype;
    ret_slot->layout_text = item->values.layout_text;
    return slot_device_order(dump, item->values.layout_text, ret_slot, err);
}

static void join_row(struct dump_slot *slot, const struct dump_slot *row)
{
    slot->statistics = row->statistics;
    slot->has_statistics = row->has_statistics;
    slot->checksum = row->checksum;
    if (slot->real_dtype == ND_DTYPE_NONE && row->dtype != slot->dtype)
        slot->real_dtype = row->dtype;
}

static bool same_slot(const struct ms_item *a, const struct ms_item *b)
{
    return a->is_output == b->is_output && a->slot == b->slot;
}

static enum nd_status add_layer(struct dump *dump, const struct group *group, double time,
                                struct nd_error *err)
{
    const bool is_parameter = strcmp(group->items->type, "Parameter") == 0;
    struct dump_layer *layer =
        is_parameter ? NULL : nd_dump_add_layer(dump, group->items->op, group->items->type);

    if (layer == NULL && !is_parameter)
        return nd_fail_memory(err);
    if (layer != NULL) {
        layer->call = (int64_t)group->items->call;
        layer->time = time;
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct ms_item *const item = &group->items[i];
        struct dump_slot slot;
        if (i > 0 && same_slot(item - 1, item))
            continue; /* the row of a file */
        ND_TRY(item_slot(dump, item, &slot, err));
        if (i + 1 < group->count && same_slot(item, item + 1))
            join_row(&slot, &item[1].values);
        if (is_parameter) {
            ND_TRY(nd_dump_add_tensor(dump, item->op, &slot, err));
            continue;
        }
        slot.name =
            nd_arena_format(dump->arena, "%s.%llu", item->is_output ? "output" : "input",
                            (unsigned long long)item->slot);
        if (slot.name == NULL)
            return nd_fail_memory(err);
        layer = &dump->layers[dump->layer_count - 1];
        ND_TRY(nd_dump_add_slot(dump, layer, &slot, err));
    }
    return ND_OK;
}

enum nd_status nd_ms_layers(struct dump *dump, struct ms_items *items,
                            struct ms_order *places, struct nd_error *err)
{
    struct group *const groups = calloc(items->count + 1, sizeof *groups);

    if (groups == NULL)
        return nd_fail_memory(err);
    number_calls(items);
    const size_t count = make_groups(items, groups);
    const enum nd_order order = find_places(places, groups, count);
    qsort(groups, count, sizeof *groups, by_time);
    enum nd_status status = ND_OK;
    for (size_t i = 0; i < count && status == ND_OK; i++) {
        dump->step = groups[i].items->step;
        dump->rank = groups[i].items->rank;
        status = add_layer(dump, &groups[i], (double)i, err);
    }
    free(groups);
    dump->step = dump->rank = -1;
    dump->order = order;
    /* Whoever sorts by time shall find this order, ranks apart. */
    for (size_t i = 0; i < dump->layer_count; i++)
        dump->layers[i].time = (double)i;
    return status;
}
