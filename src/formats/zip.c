/*
 * The central directory of a ZIP archive.  Learned from PKWARE's APPNOTE 6.3.10 and from
 * archives that numpy, PyTorch and Python's zipfile really write.
 *
 *   1. end record (22 bytes and a comment), searched from the end of the file:
 *      "PK\5\6", disk u16, directory's disk u16, entries here u16, entries u16,
 *      directory size u32, directory offset u32, comment length u16
 *   2. before it, in ZIP64 archives, a locator (20 bytes): "PK\6\7", disk u32, offset u64
 *      of the ZIP64 end record, disks u32
 *   3. ZIP64 end record (56 bytes or more): "PK\6\6", size u64, versions 2 x u16,
 *      disk u32, directory's disk u32, entries here u64, entries u64, directory size u64,
 *      directory offset u64
 *   4. directory entry (46 bytes): "PK\1\2", versions 2 x u16, flags u16, method u16,
 *      time u32, crc u32, stored size u32, size u32, name length u16, extra length u16,
 *      comment length u16, disk u16, attributes 2 + 4 bytes, header offset u32; then name,
 *      extra fields, comment.  A ZIP64 extra (id 1) holds only those of size, stored size,
 *      offset and disk whose slot above is all ones, in this order
 *   5. local header (30 bytes): "PK\3\4", ..., name length u16 at 26, extra length u16 at
 *      28; then name, extra, data
 *
 * Of a local header only the two lengths are used: PyTorch leaves its sizes and CRC zero,
 * Python's zipfile writes a ZIP64 extra that contradicts rule 4, and tools that trusted
 * local names were fooled.  Data descriptors are never read: their form is ambiguous.
 */
#include "formats/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "formats/zip_end.h"

enum {
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    MAX_MEMBERS = 1000000,
    MAX_NAME = 4096,
    FLAG_ENCRYPTED = 0x0001 | 0x0040 | 0x2000, /* traditional, strong, masked headers */
    FLAG_PATCH = 0x0020
};

/* Deflate makes at most 258 bytes out of 2 bits: 1032 to 1, and a little for the start. */
#define DEFLATE_RATIO UINT64_C(1032)

/* The ZIP64 extra: values for exactly those slots that are all ones. */
static bool read_extra64(const unsigned char *extra, unsigned len,
                         struct zip_member *member, uint64_t *inout_disk)
{
    uint64_t *const slots[] = {&member->size, &member->stored_size, &member->header_at};
    bool wanted = *inout_disk == 0xffff;

    for (unsigned i = 0; i < 3; i++)
        wanted = wanted || *slots[i] == 0xffffffff;
    for (unsigned at = 0; wanted && len - at >= 4;) {
        const unsigned id = nd_zip_load16(extra + at), size = nd_zip_load16(extra + at + 2);
        if (size > len - at - 4)
            return false;
        if (id == 1) {
            struct cursor in = {extra + at + 4, size, 0};
            for (unsigned i = 0; i < 3; i++)
                if (*slots[i] == 0xffffffff && !nd_cursor_le(&in, 8, slots[i]))
                    return false;
            return *inout_disk != 0xffff || nd_cursor_le(&in, 4, inout_disk);
        }
        at += 4 + size;
    }
    return !wanted; /* all ones without an extra: nothing says where the member is */
}

static const char *method_trouble(struct arena *arena, unsigned method)
{
    const char *name = method == 9    ? " (deflate64)"
                       : method == 12 ? " (bzip2)"
                       : method == 14 ? " (LZMA)"
                       : method == 93 ? " (zstd)"
                       : method == 99 ? " (AES)"
                                      : "";
    return nd_arena_format(arena,
                           "compression method %u%s is not supported: only stored and "
                           "deflated members are",
                           method, name);
}

