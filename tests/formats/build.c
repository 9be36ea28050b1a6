/*
 * Files byte by byte.
 */
#include "formats/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

void bytes_put(struct bytes *bytes, const void *from, size_t size)
{
    if (bytes->size + size > bytes->capacity) {
        bytes->capacity = (bytes->size + size) * 2 + 64;
        bytes->at = realloc(bytes->at, bytes->capacity);
        assert_non_null(bytes->at);
    }
    if (size > 0)
        memcpy(bytes->at + bytes->size, from, size);
    bytes->size += size;
}

void bytes_text(struct bytes *bytes, const char *text)
{
    bytes_put(bytes, text, strlen(text));
}

void bytes_le(struct bytes *bytes, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
        bytes_put(bytes, &byte, 1);
    }
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

struct bytes bytes_of_file(const char *folder, const char *name)
{
    struct bytes bytes = {0};
    char path[4096], block[4096];
    size_t got;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("cannot open %s", path);
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        bytes_put(&bytes, block, got);
    fclose(file);
    return bytes;
}

void npy_put(struct bytes *bytes, unsigned major, const char *header, const void *data,
             size_t size)
{
    const unsigned char version[2] = {(unsigned char)major, 0};

    bytes_put(bytes, "\x93NUMPY", 6);
    bytes_put(bytes, version, 2);
    bytes_le(bytes, strlen(header), major == 1 ? 2 : 4);
    bytes_text(bytes, header);
    bytes_put(bytes, data, size);
}

void npy_put_array(struct bytes *bytes, const char *descr, const char *shape,
                   const void *data, size_t size)
{
    char header[512];

    snprintf(header, sizeof header,
             "{'descr': '%s', 'fortran_order': False, 'shape': %s, }   \n", descr, shape);
    npy_put(bytes, 1, header, data, size);
}

static struct bytes deflated(const void *data, size_t size)
{
    struct bytes out = {0};
    z_stream stream = {0};

    assert_int_equal(
        deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    out.capacity = deflateBound(&stream, (uLong)size);
    out.at = malloc(out.capacity);
    assert_non_null(out.at);
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out.at;
    stream.avail_out = (uInt)out.capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.size = stream.total_out;
    deflateEnd(&stream);
    return out;
}

struct zip_build_member *zip_build_add(struct zip_build *zip, const char *name,
                                       const void *data, size_t size, unsigned method,
                                       enum zip_local local)
{
    struct bytes *const out = &zip->bytes;
    struct zip_build_member *const member = &zip->members[zip->count++];
    const bool torch = local == LOCAL_TORCH;
    struct bytes packed = {0};

