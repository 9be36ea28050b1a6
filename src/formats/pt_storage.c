/*
 * Storages and views of them.  A storage is named by a persistent id (learned from
 * torch/serialization.py of 1.11 to 2.x):
 *
 *   ("storage", type, key, location, numel[, view])
 *
 *   1. type is a global such as torch.FloatStorage; torch.storage.UntypedStorage holds
 * bytes
 *   2. key names the bytes: a member data/<key> of the archive, or an entry of the legacy
 *      form's list
 *   3. location is the device it lived on
 *   4. numel counts elements of the type (bytes for an untyped storage)
 *   5. view, in legacy files, is None or (key, first element, number of elements)
 */
#include "formats/pt.h"

#include <inttypes.h>

/* Elements of a view that reads its storage more than once (expand): a few bytes of pickle
 * can ask for any number. */
#define MAX_EXPANDED ((uint64_t)1 << 32)

static const struct {
    const char *name;
    enum nd_dtype dtype;
    bool untyped;
} types[] = {
    {"FloatStorage",         ND_DTYPE_f32,   false},
    {"DoubleStorage",        ND_DTYPE_f64,   false},
    {"HalfStorage",          ND_DTYPE_f16,   false},
    {"BFloat16Storage",      ND_DTYPE_bf16,  false},
    {"LongStorage",          ND_DTYPE_i64,   false},
    {"IntStorage",           ND_DTYPE_i32,   false},
    {"ShortStorage",         ND_DTYPE_i16,   false},
    {"CharStorage",          ND_DTYPE_i8,    false},
    {"ByteStorage",          ND_DTYPE_u8,    false},
    {"BoolStorage",          ND_DTYPE_bool8, false},
    {"ComplexFloatStorage",  ND_DTYPE_c64,   false},
    {"ComplexDoubleStorage", ND_DTYPE_c128,  false},
    {"UntypedStorage",       ND_DTYPE_u8,    true },
    {"_UntypedStorage",      ND_DTYPE_u8,    true },
};

bool nd_pt_size(const struct pickle *value, uint64_t *ret_size)
{
    if (value == NULL || value->kind != PICKLE_INT || value->as.integer < 0)
        return false;
    *ret_size = (uint64_t)value->as.integer;
    return true;
}

const char *nd_pt_reason(struct arena *arena, const char *text, const struct pickle *global)
{
    char title[256];

    return nd_arena_format(arena, "%s%s", text,
                           nd_pickle_title(global, title, sizeof title));
}

const char *nd_pt_shape(const struct pickle *value, struct nd_shape *ret_shape)
{
    if (value != NULL && value->kind == PICKLE_CALL &&
        nd_pickle_is_global(nd_pickle_item(value, CALL_CALLABLE), "torch", "Size"))
        value = nd_pickle_item(nd_pickle_item(value, CALL_ARGUMENTS), 0);
    if (value == NULL || (value->kind != PICKLE_TUPLE && value->kind != PICKLE_LIST))
        return "malformed: its shape is no tuple";
    if (value->as.list->count > ND_MAX_RANK)
        return "unsupported: more than 16 dimensions";
    ret_shape->rank = value->as.list->count;
    for (uint32_t i = 0; i < ret_shape->rank; i++)
        if (!nd_pt_size(&value->as.list->items[i], &ret_shape->dim[i]))
            return "malformed: a dimension that is no size";
    return NULL;
}

/* --- storages ---------------------------------------------------------------------- */

static const char *id_type(struct arena *arena, const struct pickle *type,
                           struct pt_storage_id *id)
{
    if (type == NULL || type->kind != PICKLE_GLOBAL)
        return "malformed: its storage has no type";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (nd_pickle_is_global(type, NULL, types[i].name)) {
            id->dtype = types[i].dtype;
            id->untyped = types[i].untyped;
            return NULL;
        }
    return nd_pt_reason(arena, "unsupported: elements of ", type);
}

const char *nd_pt_storage_id(struct arena *arena, const struct pickle *persistent,
                             struct pt_storage_id *ret_id)
{
    const struct pickle *tuple = nd_pickle_item(persistent, 0);
    const struct pickle *view = nd_pickle_item(tuple, 5);
    struct pt_storage_id id = {
        .key = nd_pickle_item(tuple, 2),
        .location = nd_pickle_item(tuple, 3),
    };

    if (persistent == NULL || persistent->kind != PICKLE_PERSISTENT || id.key == NULL ||
        !nd_pickle_is(nd_pickle_item(tuple, 0), "storage"))
        return "malformed: it has no storage";
    const char *why = id_type(arena, nd_pickle_item(tuple, 1), &id);
    if (why != NULL)
        return why;
    if (!nd_pt_size(nd_pickle_item(tuple, 4), &id.root_numel))
        return "malformed: its storage has no size";
    id.numel = id.root_numel;
    if (view != NULL && view->kind == PICKLE_TUPLE &&
        (!nd_pt_size(nd_pickle_item(view, 1), &id.view_first) ||
         !nd_pt_size(nd_pickle_item(view, 2), &id.numel) || id.view_first > id.root_numel ||
         id.numel > id.root_numel - id.view_first))
        return "malformed: its storage is no part of another";
    *ret_id = id;
    return NULL;
}

