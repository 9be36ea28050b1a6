/*
 * Joining the threads of an FFTS+ task; see cann_ffts.h.
 */
#include "formats/cann_ffts.h"

#include <stdlib.h>

#include "formats/json_in.h"
#include "formats/pieces.h"

/* Far more than any task has; what a file may claim is looked up by walking. */
enum { MAX_THREADS = 4096, MAX_SLOTS = 256 };

/* --- the attribute -------------------------------------------------------------------- */

static cJSON *attribute_of(const struct dump_layer *layer)
{
    cJSON *root = NULL;
    struct nd_error reason = {0};

    for (size_t i = 0; i < layer->attribute_count; i++) {
        const struct attribute *attribute = &layer->attributes[i];
        if (strcmp(attribute->key, "ffts") == 0 && attribute->text != NULL &&
            nd_json_parse((const unsigned char *)attribute->text, strlen(attribute->text),
                          false, &root, &reason) == ND_OK)
            return root;
    }
    return NULL;
}

bool nd_ffts_has_threads(const struct dump_layer *layer, size_t count)
{
    cJSON *const root = attribute_of(layer);
    double threads = 0;
    const bool has = root != NULL && nd_json_number(root, "slice_instance_num", &threads) &&
                     threads == (double)count && count <= MAX_THREADS;

    cJSON_Delete(root);
    return has;
}

/* The axis along which a tensor was cut; rank: not at all, UINT32_MAX: no single one. */
static uint32_t cut_axis(const cJSON *root, const char *key, size_t index, uint32_t rank)
{
    const cJSON *const lists = cJSON_GetObjectItemCaseSensitive(root, key);
    const cJSON *const list = cJSON_GetArrayItem(lists, (int)index);
    uint32_t axis = rank;

    if (!cJSON_IsArray(list))
        return rank;
    uint32_t k = 0;
    for (const cJSON *item = list->child; item != NULL; item = item->next, k++) {
        double parts;
        if (!nd_json_number_of(item, &parts))
            return UINT32_MAX;
        if (parts == 1)
            continue;
        if (axis != rank || k >= rank)
            return UINT32_MAX;
        axis = k;
    }
    return axis;
}

/* The shape of a thread's slice, where the attribute tells it; else false. */
static bool slice_shape(const cJSON *root, const char *key, size_t thread, size_t index,
                        struct nd_shape *ret_shape)
{
    const cJSON *const lists = cJSON_GetObjectItemCaseSensitive(root, key);
    const cJSON *const list =
        cJSON_GetArrayItem(cJSON_GetArrayItem(lists, (int)thread), (int)index);
    struct nd_shape shape = {.rank = 0};

    if (!cJSON_IsArray(list) || list->child == NULL)
        return false;
    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        double lower, higher;
        if (shape.rank == ND_MAX_RANK || !nd_json_number(item, "lower", &lower) ||
            !nd_json_number(item, "higher", &higher) || !(lower >= 0 && higher >= lower) ||
            !(higher < 9e15))
            return false;
        shape.dim[shape.rank++] = (uint64_t)(higher - lower);
    }
    *ret_shape = shape;
    return true;
}

/* --- one tensor ------------------------------------------------------------------------- */

struct joint {
    struct dump *dump;
    const struct dump_layer *const *threads;
    size_t count;
    const cJSON *root;
    bool is_auto;
};

static const struct dump_slot *slot_named(const struct dump_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    return NULL;
}

/* The bytes of a thread's slice and their shape; false where they do not tell. */
static bool slice_of(const struct joint *joint, size_t thread, const char *name, bool is_output,
                     size_t index, struct nd_shape *ret_shape, const struct dump_slot **ret_slot)
{
    const struct dump_slot *const slot = slot_named(joint->threads[thread], name);
    uint64_t bytes;

    if (slot == NULL || slot->dtype == ND_DTYPE_NONE ||
        slot->evidence != ND_EVIDENCE_VALUES || slot->extent.codec != CODEC_STORED ||
        slot->layout_broken)
        return false;
    *ret_shape = slot->storage;
    *ret_slot = slot;
    if (joint->is_auto &&
        slice_shape(joint->root, is_output ? "output_tensor_slice" : "input_tensor_slice",
                    thread, index, ret_shape) &&
        nd_shape_bytes(ret_shape, nd_dtype_info(slot->dtype)->size, &bytes) &&
        bytes <= slot->extent.size)
        return true;
    *ret_shape = slot->storage;
    return slot->broken == NULL;
}

/* A slot may be broken because its bytes are not there. */
static bool bytes_are_there(const struct dump *dump, const struct extent *extent, uint64_t bytes)
{
    uint64_t end;

    return nd_size_add(extent->offset, bytes, &end) && extent->file < dump->file_count &&
           end <= dump->files[extent->file].size;
}

/* Adds a slice to the whole along the axis; false where it does not fit. */
static bool whole_take(struct nd_shape *whole, const struct nd_shape *slice, uint32_t axis)
{
    if (slice->rank != whole->rank)
        return false;
    for (uint32_t k = 0; k < whole->rank; k++)
        if (k != axis && slice->dim[k] != whole->dim[k])
            return false;
    return nd_size_add(whole->dim[axis], slice->dim[axis], &whole->dim[axis]);
}

/* The framework's shape of the whole: as recorded, if it fits the joined bytes, else with its
 * batch grown like theirs, else left to the comparison. */
static enum nd_status whole_logical(struct dump *dump, const struct nd_shape *slice,
                                    struct dump_slot *slot, struct nd_error *err)
{
    struct tensor_view view;
    uint32_t c0 = slot->c0;
    const char *why;

