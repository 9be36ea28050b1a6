/*
 * The end of a ZIP archive: from the last bytes of the file to its central directory.
 * The records are listed in zip.c.
 */
#include "formats/zip_end.h"

#include <inttypes.h>

#include "formats/zip.h"

enum {
    END_SIZE = 22,
    END_SEARCH = END_SIZE + 65535, /* the comment's length has 16 bits */
    LOCATOR_SIZE = 20,
    END64_SIZE = 56
};

bool nd_zip_mark(const struct cursor *file, uint64_t at, const char *mark)
{
    return at <= file->size && file->size - at >= 4 &&
           memcmp(file->bytes + at, mark, 4) == 0;
}

static bool find_end(const struct cursor *file, uint64_t *ret_at)
{
    const uint64_t size = file->size;
    const uint64_t first = size > END_SEARCH ? size - END_SEARCH : 0;

    if (size < END_SIZE)
        return false;
    for (uint64_t at = size - END_SIZE + 1; at-- > first;)
        if (file->bytes[at] == 'P' && nd_zip_mark(file, at, "PK\5\6") &&
            nd_zip_load16(file->bytes + at + 20) <= size - at - END_SIZE) {
            *ret_at = at;
            return true;
        }
    return false;
}

bool nd_zip_probe(const unsigned char *bytes, uint64_t size)
{
    const struct cursor file = {bytes, size, 0};

    return nd_zip_mark(&file, 0, "PK\3\4") || nd_zip_mark(&file, 0, "PK\5\6") ||
           nd_zip_mark(&file, 0, "PK\7\x8");
}

bool nd_zip_ends(const unsigned char *bytes, uint64_t size)
{
    const struct cursor file = {bytes, size, 0};
    uint64_t at;

    return find_end(&file, &at);
}

/* Where the ZIP64 end record lies: where the locator says, or, when bytes stand in front
 * of the archive, right before the locator. */
static bool find_end64(const struct cursor *file, uint64_t end_at, uint64_t *ret_at)
{
    if (end_at < LOCATOR_SIZE || !nd_zip_mark(file, end_at - LOCATOR_SIZE, "PK\6\7"))
        return false;
    const uint64_t locator_at = end_at - LOCATOR_SIZE;
    const uint64_t said = nd_load_le(file->bytes + locator_at + 8, 8);
    if (locator_at >= END64_SIZE && said <= locator_at - END64_SIZE &&
        nd_zip_mark(file, said, "PK\6\6")) {
        *ret_at = said;
        return true;
    }
    if (locator_at >= END64_SIZE && nd_zip_mark(file, locator_at - END64_SIZE, "PK\6\6")) {
        *ret_at = locator_at - END64_SIZE;
        return true;
    }
    return false;
}

static enum nd_status read_end64(const struct cursor *file, uint64_t end_at, bool needed,
                                 struct zip_end *end, uint64_t *ret_directory_end,
                                 struct nd_error *err)
{
    const unsigned char *const old = file->bytes + end_at;
    uint64_t at;

    if (!find_end64(file, end_at, &at)) {
        if (needed)
            return nd_fail_at(err, ND_ERR_MALFORMED, end_at, "a ZIP64 end record before it",
                              "an end record that refers to one");
        return ND_OK;
    }
    const unsigned char *const p = file->bytes + at;
    if (nd_load_le(p + 16, 4) != 0 || nd_load_le(p + 20, 4) != 0 ||
        nd_load_le(p + 24, 8) != nd_load_le(p + 32, 8))
        return nd_fail_at(err, ND_ERR_UNSUPPORTED, at, "an archive of one file",
                          "one part of a ZIP archive of several");
    if (nd_zip_load16(old + 10) == 0xffff)
        end->entries = nd_load_le(p + 32, 8);
    if (nd_load_le(old + 12, 4) == 0xffffffff)
        end->size = nd_load_le(p + 40, 8);
    if (nd_load_le(old + 16, 4) == 0xffffffff)
        end->offset = nd_load_le(p + 48, 8);
    *ret_directory_end = at;
    return ND_OK;
}

enum nd_status nd_zip_end_read(const struct cursor *file, struct zip_end *ret_end,
                               struct nd_error *err)
{
    struct zip_end end = {0};
    uint64_t at;

    if (!find_end(file, &at))
        return nd_fail_at(err, ND_ERR_MALFORMED, file->size,
                          "the central directory at the end of a ZIP archive",
                          "the end of the file after %" PRIu64 " bytes: it was cut off",
                          file->size);
    const unsigned char *const p = file->bytes + at;
    end.entries = nd_zip_load16(p + 10);
    end.size = nd_load_le(p + 12, 4);
    end.offset = nd_load_le(p + 16, 4);
    const bool needs64 = end.size == 0xffffffff || end.offset == 0xffffffff;
    if ((nd_zip_load16(p + 4) != 0 && nd_zip_load16(p + 4) != 0xffff) ||
        (nd_zip_load16(p + 6) != 0 && nd_zip_load16(p + 6) != 0xffff) ||
        nd_zip_load16(p + 8) != nd_zip_load16(p + 10))
        return nd_fail_at(err, ND_ERR_UNSUPPORTED, at, "an archive of one file",
                          "one part of a ZIP archive of several");

    uint64_t directory_end = at;
    ND_TRY(read_end64(file, at, needs64, &end, &directory_end, err));
    if (end.size > directory_end || end.offset > directory_end - end.size)
        return nd_fail_at(err, ND_ERR_MALFORMED, at,
                          "a central directory before the end record",
                          "one of %" PRIu64 " bytes at %" PRIu64, end.size, end.offset);
    /* Offsets count from the archive's first byte, which may not be the file's: Python
     * finds it by where the directory ends, and so do we, unless there is none there. */
    const uint64_t shift = directory_end - end.size - end.offset;
    if (end.size > 0 && nd_zip_mark(file, end.offset + shift, "PK\1\2")) {
        end.shift = shift;
        end.offset += shift;
    }
    *ret_end = end;
    return ND_OK;
}
