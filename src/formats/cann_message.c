/*
 * Reading DumpData; see cann_message.h.
 */
#include "formats/cann_message.h"

#include <inttypes.h>

#include "formats/proto_wire.h"

enum { MAX_VERSION = 16, MAX_PROBED = 64 };

struct reader {
    struct arena *arena;
    const unsigned char *bytes; /* of the whole message */
    uint64_t base;
    struct cann_message *message;
};

/* Field numbers that differ between inputs and outputs. */
struct side {
    unsigned original_op, data, size, original_shape, sub_format;
};

static const struct side input_side = {0, 4, 5, 6, 7};
static const struct side output_side = {4, 5, 6, 7, 8};

static uint64_t reader_place(const struct reader *reader, const struct cursor *at)
{
    return reader->base + (uint64_t)(at->bytes - reader->bytes) + at->at;
}

static enum nd_status reader_fail(const struct reader *reader, const struct cursor *at,
                                  const char *what, struct nd_error *err)
{
    return nd_fail_at(err, ND_ERR_MALFORMED, reader_place(reader, at),
                      "a field of the dump's message", "%s", what);
}

/* --- tensors -------------------------------------------------------------------------- */

static enum nd_status read_shape(const struct reader *reader, struct cursor in,
                                 struct cann_shape *shape, struct nd_error *err)
{
    struct proto_field field;
    enum proto_step step;
    uint64_t dim;

    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD) {
        if (field.number == 1 && field.type == PROTO_VARINT)
            nd_cann_shape_push(shape, field.value);
        while (field.number == 1 && field.type == PROTO_BYTES &&
               nd_cursor_left(&field.bytes) > 0) {
            if (!nd_proto_varint(&field.bytes, &dim))
                return reader_fail(reader, &field.bytes, "a damaged dimension", err);
            nd_cann_shape_push(shape, dim);
        }
    }
    return step == PROTO_END ? ND_OK : reader_fail(reader, &in, "a damaged shape", err);
}

static enum nd_status read_original_op(const struct reader *reader, struct cursor in,
                                       struct cann_tensor *tensor, struct nd_error *err)
{
    struct proto_field field;
    enum proto_step step;

    tensor->origin_name = "";
    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD) {
        if (field.number == 1 && field.type == PROTO_BYTES)
            tensor->origin_name = nd_arena_copy(
                reader->arena, (const char *)field.bytes.bytes, (size_t)field.bytes.size);
        else if (field.type == PROTO_VARINT && field.number == 2)
            tensor->origin_index = field.value;
        else if (field.type == PROTO_VARINT && field.number == 3)
            tensor->origin_dtype = field.value;
        else if (field.type == PROTO_VARINT && field.number == 4)
            tensor->origin_format = field.value;
        if (tensor->origin_name == NULL)
            return nd_fail_memory(err);
    }
    return step == PROTO_END ? ND_OK
                             : reader_fail(reader, &in, "a damaged original operator", err);
}

static void read_number(const struct proto_field *field, const struct side *side,
                        struct cann_tensor *tensor)
{
    if (field->number == 1)
        tensor->dtype = field->value;
    else if (field->number == 2)
        tensor->format = field->value;
    else if (field->number == side->size && tensor->offset == UINT64_MAX)
        tensor->size = field->value;
    else if (field->number == side->sub_format)
        tensor->group = field->value;
}

static enum nd_status read_tensor(struct reader *reader, struct cursor in, bool is_output,
                                  struct nd_error *err)
{
    const struct side *const side = is_output ? &output_side : &input_side;
    struct cann_tensor *const tensor =
        nd_cann_tensor_add(reader->arena, &reader->message->op, err);
    struct proto_field field;
    enum proto_step step;

