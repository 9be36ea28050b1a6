/*
 * PyTorch's form before 1.6, which torch.save still writes on request
 * (_use_new_zipfile_serialization=False).  Learned from torch/serialization.py and files
 * of 1.13 and 2.x.  Five pickles in a row, then the bytes:
 *
 *   1. the number 0x1950a86a20f9469cfc6c
 *   2. the number 1001, the form's version
 *   3. a dict: protocol_version, little_endian, type_sizes
 *   4. the saved object (pickle.c, pt_tree.c)
 *   5. a list of the storages' keys
 *   6. per key, in the list's order: number of elements, 8 bytes; the elements.  Both are
 *      little-endian whatever the machine.  How large an element is stands only in the
 *      persistent ids of the object (pt_storage.c), the first one of a key deciding
 *
 * A file that ends early has broken tensors, not a broken directory.
 *
 * Before 0.1.10 a tar archive took this place; it is recognised and refused by name.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "formats/format.h"
#include "formats/pt.h"

enum { VERSION = 1001 };

static const unsigned char magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                      0x20, 0x6a, 0xa8, 0x50, 0x19};

/* A key with its element size and place. */
struct entry {
    const struct pickle *key;
    uint64_t offset, size;
    unsigned element_size; /* 0: no tensor refers to it */
    const char *why;       /* NULL: the bytes are there */
};

struct entries {
    struct entry *items; /* sorted by key */
    size_t count;
};

/* --- recognising ------------------------------------------------------------------- */