/* Finds the data of a member behind its local header; says why it cannot be read. */
static const char *member_locate(const struct cursor *file, struct arena *arena,
                                 uint64_t directory_at, unsigned flags, uint64_t disk,
                                 struct zip_member *member)
{
    if (disk != 0)
        return "it lies in another part of a split archive";
    if (member->header_at > directory_at || directory_at - member->header_at < LOCAL_SIZE ||
        !nd_zip_mark(file, member->header_at, "PK\3\4"))
        return nd_arena_format(arena, "no local header at byte %" PRIu64,
                               member->header_at);
    const unsigned char *const local = file->bytes + member->header_at;
    member->offset = member->header_at + LOCAL_SIZE + nd_zip_load16(local + 26) +
                     nd_zip_load16(local + 28);
    if (member->offset > directory_at ||
        member->stored_size > directory_at - member->offset)
        return nd_arena_format(arena,
                               "%" PRIu64 " bytes of data at byte %" PRIu64
                               " run into the directory at byte %" PRIu64,
                               member->stored_size, member->offset, directory_at);
    if ((flags & FLAG_ENCRYPTED) != 0)
        return "it is encrypted";
    if ((flags & FLAG_PATCH) != 0)
        return "it is a patch of another file";
    if (member->method != 0 && member->method != 8)
        return method_trouble(arena, member->method);
    if (member->method == 0 && member->size != member->stored_size)
        return nd_arena_format(arena,
                               "stored in %" PRIu64 " bytes, but said to have %" PRIu64,
                               member->stored_size, member->size);
    if (member->method == 8 && member->size / DEFLATE_RATIO > member->stored_size)
        return nd_arena_format(arena,
                               "%" PRIu64 " bytes cannot hold %" PRIu64 " deflated ones",
                               member->stored_size, member->size);
    return NULL;
}

static enum nd_status read_entry(const struct cursor *file, struct cursor *in,
                                 struct arena *arena, const struct zip_end *end,
                                 struct zip_member *ret_member, struct nd_error *err)
{
    const uint64_t entry_at = in->at;
    const unsigned char *p, *name, *extra;
    struct zip_member member = {0};

    if (!nd_cursor_take(in, ENTRY_SIZE, &p) || memcmp(p, "PK\1\2", 4) != 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, entry_at,
                          "an entry of the central directory", "other bytes");
    const unsigned name_len = nd_zip_load16(p + 28), extra_len = nd_zip_load16(p + 30);
    if (!nd_cursor_take(in, name_len, &name) || !nd_cursor_take(in, extra_len, &extra) ||
        !nd_cursor_skip(in, nd_zip_load16(p + 32)))
        return nd_fail_at(err, ND_ERR_MALFORMED, entry_at, "an entry inside the directory",
                          "an entry that runs over its end");
    if (name_len > MAX_NAME)
        return nd_fail_at(err, ND_ERR_LIMIT, entry_at, "member names of at most 4096 bytes",
                          "a name of %u bytes", name_len);
    if (memchr(name, '\0', name_len) != NULL)
        return nd_fail_at(err, ND_ERR_MALFORMED, entry_at, "a member name",
                          "a zero byte in one");
    member.method = (uint16_t)nd_zip_load16(p + 10);
    member.crc = (uint32_t)nd_load_le(p + 16, 4);
    member.stored_size = nd_load_le(p + 20, 4);
    member.size = nd_load_le(p + 24, 4);
    member.header_at = nd_load_le(p + 42, 4);
    member.name = nd_arena_copy(arena, (const char *)name, name_len);
    if (member.name == NULL)
        return nd_fail_memory(err);

    uint64_t disk = nd_zip_load16(p + 34);
    if (!read_extra64(extra, extra_len, &member, &disk)) {
        member.trouble = "its ZIP64 extra field is missing or short";
        member.header_at = UINT64_MAX;
    } else if (!nd_size_add(member.header_at, end->shift, &member.header_at)) {
        member.trouble = "its offset overflows";
        member.header_at = UINT64_MAX;
    } else {
        member.trouble =
            member_locate(file, arena, end->offset, nd_zip_load16(p + 8), disk, &member);
    }
    *ret_member = member;
    return ND_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct zip_member *const *x = a, *const *y = b;
    return ((*x)->header_at > (*y)->header_at) - ((*x)->header_at < (*y)->header_at);
}