    if (tensor == NULL)
        return err == NULL ? ND_ERR_LIMIT : err->status;
    tensor->is_output = is_output;
    tensor->numbering = CANN_PROTO;
    tensor->offset = UINT64_MAX;
    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD) {
        if (field.type == PROTO_VARINT)
            read_number(&field, side, tensor);
        if (field.type != PROTO_BYTES)
            continue;
        if (field.number == 3)
            ND_TRY(read_shape(reader, field.bytes, &tensor->shape, err));
        else if (field.number == side->original_shape)
            ND_TRY(read_shape(reader, field.bytes, &tensor->original, err));
        else if (field.number == side->original_op)
            ND_TRY(read_original_op(reader, field.bytes, tensor, err));
        else if (field.number == side->data && field.bytes.size > 0) {
            tensor->offset = reader_place(reader, &field.bytes);
            tensor->size = field.bytes.size;
            reader->message->has_data = true;
        }
    }
    return step == PROTO_END ? ND_OK : reader_fail(reader, &in, "a damaged tensor", err);
}

/* --- the rest ------------------------------------------------------------------------- */

static enum nd_status read_buffer(struct reader *reader, struct cursor in,
                                  struct nd_error *err)
{
    struct cann_message *const message = reader->message;
    struct proto_field field;
    enum proto_step step;
    uint64_t size = 0;

    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD)
        if (field.number == 3 && field.type == PROTO_VARINT)
            size = field.value;
    if (!nd_size_add(message->buffer_size, size, &message->buffer_size))
        message->buffer_size = UINT64_MAX;
    message->buffer_count++;
    return step == PROTO_END ? ND_OK : reader_fail(reader, &in, "a damaged buffer", err);
}

/* FFTS+ operators carry one attribute: JSON that says how they were cut. */
static enum nd_status read_attribute(struct reader *reader, struct cursor in,
                                     struct nd_error *err)
{
    struct cann_op *const op = &reader->message->op;
    struct proto_field field;
    enum proto_step step;

    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD) {
        if (field.number != 2 || field.type != PROTO_BYTES || op->attribute != NULL)
            continue;
        op->attribute = nd_arena_copy(reader->arena, (const char *)field.bytes.bytes,
                                      (size_t)field.bytes.size);
        if (op->attribute == NULL)
            return nd_fail_memory(err);
    }
    return step == PROTO_END ? ND_OK : reader_fail(reader, &in, "a damaged attribute", err);
}

static enum nd_status read_text(struct reader *reader, struct cursor in,
                                const char **ret_text, struct nd_error *err)
{
    *ret_text = nd_arena_copy(reader->arena, (const char *)in.bytes, (size_t)in.size);
    return *ret_text == NULL ? nd_fail_memory(err) : ND_OK;
}

/* One field of DumpData; `wanted` are the tensors of this turn. */
static enum nd_status read_field(struct reader *reader, const struct proto_field *field,
                                 uint64_t wanted, struct nd_error *err)
{
    struct cann_message *const message = reader->message;
    const bool is_first = wanted == 4;

    if (field->number == wanted && field->type == PROTO_BYTES)
        return read_tensor(reader, field->bytes, wanted == 3, err);
    if (!is_first)
        return ND_OK;
    if (field->number == 2 && field->type == PROTO_VARINT)
        message->op.time = field->value;
    if (field->type != PROTO_BYTES)
        return ND_OK;
    switch (field->number) {
    case 1:
        return read_text(reader, field->bytes, &message->version, err);
    case 6:
        return read_text(reader, field->bytes, &message->op.name, err);
    case 5:
    case 8:
        return read_buffer(reader, field->bytes, err);
    case 7:
        return read_attribute(reader, field->bytes, err);
    default:
        return ND_OK;
    }
}

enum nd_status nd_cann_message_read(struct cursor in, uint64_t base, struct arena *arena,
                                    struct cann_message *ret_message, struct nd_error *err)
{
    static const uint64_t turns[] = {4,
                                     3}; /* inputs come first in everything but the wire */
    struct cann_message message = {.version = ""};
    struct reader reader = {arena, in.bytes, base, &message};

