/*
 * The files below a folder of CANN dumps; long names are put back (cann_mapping.h).
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY, d_type */
#include "formats/cann_mapping.h"
#include "formats/cann_tree.h"
#include "formats/walk_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_FILES = 1000000,
    MAX_PROBED = 4096, /* entries that are looked at to tell what a folder is */
    PROBE_DEPTH = 10
};

/* --- walking -------------------------------------------------------------------------- */

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

static enum nd_status folder_files(void *user, struct dump *dump,
                                   const struct dump_directory *directory,
                                   struct nd_error *err)
{
    struct tree *const tree = user;
    struct tree_place place;
    struct cann_mapping mapping = {0};

    ND_TRY(nd_tree_place(dump->arena, directory->path, &place, err));
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const path = nd_walk_path(dump, directory->path, ND_CANN_MAPPING);
        if (path == NULL)
            return nd_fail_memory(err);
        if (strcmp(directory->names[i], ND_CANN_MAPPING) == 0)
            ND_TRY(nd_cann_mapping_read(dump, path, &mapping, err));
    }
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const name = directory->names[i];
        const char *const path = nd_walk_path(dump, directory->path, name);
        if (path == NULL)
            return nd_fail_memory(err);
        if (strcmp(name, ND_CANN_MAPPING) == 0)
            continue;
        if (name[0] == '.')
            ND_TRY(nd_dump_ignore(dump, path, err));
        else
            ND_TRY(tree_add(dump, tree, path, nd_cann_mapping_name(dump, &mapping, name), &place,
                            err));
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
    ND_TRY(nd_walk_folders(dump, folder_files, tree, err));
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
    folder->has_table = folder->has_table || strcmp(name, ND_CANN_MAPPING) == 0;
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
