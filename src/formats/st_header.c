/*
 * Reading a safetensors header.  It is scanned in place: a tree of a 100 MB header would
 * cost gigabytes, and offsets are read as the 64-bit integers that they are.
 */
#define _GNU_SOURCE /* memmem */
#include "formats/st_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/json_scan.h"
#include "formats/st_entry.h"

enum {
    ST_HEADER_MAX = 100 * 1000 * 1000, /* MAX_HEADER_SIZE of the reference implementation */
    ST_NAME_MAX = 4096
};

/* --- recognising ------------------------------------------------------------------- */

static bool st_printable(unsigned char c)
{
    return (c >= 0x20 && c < 0x7f) || (c >= 0x09 && c <= 0x0d);
}

int nd_st_probe(const unsigned char *bytes, uint64_t size)
{
    if (size < 9 || bytes[8] != '{')
        return 0;
    const uint64_t len = nd_load_le(bytes, 8);
    if (len >= 2 && len <= ST_HEADER_MAX) /* 40 zero bits, a brace, what may follow it */
        return size == 9 || memchr("\"} \t\r\n", bytes[9], 6) != NULL ? 56 : 40;
    /* A length that is far too large, but no text that happens to hold a brace. */
    for (int i = 0; i < 8; i++)
        if (!st_printable(bytes[i]))
            return 12;
    return 0;
}

/* Moves to the value of a key of the object at `in`; false if it has no such key. */
static bool st_seek(struct cursor *in, const char *key)
{
    struct json_text text;

    if (!nd_json_accept(in, '{'))
        return false;
    do {
        if (nd_json_scan_text(in, &text, NULL) != ND_OK || !nd_json_accept(in, ':'))
            return false;
        if (nd_json_text_is(&text, key))
            return true;
        if (nd_json_scan_value(in, false, NULL, NULL) != ND_OK)
            return false;
    } while (nd_json_accept(in, ','));
    return false;
}

/* Whether a key can stand in the text at all: as it is, or written with escapes. */
static bool st_may_hold(const struct cursor *in, const char *key)
{
    const unsigned char *const text = in->bytes + in->at;
    const size_t size = (size_t)(in->size - in->at);

    return memmem(text, size, key, strlen(key)) != NULL || memchr(text, '\\', size) != NULL;
}

bool nd_st_probe_normdiff(const unsigned char *bytes, uint64_t size)
{
    if (nd_st_probe(bytes, size) == 0)
        return false;
    const uint64_t len = nd_load_le(bytes, 8);
    if (len > ST_HEADER_MAX)
        return false;
    /* A header that is cut still tells what it wanted to be. */
    struct cursor in = {.bytes = bytes, .size = len > size - 8 ? size : 8 + len, .at = 8};
    if (!st_may_hold(&in, "__metadata__")) /* a search is far quicker than reading keys */
        return false;
    return st_seek(&in, "__metadata__") && st_seek(&in, "normdiff");
}

/* --- the whole header --------------------------------------------------------------- */

static int metadata_order(const void *a, const void *b)
{
    return nd_json_text_compare(a, b);
}

/* One key and value; the key joins keys[], to be compared with the others. */
static enum nd_status metadata_read_one(struct st_reader *reader, struct json_text *ret_key,
                                        struct nd_error *err)
{
    struct json_text value;

    ND_TRY(nd_json_scan_text(&reader->in, ret_key, err));
    ND_TRY(nd_json_expect(&reader->in, ':', err));
    ND_TRY(nd_json_scan_text(&reader->in, &value, err));
    if (!nd_json_text_is(ret_key, "normdiff"))
        return ND_OK;
    char *text = nd_arena_alloc(reader->arena, value.len + 1, 1);
    if (text == NULL)
        return nd_fail_memory(err);
    reader->header->normdiff_len = nd_json_text_decode(&value, text);
    reader->header->normdiff = text;
    reader->header->normdiff_at = value.at;
    return ND_OK;
}

static enum nd_status st_read_metadata(struct st_reader *reader, struct nd_error *err)
{
    struct json_text *keys = NULL;
    size_t count = 0, capacity = 0;

