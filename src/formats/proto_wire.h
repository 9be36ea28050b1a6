/*
 * The wire form of protocol buffers, one field at a time.
 *
 *   1. a field is a varint key, number << 3 | type, and a value: type 0 a varint, 1 eight
 *      bytes, 2 a varint length and that many bytes, 5 four bytes
 *   2. a varint has 7 bits a byte, lowest first, and at most 10 bytes for 64 bits
 *   3. types 3 and 4 (groups) are in no proto3 message, 6 and 7 in none at all
 *
 * Learned from the encoding page of protobuf.dev.  Messages in messages are read by whoever
 * knows their fields, so that nesting has no depth here.
 */
#ifndef ND_FORMATS_PROTO_WIRE_H
#define ND_FORMATS_PROTO_WIRE_H

#include "base/cursor.h"

enum proto_type { PROTO_VARINT = 0, PROTO_8_BYTES = 1, PROTO_BYTES = 2, PROTO_4_BYTES = 5 };

struct proto_field {
    uint64_t number;
    enum proto_type type;
    uint64_t value;      /* of all types but PROTO_BYTES */
    struct cursor bytes; /* of PROTO_BYTES */
};

enum proto_step { PROTO_FIELD, PROTO_END, PROTO_BAD };

/* The next field of a message; PROTO_BAD leaves the position at the field that is wrong. */
enum proto_step nd_proto_next(struct cursor *in, struct proto_field *ret_field);

/* False if there is none: the end, or more bytes than 64 bits need. */
bool nd_proto_varint(struct cursor *in, uint64_t *ret_value);

#endif