static int by_name(const void *a, const void *b)
{
    const struct zip_member *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Overlapping members are how a small archive unpacks to terabytes, and how two readers
 * come to see different data.  Sorted by place, only neighbours can overlap. */
static enum nd_status check_places(struct zip_member **sorted, size_t count,
                                   struct nd_error *err)
{
    const struct zip_member *before = NULL;

    qsort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 0; i < count; i++) {
        if (sorted[i]->offset == 0)
            continue; /* no local header: nothing of it is ever read */
        if (before != NULL && sorted[i]->header_at < before->offset + before->stored_size)
            return nd_fail_at(
                err, ND_ERR_MALFORMED, sorted[i]->header_at, "members that do not overlap",
                "member '%.120s' inside '%.120s'", sorted[i]->name, before->name);
        if (sorted[i]->trouble == NULL)
            before = sorted[i];
    }
    return ND_OK;
}

static enum nd_status check_names(struct zip_member **sorted, size_t count,
                                  struct nd_error *err)
{
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return nd_fail_key(err, ND_ERR_MALFORMED, "the central directory",
                               "each member once", "two members named '%.200s'",
                               sorted[i]->name);
    return ND_OK;
}

enum nd_status nd_zip_read(struct cursor file, struct arena *arena, struct zip *ret_zip,
                           struct nd_error *err)
{
    struct zip_end end = {0};
    struct zip zip = {0};

    ND_TRY(nd_zip_end_read(&file, &end, err));
    if (end.entries > MAX_MEMBERS)
        return nd_fail(err, ND_ERR_LIMIT, "at most 1000000 members", "%" PRIu64 " members",
                       end.entries);
    if (end.entries > end.size / ENTRY_SIZE)
        return nd_fail_at(err, ND_ERR_MALFORMED, end.offset, "room for every entry",
                          "%" PRIu64 " entries in a directory of %" PRIu64 " bytes",
                          end.entries, end.size);
    zip.members = nd_arena_alloc(arena, (size_t)end.entries, sizeof *zip.members);
    zip.by_name = nd_arena_alloc(arena, (size_t)end.entries, sizeof *zip.by_name);
    if (zip.members == NULL || zip.by_name == NULL)
        return nd_fail_memory(err);
    struct cursor in = {file.bytes, end.offset + end.size, end.offset};
    for (; zip.count < end.entries; zip.count++) {
        ND_TRY(read_entry(&file, &in, arena, &end, &zip.members[zip.count], err));
        zip.by_name[zip.count] = &zip.members[zip.count];
    }
    if (in.at != in.size)
        return nd_fail_at(err, ND_ERR_MALFORMED, in.at, "the end of the directory",
                          "%" PRIu64 " bytes more than its %zu entries take",
                          in.size - in.at, zip.count);
    ND_TRY(check_places(zip.by_name, zip.count, err));
    ND_TRY(check_names(zip.by_name, zip.count, err));
    *ret_zip = zip;
    return ND_OK;
}

static int find_compare(const void *name, const void *element)
{
    const struct zip_member *const *member = element;
    return strcmp(name, (*member)->name);
}

const struct zip_member *nd_zip_find(const struct zip *zip, const char *name)
{
    if (zip->count == 0)
        return NULL;
    struct zip_member **const found =
        bsearch(name, zip->by_name, zip->count, sizeof *zip->by_name, find_compare);
    return found == NULL ? NULL : *found;
}

bool nd_zip_inflate_head(const unsigned char *bytes, uint64_t size, unsigned char *dst,
                         size_t want, size_t *ret_got)
{
    z_stream stream = {0};

    *ret_got = 0;
    if (want > UINT32_MAX || inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return false;
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in =
        size > UINT32_MAX ? UINT32_MAX : (uInt)size; /* a head needs no more */
    stream.next_out = dst;
    stream.avail_out = (uInt)want;
    const int code = inflate(&stream, Z_SYNC_FLUSH);
    *ret_got = want - stream.avail_out;
    inflateEnd(&stream);
    return (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) &&
           *ret_got == want;
}
