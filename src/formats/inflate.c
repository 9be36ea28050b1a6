/*
 * Decoding deflated members with zlib, in blocks of the caller's size.
 */
#include "formats/inflate.h"

#include <inttypes.h>

enum {
    ZLIB_STEP = 1 << 30, /* zlib counts in 32 bits */
    CRC_STEP = 256 * 1024 /* summed while it is in the cache */
};

uint32_t nd_crc_of(uint32_t crc, const unsigned char *bytes, uint64_t size)
{
    while (size > 0) {
        const uInt step = size > ZLIB_STEP ? ZLIB_STEP : (uInt)size;
        crc = (uint32_t)crc32(crc, bytes, step);
        bytes += step;
        size -= step;
    }
    return crc;
}

enum nd_status nd_fail_crc(const struct extent *extent, struct nd_error *err)
{
    return nd_fail(err, ND_ERR_MALFORMED, "data that fits its checksum",
                   "data whose CRC-32 is not the recorded %08" PRIx32, extent->crc);
}

static enum nd_status inflater_fail(const struct inflater *self, const char *what,
                                    struct nd_error *err)
{
    return nd_fail(err, ND_ERR_MALFORMED, NULL,
                   "deflated data that %s after %" PRIu64 " of %" PRIu64 " bytes", what,
                   self->made, self->size);
}

/* Fills out[0..n) or up to the stream's end. */
static enum nd_status inflater_fill(struct inflater *self, unsigned char *out, size_t n,
                                    struct nd_error *err)
{
    z_stream *const stream = &self->stream;

    stream->next_out = out;
    stream->avail_out = (uInt)n;
    while (stream->avail_out > 0 && !self->ended) {
        if (stream->avail_in == 0) {
            const uInt step = self->in_left > ZLIB_STEP ? ZLIB_STEP : (uInt)self->in_left;
            stream->next_in = (unsigned char *)(uintptr_t)self->in;
            stream->avail_in = step;
            self->in += step;
            self->in_left -= step;
        }
        const int code = inflate(stream, Z_NO_FLUSH);
        self->ended = code == Z_STREAM_END;
        if (code == Z_MEM_ERROR)
            return nd_fail_memory(err);
        if (code == Z_BUF_ERROR && self->in_left == 0)
            return inflater_fail(self, "ends early", err);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return inflater_fail(self, "is damaged", err);
    }
    return ND_OK;
}

enum nd_status nd_inflater_block(struct inflater *self, unsigned char *out, uint64_t want,
                                 struct nd_error *err)
{
    while (want > 0) {
        const size_t step = want < CRC_STEP ? (size_t)want : CRC_STEP;
        ND_TRY(inflater_fill(self, out, step, err));
        const size_t got = step - self->stream.avail_out;
        self->made += got;
        if (got < step)
            return inflater_fail(self, "ends", err);
        self->crc = nd_crc_of(self->crc, out, got);
        out += got;
        want -= got;
    }
    return ND_OK;
}

enum nd_status nd_inflater_finish(struct inflater *self, struct nd_error *err)
{
    unsigned char more;

    if (!self->ended) {
        ND_TRY(inflater_fill(self, &more, 1, err));
        if (self->stream.avail_out == 0)
            return inflater_fail(self, "goes on", err);
    }
    if (self->extent->has_crc && self->crc != self->extent->crc)
        return nd_fail_crc(self->extent, err);
    return ND_OK;
}

enum nd_status nd_inflater_init(struct inflater *self, const struct extent *extent,
                                const unsigned char *file, struct nd_error *err)
{
    *self = (struct inflater){
        .extent = extent, .in_left = extent->size, .size = extent->raw_size};
    if (extent->size == 0)
        return inflater_fail(self, "ends early", err);
    self->in = file + extent->offset;
    return inflateInit2(&self->stream, -MAX_WBITS) == Z_OK ? ND_OK : nd_fail_memory(err);
}

void nd_inflater_done(struct inflater *self)
{
    if (self->extent != NULL && self->extent->size > 0)
        inflateEnd(&self->stream);
    self->extent = NULL;
}