    for (int turn = 0; turn < 2; turn++) {
        struct cursor at = in;
        struct proto_field field;
        enum proto_step step;
        while ((step = nd_proto_next(&at, &field)) == PROTO_FIELD)
            ND_TRY(read_field(&reader, &field, turns[turn], err));
        if (step == PROTO_BAD)
            return reader_fail(&reader, &at, "bytes that are none", err);
    }
    *ret_message = message;
    return ND_OK;
}

/* --- recognising ---------------------------------------------------------------------- */

static bool is_word(struct cursor text, size_t most)
{
    if (text.size == 0 || text.size > most)
        return false;
    for (uint64_t i = 0; i < text.size; i++)
        if (text.bytes[i] < 0x20 || text.bytes[i] == 0x7f)
            return false;
    return true;
}

/* True if the bytes are fields of a tensor: the first three are of the same kind in both.
 */
static bool is_tensor(struct cursor in)
{
    struct proto_field field;
    enum proto_step step;

    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD)
        if ((field.number <= 2 && field.type != PROTO_VARINT) ||
            (field.number == 3 && field.type != PROTO_BYTES))
            return false;
    return step == PROTO_END;
}

int nd_cann_message_probe(struct cursor in)
{
    struct proto_field field;
    enum proto_step step;
    int bits = 0, tensors = 0;

    while ((step = nd_proto_next(&in, &field)) == PROTO_FIELD) {
        if (field.number <= 9 &&
            field.type != (field.number == 2 ? PROTO_VARINT : PROTO_BYTES))
            return 0;
        if (field.number == 1) {
            if (!is_word(field.bytes, MAX_VERSION))
                return 0;
            bits += 8;
        } else if (field.number == 2) {
            bits += 8;
        } else if (field.number == 6) {
            bits += is_word(field.bytes, UINT32_MAX) ? 8 : 0;
        } else if ((field.number == 3 || field.number == 4) && tensors < MAX_PROBED) {
            if (!is_tensor(field.bytes))
                return 0;
            tensors++;
        }
    }
    if (step == PROTO_BAD || (tensors == 0 && bits < 24))
        return 0;
    return bits > 40 ? 40 : bits + (tensors > 0 ? 8 : 0);
}

bool nd_cann_message_starts(const unsigned char *bytes, uint64_t size)
{
    /* Field 1, three bytes: "1.0" or "2.0". */
    return size >= 5 && bytes[0] == 0x0a && bytes[1] == 3 &&
           (bytes[2] == '1' || bytes[2] == '2') && bytes[3] == '.' && bytes[4] == '0';
}

bool nd_cann_message_overflow(struct cursor in)
{
    static const char word[] = "debug";
    struct proto_field field;

    while (nd_proto_next(&in, &field) == PROTO_FIELD) {
        if (field.number != 6 || field.type != PROTO_BYTES || field.bytes.size < 5)
            continue;
        /* "Node_OpDebug" */
        const unsigned char *const end = field.bytes.bytes + field.bytes.size - 5;
        for (size_t i = 0; i < 5; i++)
            if ((end[i] | 0x20) != word[i])
                return false;
        return true;
    }
    return false;
}

bool nd_cann_message_of(const unsigned char *bytes, uint64_t size,
                        struct cursor *ret_message)
{
    struct cursor in = {.bytes = bytes, .size = size};
    uint64_t length;

    if (!nd_cursor_le(&in, 8, &length) || length == 0 || length > nd_cursor_left(&in) ||
        length > INT32_MAX)
        return false;
    *ret_message = (struct cursor){.bytes = bytes + in.at, .size = length};
    return true;
}

void nd_cann_message_place(struct cann_message *message, uint64_t at)
{
    for (size_t i = 0; i < message->op.count; i++) {
        struct cann_tensor *const tensor = &message->op.tensors[i];
        tensor->offset = at;
        if (!nd_size_add(at, tensor->size, &at))
            at = UINT64_MAX; /* past the end of every file, as is all that follows */
    }
    if (!nd_size_add(at, message->buffer_size, &at))
        at = UINT64_MAX;
    message->op.end = at;
}
