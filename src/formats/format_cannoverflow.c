/*
 * CANN's op debug dumps: a dump of version 2 (format_cann.c) of the operator Node_OpDebug,
 * whose output is no tensor but the chip's account of an overflow (cann_overflow.h).  The
 * account becomes attributes; the bytes, which are addresses and clocks, are compared with
 * nothing.
 */
#include "formats/cann_message.h"
#include "formats/cann_overflow.h"
#include "formats/format.h"

static int cannoverflow_probe(const struct dump_head *head)
{
    struct cursor message;

    if (!nd_cann_message_of(head->bytes, head->size, &message) ||
        !nd_cann_message_overflow(message))
        return 0;
    const int bits = nd_cann_message_probe(message);
    return bits == 0 ? 0 : bits + 24 + 40; /* as format_cann.c has it, and the name */
}

static enum nd_status overflow_message(struct dump *dump, size_t file,
                                       struct cann_message *message, struct nd_error *err)
{
    const struct cursor bytes = nd_dump_bytes(dump, file);
    struct cursor in;

    if (!nd_cann_message_of(bytes.bytes, bytes.size, &in))
        return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the length of a message in this file",
                          "another number");
    ND_TRY(nd_cann_message_read(in, 8, dump->arena, message, err));
    nd_cann_message_place(message, 8 + in.size);
    return message->op.count > 0
               ? ND_OK
               : nd_fail(err, ND_ERR_MALFORMED, "an output", "a dump without tensors");
}

static bool overflow_account(const struct dump *dump, size_t file, const struct cann_op *op,
                             struct cann_overflow *ret_overflow)
{
    struct cursor in = nd_dump_bytes(dump, file);

    if (!nd_cursor_skip(&in, op->tensors[0].offset) ||
        op->tensors[0].size > nd_cursor_left(&in))
        return false;
    return nd_cann_overflow_read(
        (struct cursor){.bytes = in.bytes + in.at, .size = op->tensors[0].size},
        ret_overflow);
}

enum nd_status nd_cann_overflow_file(struct dump *dump, size_t file,
                                     struct cann_overflow *ret_overflow, bool *ret_is_told,
                                     struct nd_error *err)
{
    struct cann_message message;

    ND_TRY(overflow_message(dump, file, &message, err));
    *ret_is_told = overflow_account(dump, file, &message.op, ret_overflow);
    return ND_OK;
}

static enum nd_status cannoverflow_index(struct dump *dump, size_t file,
                                         struct nd_error *err)
{
    const size_t first = dump->layer_count;
    struct cann_message message;
    struct cann_overflow overflow;

    ND_TRY(overflow_message(dump, file, &message, err));
    ND_TRY(nd_cann_add(dump, file, &message.op, err));
    struct dump_layer *const layer = &dump->layers[first];
    for (size_t i = 0; i < layer->slot_count; i++)
        layer->slots[i].undefined = true;
    if (!overflow_account(dump, file, &message.op, &overflow))
        return ND_OK;
    return nd_cann_overflow_describe(dump, layer, &overflow, err);
}

const struct dump_format nd_format_cannoverflow = {
    .name = "cannoverflow",
    .title = "CANN overflow (op debug) dump",
    .probe = cannoverflow_probe,
    .index = cannoverflow_index,
};
