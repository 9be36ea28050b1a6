/*
 * One tensor of a PyTorch pickle.  Learned from torch/_utils.py and torch/_tensor.py of
 * 1.11, 1.13 and 2.x, torch_npu/utils/storage.py and torch_npu's StorageDescHelper.cpp:
 *
 *   1. a tensor is the call that would rebuild it:
 *      _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]),
 *      _rebuild_tensor_v3(... , hooks, dtype[, metadata]) over an untyped storage,
 *      _rebuild_npu_tensor(... , hooks, device format); offset and strides count elements
 *   2. parameters wrap such a call: it is their first argument; of subclasses, function and
 *      arguments are the first and third
 *   3. metadata is a dict of flags: conj, neg, and torch_npu's "npu_format_/NC1HWC0"
 *
 * torch_npu copies a tensor to the CPU before it is saved, so the bytes are in logical
 * order whatever device format is noted: the note is evidence, never a layout to undo.
 */
#include "formats/pt.h"

#include <inttypes.h>

enum { MAX_WRAPS = 8 }; /* a parameter of a subclass: two in real files */

enum form {
    FORM_NONE,
    FORM_UNSUPPORTED,
    FORM_V2,
    FORM_V3,
    FORM_NPU,
    FORM_WRAPPER,
    FORM_TYPE
};

/* In modules whose name begins with "torch"; anything else there that begins with
 * "_rebuild" is a tensor of a kind that is not read. */
static const struct {
    const char *name;
    enum form form;
} rebuilds[] = {
    {"_rebuild_tensor",                        FORM_V2         },
    {"_rebuild_tensor_v2",                     FORM_V2         },
    {"_rebuild_tensor_v3",                     FORM_V3         },
    {"_rebuild_npu_tensor",                    FORM_NPU        },
    {"_rebuild_parameter",                     FORM_WRAPPER    },
    {"_rebuild_parameter_with_state",          FORM_WRAPPER    },
    {"Parameter",                              FORM_WRAPPER    },
    {"Buffer",                                 FORM_WRAPPER    },
    {"_rebuild_device_tensor_from_numpy",      FORM_WRAPPER    },
    {"_rebuild_device_tensor_from_cpu_tensor", FORM_WRAPPER    },
    {"_rebuild_xla_tensor",                    FORM_WRAPPER    },
    {"_rebuild_from_type",                     FORM_TYPE       },
    {"_rebuild_from_type_v2",                  FORM_TYPE       },
    {"_load_from_bytes",                       FORM_UNSUPPORTED},
};

/* Device formats (aclFormat of CANN's acl/acl_base.h); "" for those that are no more than
 * the logical order, which is nothing to note. */
static const char *const npu_formats[] = {
    [0] = "",        [1] = "NHWC",      [2] = "",
    [3] = "NC1HWC0", [4] = "FRACTAL_Z", [12] = "NC1HWC0_C04",
    [16] = "HWCN",   [27] = "NDHWC",    [29] = "FRACTAL_NZ",
    [30] = "",       [32] = "NDC1HWC0", [33] = "FRACTAL_Z_3D",
    [35] = "",       [47] = "",
};
enum { NPU_FORMAT_COUNT = sizeof npu_formats / sizeof *npu_formats };

static enum form form_of(const struct pickle *callable)
{
    const struct pickle *module = nd_pickle_item(callable, 0),
                        *name = nd_pickle_item(callable, 1);

    if (callable == NULL || callable->kind != PICKLE_GLOBAL || module->len < 5 ||
        memcmp(module->as.text, "torch", 5) != 0)
        return FORM_NONE;
    for (size_t i = 0; i < sizeof rebuilds / sizeof *rebuilds; i++)
        if (nd_pickle_is(name, rebuilds[i].name))
            return rebuilds[i].form;
    return name->len > 8 && memcmp(name->as.text, "_rebuild", 8) == 0 ? FORM_UNSUPPORTED
                                                                      : FORM_NONE;
}

/* --- device formats and flags ------------------------------------------------------- */

static void slot_format(struct arena *arena, struct dump_slot *slot, uint64_t number)
{
    const char *name = number < NPU_FORMAT_COUNT ? npu_formats[number] : NULL;

    if (name != NULL && *name == '\0')
        return;
    slot->layout_text = nd_arena_format(arena, "npu_format %" PRIu64 "%s%s", number,
                                        name == NULL ? "" : " ", name == NULL ? "" : name);
}

static void slot_format_named(struct arena *arena, struct dump_slot *slot, const char *name,
                              size_t len)
{
    for (size_t i = 0; i < NPU_FORMAT_COUNT; i++)
        if (npu_formats[i] != NULL && strlen(npu_formats[i]) == len &&
            memcmp(npu_formats[i], name, len) == 0)
            slot_format(arena, slot, i);
}

/* The seventh argument of torch_npu's form: an int, False, or a member of the enum Format,
 * which Python writes as Format(29) or, from 3.11.0 on, as getattr(Format, 'FRACTAL_NZ').
 */
