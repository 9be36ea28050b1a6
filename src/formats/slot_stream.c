/*
 * A deflated slot's values as a stream: decoded block after block into the caller's memory,
 * so that a pair of any size is compared without being written out first.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "formats/extent.h"
#include "formats/files.h"
#include "formats/inflate.h"

struct slot_stream {
    const struct dump *dump;
    const struct dump_slot *slot;
    struct inflater inflater;
    struct map map; /* of the file; the dump's own, or reopened for this stream */
    bool is_own;
    uint64_t released; /* compressed bytes that have left the process */
};

enum { RELEASE_STEP = 8 * 1024 * 1024 };

bool nd_slot_streams(const struct dump_slot *slot)
{
    return slot->extent.codec == CODEC_DEFLATE && slot->evidence == ND_EVIDENCE_VALUES &&
           slot->broken == NULL && slot->layout == NULL && !slot->strided;
}

enum nd_status nd_slot_view_of(const struct dump_slot *slot, struct tensor_view *ret_view,
                               struct nd_error *err)
{
    struct tensor_view storage;

    ND_TRY(nd_slot_storage_view(slot, NULL, nd_extent_payload(&slot->extent), &storage, err));
    return nd_slot_logical_view(slot, &storage, ret_view, err);
}

/* Past the bytes that stand before the data: the header of an array. */
static enum nd_status stream_skip(struct slot_stream *stream, struct nd_error *err)
{
    unsigned char block[4096];
    uint64_t left = stream->slot->extent.skip;

    while (left > 0) {
        const uint64_t step = left < sizeof block ? left : sizeof block;
        ND_TRY(nd_inflater_block(&stream->inflater, block, step, err));
        left -= step;
    }
    return ND_OK;
}

static enum nd_status stream_start(struct slot_stream *stream, struct nd_error *err)
{
    const struct extent *const extent = &stream->slot->extent;
    const struct dump_file *const file = &stream->dump->files[extent->file];

    stream->map = file->map;
    if (!file->is_mapped) {
        ND_TRY(nd_file_reopen(stream->dump, file, &stream->map, err));
        stream->is_own = true;
    }
    ND_TRY(nd_inflater_init(&stream->inflater, extent, stream->map.bytes, err));
    return stream_skip(stream, err);
}

static void stream_free(struct slot_stream *stream)
{
    nd_inflater_done(&stream->inflater);
    if (stream->is_own)
        nd_map_close(&stream->map);
    free(stream);
}

enum nd_status nd_slot_stream_open(const struct dump *dump, const struct dump_slot *slot,
                                   struct slot_stream **ret_stream, struct nd_error *err)
{
    struct slot_stream *const stream = calloc(1, sizeof *stream);

    if (stream == NULL)
        return nd_fail_memory(err);
    stream->dump = dump;
    stream->slot = slot;
    const enum nd_status status = stream_start(stream, err);
    if (status == ND_OK)
        *ret_stream = stream;
    else
        stream_free(stream);
    return status;
}

/* What zlib has eaten is not looked at again. */
static void stream_release(struct slot_stream *stream)
{
    const struct inflater *const self = &stream->inflater;
    const uint64_t eaten =
        stream->slot->extent.size - self->in_left - self->stream.avail_in;

    if (eaten - stream->released < RELEASE_STEP || stream->map.in_memory)
        return;
    nd_map_was_read(stream->map.bytes + stream->slot->extent.offset + stream->released,
                    eaten - stream->released);
    stream->released = eaten;
}

enum nd_status nd_slot_stream_read(struct slot_stream *stream, void *out, uint64_t bytes,
                                   struct nd_error *err)
{
    ND_TRY(nd_inflater_block(&stream->inflater, out, bytes, err));
    stream_release(stream);
    return ND_OK;
}

enum nd_status nd_slot_stream_close(struct slot_stream *stream, bool to_end,
                                    struct nd_error *err)
{
    struct inflater *const self = &stream->inflater;
    unsigned char block[4096];
    enum nd_status status = ND_OK;

    while (to_end && status == ND_OK && self->made < self->size) {
        const uint64_t left = self->size - self->made;
        status = nd_inflater_block(self, block, left < sizeof block ? left : sizeof block,
                                   err);
    }
    if (to_end && status == ND_OK)
        status = nd_inflater_finish(self, err);
    if (!nd_map_intact(&stream->map))
        status = nd_fail(err, ND_ERR_CHANGED, NULL, "the file shrank while it was read");
    if (status != ND_OK)
        nd_error_file(err, stream->dump->files[stream->slot->extent.file].path);
    stream_free(stream);
    return status;
}
