/*
 * Dumps of MindSpore: folders of .npy files and statistic.csv.  Learned from its
 * documentation (2.4), debug/data_dump/npy_header.cc and msprobe's test data:
 *
 *   1. rank_{r}/{net}/{graph}/{iteration}/ holds tensor files (mindspore_name.c) and
 *      statistic.csv (mindspore_table.c); rank_{r}/{net}/{graph}/constants/ parameters;
 *      O2 writes {step}/{time}/{device}/{model}/{id}/{iteration}/; 2020 wrote
 *      {net}/[device_{id}/]iteration_{n}/.  Any of these folders may be the root
 *   2. rank_{r}/execution_order/ms_execution_order_graph_{g}.csv gives the order
 *      (mindspore_order.c); without it the time stamps do
 *   3. calls and layers are made of all tensors at once (mindspore_layers.c)
 *   4. a name too long for the file system is put back by mapping.csv (cann_mapping.h)
 *
 * Device files of the O2 mode are those of CANN, which are another format.
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "formats/cann_mapping.h"
#include "formats/cann_tree.h"
#include "formats/mindspore.h"
#include "formats/walk_folders.h"

enum { PROBE_DEPTH = 10, PROBE_ENTRIES = 8192 };

/* --- recognising --------------------------------------------------------------------- */

static int mindspore_probe(const struct dump_head *head)
{
    return nd_ms_table_is(head->bytes, head->size) ? 72 : 0;
}

static bool file_is_table(int folder, const char *name)
{
    unsigned char head[64];
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : read(fd, head, sizeof head);

    if (fd >= 0)
        close(fd);
    return got > 0 && nd_ms_table_is(head, (uint64_t)got);
}

static bool folder_probe(int parent, const char *name, unsigned depth, unsigned *inout_left)
{
    const int fd =
        depth == PROBE_DEPTH
            ? -1
            : openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const stream = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;

    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (const struct dirent *entry;
         !found && *inout_left > 0 && (entry = readdir(stream)) != NULL;) {
        --*inout_left;
        if (entry->d_name[0] == '.')
            continue;
        found = nd_ms_name_is(entry->d_name) ||
                (strcmp(entry->d_name, "statistic.csv") == 0 &&
                 file_is_table(fd, entry->d_name)) ||
                ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
                 folder_probe(fd, entry->d_name, depth + 1, inout_left));
    }
    closedir(stream);
    return found;
}

/* More than arrays that a converter made of CANN files, less than CANN files themselves. */
static int mindspore_probe_directory(const struct dump_directory *directory)
{
    unsigned left = PROBE_ENTRIES;

    return directory->fd >= 0 && folder_probe(directory->fd, ".", 0, &left) ? 32 : 0;
}

/* --- walking ------------------------------------------------------------------------- */

struct reader {
    struct dump *dump;
    struct ms_items items;
    struct ms_order order;
};

enum nd_status nd_ms_item_add(struct dump *dump, struct ms_items *items,
                              const struct ms_item *item, struct nd_error *err)
{
    if (items->count == ND_MS_MAX_ITEMS)
        return nd_fail(err, ND_ERR_LIMIT, "at most 4000000 tensors", "more");
    struct ms_item *const list = nd_arena_grow(dump->arena, items->items, items->count,
                                               &items->capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    items->items = list;
    list[items->count] = *item;
    list[items->count].source = items->count;
    items->count++;
    return ND_OK;
}

static bool is_order_table(const char *name)
{
    static const char head[] = "ms_execution_order_graph_";

    return strncmp(name, head, sizeof head - 1) == 0;
}

static enum nd_status walk_file(struct reader *reader, const char *path, const char *name,
                                const struct tree_place *place, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    struct ms_item item;
    bool memory;
    size_t file;

    if (nd_ms_name(dump, name, &item, &memory)) {
        item.path = path;
        item.step = place->step;
        item.rank = place->rank;
        return memory ? nd_ms_item_add(dump, &reader->items, &item, err)
                      : nd_fail_memory(err);
    }
    if (strcmp(name, "statistic.csv") != 0 && !is_order_table(name))
        return nd_dump_ignore(dump, path, err);
    ND_TRY(nd_dump_file_add(dump, path, &file, err));
    const struct cursor bytes = nd_dump_bytes(dump, file);
    enum nd_status status;
    if (is_order_table(name))
        status = nd_ms_order_add(dump, file, place->rank, &reader->order, err);
    else if (nd_ms_table_is(bytes.bytes, bytes.size))
        status = nd_ms_table(dump, file, place->step, place->rank, &reader->items, err);
    else
        status = nd_dump_ignore(dump, path, err);
    if (status != ND_OK)
        nd_error_file(err, dump->files[file].path);
    nd_dump_file_rest(dump, file);
    return status;
}

/* The name that a folder's table puts back, with the extension of what lies there. */
static const char *long_name(struct dump *dump, const struct cann_mapping *mapping,
                             const char *name)
{
    const char *const found = nd_cann_mapping_name(dump, mapping, name);
    const size_t len = found == NULL ? 0 : strlen(found);

    if (found == NULL || found == name || (len > 4 && strcmp(found + len - 4, ".npy") == 0) ||
        strstr(name, ".npy") == NULL)
        return found;
    return nd_arena_format(dump->arena, "%s.npy", found);
}

static enum nd_status folder_mapping(struct dump *dump, const struct dump_directory *directory,
                                     struct cann_mapping *ret_mapping, struct nd_error *err)
{
    *ret_mapping = (struct cann_mapping){0};
    for (size_t i = 0; i < directory->name_count; i++) {
        if (strcmp(directory->names[i], ND_CANN_MAPPING) != 0)
            continue;
        const char *const path = nd_walk_path(dump, directory->path, ND_CANN_MAPPING);
        if (path == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_cann_mapping_read(dump, path, ret_mapping, err));
    }
    return ND_OK;
}

static enum nd_status walk_files(void *user, struct dump *dump,
                                 const struct dump_directory *directory,
                                 struct nd_error *err)
{
    struct tree_place place;
    struct cann_mapping mapping;

    ND_TRY(nd_tree_place(dump->arena, directory->path, &place, err));
    ND_TRY(folder_mapping(dump, directory, &mapping, err));
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const path = nd_walk_path(dump, directory->path, directory->names[i]);
        const char *const name = long_name(dump, &mapping, directory->names[i]);
        if (path == NULL || name == NULL)
            return nd_fail_memory(err);
        if (strcmp(name, ND_CANN_MAPPING) != 0)
            ND_TRY(walk_file(user, path, name, &place, err));
    }
    return ND_OK;
}

static enum nd_status mindspore_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct reader reader = {.dump = dump};

    dump->framework = "mindspore";
    if (dump->is_lone)
        ND_TRY(nd_ms_table(dump, file, -1, -1, &reader.items, err));
    else
        ND_TRY(nd_walk_folders(dump, walk_files, &reader, err));
    ND_TRY(nd_ms_layers(dump, &reader.items, &reader.order, err));
    if (dump->layer_count > 0)
        return ND_OK;
    return nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "tensors or rows of statistics",
                   "a MindSpore dump without any");
}

const struct dump_format nd_format_mindspore = {
    .name = "mindspore",
    .title = "MindSpore dump",
    .probe = mindspore_probe,
    .probe_directory = mindspore_probe_directory,
    .index = mindspore_index,
};
