/*
 * ZIP archives: the central directory and nothing else, with limits.  Shared by .npz and
 * PyTorch's .pt.  See docs/formats/zip.md for what is checked and why.
 */
#ifndef ND_FORMATS_ZIP_H
#define ND_FORMATS_ZIP_H

#include "base/arena.h"
#include "base/cursor.h"

struct zip_member {
    const char *name; /* arena copy; never used as a path */
    uint64_t    offset; /* of the member's data */
    uint64_t    stored_size, size;
    uint16_t    method; /* 0 stored, 8 deflate */
    uint32_t    crc;
    uint64_t    header_at; /* of the local header */
    const char *trouble;   /* why this member cannot be read; NULL: it can */
};

struct zip {
    struct zip_member  *members; /* in central-directory order */
    size_t              count;
    struct zip_member **by_name; /* sorted, for nd_zip_find */
};

/* True if the bytes begin like a ZIP archive. */
bool nd_zip_probe(const unsigned char *bytes, uint64_t size);
/* True if they end like one: there may be other bytes in front.  Searches 64 KiB. */
bool nd_zip_ends(const unsigned char *bytes, uint64_t size);
/* Reads the directory; names, duplicates, overlaps and extents are checked here. */
enum nd_status nd_zip_read(struct cursor file, struct arena *arena, struct zip *ret_zip,
                           struct nd_error *err);
const struct zip_member *nd_zip_find(const struct zip *zip, const char *name);

/* Inflates the first `want` bytes of a member into dst; false on corrupt data or less. */
bool nd_zip_inflate_head(const unsigned char *bytes, uint64_t size, unsigned char *dst,
                         size_t want, size_t *ret_got);

#endif
