/*
 * Fields of protocol buffers; see proto_wire.h.
 */
#include "formats/proto_wire.h"

bool nd_proto_varint(struct cursor *in, uint64_t *ret_value)
{
    uint64_t value = 0, byte;
    const uint64_t begin = in->at;

    for (unsigned shift = 0; shift < 64 && nd_cursor_le(in, 1, &byte); shift += 7) {
        /* The tenth byte has room for one bit. */
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    in->at = begin;
    return false;
}

static bool field_value(struct cursor *in, uint64_t type, struct proto_field *field)
{
    uint64_t size;
    const unsigned char *bytes;

    switch (type) {
    case PROTO_VARINT:
        return nd_proto_varint(in, &field->value);
    case PROTO_8_BYTES:
        return nd_cursor_le(in, 8, &field->value);
    case PROTO_4_BYTES:
        return nd_cursor_le(in, 4, &field->value);
    case PROTO_BYTES:
        if (!nd_proto_varint(in, &size) || !nd_cursor_take(in, size, &bytes))
            return false;
        field->bytes = (struct cursor){.bytes = bytes, .size = size};
        return true;
    default:
        return false;
    }
}

enum proto_step nd_proto_next(struct cursor *in, struct proto_field *ret_field)
{
    const uint64_t begin = in->at;
    struct proto_field field = {0};
    uint64_t key;

    if (nd_cursor_left(in) == 0)
        return PROTO_END;
    if (nd_proto_varint(in, &key) && key >> 3 != 0 && key <= UINT32_MAX &&
        field_value(in, key & 7, &field)) {
        field.number = key >> 3;
        field.type = (enum proto_type)(key & 7);
        *ret_field = field;
        return PROTO_FIELD;
    }
    in->at = begin;
    return PROTO_BAD;
}
