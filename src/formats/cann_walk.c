/*
 * The files below a folder of CANN dumps.  A name that is too long for the file system lies
 * under a number; the folder's mapping.csv says which it stands for:
 *
 *   {number},{name}   a line each, no header; 10 or 20 digits, or 32 hexadecimal ones
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY, d_type */
#include "formats/cann_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_DEPTH = 32,
    MAX_FILES = 1000000,
    MAX_PROBED = 4096, /* entries that are looked at to tell what a folder is */
    PROBE_DEPTH = 10
};

static const char mapping_name[] = "mapping.csv";

/* --- mapping.csv ---------------------------------------------------------------------- */

struct mapped {
    const char *key, *name;
};

struct mapping {
    struct mapped *rows;
    size_t count, capacity;
};

static int mapped_order(const void *a, const void *b)
{
    const struct mapped *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static enum nd_status mapping_add(struct dump *dump, struct mapping *mapping,
                                  const char *line, size_t len, struct nd_error *err)
{
    const char *const comma = memchr(line, ',', len);

    while (len > 0 &&
           (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == ','))
        len--;
    if (comma == NULL || comma == line || (size_t)(comma - line) + 1 >= len)
        return ND_OK; /* no row: a number without a name helps nobody */
    struct mapped *const rows = nd_arena_grow(dump->arena, mapping->rows, mapping->count,
                                              &mapping->capacity, sizeof *rows);
    if (rows == NULL)
        return nd_fail_memory(err);
    mapping->rows = rows;
    struct mapped *const row = &rows[mapping->count++];
    row->key = nd_arena_copy(dump->arena, line, (size_t)(comma - line));
    row->name = nd_arena_copy(dump->arena, comma + 1, len - (size_t)(comma + 1 - line));
    return row->key == NULL || row->name == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status mapping_read(struct dump *dump, const char *path,
                                   struct mapping *mapping, struct nd_error *err)
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

/* The name that a number stands for; one look, so that no row can lead on to another. */
static const char *mapping_name_of(struct dump *dump, const struct mapping *mapping,
                                   const char *name)
{
    const struct mapped key = {.key = name};
    const struct mapped *hit =
        mapping->count == 0
            ? NULL
            : bsearch(&key, mapping->rows, mapping->count, sizeof key, mapped_order);

    if (hit == NULL && mapping->count > 0) {
        const char *const dot = strrchr(name, '.');
        const struct mapped bare = {
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

/* --- walking -------------------------------------------------------------------------- */

static const char *path_join(struct dump *dump, const char *folder, const char *name)
{
    return *folder == '\0' ? name : nd_arena_format(dump->arena, "%s/%s", folder, name);
}

static enum nd_status tree_add(struct dump *dump, struct tree *tree, const char *path,
                               const char *name, const struct tree_place *place,
                               struct nd_error *err)
{
    if (tree->count == MAX_FILES)
        return nd_fail(err, ND_ERR_LIMIT, "at most 1000000 files below a folder", "more");
    struct tree_file *const files = nd_arena_grow(dump->arena, tree->files, tree->count,
                                                  &tree->capacity, sizeof *files);
    if (files == NULL)
        return nd_fail_memory(err);
    tree->files = files;
    struct tree_file *const file = &files[tree->count++];
    *file = (struct tree_file){.path = path,
                               .name = name,
                               .model = place->model,
                               .step = place->step,
                               .rank = place->rank,
                               .rank_is_device = place->rank_is_device,
                               .file = SIZE_MAX};
    file->is_named = nd_cann_name_parse(name, &file->parsed);
    return ND_OK;
}

static enum nd_status folder_files(struct dump *dump,
                                   const struct dump_directory *directory,
                                   struct tree *tree, struct nd_error *err)
{
    struct tree_place place;
    struct mapping mapping = {0};

    ND_TRY(nd_tree_place(dump->arena, directory->path, &place, err));
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const path = path_join(dump, directory->path, mapping_name);
        if (path == NULL)
            return nd_fail_memory(err);
        if (strcmp(directory->names[i], mapping_name) == 0)
            ND_TRY(mapping_read(dump, path, &mapping, err));
    }
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const name = directory->names[i];
        const char *const path = path_join(dump, directory->path, name);
        if (path == NULL)
            return nd_fail_memory(err);
        if (strcmp(name, mapping_name) == 0)
            continue;
        if (name[0] == '.')
            ND_TRY(nd_dump_ignore(dump, path, err));
        else
            ND_TRY(tree_add(dump, tree, path, mapping_name_of(dump, &mapping, name), &place,
                            err));
    }
    return ND_OK;
}

static enum nd_status tree_walk(struct dump *dump, const char *folder, unsigned depth,
                                struct tree *tree, struct nd_error *err)
{
    struct dump_directory directory;

    if (depth == MAX_DEPTH)
        return nd_fail_key(err, ND_ERR_LIMIT, folder, "at most 32 nested folders", "more");
    ND_TRY(nd_dump_directory_read(dump, folder, &directory, err));
    ND_TRY(folder_files(dump, &directory, tree, err));
    for (size_t i = 0; i < directory.other_count; i++) {
        const char *const what =
            nd_arena_format(dump->arena, "%s%s%s: a link or a device, not followed", folder,
                            *folder == '\0' ? "" : "/", directory.others[i]);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(dump, what, err));
    }
    for (size_t i = 0; i < directory.folder_count; i++) {
        const char *const path = path_join(dump, folder, directory.folders[i]);
        if (path == NULL)
            return nd_fail_memory(err);
        if (directory.folders[i][0] == '.')
            ND_TRY(nd_dump_ignore(dump, path, err));
        else
            ND_TRY(tree_walk(dump, path, depth + 1, tree, err));
    }
    return ND_OK;
}

/* Which chip of a machine ran it says nothing where one did: the other run may have had
 * another. */
static void tree_forget_device(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (!tree->files[i].rank_is_device || tree->files[i].rank != tree->files[0].rank)
            return;
    for (size_t i = 0; i < tree->count; i++)
        tree->files[i].rank = -1;
}

enum nd_status nd_tree_walk(struct dump *dump, struct tree *tree, struct nd_error *err)
{
    ND_TRY(tree_walk(dump, "", 0, tree, err));
    tree_forget_device(tree);
    return ND_OK;
}

/* --- recognising ---------------------------------------------------------------------- */

struct tree_probe {
    unsigned left; /* entries that may still be looked at */
    enum tree_kind kind;
};

/* One folder's names: only long ones may be in it, each under a number, and then the table
 * beside them tells. */
struct folder_probe {
    bool has_table, has_number;
};

static enum tree_kind name_kind(const char *name, struct folder_probe *folder)
{
    folder->has_table = folder->has_table || strcmp(name, mapping_name) == 0;
    folder->has_number =
        folder->has_number || (*name != '\0' && name[strspn(name, "0123456789")] == '\0');
    if (nd_cann_name_is_dump(name) || (folder->has_table && folder->has_number))
        return TREE_DUMPS;
    return nd_cann_name_is_array(name) ? TREE_ARRAYS : TREE_NONE;
}

static void tree_look(int parent, const char *name, unsigned depth,
                      struct tree_probe *probe)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const stream = fd < 0 ? NULL : fdopendir(fd);

    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct folder_probe folder = {false, false};
    const struct dirent *entry;
    while (probe->kind != TREE_DUMPS && probe->left > 0 &&
           (entry = readdir(stream)) != NULL) {
        probe->left--;
        if (entry->d_name[0] == '.')
            continue;
        const enum tree_kind kind = name_kind(entry->d_name, &folder);
        if (kind > probe->kind)
            probe->kind = kind;
        else if (entry->d_type != DT_REG && depth < PROBE_DEPTH)
            tree_look(fd, entry->d_name, depth + 1, probe);
    }
    closedir(stream);
}

enum tree_kind nd_tree_kind(const struct dump_directory *directory)
{
    struct tree_probe probe = {.left = MAX_PROBED};
    struct folder_probe folder = {false, false};

    for (size_t i = 0; i < directory->name_count && probe.kind != TREE_DUMPS; i++) {
        const enum tree_kind kind = name_kind(directory->names[i], &folder);
        if (kind > probe.kind)
            probe.kind = kind;
    }
    for (size_t i = 0; directory->fd >= 0 && i < directory->folder_count; i++)
        tree_look(directory->fd, directory->folders[i], 1, &probe);
    return probe.kind;
}