    if (method == 8)
        packed = deflated(data, size);
    else
        bytes_put(&packed, data, size);
    while (out->size < zip->prefix)
        bytes_put(out, "#", 1);
    *member = (struct zip_build_member){.name = name,
                                        .stored_size = packed.size,
                                        .size = size,
                                        .method = method,
                                        .header_at = out->size - zip->prefix};
    member->crc = (uint32_t)crc32(0, data, (uInt)size);
    bytes_put(out, "PK\3\4", 4);
    bytes_le(out, 20, 2);
    bytes_le(out, torch ? 0x0808 : 0, 2);
    bytes_le(out, method, 2);
    bytes_le(out, 0, 4);
    bytes_le(out, torch ? 0 : member->crc, 4);
    bytes_le(out, torch ? 0 : packed.size, 4);
    bytes_le(out, torch ? 0 : size, 4);
    bytes_le(out, strlen(name), 2);
    bytes_le(out, torch ? 14 : 0, 2);
    bytes_text(out, name);
    if (torch)
        bytes_put(out, "FB\x0a\x00ZZZZZZZZZZ", 14);
    bytes_put(out, packed.at, packed.size);
    if (torch) {
        bytes_put(out, "PK\7\x8", 4);
        bytes_le(out, member->crc, 4);
        bytes_le(out, packed.size, 4);
        bytes_le(out, size, 4);
    }
    bytes_free(&packed);
    return member;
}

static void put_entry(struct bytes *out, const struct zip_build_member *member)
{
    const bool ones = member->use_extra64 || member->no_extra64;
    const size_t name_len = member->name_len > 0 ? member->name_len : strlen(member->name);
    const uint32_t all = 0xffffffff;

    bytes_put(out, "PK\1\2", 4);
    bytes_le(out, 20, 2);
    bytes_le(out, 20, 2);
    bytes_le(out, member->flags, 2);
    bytes_le(out, member->method, 2);
    bytes_le(out, 0, 4);
    bytes_le(out, member->crc, 4);
    bytes_le(out, ones ? all : member->stored_size, 4);
    bytes_le(out, ones ? all : member->size, 4);
    bytes_le(out, name_len, 2);
    bytes_le(out, member->use_extra64 ? 34 : 0, 2);
    bytes_le(out, 0, 2);
    bytes_le(out, member->disk, 2);
    bytes_le(out, 0, 6);
    bytes_le(out, ones ? all : member->header_at, 4);
    bytes_put(out, member->name, name_len);
    if (!member->use_extra64)
        return;
    bytes_put(out, "UT\x02\x00xx", 6); /* another extra first */
    bytes_le(out, 1, 2);
    bytes_le(out, 24, 2);
    bytes_le(out, member->size, 8);
    bytes_le(out, member->stored_size, 8);
    bytes_le(out, member->header_at, 8);
}

static void put_end64(struct zip_build *zip, uint64_t entries, uint64_t size,
                      uint64_t offset)
{
    struct bytes *const out = &zip->bytes;
    const uint64_t at = out->size - zip->prefix;

    bytes_put(out, "PK\6\6", 4);
    bytes_le(out, 44, 8);
    bytes_le(out, 45, 2);
    bytes_le(out, 45, 2);
    bytes_le(out, 0, 8);
    bytes_le(out, entries, 8);
    bytes_le(out, entries, 8);
    bytes_le(out, size, 8);
    bytes_le(out, offset, 8);
    bytes_put(out, "PK\6\7", 4);
    bytes_le(out, 0, 4);
    bytes_le(out, at, 8);
    bytes_le(out, 1, 4);
}

void zip_build_end(struct zip_build *zip)
{
    struct bytes *const out = &zip->bytes;
    const uint64_t offset = out->size - zip->prefix + zip->offset_more;

    for (size_t i = 0; i < zip->count; i++)
        put_entry(out, &zip->members[i]);
    const uint64_t size =
        out->size - zip->prefix + zip->offset_more - offset + zip->size_more;
    const uint64_t entries = (uint64_t)((int64_t)zip->count + zip->entries_more);
    if (zip->use_end64)
        put_end64(zip, entries, size, offset);
    bytes_put(out, "PK\5\6", 4);
    bytes_le(out, zip->disk, 2);
    bytes_le(out, zip->disk, 2);
    bytes_le(out, zip->use_end64 ? 0xffff : entries, 2);
    bytes_le(out, zip->use_end64 ? 0xffff : entries, 2);
    bytes_le(out, zip->use_end64 ? 0xffffffff : size, 4);
    bytes_le(out, zip->use_end64 ? 0xffffffff : offset, 4);
    bytes_le(out, 0, 2);
}

enum nd_status open_exact(const void *bytes, size_t size, const char *name,
                          const char *format, struct dump **ret_dump,
                          unsigned char **ret_block, struct nd_error *err)
{
    unsigned char *const block = malloc(size > 0 ? size : 1);

    assert_non_null(block);
    if (size > 0)
        memcpy(block, bytes, size);
    const enum nd_status status =
        nd_dump_open_bytes(block, size, name, format, NULL, ret_dump, err);
    if (status != ND_OK)
        free(block);
    else
        *ret_block = block;
    return status;
}

static bool read_slot(const struct dump *dump, const struct dump_slot *slot)
{
    enum { STEP = 1024 };
    double values[2 * STEP];
    struct open_slot open;

    if (nd_slot_open(dump, slot, &open, NULL) != ND_OK)
        return false;
    /* Views of zero strides may have any number of elements: the first million will do. */
    for (uint64_t at = 0; at < open.view.count && at < 1000000; at += STEP) {
        const uint64_t left = open.view.count - at;
        nd_view_decode(&open.view, at, left < STEP ? left : STEP, values);
    }
    return nd_slot_close(&open);
}

size_t read_everything(const struct dump *dump)
{
    size_t readable = 0;

    for (size_t i = 0; i < dump->layer_count; i++)
        for (size_t k = 0; k < dump->layers[i].slot_count; k++)
            readable += read_slot(dump, &dump->layers[i].slots[k]) ? 1u : 0u;
    return readable;
}

void use_exact(const void *bytes, size_t size, const char *name, const char *format)
{
    struct dump *dump;
    unsigned char *block;
    struct nd_error error;

    if (open_exact(bytes, size, name, format, &dump, &block, &error) != ND_OK)
        return;
    read_everything(dump);
    nd_dump_close(dump);
    free(block);
}

const struct dump_slot *find_slot(const struct dump *dump, const char *layer,
                                  const char *slot)
{
    for (size_t i = 0; i < dump->layer_count; i++)
        for (size_t k = 0; k < dump->layers[i].slot_count; k++)
            if (strcmp(dump->layers[i].name, layer) == 0 &&
                strcmp(dump->layers[i].slots[k].name, slot) == 0)
                return &dump->layers[i].slots[k];
    return NULL;
}

double *slot_values(const struct dump *dump, const struct dump_slot *slot,
                    uint64_t *ret_count)
{
    struct open_slot open;
    struct nd_error error = {0};

    if (nd_slot_open(dump, slot, &open, &error) != ND_OK)
        fail_msg("%s: %s: %s", error.file, error.at, error.found);
    /* Complex elements are two doubles. */
    double *const values = calloc(2 * (size_t)open.view.count + 1, sizeof *values);
    assert_non_null(values);
    nd_view_decode(&open.view, 0, open.view.count, values);
    *ret_count = open.view.count;
    assert_true(nd_slot_close(&open));
    return values;
}