static void slot_npu_argument(struct arena *arena, struct dump_slot *slot,
                              const struct pickle *format)
{
    uint64_t number;

    if (format != NULL && format->kind == PICKLE_CALL) {
        const struct pickle *arguments = nd_pickle_item(format, CALL_ARGUMENTS);
        const bool by_name =
            nd_pickle_is_global(nd_pickle_item(format, CALL_CALLABLE), NULL, "getattr");
        format = nd_pickle_item(arguments, by_name ? 1 : 0);
    }
    if (nd_pt_size(format, &number))
        slot_format(arena, slot, number);
    else if (format != NULL && format->kind == PICKLE_TEXT)
        slot_format_named(arena, slot, format->as.text, format->len);
}

static void slot_npu_key(struct arena *arena, struct dump_slot *slot,
                         const struct pickle *key)
{
    static const char prefix[] = "npu_format_/";
    const size_t len = sizeof prefix - 1;

    if (key->kind == PICKLE_TEXT && key->len > len &&
        memcmp(key->as.text, prefix, len) == 0)
        slot_format_named(arena, slot, key->as.text + len, key->len - len);
}

static const char *slot_metadata(struct arena *arena, struct dump_slot *slot,
                                 const struct pickle *metadata)
{
    if (metadata == NULL || metadata->kind != PICKLE_DICT)
        return NULL;
    for (uint32_t i = 0; i + 1 < metadata->as.list->count; i += 2) {
        const struct pickle *key = &metadata->as.list->items[i], *flag = key + 1;
        const bool is_set = flag->kind == PICKLE_BOOL && flag->as.integer != 0;
        if (is_set && nd_pickle_is(key, "conj"))
            return "unsupported: a lazy conjugate (save tensor.resolve_conj() instead)";
        if (is_set && nd_pickle_is(key, "neg"))
            return "unsupported: a lazy negation (save tensor.resolve_neg() instead)";
        slot_npu_key(arena, slot, key);
    }
    return NULL;
}

static enum nd_status slot_device(struct dump *dump, const struct pickle *location,
                                  struct dump_slot *slot, struct nd_error *err)
{
    if (location == NULL || location->kind != PICKLE_TEXT || location->len > 64 ||
        memchr(location->as.text, '\0', location->len) != NULL)
        return ND_OK;
    if (dump->device != NULL && nd_pickle_is(location, dump->device)) {
        slot->device = dump->device; /* one name for nearly all tensors: kept once */
        return ND_OK;
    }
    slot->device = nd_arena_copy(dump->arena, location->as.text, location->len);
    if (slot->device == NULL)
        return nd_fail_memory(err);
    if (dump->device == NULL)
        dump->device = slot->device;
    return ND_OK;
}

/* --- tensors ----------------------------------------------------------------------- */

static const char *strided_dtype(struct arena *arena, const struct pickle *dtype,
                                 struct dump_slot *slot)
{
    const struct pickle *name = nd_pickle_item(dtype, 1);

    if (dtype == NULL || dtype->kind != PICKLE_GLOBAL)
        return "malformed: it has no dtype";
    slot->dtype = nd_dtype_by_name(name->as.text, name->len);
    return slot->dtype == ND_DTYPE_NONE
               ? nd_pt_reason(arena, "unsupported: elements of ", dtype)
               : NULL;
}

static const char *strided_place(struct pt_source *source, const struct pickle *arguments,
                                 const struct pt_storage_id *id, struct dump_slot *slot)
{
    struct nd_shape shape = {0}, steps = {0};
    int64_t strides[ND_MAX_RANK];
    struct pt_storage storage;
    uint64_t first;

    const char *why = nd_pt_shape(nd_pickle_item(arguments, 2), &shape);
    if (why != NULL)
        return why;
    slot->storage = shape;
    slot->has_shape = true;
    if (!nd_pt_size(nd_pickle_item(arguments, 1), &first))
        return "malformed: its storage offset is no size";
    if (nd_pt_shape(nd_pickle_item(arguments, 3), &steps) != NULL ||
        steps.rank != shape.rank)
        return "malformed: its strides do not go with its shape";
    for (uint32_t i = 0; i < shape.rank; i++)
        strides[i] = (int64_t)steps.dim[i];
    why = nd_pt_storage_find(source, id, &storage);
    if (why != NULL)
        return why;
    return nd_pt_place(source->dump->arena, slot, source->file, &storage, first, &shape,
                       strides);
}

static const char *strided_typed(struct pt_source *source, enum form form,
                                 const struct pickle *arguments,
                                 const struct pt_storage_id *id, struct dump_slot *slot)
{
    struct arena *arena = source->dump->arena;
    const struct pickle *seventh = nd_pickle_item(arguments, 6);
    const char *why = NULL;

    if (form == FORM_V3)
        why = strided_dtype(arena, seventh, slot);
    else if (id->untyped)
        why = "malformed: an untyped storage and no dtype";
    else
        slot->dtype = id->dtype;
    if (form == FORM_NPU)
        slot_npu_argument(arena, slot, seventh);
    if (why == NULL)
        why = slot_metadata(arena, slot,
                            form == FORM_V2 ? seventh : nd_pickle_item(arguments, 7));
    return why == NULL ? strided_place(source, arguments, id, slot) : why;
}