    if (slot->logical == NULL)
        return ND_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct nd_shape logical = *slot->logical;
        if (attempt == 1 && logical.rank > 0 && logical.dim[0] == slice->dim[0])
            logical.dim[0] = slot->storage.dim[0];
        nd_view_contiguous(&view, NULL, INT64_MAX, slot->dtype, &slot->storage);
        if (slot->layout == NULL
                ? nd_shape_equal(&logical, &slot->storage)
                : nd_layout_apply_groups(&view, slot->layout, &slot->storage, &logical,
                                         slot->groups, &c0, &why)) {
            struct nd_shape *const kept = nd_arena_alloc(dump->arena, 1, sizeof *kept);
            if (kept == NULL)
                return nd_fail_memory(err);
            *kept = logical;
            slot->logical = kept;
            return ND_OK;
        }
    }
    slot->logical = NULL;
    slot->has_order = false;
    slot->layout = NULL;
    return ND_OK;
}

/* Joins slot `first` of the first thread; false: it cannot be joined. */
static enum nd_status joint_slot(const struct joint *joint, const struct dump_slot *first,
                                 struct dump_slot *ret_slot, bool *ret_fits,
                                 struct nd_error *err)
{
    const bool is_output = strncmp(first->name, "output.", 7) == 0;
    const size_t index = (size_t)strtoul(strchr(first->name, '.') + 1, NULL, 10);
    const struct dump_slot *slot;
    struct nd_shape slice, whole;

    *ret_slot = *first;
    *ret_fits = slice_of(joint, 0, first->name, is_output, index, &slice, &slot);
    if (!*ret_fits)
        return ND_OK;
    const uint32_t axis = cut_axis(joint->root, is_output ? "outputCutList" : "inputCutList",
                                   index, slice.rank);
    *ret_fits = axis != UINT32_MAX;
    if (!*ret_fits || axis == slice.rank)
        return ND_OK; /* every thread has all of it */
    struct piece *const piece = nd_arena_alloc(joint->dump->arena, joint->count, sizeof *piece);
    struct pieces *const pieces = nd_arena_alloc(joint->dump->arena, 1, sizeof *pieces);
    if (piece == NULL || pieces == NULL)
        return nd_fail_memory(err);
    whole = slice;
    whole.dim[axis] = 0;
    uint64_t outer = 1, total = 0;
    for (uint32_t k = 0; k < axis; k++)
        *ret_fits = *ret_fits && nd_size_mul(outer, slice.dim[k], &outer);
    for (size_t t = 0; t < joint->count && *ret_fits; t++) {
        struct nd_shape part;
        uint64_t bytes = 0;
        *ret_fits = slice_of(joint, t, first->name, is_output, index, &part, &slot) &&
                    slot->dtype == first->dtype && whole_take(&whole, &part, axis) &&
                    nd_shape_bytes(&part, nd_dtype_info(slot->dtype)->size, &bytes) &&
                    bytes_are_there(joint->dump, &slot->extent, bytes) &&
                    nd_size_add(total, bytes, &total);
        piece[t] = (struct piece){slot == NULL ? 0 : slot->extent.file,
                                  slot == NULL ? 0 : slot->extent.offset,
                                  outer == 0 ? 0 : bytes / outer};
    }
    if (!*ret_fits)
        return ND_OK;
    *pieces = (struct pieces){total == 0 ? 0 : outer, joint->count, piece};
    ret_slot->broken = NULL;
    ret_slot->storage = whole;
    ret_slot->extent.codec = CODEC_PIECES;
    ret_slot->extent.pieces = pieces;
    ret_slot->extent.size = ret_slot->extent.raw_size = total;
    return whole_logical(joint->dump, &slice, ret_slot, err);
}

/* --- the layer ---------------------------------------------------------------------------- */

static enum nd_status joint_layer(const struct joint *joint, struct dump_layer *ret_whole,
                                  bool *ret_joined, struct nd_error *err)
{
    struct dump_layer whole = *joint->threads[0];
    struct dump_slot *const slots =
        nd_arena_alloc(joint->dump->arena, whole.slot_count + 1, sizeof *slots);
    size_t count = 0;

    if (slots == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < whole.slot_count; i++) {
        bool fits;
        ND_TRY(joint_slot(joint, &whole.slots[i], &slots[count], &fits, err));
        if (!fits && strncmp(whole.slots[i].name, "output.", 7) == 0)
            return ND_OK;
        count += fits; /* an input that is a slice of something is no input of the whole */
    }
    whole.slots = slots;
    whole.slot_count = whole.slot_capacity = count;
    *ret_whole = whole;
    *ret_joined = true;
    return ND_OK;
}

enum nd_status nd_ffts_join(struct dump *dump, const struct dump_layer *const *threads,
                            size_t count, struct dump_layer *ret_whole, bool *ret_joined,
                            struct nd_error *err)
{
    cJSON *const root = attribute_of(threads[0]);
    double mode = 0;

    *ret_joined = false;
    if (root == NULL)
        return ND_OK;
    const cJSON *const flag = cJSON_GetObjectItemCaseSensitive(root, "threadMode");
    if (threads[0]->slot_count > MAX_SLOTS) {
        cJSON_Delete(root);
        return ND_OK;
    }
    const struct joint joint = {
        dump, threads, count, root,
        cJSON_IsTrue(flag) || (nd_json_number(root, "threadMode", &mode) && mode == 1)};
    const enum nd_status status = joint_layer(&joint, ret_whole, ret_joined, err);
    cJSON_Delete(root);
    return status;
}