const char *nd_pt_storage_find(struct pt_source *source, const struct pt_storage_id *id,
                               struct pt_storage *ret_storage)
{
    const uint64_t size = nd_dtype_info(id->dtype)->size;
    struct pt_storage found = {0};
    uint64_t want;

    if (id->numel == 0) { /* nothing to find: writers differ in whether it has a member */
        *ret_storage = found;
        return NULL;
    }
    if (!nd_size_mul(id->root_numel, size, &want))
        return "malformed: the size of its storage overflows";
    const char *why = source->find(source, id->key, &found);
    if (why != NULL)
        return why;
    if (want != found.size)
        return nd_arena_format(source->dump->arena,
                               "malformed: its storage has %" PRIu64 " bytes where %" PRIu64
                               " are declared",
                               found.size, want);
    if (id->numel != id->root_numel) {
        if (found.codec != CODEC_STORED)
            return "unsupported: a view of a compressed storage";
        found.offset += id->view_first * size;
        found.size = found.stored_size = id->numel * size;
    }
    *ret_storage = found;
    return NULL;
}

/* --- views ------------------------------------------------------------------------- */

/* The last element a view touches, counted from its first; false: outside of 63 bits. */
static bool place_span(const struct nd_shape *shape, const int64_t *strides,
                       uint64_t *ret_span)
{
    uint64_t span = 0, step;

    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dim[i] > 1 &&
            (!nd_size_mul(shape->dim[i] - 1, (uint64_t)strides[i], &step) ||
             !nd_size_add(span, step, &span) || span > INT64_MAX))
            return false;
    *ret_span = span;
    return true;
}

/* Copies the strides, those of 1-sized dimensions (which say nothing) as row-major ones;
 * true if all are. */
static bool copy_strides(const struct nd_shape *shape, const int64_t *strides,
                         int64_t *ret_strides)
{
    uint64_t row_major = 1;
    bool contiguous = true;

    for (uint32_t i = shape->rank; i-- > 0;) {
        ret_strides[i] = shape->dim[i] > 1 ? strides[i] : (int64_t)row_major;
        contiguous = contiguous && ret_strides[i] == (int64_t)row_major;
        row_major *= shape->dim[i];
    }
    return contiguous;
}

/* False: out of memory. */
static bool place_strides(struct arena *arena, struct dump_slot *slot,
                          const int64_t *strides)
{
    int64_t copy[ND_MAX_RANK];

    slot->strided = !copy_strides(&slot->storage, strides, copy);
    if (!slot->strided)
        return true;
    int64_t *const kept = nd_arena_alloc(arena, slot->storage.rank, sizeof *kept);
    if (kept != NULL)
        memcpy(kept, copy, slot->storage.rank * sizeof *kept);
    slot->stride = kept;
    return kept != NULL;
}

static struct extent place_extent(size_t file, const struct pt_storage *storage,
                                  uint64_t skip, uint64_t size)
{
    if (storage->codec == CODEC_STORED)
        return (struct extent){
            .file = file,
            .offset = storage->offset + skip,
            .size = size,
            .raw_size = size,
        };
    return (struct extent){
        .file = file,
        .offset = storage->offset,
        .size = storage->stored_size,
        .codec = storage->codec,
        .skip = skip,
        .raw_size = storage->size,
    };
}

const char *nd_pt_place(struct arena *arena, struct dump_slot *slot, size_t file,
                        const struct pt_storage *storage, uint64_t first,
                        const struct nd_shape *shape, const int64_t *strides)
{
    const unsigned size = nd_dtype_info(slot->dtype)->size;
    const uint64_t held = storage->size / size;
    uint64_t count, bytes, span;

    slot->storage = *shape;
    slot->has_shape = true;
    if (!nd_shape_count(shape, &count) || !nd_shape_bytes(shape, size, &bytes))
        return "malformed: its shape overflows";
    for (uint32_t i = 0; i < shape->rank; i++)
        if (strides[i] < 0)
            return "malformed: a negative stride";
    if (count == 0) {
        slot->extent = (struct extent){.file = file, .offset = storage->offset};
        return NULL;
    }
    if (!place_span(shape, strides, &span) || first >= held || span >= held - first)
        return nd_arena_format(
            arena, "malformed: it reaches outside its storage of %" PRIu64 " elements",
            held);
    if (count > span + 1 && count > MAX_EXPANDED)
        return "limit: an expanded view of more than 2^32 elements";
    if (!place_strides(arena, slot, strides))
        return "limit: no memory is left for its strides";
    slot->extent = place_extent(file, storage, first * size, (span + 1) * size);
    return NULL;
}
