/*
 * NumPy archives (.npz): a ZIP archive with one array per member, as numpy.savez and
 * numpy.savez_compressed (1.24) write it.
 *
 *   1. members named NAME.npy, stored or deflated, each a whole .npy file (format_npy.c)
 *   2. the central directory (zip.c), in the order of the arguments of savez
 *
 * A stored member is read where it lies.  Of a deflated one only the head is inflated
 * here; its data is inflated when the tensor is compared.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "formats/format.h"
#include "formats/npy.h"
#include "formats/zip.h"

static bool name_is_array(const char *name, size_t len)
{
    return len > 4 && memcmp(name + len - 4, ".npy", 4) == 0;
}

/* The name in the first local header: enough to tell one's own archive, cut or not. */
static bool first_is_array(const unsigned char *bytes, uint64_t size)
{
    struct cursor in = {bytes, size, 0};
    const unsigned char *p, *name;

    if (!nd_cursor_take(&in, 30, &p) || memcmp(p, "PK\3\4", 4) != 0)
        return false;
    const uint64_t len = nd_load_le(p + 26, 2);
    return nd_cursor_take(&in, len, &name) &&
           name_is_array((const char *)name, (size_t)len);
}

/* Archives that some other tool packed may start with anything: ask the directory. */
static int directory_bits(const unsigned char *bytes, uint64_t size)
{
    struct arena *arena = nd_arena_new();
    struct zip zip;
    int bits = 0;

    if (arena != NULL &&
        nd_zip_read((struct cursor){bytes, size, 0}, arena, &zip, NULL) == ND_OK) {
        bits = zip.count == 0 ? 16 : 0; /* savez without arguments */
        for (size_t i = 0; i < zip.count && bits == 0; i++)
            bits = name_is_array(zip.members[i].name, strlen(zip.members[i].name)) ? 40 : 0;
    }
    nd_arena_free(arena);
    return bits;
}

static int npz_probe(const struct dump_head *head)
{
    if (!nd_zip_probe(head->bytes, head->size))
        return 0;
    if (first_is_array(head->bytes, head->size))
        return 64; /* 32 bits of the ZIP mark, 32 of ".npy" */
    return directory_bits(head->bytes, head->size);
}

static enum nd_status inflated_head(struct dump *dump, const unsigned char *bytes,
                                    const struct zip_member *member, unsigned char *buffer,
                                    uint64_t want, struct npy_head *ret_head,
                                    struct nd_error *err)
{
    size_t got;
    const bool whole =
        nd_zip_inflate_head(bytes + member->offset, member->stored_size, buffer,
                            (size_t)(want < member->size ? want : member->size), &got);
    struct cursor in = {buffer, got, 0};
    const enum nd_status status = nd_npy_head_read(&in, dump->arena, ret_head, err);

    /* Damage behind the header shows when the data is inflated. */
    if (status != ND_OK && !whole)
        return nd_fail_at(err, ND_ERR_MALFORMED, member->offset, "deflated data",
                          "data that does not inflate");
    return status;
}

/* The header of a member; for a deflated one from an inflated copy of its beginning. */
static enum nd_status member_head(struct dump *dump, const unsigned char *bytes,
                                  const struct zip_member *member,
                                  struct npy_head *ret_head, struct nd_error *err)
{
    /* NumPy pads short headers to 128 bytes; a longer one is inflated once more. */
    enum { GUESS = 256, MOST = ND_NPY_MAX_HEADER + 12 };
    unsigned char guess[GUESS];

    if (member->method == 0) {
        struct cursor in = {bytes + member->offset, member->size, 0};
        return nd_npy_head_read(&in, dump->arena, ret_head, err);
    }
    const enum nd_status status =
        inflated_head(dump, bytes, member, guess, GUESS, ret_head, err);
    if (status != ND_ERR_MALFORMED || member->size <= GUESS)
        return status;
    unsigned char *const whole = malloc(MOST);
    if (whole == NULL)
        return nd_fail_memory(err);
    const enum nd_status again =
        inflated_head(dump, bytes, member, whole, MOST, ret_head, err);
    free(whole);
    return again;
}

static struct extent member_extent(size_t file, const struct zip_member *member,
                                   const struct npy_head *head)
{
    struct extent extent = {.file = file, .has_crc = true, .crc = member->crc};

    if (member->method == 0) {
        extent.codec = CODEC_STORED;
        extent.offset = member->offset + head->header_size;
        extent.size = extent.raw_size = head->data_size;
        extent.crc_offset = member->offset;
        extent.crc_size = member->size;
    } else {
        extent.codec = CODEC_DEFLATE;
        extent.offset = member->offset;
        extent.size = member->stored_size;
        extent.skip = head->header_size;
        extent.raw_size = member->size;
    }
    return extent;
}

/* What a member holds, or why it cannot be read: trouble with one ends nothing. */
static enum nd_status member_slot(struct dump *dump, size_t file,
                                  const struct zip_member *member,
                                  struct dump_slot *ret_slot, struct nd_error *err)
{
    struct nd_error reason = {0};
    struct npy_head head;

    *ret_slot = nd_dump_slot_init();
    if (member->trouble != NULL) {
        ret_slot->broken = member->trouble;
        return ND_OK;
    }
    const unsigned char *const bytes = nd_dump_bytes(dump, file).bytes;
    const enum nd_status status = member_head(dump, bytes, member, &head, &reason);
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    if (status != ND_OK) {
        ret_slot->broken = nd_dump_reason(dump, &reason);
        return ret_slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
    }
    const uint64_t left = member->size - head.header_size;
    *ret_slot = nd_npy_slot(&head);
    if (head.dtype == ND_DTYPE_NONE)
        return ND_OK;
    ret_slot->extent = member_extent(file, member, &head);
    if (head.data_size > left) {
        ret_slot->broken = nd_arena_format(dump->arena,
                                           "the member ends early: %" PRIu64 " of %" PRIu64
                                           " bytes of data are missing",
                                           head.data_size - left, head.data_size);
        return ret_slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
    }
    if (head.data_size < left)
        ret_slot->note = "trailing_bytes";
    return ND_OK;
}

static enum nd_status npz_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct zip zip;

    ND_TRY(nd_zip_read(nd_dump_bytes(dump, file), dump->arena, &zip, err));
    dump->order = ND_ORDER_CONTAINER;
    for (size_t i = 0; i < zip.count; i++) {
        const struct zip_member *const member = &zip.members[i];
        const size_t len = strlen(member->name);
        struct dump_slot slot;

        if (!name_is_array(member->name, len)) {
            ND_TRY(nd_dump_ignore(dump, member->name, err));
            continue;
        }
        const char *const name = nd_arena_copy(dump->arena, member->name, len - 4);
        if (name == NULL)
            return nd_fail_memory(err);
        ND_TRY(member_slot(dump, file, member, &slot, err));
        ND_TRY(nd_dump_add_tensor(dump, name, &slot, err));
    }
    return ND_OK;
}

const struct dump_format nd_format_npz = {
    .name = "npz",
    .title = "NumPy archive (.npz)",
    .probe = npz_probe,
    .index = npz_index,
};