static enum nd_status tensor_strided(struct pt_source *source, enum form form,
                                     const struct pickle *arguments, struct dump_slot *slot,
                                     struct nd_error *err)
{
    struct pt_storage_id id;

    slot->swapped = source->swapped;
    slot->broken = nd_pt_storage_id(source->dump->arena, nd_pickle_item(arguments, 0), &id);
    if (slot->broken != NULL)
        return ND_OK;
    ND_TRY(slot_device(source->dump, id.location, slot, err));
    slot->broken = strided_typed(source, form, arguments, &id, slot);
    return ND_OK;
}

/* A storage by itself: all of its elements in a row. */
static enum nd_status tensor_storage(struct pt_source *source,
                                     const struct pickle *persistent,
                                     struct dump_slot *slot, struct nd_error *err)
{
    struct pt_storage_id id;
    struct pt_storage storage;
    const int64_t stride = 1;

    slot->swapped = source->swapped;
    slot->broken = nd_pt_storage_id(source->dump->arena, persistent, &id);
    if (slot->broken != NULL)
        return ND_OK;
    ND_TRY(slot_device(source->dump, id.location, slot, err));
    slot->dtype = id.dtype;
    slot->broken = nd_pt_storage_find(source, &id, &storage);
    if (slot->broken == NULL) {
        const struct nd_shape shape = {.rank = 1, .dim = {id.numel}};
        slot->broken = nd_pt_place(source->dump->arena, slot, source->file, &storage, 0,
                                   &shape, &stride);
    }
    return ND_OK;
}

static const char *unsupported(struct arena *arena, const struct pickle *callable,
                               const struct pickle *subclass)
{
    const char *reason = callable != NULL && callable->kind == PICKLE_GLOBAL
                             ? nd_pt_reason(arena, "unsupported: ", callable)
                             : "unsupported: a tensor of an unknown kind";

    if (reason == NULL || subclass == NULL || subclass->kind != PICKLE_GLOBAL)
        return reason;
    const char *both = nd_arena_format(arena, "%s of ", reason);
    return both == NULL ? reason : nd_pt_reason(arena, both, subclass);
}

/* A call: goes through wrappers to the one that has the storage. */
static enum nd_status tensor_call(struct pt_source *source, const struct pickle *call,
                                  bool *ret_is_tensor, struct dump_slot *slot,
                                  struct nd_error *err)
{
    const struct pickle *callable = nd_pickle_item(call, CALL_CALLABLE);
    const struct pickle *arguments = nd_pickle_item(call, CALL_ARGUMENTS);
    const struct pickle *subclass = NULL;
    enum form form = form_of(callable);

    if (form == FORM_NONE)
        return nd_pt_numpy(source, call, ret_is_tensor, slot, err);
    *ret_is_tensor = true;
    for (int i = 0; i < MAX_WRAPS && (form == FORM_WRAPPER || form == FORM_TYPE); i++) {
        const struct pickle *first = nd_pickle_item(arguments, 0);
        if (form == FORM_TYPE) {
            subclass = nd_pickle_item(arguments, 1);
            callable = first;
            arguments = nd_pickle_item(arguments, 2);
        } else if (first != NULL && first->kind == PICKLE_CALL) {
            bool is_array = false;
            callable = nd_pickle_item(first, CALL_CALLABLE);
            arguments = nd_pickle_item(first, CALL_ARGUMENTS);
            ND_TRY(nd_pt_numpy(source, first, &is_array, slot, err));
            if (is_array)
                return ND_OK;
        } else {
            break;
        }
        form = form_of(callable);
    }
    if (form == FORM_V2 || form == FORM_V3 || form == FORM_NPU)
        return tensor_strided(source, form, arguments, slot, err);
    slot->broken = unsupported(source->dump->arena, callable, subclass);
    return slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
}

enum nd_status nd_pt_tensor(struct pt_source *source, const struct pickle *value,
                            bool *ret_is_tensor, struct dump_slot *ret_slot,
                            struct nd_error *err)
{
    *ret_slot = nd_dump_slot_init();
    *ret_is_tensor = false;
    if (value->kind == PICKLE_PERSISTENT) {
        *ret_is_tensor =
            nd_pickle_is(nd_pickle_item(nd_pickle_item(value, 0), 0), "storage");
        return *ret_is_tensor ? tensor_storage(source, value, ret_slot, err) : ND_OK;
    }
    if (value->kind != PICKLE_CALL)
        return ND_OK;
    return tensor_call(source, value, ret_is_tensor, ret_slot, err);
}
