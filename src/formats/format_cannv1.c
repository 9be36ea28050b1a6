/*
 * CANN dump files, version 1: the whole file is the message DumpData (cann_message.h), and
 * every tensor's bytes stand in its entry's field `data`.  Toolkits before 2020 wrote it.
 */
#include "formats/cann_message.h"
#include "formats/format.h"

static int cannv1_probe(const struct dump_head *head)
{
    const struct cursor in = {.bytes = head->bytes, .size = head->size};

    const int bits = head->size == 0 ? 0 : nd_cann_message_probe(in);

    return bits > 0 ? bits : nd_cann_message_starts(head->bytes, head->size) ? 24 : 0;
}

static enum nd_status cannv1_index(struct dump *dump, size_t file, struct nd_error *err)
{
    const struct cursor bytes = nd_dump_bytes(dump, file);
    struct cann_message message;

    ND_TRY(nd_cann_message_read(bytes, 0, dump->arena, &message, err));
    if (message.op.count == 0)
        return nd_fail(err, ND_ERR_MALFORMED, "inputs or outputs",
                       "a dump without tensors");
    message.op.end = bytes.size;
    for (size_t i = 0; i < message.op.count; i++) {
        struct cann_tensor *const tensor = &message.op.tensors[i];
        if (tensor->offset == UINT64_MAX && tensor->size == 0)
            tensor->offset = 0; /* an empty tensor lies anywhere */
    }
    return nd_cann_add(dump, file, &message.op, err);
}

const struct dump_format nd_format_cannv1 = {
    .name = "cannv1",
    .title = "CANN dump file, version 1",
    .probe = cannv1_probe,
    .index = cannv1_index,
};
