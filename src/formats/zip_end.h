/*
 * Inside formats/: where the central directory of a ZIP archive lies.
 */
#ifndef ND_FORMATS_ZIP_END_H
#define ND_FORMATS_ZIP_END_H

#include "base/cursor.h"
#include "base/fail.h"

struct zip_end {
    uint64_t entries, size, offset; /* of the directory; offset counts from the file's start */
    uint64_t shift;                 /* bytes in front of the archive */
};

/* From the end records, ZIP64 or not. */
enum nd_status nd_zip_end_read(const struct cursor *file, struct zip_end *ret_end,
                               struct nd_error *err);

/* True if `mark` (4 bytes) stands at `at`. */
bool nd_zip_mark(const struct cursor *file, uint64_t at, const char *mark);

static inline unsigned nd_zip_load16(const unsigned char *p)
{
    return (unsigned)nd_load_le(p, 2);
}

#endif
