/*
 * gzip (RFC 1952): any dump may arrive compressed as a whole.  Tensors need random access,
 * so the stream is decompressed once into a temporary file without a name, whose pages the
 * system may drop or write out like those of any other file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/files.h"

enum { GZIP_BLOCK = 256 * 1024, GZIP_STEP = 1 << 30 };

bool nd_is_gzip(const unsigned char *bytes, uint64_t size)
{
    return size >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0;
}

struct gunzip {
    z_stream stream;
    const unsigned char *bytes;
    uint64_t size, at; /* at: given to zlib so far */
    unsigned char *block;
    int fd;
    uint64_t written;
};

static uint64_t gunzip_used(const struct gunzip *self)
{
    return self->at - self->stream.avail_in;
}

static void gunzip_feed(struct gunzip *self)
{
    if (self->stream.avail_in > 0)
        return;
    const uint64_t left = self->size - self->at;
    self->stream.next_in = (unsigned char *)(uintptr_t)(self->bytes + self->at);
    self->stream.avail_in = left > GZIP_STEP ? GZIP_STEP : (uInt)left;
    self->at += self->stream.avail_in;
}

/* After a member: another one, padding of zero bytes, or the end. */
static enum nd_status gunzip_next(struct gunzip *self, bool *ret_done, struct nd_error *err)
{
    const uint64_t used = gunzip_used(self);
    const unsigned char *const rest = self->bytes + used;
    const uint64_t left = self->size - used;
    uint64_t zeros = 0;

    *ret_done = false;
    if (nd_is_gzip(rest, left))
        return inflateReset(&self->stream) == Z_OK ? ND_OK : nd_fail_memory(err);
    while (zeros < left && rest[zeros] == 0)
        zeros++;
    if (zeros < left)
        return nd_fail_at(err, ND_ERR_MALFORMED, used, "the end of the gzip stream",
                          "%" PRIu64 " bytes of something else", left);
    *ret_done = true;
    return ND_OK;
}

static enum nd_status gunzip_step(struct gunzip *self, bool *ret_done, struct nd_error *err)
{
    gunzip_feed(self);
    self->stream.next_out = self->block;
    self->stream.avail_out = GZIP_BLOCK;
    const int code = inflate(&self->stream, Z_NO_FLUSH);
    const size_t made = GZIP_BLOCK - self->stream.avail_out;
    if (made > 0 && !nd_spool_write(self->fd, self->block, made)) {
        nd_fail_errno(err, NULL, errno);
        nd_error_hint(err,
                      "the decompressed dump goes to a temporary file: set TMPDIR to a "
                      "folder with room");
        return ND_ERR_IO;
    }
    self->written += made;
    if (code == Z_STREAM_END)
        return gunzip_next(self, ret_done, err);
    if (code == Z_BUF_ERROR && gunzip_used(self) == self->size)
        return nd_fail_at(err, ND_ERR_MALFORMED, self->size, "the rest of the gzip stream",
                          "the end of the file after %" PRIu64 " decompressed bytes",
                          self->written);
    if (code == Z_MEM_ERROR)
        return nd_fail_memory(err);
    if (code != Z_OK && code != Z_BUF_ERROR)
        return nd_fail_at(err, ND_ERR_MALFORMED, gunzip_used(self), "a gzip stream", "%s",
                          self->stream.msg == NULL ? "damaged data" : self->stream.msg);
    return ND_OK;
}

static enum nd_status gunzip_run(struct gunzip *self, struct nd_error *err)
{
    enum { WINDOW = 16 + MAX_WBITS }; /* 16: with the gzip wrapper and its CRC */
    bool done = false;

    if (self->block == NULL || inflateInit2(&self->stream, WINDOW) != Z_OK)
        return nd_fail_memory(err);
    enum nd_status status = ND_OK;
    while (status == ND_OK && !done)
        status = gunzip_step(self, &done, err);
    inflateEnd(&self->stream);
    return status;
}

enum nd_status nd_gunzip(const unsigned char *bytes, uint64_t size, struct map *ret_map,
                         struct nd_error *err)
{
    struct gunzip self = {.bytes = bytes, .size = size, .fd = nd_spool_new()};

    if (self.fd < 0)
        return nd_fail_errno(err, "a temporary file", errno);
    self.block = malloc(GZIP_BLOCK);
    enum nd_status status = gunzip_run(&self, err);
    if (status == ND_OK)
        status = nd_map_fd(self.fd, ret_map, err);
    free(self.block);
    close(self.fd);
    return status;
}