    nd_json_skip_blank(&reader->in);
    if (reader->in.at < reader->in.size && reader->in.bytes[reader->in.at] == 'n')
        /* null: the reference implementation takes it for none */
        return nd_json_scan_value(&reader->in, false, NULL, err);
    if (!nd_json_accept(&reader->in, '{'))
        return nd_json_unexpected(&reader->in, "an object of strings", err);
    if (nd_json_accept(&reader->in, '}'))
        return ND_OK;
    do {
        keys = nd_arena_grow(reader->arena, keys, count, &capacity, sizeof *keys);
        if (keys == NULL)
            return nd_fail_memory(err);
        ND_TRY(metadata_read_one(reader, &keys[count++], err));
    } while (nd_json_accept(&reader->in, ','));
    ND_TRY(nd_json_expect(&reader->in, '}', err));
    qsort(keys, count, sizeof *keys, metadata_order);
    for (size_t i = 1; i < count; i++)
        if (nd_json_text_compare(&keys[i - 1], &keys[i]) == 0)
            return nd_fail_at(err, ND_ERR_MALFORMED,
                              keys[i - 1].at > keys[i].at ? keys[i - 1].at : keys[i].at,
                              "keys that differ", "a key of __metadata__ a second time");
    return ND_OK;
}

static enum nd_status st_read_key(struct st_reader *reader, struct nd_error *err)
{
    struct st_header *header = reader->header;
    struct json_text key;

    ND_TRY(nd_json_scan_text(&reader->in, &key, err));
    ND_TRY(nd_json_expect(&reader->in, ':', err));
    if (nd_json_text_is(&key, "__metadata__")) {
        if (reader->has_metadata)
            return nd_fail_at(err, ND_ERR_MALFORMED, key.at, "keys that differ",
                              "the key \"__metadata__\" a second time");
        reader->has_metadata = true;
        return st_read_metadata(reader, err);
    }
    if (key.len > ST_NAME_MAX)
        return nd_fail_at(err, ND_ERR_LIMIT, key.at, "names of at most 4096 bytes",
                          "a name of %zu bytes", key.len);
    struct st_entry *entry = nd_arena_alloc(reader->arena, 1, sizeof *entry);
    char *name = nd_arena_alloc(reader->arena, key.len + 1, 1);
    struct st_entry **entries = nd_arena_grow(reader->arena, header->entries, header->count,
                                              &reader->capacity, sizeof(struct st_entry *));
    if (entry == NULL || name == NULL || entries == NULL)
        return nd_fail_memory(err);
    nd_json_text_decode(&key, name);
    entry->name = name;
    entry->name_at = key.at;
    header->entries = entries;
    header->entries[header->count++] = entry;
    return nd_st_entry_read(reader, entry, err);
}

static enum nd_status st_read_keys(struct st_reader *reader, struct nd_error *err)
{
    struct cursor *in = &reader->in;

    ND_TRY(nd_json_expect(in, '{', err));
    if (!nd_json_accept(in, '}')) {
        do {
            ND_TRY(st_read_key(reader, err));
        } while (nd_json_accept(in, ','));
        ND_TRY(nd_json_expect(in, '}', err));
    }
    nd_json_skip_blank(in);
    if (in->at < in->size)
        return nd_json_unexpected(in, "blanks up to the end of the header", err);
    return ND_OK;
}

static int entry_name_order(const void *a, const void *b)
{
    const struct st_entry *const *first = a, *const *second = b;

    return nd_natural_compare((*first)->name, (*second)->name);
}

/* Sorts by name; equal names are neighbours then. */
static enum nd_status st_sort_names(struct st_header *header, struct nd_error *err)
{
    if (header->count > 0)
        qsort(header->entries, header->count, sizeof(struct st_entry *), entry_name_order);
    for (size_t i = 1; i < header->count; i++) {
        const struct st_entry *a = header->entries[i - 1], *b = header->entries[i];
        if (strcmp(a->name, b->name) == 0)
            return nd_fail_at(
                err, ND_ERR_MALFORMED, a->name_at > b->name_at ? a->name_at : b->name_at,
                "names that differ", "tensor \"%.300s\" a second time", a->name);
    }
    return ND_OK;
}

static int entry_range_order(const void *a, const void *b)
{
    const struct st_entry *first = *(const struct st_entry *const *)a;
    const struct st_entry *second = *(const struct st_entry *const *)b;

    if (first->begin != second->begin)
        return first->begin < second->begin ? -1 : 1;
    return (first->end > second->end) - (first->end < second->end);
}

/* Ranges in file order must touch each other. */
static enum nd_status st_check_ranges(struct st_header *header, struct nd_error *err)
{
    const size_t count = header->count;
    struct st_entry **sorted =
        count == 0 ? NULL : malloc(count * sizeof(struct st_entry *));
    const struct st_entry *before = NULL;
    enum nd_status status = ND_OK;

