/*
 * Operators of CANN dumps become layers; see cann_op.h.
 */
#include "formats/cann_op.h"

#include <math.h>
#include <stdio.h>

#include "formats/cann_mapping.h"
#include "formats/cann_name.h"
#include "formats/names.h"

struct cann_tensor *nd_cann_tensor_add(struct arena *arena, struct cann_op *op,
                                       struct nd_error *err)
{
    if (op->count == ND_CANN_MAX_TENSORS) {
        nd_fail(err, ND_ERR_LIMIT, "at most 65536 inputs and outputs of an operator",
                "more");
        return NULL;
    }
    struct cann_tensor *const tensors =
        nd_arena_grow(arena, op->tensors, op->count, &op->capacity, sizeof *tensors);
    if (tensors == NULL) {
        nd_fail_memory(err);
        return NULL;
    }
    op->tensors = tensors;
    tensors[op->count] = (struct cann_tensor){0};
    return &tensors[op->count++];
}

struct dump_layer *nd_cann_layer(struct dump *dump, size_t file, const char *op_name,
                                 uint64_t time)
{
    const char *stem = nd_dump_stem(dump, file);
    const char *type = "";
    struct cann_name name;

    if (stem == NULL)
        return NULL;
    const char *const slash = strrchr(stem, '/');
    bool is_named = nd_cann_name_parse(slash == NULL ? stem : slash + 1, &name);
    if (!is_named) {
        stem = nd_cann_mapping_lone(dump, stem);
        if (stem == NULL)
            return NULL;
        is_named = nd_cann_name_parse(stem, &name);
    }
    if (is_named) {
        type = nd_arena_copy(dump->arena, name.type, name.type_len);
        time = name.time;
    }
    if (op_name == NULL || *op_name == '\0' || strlen(op_name) > ND_MAX_NAME)
        op_name = !is_named         ? stem
                  : name.op_len > 0 ? nd_arena_copy(dump->arena, name.op, name.op_len)
                                    : type;
    if (op_name == NULL || type == NULL)
        return NULL;
    struct dump_layer *const layer = nd_dump_push_layer(dump, op_name, type);
    if (layer != NULL && time != 0)
        layer->time = (double)time;
    return layer;
}

/* What the framework calls the output: for maps and for readers of the listing. */
static enum nd_status add_origin(struct dump *dump, struct dump_layer *layer,
                                 const struct cann_tensor *tensor, size_t index,
                                 struct nd_error *err)
{
    const struct cann_dtype *const type = nd_cann_dtype(tensor->origin_dtype, CANN_GE);
    const struct cann_format *const format =
        nd_cann_format(tensor->origin_format & ND_CANN_FORMAT_MASK);
    const struct {
        const char *key, *text;
    } words[] = {
        {"origin",        tensor->origin_name                      },
        {"origin_dtype",  type == NULL ? "unknown" : type->name    },
        {"origin_format", format == NULL ? "unknown" : format->name},
    };
    char key[64];

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(key, sizeof key, "%s.%zu", words[i].key, index);
        ND_TRY(nd_dump_add_attribute(
            dump, layer,
            &(struct attribute){.key = key, .kind = ATTRIBUTE_TEXT, .text = words[i].text},
            err));
    }
    if (tensor->origin_index >= UINT32_MAX)
        return ND_OK; /* -1: not known */
    snprintf(key, sizeof key, "origin_index.%zu", index);
    return nd_dump_add_attribute(
        dump, layer,
        &(struct attribute){
            .key = key, .kind = ATTRIBUTE_NUMBER, .number = (double)tensor->origin_index},
        err);
}

enum nd_status nd_cann_add(struct dump *dump, size_t file, const struct cann_op *op,
                           struct nd_error *err)
{
    const uint64_t size = nd_dump_bytes(dump, file).size;
    struct dump_layer *const layer = nd_cann_layer(dump, file, op->name, op->time);
    size_t next[2] = {0, 0};
    char name[32];

    if (layer == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < op->count; i++) {
        const struct cann_tensor *const tensor = &op->tensors[i];
        const size_t index = next[tensor->is_output]++;
        struct dump_slot slot;
        ND_TRY(nd_cann_slot(dump, file, tensor, &slot, err));
        snprintf(name, sizeof name, "%s.%zu", tensor->is_output ? "output" : "input",
                 index);
        slot.name = name;
        if (i + 1 == op->count && op->end < size && slot.note == NULL)
            slot.note = "trailing_bytes";
        ND_TRY(nd_dump_add_slot(dump, layer, &slot, err));
        if (tensor->is_output && tensor->origin_name != NULL)
            ND_TRY(add_origin(dump, layer, tensor, index, err));
    }
    if (op->attribute != NULL)
        ND_TRY(nd_dump_add_attribute(dump, layer,
                                     &(struct attribute){.key = "ffts",
                                                         .kind = ATTRIBUTE_TEXT,
                                                         .text = op->attribute},
                                     err));
    dump->device = "npu";
    dump->order = ND_ORDER_TIMESTAMP;
    return ND_OK;
}
