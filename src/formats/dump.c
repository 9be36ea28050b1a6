/*
 * What formats put into a dump.  Here, once for all formats, every extent is checked
 * against its file and every shape against its extent.
 */
#include "formats/dump.h"

#include <inttypes.h>
#include <math.h>

#include "formats/extent.h"
#include "formats/names.h"

/* An attribute may take two bytes of text and a hundred of memory. */
enum { MAX_ATTRIBUTES = 4096, MAX_ALL_ATTRIBUTES = 4000000 };

enum {
    SPARE_LISTS = sizeof((struct dump){0}.spare) / sizeof(struct dump_slot *),
    KEPT_WORDS = sizeof((struct dump){0}.kept) / sizeof(const char *)
};

/* A text in the arena: most slots and layers have names, types and notes that others have
 * too, and these are kept once.  One that is met again too late is kept again. */
static const char *keep_word(struct dump *dump, const char *word)
{
    uint32_t hash = 0x811c9dc5u; /* FNV-1a, 32 bits */

    for (const char *at = word; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 0x01000193u;
    const char **const place = &dump->kept[(hash ^ hash >> 16) % KEPT_WORDS];
    if (*place != NULL && strcmp(*place, word) == 0)
        return *place;
    const char *const copy = nd_arena_string(dump->arena, word);
    if (copy != NULL)
        *place = copy;
    return copy;
}

struct dump_layer *nd_dump_push_layer(struct dump *dump, const char *name, const char *type)
{
    struct dump_layer *const layers =
        nd_arena_grow(dump->arena, dump->layers, dump->layer_count, &dump->layer_capacity,
                      sizeof *layers);
    if (layers == NULL)
        return NULL;
    dump->layers = layers;
    struct dump_layer *const layer = &layers[dump->layer_count];
    *layer = (struct dump_layer){
        .name = nd_arena_string(dump->arena, name),
        .type = type == NULL || *type == '\0' ? "" : keep_word(dump, type),
        .step = dump->step,
        .rank = dump->rank,
        .time = (double)NAN,
        .micro_step = -1};
    if (layer->name == NULL || layer->type == NULL)
        return NULL;
    dump->layer_count++;
    return layer;
}

struct dump_layer *nd_dump_add_layer(struct dump *dump, const char *name, const char *type)
{
    if (dump->prefix != NULL)
        name = nd_arena_format(dump->arena, "%s/%s", dump->prefix, name);
    return name == NULL ? NULL : nd_dump_push_layer(dump, name, type);
}

struct dump_slot nd_dump_slot_init(void)
{
    struct dump_slot slot = {.evidence = ND_EVIDENCE_VALUES,
                             .dtype = ND_DTYPE_NONE,
                             .real_dtype = ND_DTYPE_NONE};

    for (int i = 0; i < STATISTIC_COUNT; i++)
        slot.statistics.value[i] = (double)NAN;
    return slot;
}

static bool keep_text(struct dump *dump, const char **text)
{
    if (*text == NULL)
        return true;
    *text = keep_word(dump, *text);
    return *text != NULL;
}

static bool keep_texts(struct dump *dump, struct dump_slot *slot)
{
    return keep_text(dump, &slot->name) && keep_text(dump, &slot->dtype_text) &&
           keep_text(dump, &slot->layout_text) && keep_text(dump, &slot->checksum) &&
           keep_text(dump, &slot->broken) && keep_text(dump, &slot->note) &&
           keep_text(dump, &slot->device);
}

/* What a slot that is being made points to may be on a stack. */
static bool keep_form(struct arena *arena, struct dump_slot *slot)
{
    if (slot->logical != NULL) {
        struct nd_shape *const logical = nd_arena_alloc(arena, 1, sizeof *logical);
        if (logical == NULL)
            return false;
        *logical = *slot->logical;
        slot->logical = logical;
    }
    if (slot->strided && slot->storage.rank > 0 && slot->storage.rank <= ND_MAX_RANK) {
        int64_t *const stride = nd_arena_alloc(arena, slot->storage.rank, sizeof *stride);
        if (stride == NULL)
            return false;
        memcpy(stride, slot->stride, slot->storage.rank * sizeof *stride);
        slot->stride = stride;
    }
    return true;
}

static bool range_fits(uint64_t offset, uint64_t size, uint64_t total)
{
    return offset <= total && size <= total - offset;
}

/* Everything about a slot that can be known without reading its data. */
static enum nd_status slot_check(const struct dump *dump, const struct dump_slot *slot,
                                 struct nd_error *err)
{
    const struct extent *const extent = &slot->extent;
    struct tensor_view view;

    if (extent->file >= dump->file_count)
        return nd_fail(err, ND_ERR_MALFORMED, NULL, "data in a file that is not there");
    const uint64_t total = dump->files[extent->file].size;
    if (!range_fits(extent->offset, extent->size, total))
        return nd_fail_at(err, ND_ERR_MALFORMED, extent->offset, NULL,
                          "%" PRIu64 " bytes of data, the file ends at %" PRIu64,
                          extent->size, total);
    if (extent->codec == CODEC_STORED && extent->has_crc &&
        !range_fits(extent->crc_offset, extent->crc_size, total))
        return nd_fail_at(err, ND_ERR_MALFORMED, extent->crc_offset, NULL,
                          "a member of %" PRIu64 " bytes, the file ends at %" PRIu64,
                          extent->crc_size, total);
    return nd_slot_storage_view(slot, NULL, nd_extent_payload(extent), &view, err);
}

/* Room for 2^power slots: what another layer outgrew, or new.  An outgrown list holds the
 * next one's place in its first slot's name. */
static struct dump_slot *slots_take(struct dump *dump, unsigned power)
{
    if (power >= SPARE_LISTS || dump->spare[power] == NULL)
        return nd_arena_alloc(dump->arena, (size_t)1 << power, sizeof(struct dump_slot));
    struct dump_slot *const slots = dump->spare[power];
    dump->spare[power] = (struct dump_slot *)(uintptr_t)slots->name;
    return slots;
}

static void slots_leave(struct dump *dump, struct dump_slot *slots, unsigned power)
{
    if (power >= SPARE_LISTS || slots == NULL)
        return;
    slots->name = (const char *)dump->spare[power];
    dump->spare[power] = slots;
}

static struct dump_slot *layer_push_slot(struct dump *dump, struct dump_layer *layer)
{
    if (layer->slot_count == layer->slot_capacity) {
        unsigned power = 0; /* most layers have one slot, and a slot is large */
        while (((size_t)1 << power) <= layer->slot_capacity)
            power++;
        struct dump_slot *const slots = slots_take(dump, power);
        if (slots == NULL)
            return NULL;
        if (layer->slot_count > 0)
            memcpy(slots, layer->slots, layer->slot_count * sizeof *slots);
        if (power > 0)
            slots_leave(dump, layer->slots, power - 1);
        layer->slots = slots;
        layer->slot_capacity = (size_t)1 << power;
    }
    return &layer->slots[layer->slot_count];
}

enum nd_status nd_dump_trim_layer(struct dump *dump, struct dump_layer *layer,
                                  struct nd_error *err)
{
    unsigned power = 0;

    if (layer->slot_count == layer->slot_capacity)
        return ND_OK;
    while (((size_t)2 << power) <= layer->slot_capacity)
        power++;
    struct dump_slot *const slots =
        nd_arena_alloc(dump->arena, layer->slot_count, sizeof *slots);
    if (slots == NULL)
        return nd_fail_memory(err);
    memcpy(slots, layer->slots, layer->slot_count * sizeof *slots);
    slots_leave(dump, layer->slots, power);
    layer->slots = slots;
    layer->slot_capacity = layer->slot_count;
    return ND_OK;
}

/* A slot of values whose bytes are not there becomes broken. */
static enum nd_status add_values(struct dump *dump, struct dump_slot *added,
                                 struct nd_error *err)
{
    struct nd_error reason = {0};

    if (slot_check(dump, added, &reason) != ND_OK) {
        added->broken = nd_dump_reason(dump, &reason);
        if (added->broken == NULL)
            return nd_fail_memory(err);
    } else {
        dump->bytes += added->extent.size;
    }
    if (!added->extent.has_crc || added->extent.codec != CODEC_STORED)
        return ND_OK;
    added->crc_state = nd_arena_alloc(dump->arena, 1, sizeof *added->crc_state);
    if (added->crc_state == NULL)
        return nd_fail_memory(err);
    atomic_init(added->crc_state, 0);
    return ND_OK;
}

enum nd_status nd_dump_add_slot(struct dump *dump, struct dump_layer *layer,
                                const struct dump_slot *slot, struct nd_error *err)
{
    struct dump_slot *const added = layer_push_slot(dump, layer);

    if (added == NULL)
        return nd_fail_memory(err);
    *added = *slot;
    if (slot->evidence == ND_EVIDENCE_VALUES && slot->broken == NULL)
        ND_TRY(add_values(dump, added, err));
    /* Bytes whose layout fails are still looked at: they must be there. */
    if (slot->layout_broken && slot_check(dump, slot, NULL) != ND_OK)
        added->layout_broken = false;
    if (!keep_texts(dump, added) || !keep_form(dump->arena, added))
        return nd_fail_memory(err);
    layer->slot_count++;
    dump->tensor_count++;
    return ND_OK;
}

enum nd_status nd_dump_add_attribute(struct dump *dump, struct dump_layer *layer,
                                     const struct attribute *attribute,
                                     struct nd_error *err)
{
    if (layer->attribute_count == MAX_ATTRIBUTES ||
        dump->attribute_count == MAX_ALL_ATTRIBUTES)
        return nd_fail_key(err, ND_ERR_LIMIT, layer->name,
                           "at most 4096 attributes of a layer and 4000000 in all", "more");
    dump->attribute_count++;
    struct attribute *const list =
        nd_arena_grow(dump->arena, layer->attributes, layer->attribute_count,
                      &layer->attribute_capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    layer->attributes = list;
    struct attribute *const added = &list[layer->attribute_count];
    *added = *attribute;
    if (!keep_text(dump, &added->key) || !keep_text(dump, &added->text))
        return nd_fail_memory(err);
    if (attribute->list != NULL) {
        double *const values =
            nd_arena_alloc(dump->arena, attribute->list_len, sizeof *values);
        if (values == NULL)
            return nd_fail_memory(err);
        if (attribute->list_len > 0)
            memcpy(values, attribute->list, attribute->list_len * sizeof *values);
        added->list = values;
    }
    layer->attribute_count++;
    return ND_OK;
}

enum nd_status nd_dump_ignore(struct dump *dump, const char *what, struct nd_error *err)
{
    const char **const list = nd_arena_grow(dump->arena, dump->ignored, dump->ignored_count,
                                            &dump->ignored_capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    dump->ignored = list;
    list[dump->ignored_count] = nd_arena_string(dump->arena, what);
    return list[dump->ignored_count++] == NULL ? nd_fail_memory(err) : ND_OK;
}

const char *nd_dump_reason(struct dump *dump, const struct nd_error *error)
{
    const bool has_at = error->at[0] != '\0', has_expected = error->expected[0] != '\0';
    const bool has_hint = error->hint[0] != '\0';

    return nd_arena_format(dump->arena, "%s%s%s%s%s%s%s%s", error->at, has_at ? ": " : "",
                           error->found, has_expected ? " (expected " : "", error->expected,
                           has_expected ? ")" : "", has_hint ? "; " : "", error->hint);
}