    header->data_end = header->data_at;
    if (count == 0)
        return ND_OK;
    if (sorted == NULL)
        return nd_fail_memory(err);
    memcpy(sorted, header->entries, count * sizeof(struct st_entry *));
    qsort(sorted, count, sizeof(struct st_entry *), entry_range_order);
    for (size_t i = 0; i < count && status == ND_OK; before = sorted[i++]) {
        const struct st_entry *entry = sorted[i];
        if (before != NULL && entry->begin < header->data_end)
            status = nd_fail_at(
                err, ND_ERR_MALFORMED, entry->name_at, "ranges that do not overlap",
                "tensor \"%.200s\" at bytes %" PRIu64 "..%" PRIu64
                ", tensor \"%.200s\" up to %" PRIu64,
                entry->name, entry->begin, entry->end, before->name, header->data_end);
        if (entry->begin > header->data_end && !header->has_hole) {
            header->has_hole = true;
            header->hole_at = header->data_end;
            header->hole_end = entry->begin;
        }
        header->data_end = entry->end;
    }
    free(sorted);
    return status;
}

/* The 8 bytes before the header, and its first byte. */
static enum nd_status st_read_length(const struct cursor *file, uint64_t *ret_len,
                                     struct nd_error *err)
{
    if (file->size < 8)
        return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the 8 bytes of a header's length",
                          "a file of %" PRIu64 " bytes", file->size);
    const uint64_t len = nd_load_le(file->bytes, 8);
    if (len > ST_HEADER_MAX)
        return nd_fail_at(err, ND_ERR_LIMIT, 0,
                          "a header of at most 100 MB (100000000 bytes)",
                          "a header of %" PRIu64 " bytes", len);
    if (len > file->size - 8) {
        nd_fail_at(err, ND_ERR_MALFORMED, 0, "a header that ends within the file",
                   "a header of %" PRIu64 " bytes in a file of %" PRIu64, len, file->size);
        nd_error_hint(err, "the file was cut: copy it again, or run the dump again");
        return ND_ERR_MALFORMED;
    }
    struct cursor in = {.bytes = file->bytes, .size = 8 + len, .at = 8};
    nd_json_skip_blank(&in);
    if (in.at == in.size) {
        nd_fail_at(err, ND_ERR_MALFORMED, 8, "a header that begins with '{'",
                   "a header of %" PRIu64 " blanks", len);
        nd_error_hint(err, "the program that wrote the file died before it wrote a header");
        return ND_ERR_MALFORMED;
    }
    in.at = 8;
    if (in.bytes[8] != '{')
        return nd_json_unexpected(&in, "a header that begins with '{'", err);
    *ret_len = len;
    return ND_OK;
}

enum nd_status nd_st_header_read(struct cursor file, struct arena *arena,
                                 struct st_header *ret_header, struct nd_error *err)
{
    struct st_header header = {.file_size = file.size};
    struct st_reader reader = {.in = file, .arena = arena, .header = &header};
    uint64_t len = 0;

    ND_TRY(st_read_length(&file, &len, err));
    reader.in.at = 8;
    reader.in.size = header.data_at = 8 + len;
    ND_TRY(st_read_keys(&reader, err));
    ND_TRY(st_sort_names(&header, err));
    ND_TRY(st_check_ranges(&header, err));
    *ret_header = header;
    return ND_OK;
}

/* --- for the readers ---------------------------------------------------------------- */

enum nd_status nd_st_header_tight(const struct st_header *header, struct nd_error *err)
{
    if (!header->has_hole)
        return ND_OK;
    return nd_fail_at(
        err, ND_ERR_MALFORMED, header->hole_at, "ranges that touch each other",
        "%" PRIu64 " bytes that belong to no tensor", header->hole_end - header->hole_at);
}

enum nd_status nd_st_header_trailing(const struct st_header *header, struct dump *dump,
                                     struct nd_error *err)
{
    if (header->file_size <= header->data_end)
        return ND_OK;
    const char *what =
        nd_arena_format(dump->arena, "%" PRIu64 " bytes after the last tensor",
                        header->file_size - header->data_end);
    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(dump, what, err);
}

struct st_entry *nd_st_find(const struct st_header *header, const char *name)
{
    size_t low = 0, high = header->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = nd_natural_compare(name, header->entries[middle]->name);
        if (order == 0)
            return header->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct dump_slot nd_st_slot(const struct st_entry *entry, size_t file)
{
    struct dump_slot slot = nd_dump_slot_init();

    slot.dtype = entry->dtype;
    slot.dtype_text = entry->dtype_text;
    slot.storage = entry->shape;
    slot.has_shape = true;
    slot.broken = entry->broken;
    slot.extent.file = file;
    slot.extent.offset = entry->begin;
    slot.extent.size = slot.extent.raw_size = entry->end - entry->begin;
    return slot;
}
