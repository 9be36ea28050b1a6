/*
 * CANN dump files of small chips ("nano").
 *
 *   1. u64  little-endian: length of the head
 *   2. the head: u32 0x5A5A5A5A, u32 version, then blocks of u32 tag, u32 length and that
 *      many bytes.  Tag 4 holds the inputs, tag 5 the outputs: u32 count, then records
 *   3. a record: i32 data_type (GE's numbering), i32 format, i32 address_type; of an output
 *      also i32 original_index, original_data_type, original_format; u64 address, offset,
 *      size; u32 length of what follows: blocks of tag 0 (shape, u64 each), 1 (original
 *      shape), 2 (name of the framework's operator)
 *   4. the bytes of all inputs, then of all outputs
 *
 * The operator's name and time are in the file's name alone.  Learned from msaccucmp's
 * nano_dump_data.py, tlv_parse.py and the one real file in its tests.
 */
#include "formats/cann_op.h"
#include "formats/format.h"

enum { TAG_INPUT = 4, TAG_OUTPUT = 5, TAG_SHAPE = 0, TAG_ORIGINAL = 1, TAG_NAME = 2 };

static const uint64_t nano_magic = 0x5A5A5A5A;

static bool nano_head(const unsigned char *bytes, uint64_t size, struct cursor *ret_head)
{
    struct cursor in = {.bytes = bytes, .size = size};
    uint64_t length, magic;

    if (!nd_cursor_le(&in, 8, &length) || !nd_cursor_le(&in, 4, &magic) ||
        magic != nano_magic)
        return false;
    *ret_head = (struct cursor){.bytes = bytes, .size = 8, .at = 8};
    if (length < 8 || !nd_size_add(8, length, &ret_head->size) || ret_head->size > size)
        ret_head->size = 0; /* recognised, and cut off */
    return true;
}

static int cannnano_probe(const struct dump_head *head)
{
    struct cursor in;

    return nano_head(head->bytes, head->size, &in) ? 8 * 4 : 0;
}

static enum nd_status nano_fail(const struct cursor *in, const char *found,
                                struct nd_error *err)
{
    return nd_fail_at(err, ND_ERR_MALFORMED, in->at, "a record of a nano dump", "%s",
                      found);
}

/* A block that lies inside `in`, which moves behind it. */
static enum nd_status nano_block(struct cursor *in, uint64_t *ret_tag,
                                 struct cursor *ret_block, struct nd_error *err)
{
    uint64_t length;

    if (!nd_cursor_le(in, 4, ret_tag) || !nd_cursor_le(in, 4, &length) ||
        length > nd_cursor_left(in))
        return nano_fail(in, "a block that is cut off", err);
    *ret_block = (struct cursor){.bytes = in->bytes, .size = in->at + length, .at = in->at};
    in->at += length;
    return ND_OK;
}

static enum nd_status nano_dims(struct cursor *in, struct cann_shape *shape,
                                struct nd_error *err)
{
    uint64_t dim;

    while (nd_cursor_left(in) > 0) {
        if (!nd_cursor_le(in, 8, &dim))
            return nano_fail(in, "half a dimension", err);
        nd_cann_shape_push(shape, dim);
    }
    return ND_OK;
}

static enum nd_status nano_details(struct dump *dump, struct cursor in,
                                   struct cann_tensor *tensor, struct nd_error *err)
{
    struct cursor block = {0};
    uint64_t tag = 0;

    while (nd_cursor_left(&in) > 0) {
        ND_TRY(nano_block(&in, &tag, &block, err));
        if (tag == TAG_SHAPE) {
            ND_TRY(nano_dims(&block, &tensor->shape, err));
        } else if (tag == TAG_ORIGINAL) {
            ND_TRY(nano_dims(&block, &tensor->original, err));
        } else if (tag == TAG_NAME) {
            tensor->origin_name =
                nd_arena_copy(dump->arena, (const char *)block.bytes + block.at,
                              (size_t)nd_cursor_left(&block));
            if (tensor->origin_name == NULL)
                return nd_fail_memory(err);
        }
    }
    return ND_OK;
}

static enum nd_status nano_record(struct dump *dump, struct cursor *in, bool is_output,
                                  struct cann_op *op, struct nd_error *err)
{
    struct cann_tensor *const tensor = nd_cann_tensor_add(dump->arena, op, err);
    uint64_t ignored, length;
    bool whole;

    if (tensor == NULL)
        return err == NULL ? ND_ERR_LIMIT : err->status;
    tensor->is_output = is_output;
    tensor->numbering = CANN_GE;
    whole = nd_cursor_le(in, 4, &tensor->dtype) && nd_cursor_le(in, 4, &tensor->format) &&
            nd_cursor_le(in, 4, &ignored);
    if (is_output)
        whole = whole && nd_cursor_le(in, 4, &tensor->origin_index) &&
                nd_cursor_le(in, 4, &tensor->origin_dtype) &&
                nd_cursor_le(in, 4, &tensor->origin_format);
    whole = whole && nd_cursor_le(in, 8, &ignored) && nd_cursor_le(in, 8, &ignored) &&
            nd_cursor_le(in, 8, &tensor->size) && nd_cursor_le(in, 4, &length) &&
            length <= nd_cursor_left(in);
    if (!whole)
        return nano_fail(in, "a record that is cut off", err);
    const struct cursor details = {
        .bytes = in->bytes, .size = in->at + length, .at = in->at};
    in->at += length;
    return nano_details(dump, details, tensor, err);
}

static enum nd_status nano_records(struct dump *dump, struct cursor in, bool is_output,
                                   struct cann_op *op, struct nd_error *err)
{
    uint64_t count;

    if (!nd_cursor_le(&in, 4, &count))
        return nano_fail(&in, "a block without a count", err);
    for (uint64_t i = 0; i < count; i++)
        ND_TRY(nano_record(dump, &in, is_output, op, err));
    return ND_OK;
}

static enum nd_status cannnano_index(struct dump *dump, size_t file, struct nd_error *err)
{
    const struct cursor bytes = nd_dump_bytes(dump, file);
    struct cann_op op = {0};
    struct cursor head = {0}, block = {0};
    uint64_t tag = 0, version;

    if (!nano_head(bytes.bytes, bytes.size, &head))
        return nd_fail_at(err, ND_ERR_MALFORMED, 8, "5a 5a 5a 5a", "other bytes");
    if (head.size == 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the length of a head in this file",
                          "a length that leaves it");
    (void)nd_cursor_skip(&head, 4);
    if (!nd_cursor_le(&head, 4, &version))
        return nano_fail(&head, "the end of the head", err);
    while (nd_cursor_left(&head) > 0) {
        ND_TRY(nano_block(&head, &tag, &block, err));
        if (tag == TAG_INPUT || tag == TAG_OUTPUT)
            ND_TRY(nano_records(dump, block, tag == TAG_OUTPUT, &op, err));
    }
    if (op.count == 0)
        return nd_fail(err, ND_ERR_MALFORMED, "inputs or outputs",
                       "a dump without tensors");
    op.end = head.size;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < op.count; i++) {
            struct cann_tensor *const tensor = &op.tensors[i];
            if (tensor->is_output != (side == 1))
                continue;
            tensor->offset = op.end;
            if (!nd_size_add(op.end, tensor->size, &op.end))
                op.end = UINT64_MAX;
        }
    return nd_cann_add(dump, file, &op, err);
}

const struct dump_format nd_format_cannnano = {
    .name = "cannnano",
    .title = "CANN dump file, nano",
    .probe = cannnano_probe,
    .index = cannnano_index,
};