/* The name and mark of the first tar member: sys_info, pickle, tensors or storages. */
static bool is_tar(const unsigned char *bytes, uint64_t size)
{
    static const char *const names[] = {"sys_info", "pickle", "tensors", "storages"};

    if (size < 512 || memcmp(bytes + 257, "ustar", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (memcmp(bytes, names[i], strlen(names[i]) + 1) == 0)
            return true;
    return false;
}

static int ptlegacy_probe(const struct dump_head *head)
{
    /* PROTO 2; protocol 4 puts a FRAME of 9 bytes between; LONG1, 10 bytes. */
    const uint64_t at = head->size > 2 && head->bytes[2] == 0x95 ? 11 : 2;

    if (is_tar(head->bytes, head->size))
        return 64;
    if (head->size < at + 2 + sizeof magic || head->bytes[0] != 0x80 ||
        head->bytes[at] != 0x8a || memcmp(head->bytes + at + 2, magic, sizeof magic) != 0)
        return 0;
    return 96;
}

/* --- storages ---------------------------------------------------------------------- */

static int key_compare(const struct pickle *a, const struct pickle *b)
{
    const uint32_t len = a->len < b->len ? a->len : b->len;
    const int order = len == 0 ? 0 : memcmp(a->as.text, b->as.text, len);

    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return key_compare(x->key, y->key);
}

static bool key_is_text(const struct pickle *key)
{
    return key != NULL && (key->kind == PICKLE_TEXT || key->kind == PICKLE_BYTES);
}

static struct entry *entries_find(const struct entries *entries, const struct pickle *key)
{
    const struct entry wanted = {.key = key};

    if (!key_is_text(key) || entries->count == 0)
        return NULL;
    return bsearch(&wanted, entries->items, entries->count, sizeof wanted, entry_compare);
}

static const char *ptlegacy_find(struct pt_source *source, const struct pickle *key,
                                 struct pt_storage *ret_storage)
{
    const struct entry *entry = entries_find(source->user, key);

    if (entry == NULL)
        return "malformed: its storage is not in the file";
    if (entry->why != NULL)
        return entry->why;
    *ret_storage = (struct pt_storage){
        .offset = entry->offset,
        .stored_size = entry->size,
        .size = entry->size,
    };
    return NULL;
}

static enum nd_status entries_new(struct arena *arena, const struct pickle *keys,
                                  uint64_t at, struct entries *ret_entries,
                                  struct nd_error *err)
{
    struct entries entries = {0};

    if (keys->kind != PICKLE_LIST)
        return nd_fail_at(err, ND_ERR_MALFORMED, at, "a list of storage keys",
                          "a pickle of something else");
    entries.count = keys->as.list->count;
    entries.items = nd_arena_alloc(arena, entries.count, sizeof *entries.items);
    if (entries.items == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < entries.count; i++) {
        entries.items[i].key = &keys->as.list->items[i];
        if (!key_is_text(entries.items[i].key))
            return nd_fail_at(err, ND_ERR_MALFORMED, at, "keys that are texts",
                              "key %zu is none", i);
    }
    if (entries.count > 1)
        qsort(entries.items, entries.count, sizeof *entries.items, entry_compare);
    for (size_t i = 1; i < entries.count; i++)
        if (entry_compare(&entries.items[i - 1], &entries.items[i]) == 0)
            return nd_fail_at(err, ND_ERR_MALFORMED, at, "each storage once",
                              "a storage key twice");
    *ret_entries = entries;
    return ND_OK;
}

static void entries_size(struct arena *arena, const struct entries *entries,
                         const struct pickle_list *persistent)
{
    for (uint32_t i = 0; i < persistent->count; i++) {
        struct pickle_list id = {.items = &persistent->items[i], .count = 1, .capacity = 1};
        const struct pickle value = {.kind = PICKLE_PERSISTENT, .as.list = &id};
        struct pt_storage_id parsed;
        struct entry *entry = entries_find(entries, nd_pickle_item(id.items, 2));
        if (entry != NULL && entry->element_size == 0 &&
            nd_pt_storage_id(arena, &value, &parsed) == NULL)
            entry->element_size = nd_dtype_info(parsed.dtype)->size;
    }
}

/* Goes through the bytes in the order of the list; what lies behind a storage of unknown
 * length cannot be found.  False if the file ends too early. */
static bool entries_place(struct arena *arena, const struct entries *entries,
                          const struct pickle_list *keys, struct cursor *in)
{
    const char *lost = NULL;
    bool whole = true;

    for (uint32_t i = 0; i < keys->count; i++) {
        struct entry *entry = entries_find(entries, &keys->items[i]);
        uint64_t numel;
        entry->why = lost;
        if (lost != NULL)
            continue;
        if (entry->element_size == 0) {
            lost = entry->why =
                "unsupported: it lies behind a storage of unknown element size";
            continue;
        }
        const uint64_t at = in->at;
        if (!nd_cursor_le(in, 8, &numel) ||
            !nd_size_mul(numel, entry->element_size, &entry->size) ||
            entry->size > nd_cursor_left(in)) {
            lost = nd_arena_format(
                arena,
                "the file ends inside the storage at byte %" PRIu64 ": it was cut off", at);
            if (lost == NULL)
                lost = "the file ends inside a storage";
            entry->why = lost;
            whole = false;
            continue;
        }
        entry->offset = in->at;
        in->at += entry->size;
    }
    return whole;
}

/* --- indexing ---------------------------------------------------------------------- */

static enum nd_status read_header(struct cursor *in, struct arena *arena,
                                  struct nd_error *err)
{
    struct pickle number, version, info;
    const uint64_t start = in->at;

    ND_TRY(nd_pickle_read(in, arena, &number, NULL, err));
    if (number.kind != PICKLE_LONG || number.len != sizeof magic ||
        memcmp(number.as.text, magic, sizeof magic) != 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, start, "the number 0x1950a86a20f9469cfc6c",
                          "another pickle");
    const uint64_t version_at = in->at;
    ND_TRY(nd_pickle_read(in, arena, &version, NULL, err));
    if (version.kind != PICKLE_INT || version.as.integer != VERSION)
        return nd_fail_at(err, ND_ERR_UNSUPPORTED, version_at,
                          "version 1001 of the legacy form", "another version");
    return nd_pickle_read(in, arena, &info, NULL, err);
}

static enum nd_status ptlegacy_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(dump, file);
    struct pickle_list persistent;
    struct pickle root, keys;
    struct entries entries;
    struct pt_source source = {.dump = dump,
                               .file = file,
                               .text_file = file,
                               .find = ptlegacy_find,
                               .user = &entries};

    if (is_tar(in.bytes, in.size)) {
        nd_fail(err, ND_ERR_UNSUPPORTED, "a file of PyTorch 0.1.10 or later",
                "the tar form of PyTorch before 0.1.10");
        nd_error_hint(err, "load it with torch.load and save it again with torch.save");
        return ND_ERR_UNSUPPORTED;
    }
    ND_TRY(read_header(&in, dump->arena, err));
    const uint64_t object_at = in.at;
    ND_TRY(nd_pickle_read(&in, dump->arena, &root, &persistent, err));
    const uint64_t keys_at = in.at;
    ND_TRY(nd_pickle_read(&in, dump->arena, &keys, NULL, err));
    ND_TRY(entries_new(dump->arena, &keys, keys_at, &entries, err));
    entries_size(dump->arena, &entries, &persistent);
    source.is_cut = !entries_place(dump->arena, &entries, keys.as.list, &in);
    return nd_pt_walk(&source, &root, keys_at - object_at, err);
}

const struct dump_format nd_format_ptlegacy = {
    .name = "ptlegacy",
    .title = "PyTorch before 1.6 (.pt)",
    .probe = ptlegacy_probe,
    .index = ptlegacy_index,
};
