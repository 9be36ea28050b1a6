/*
 * Slots of the normdiff record: a tensor of the file, statistics, or both.  Whatever is
 * wrong with one slot makes that slot unreadable and leaves the others alone.
 */
#include <math.h>
#include <string.h>

#include "formats/normdiff_record.h"

/* The slot's texts are those of the JSON: nd_dump_add_slot() copies them. */
struct slot_reader {
    const struct normdiff_reader *reader;
    struct arena *arena;
    const cJSON *item;
    struct dump_slot slot;
    struct nd_shape logical; /* slot.logical is this one, or NULL */
};

/* The slot cannot be read; the first reason stays.  NULL: out of memory. */
static enum nd_status slot_break(struct slot_reader *in, const char *reason,
                                 struct nd_error *err)
{
    if (reason == NULL)
        return nd_fail_memory(err);
    if (in->slot.broken == NULL)
        in->slot.broken = reason;
    return ND_OK;
}

static const cJSON *slot_member(const struct slot_reader *in, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(in->item, key);

    return cJSON_IsNull(item) ? NULL : item;
}

/* A list of whole numbers; false if it is none or too long. */
static bool slot_shape(const cJSON *list, struct nd_shape *ret_shape)
{
    struct nd_shape shape = {0};
    const cJSON *item;

    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        if (shape.rank == ND_MAX_RANK || !nd_json_size(item, &shape.dim[shape.rank]))
            return false;
        shape.rank++;
    }
    *ret_shape = shape;
    return true;
}

static enum nd_status slot_tensor(struct slot_reader *in, struct nd_error *err)
{
    const cJSON *item = slot_member(in, "tensor");

    in->slot = nd_dump_slot_init();
    if (item == NULL)
        return ND_OK;
    struct st_entry *entry =
        cJSON_IsString(item) ? nd_st_find(&in->reader->header, item->valuestring) : NULL;
    if (entry == NULL)
        return slot_break(in,
                          nd_arena_format(in->arena, "tensor \"%s\" is not in the file",
                                          cJSON_IsString(item) ? item->valuestring : "?"),
                          err);
    entry->named = true;
    in->slot = nd_st_slot(entry, in->reader->file);
    return ND_OK;
}

/* Numbers in JSON count as exact: no half unit. */
static void slot_statistics(struct slot_reader *in)
{
    static const char *const keys[STATISTIC_COUNT] = {"max", "min", "mean", "norm"};
    const cJSON *object = slot_member(in, "statistics");

    if (!cJSON_IsObject(object))
        return;
    for (int i = 0; i < STATISTIC_COUNT; i++) {
        if (!nd_json_number(object, keys[i], &in->slot.statistics.value[i]))
            continue;
        in->slot.has_statistics = true;
        in->slot.statistics.is_nan[i] = isnan(in->slot.statistics.value[i]);
    }
}

/* Shape and dtype beside statistics, which have no tensor to tell them. */
static enum nd_status slot_bare_shape(struct slot_reader *in, struct nd_error *err)
{
    const cJSON *shape = slot_member(in, "shape");

    in->slot.evidence = ND_EVIDENCE_STATISTICS;
    in->slot.has_shape = slot_shape(shape, &in->slot.storage);
    if (shape != NULL && !in->slot.has_shape)
        return slot_break(in, "shape is not a list of at most 16 whole numbers", err);
    return ND_OK;
}

/* The slot's dtype: the real one of a tensor, the only one of statistics. */
static void slot_dtype(struct slot_reader *in, bool has_tensor)
{
    const char *name;

    if (!nd_json_text(in->item, "dtype", &name))
        return;
    const enum nd_dtype dtype = nd_dtype_by_name(name, strlen(name));
    if (!has_tensor)
        in->slot.dtype = dtype;
    else if (dtype != in->slot.dtype)
        in->slot.real_dtype = dtype;
    if (dtype == ND_DTYPE_NONE || !has_tensor)
        in->slot.dtype_text = name;
}

/* Does the layout lead from the stored shape to the logical one? */
static enum nd_status slot_layout_fits(struct slot_reader *in, struct nd_error *err)
{
    const struct dump_slot *slot = &in->slot;
    struct tensor_view view;
    uint32_t c0 = slot->c0;
    const char *why = NULL;

    if (slot->broken != NULL || slot->dtype == ND_DTYPE_NONE)
        return ND_OK;
    nd_view_contiguous(&view, "", slot->extent.size, slot->dtype, &slot->storage);
    if (nd_layout_apply(&view, slot->layout, &slot->storage,
                        slot->logical == NULL ? &in->logical : slot->logical, &c0, &why))
        return ND_OK;
    in->slot.layout_broken = true;
    return slot_break(
        in, nd_arena_format(in->arena, "format %s: %s", slot->layout->name, why), err);
}

/* Words for "the bytes lie in logical order", and PyTorch's for NHWC. */
static const struct layout *slot_layout_by_name(const char *name, bool *ret_logical)
{
    static const char *const plain[] = {"ND",    "NC",         "NCL",
                                        "NCDHW", "contiguous", "logical"};
    const struct layout *layout =
        nd_layout_by_name(strcmp(name, "channels_last") == 0 ? "NHWC" : name);

    *ret_logical = layout != NULL && strcmp(layout->logical, layout->storage) == 0;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        *ret_logical = *ret_logical || strcmp(name, plain[i]) == 0;
    return layout;
}

