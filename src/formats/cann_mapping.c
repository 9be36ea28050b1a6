/*
 * Long names put back.
 */
#include "formats/cann_mapping.h"

#include <stdlib.h>
#include <string.h>

static int mapped_order(const void *a, const void *b)
{
    const struct cann_mapped *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static enum nd_status mapping_add(struct dump *dump, struct cann_mapping *mapping,
                                  const char *line, size_t len, struct nd_error *err)
{
    const char *const comma = memchr(line, ',', len);

    while (len > 0 &&
           (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == ','))
        len--;
    if (comma == NULL || comma == line || (size_t)(comma - line) + 1 >= len)
        return ND_OK; /* no row: a number without a name helps nobody */
    struct cann_mapped *const rows = nd_arena_grow(dump->arena, mapping->rows, mapping->count,
                                              &mapping->capacity, sizeof *rows);
    if (rows == NULL)
        return nd_fail_memory(err);
    mapping->rows = rows;
    struct cann_mapped *const row = &rows[mapping->count++];
    row->key = nd_arena_copy(dump->arena, line, (size_t)(comma - line));
    row->name = nd_arena_copy(dump->arena, comma + 1, len - (size_t)(comma + 1 - line));
    return row->key == NULL || row->name == NULL ? nd_fail_memory(err) : ND_OK;
}

enum nd_status nd_cann_mapping_read(struct dump *dump, const char *path,
                                    struct cann_mapping *mapping, struct nd_error *err)
{
    struct nd_error reason = {0};
    size_t file;

    if (nd_dump_file_add(dump, path, &file, &reason) != ND_OK)
        return reason.status == ND_ERR_MEMORY ? nd_fail_memory(err)
                                              : nd_dump_ignore(dump, path, err);
    const struct cursor bytes = nd_dump_bytes(dump, file);
    const char *at = (const char *)bytes.bytes, *const end = at + bytes.size;
    while (at < end) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const char *const stop = newline == NULL ? end : newline;
        ND_TRY(mapping_add(dump, mapping, at, (size_t)(stop - at), err));
        at = stop + 1;
    }
    nd_dump_file_rest(dump, file);
    if (mapping->count > 1)
        qsort(mapping->rows, mapping->count, sizeof *mapping->rows, mapped_order);
    return ND_OK;
}

const char *nd_cann_mapping_name(struct dump *dump, const struct cann_mapping *mapping,
                                   const char *name)
{
    const struct cann_mapped key = {.key = name};
    const struct cann_mapped *hit =
        mapping->count == 0
            ? NULL
            : bsearch(&key, mapping->rows, mapping->count, sizeof key, mapped_order);

    if (hit == NULL && mapping->count > 0) {
        const char *const dot = strrchr(name, '.');
        const struct cann_mapped bare = {
            .key = dot == NULL ? name
                               : nd_arena_copy(dump->arena, name, (size_t)(dot - name))};
        hit = bare.key == NULL ? NULL
                               : bsearch(&bare, mapping->rows, mapping->count, sizeof bare,
                                         mapped_order);
    }
    if (hit == NULL)
        return name;
    const char *const slash = strrchr(hit->name, '/'); /* some write the whole path */
    return slash == NULL ? hit->name : slash + 1;
}

const char *nd_cann_mapping_lone(struct dump *dump, const char *name)
{
    struct cann_mapping mapping = {0};
    struct nd_error reason = {0};
    struct dump_directory folder;
    const size_t len = strlen(name);

    /* 10 or 20 digits, or 32 hexadecimal ones: then only is the folder looked at. */
    if (!dump->is_lone || len < 8 || strspn(name, "0123456789abcdefABCDEF") < 8 ||
        nd_dump_directory_read(dump, "", &folder, &reason) != ND_OK)
        return name;
    for (size_t i = 0; i < folder.name_count; i++)
        if (strcmp(folder.names[i], ND_CANN_MAPPING) == 0 &&
            nd_cann_mapping_read(dump, ND_CANN_MAPPING, &mapping, &reason) == ND_OK)
            return nd_cann_mapping_name(dump, &mapping, name);
    return name;
}
