/*
 * CANN dump files, version 2: one execution of one operator.
 *
 *   1. u64  little-endian: length of the message
 *   2. the message DumpData (cann_message.h), without data
 *   3. the bytes of all inputs, then of all outputs, buffers and workspaces, each of the
 *      size that its entry says, without padding between them
 *
 * Learned from dump_task.cpp of hicann/runtime.  The file may be longer than that, and a
 * tensor's size may exceed what its shape takes; what does not lie in the file is broken.
 */
#include <inttypes.h>

#include "formats/cann_message.h"
#include "formats/format.h"

static int cann_probe(const struct dump_head *head)
{
    struct cursor message;

    if (nd_cann_message_of(head->bytes, head->size, &message)) {
        const int bits = nd_cann_message_probe(message);
        if (bits > 0)
            return bits + 24; /* and a length that fits */
    }
    /* Damaged or cut off, and worth saying where. */
    return head->size > 8 && nd_cann_message_starts(head->bytes + 8, head->size - 8) ? 40
                                                                                     : 0;
}

static enum nd_status cann_index(struct dump *dump, size_t file, struct nd_error *err)
{
    const struct cursor bytes = nd_dump_bytes(dump, file);
    struct cann_message message;
    struct cursor in;

    if (!nd_cann_message_of(bytes.bytes, bytes.size, &in))
        return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the length of a message in this file",
                          bytes.size < 8 ? "the end of the file"
                                         : "a length that leaves it");
    ND_TRY(nd_cann_message_read(in, 8, dump->arena, &message, err));
    nd_cann_message_place(&message, 8 + in.size);
    if (message.op.count == 0)
        return nd_fail(err, ND_ERR_MALFORMED, "inputs or outputs",
                       "a dump without tensors");
    if (message.buffer_count > 0) {
        const char *const what =
            nd_arena_format(dump->arena, "%s: buffers and workspaces of %" PRIu64 " bytes",
                            dump->files[file].path, message.buffer_size);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(dump, what, err));
    }
    return nd_cann_add(dump, file, &message.op, err);
}

const struct dump_format nd_format_cann = {
    .name = "cann",
    .title = "CANN dump file",
    .probe = cann_probe,
    .index = cann_index,
};