static enum nd_status slot_layout(struct slot_reader *in, struct nd_error *err)
{
    const char *name = NULL;
    bool logical = true;

    if (!nd_json_text(in->item, "format", &name)) {
        /* Where the tensor lay on the device; its bytes here are in logical order. */
        nd_json_text(in->item, "device_layout", &in->slot.layout_text);
        return ND_OK;
    }
    const struct layout *layout = slot_layout_by_name(name, &logical);
    if (logical)
        return ND_OK;
    in->slot.layout_text = name;
    if (layout == NULL)
        return slot_break(
            in, nd_arena_format(in->arena, "format %s is not supported", name), err);
    in->slot.layout = layout;
    if (nd_layout_padded(layout) && in->slot.logical == NULL) {
        in->slot.layout_broken = in->slot.broken == NULL;
        return slot_break(
            in, nd_arena_format(in->arena, "format %s needs a logical_shape", name), err);
    }
    return slot_layout_fits(in, err);
}

static enum nd_status slot_logical_shape(struct slot_reader *in, struct nd_error *err)
{
    const cJSON *list = slot_member(in, "logical_shape");
    uint64_t stored, logical;

    if (list == NULL)
        return slot_layout(in, err);
    if (!slot_shape(list, &in->logical))
        return slot_break(in, "logical_shape is not a list of at most 16 whole numbers",
                          err);
    in->slot.logical = &in->logical;
    ND_TRY(slot_layout(in, err));
    if (in->slot.layout != NULL || in->slot.broken != NULL)
        return ND_OK;
    /* Without a format the same bytes are only seen in another shape. */
    if (!nd_shape_count(&in->slot.storage, &stored) ||
        !nd_shape_count(&in->logical, &logical) || stored != logical)
        return slot_break(
            in, "logical_shape has another number of elements than the tensor", err);
    in->slot.storage = in->logical;
    return ND_OK;
}

static void slot_shard(struct slot_reader *in)
{
    const cJSON *shard = slot_member(in, "shard");

    in->slot.sharded =
        cJSON_IsObject(shard) &&
        nd_json_size(cJSON_GetObjectItemCaseSensitive(shard, "axis"),
                     &in->slot.shard_axis) &&
        nd_json_size(cJSON_GetObjectItemCaseSensitive(shard, "index"),
                     &in->slot.shard_index) &&
        nd_json_size(cJSON_GetObjectItemCaseSensitive(shard, "of"), &in->slot.shard_of);
}

/* One number for every sample, or a list of them; anything else says nothing. */
static enum nd_status slot_valid(struct slot_reader *in, struct nd_error *err)
{
    const cJSON *valid = slot_member(in, "valid"), *item;
    size_t count = 0;

    if (!cJSON_IsArray(valid) && !cJSON_IsNumber(valid))
        return ND_OK;
    cJSON_ArrayForEach(item, valid) count++;
    uint64_t *numbers = nd_arena_alloc(in->arena, count + 1, sizeof *numbers);
    if (numbers == NULL)
        return nd_fail_memory(err);
    if (cJSON_IsNumber(valid)) {
        in->slot.valid_count = nd_json_size(valid, numbers) ? 1 : 0;
    } else {
        cJSON_ArrayForEach(item, valid)
        {
            if (!nd_json_size(item, &numbers[in->slot.valid_count++]))
                break;
        }
        if (item != NULL)
            in->slot.valid_count = 0;
    }
    in->slot.valid = numbers;
    return ND_OK;
}

static enum nd_status slot_read(struct slot_reader *in, struct nd_error *err)
{
    const char *note;

    ND_TRY(slot_tensor(in, err));
    const bool has_tensor = slot_member(in, "tensor") != NULL;
    slot_statistics(in);
    if (!has_tensor && in->slot.has_statistics)
        ND_TRY(slot_bare_shape(in, err));
    else if (!has_tensor)
        ND_TRY(slot_break(in,
                          nd_json_text(in->item, "note", &note)
                              ? nd_arena_format(in->arena, "no tensor: %s", note)
                              : "the slot holds neither a tensor nor statistics",
                          err));
    slot_dtype(in, has_tensor);
    if (has_tensor)
        ND_TRY(slot_logical_shape(in, err));
    slot_shard(in);
    ND_TRY(slot_valid(in, err));
    nd_json_bool(in->item, "undefined", &in->slot.undefined);
    in->slot.device = in->reader->device;
    in->slot.name = in->item->string;
    return ND_OK;
}

enum nd_status nd_normdiff_slots(const struct normdiff_reader *reader,
                                 struct dump_layer *layer, const cJSON *slots,
                                 struct nd_error *err)
{
    const cJSON *item;

    if (!cJSON_IsObject(slots))
        return nd_normdiff_fail(reader, "slots", "an object of slots",
                                slots == NULL ? "nothing" : "another value", err);
    cJSON_ArrayForEach(item, slots)
    {
        struct slot_reader in = {
            .reader = reader, .arena = reader->dump->arena, .item = item};
        if (strlen(item->string) > ND_NORMDIFF_NAME_MAX)
            return nd_normdiff_fail(reader, "slots", "names of at most 4096 bytes",
                                    "a longer name", err);
        if (!cJSON_IsObject(item))
            return nd_normdiff_fail(reader, "slots", "an object for each slot",
                                    "another value", err);
        ND_TRY(slot_read(&in, err));
        ND_TRY(nd_dump_add_slot(reader->dump, layer, &in.slot, err));
    }
    return ND_OK;
}
