/*
 * Where a msprobe dump's records lie.  Any of these may be the root:
 *
 *   1. DUMP_PATH/step{N}/rank{R}/ with dump.json, debug.json, stack.json, construct.json
 *      and dump_tensor_data/; proc{PID}/ where no rank was known
 *   2. the same with folders above it: verl's step_1/actor_update/, MindSpore's graph/ and
 *      pynative/.  Where several differ they become a prefix of the layers' names
 *   3. a step, or a rank, or the folder of the records itself
 *
 * Processes beside ranks are helpers of the run and ignored; without ranks they are
 * numbered by process id, a single one has no rank.
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/msprobe.h"

enum {
    MAX_DEPTH = 8,
    MAX_FOLDERS = 65536, /* that a walk visits */
    PROBE_FOLDERS = 4096,
    HEAD_SIZE = 4096
};

/* --- recognising --------------------------------------------------------------------- */

static bool head_holds(const unsigned char *bytes, uint64_t size, const char *word)
{
    return memmem(bytes, size, word, strlen(word)) != NULL;
}

bool nd_msprobe_head(const unsigned char *bytes, uint64_t size)
{
    struct cursor in = {.bytes = bytes, .size = size < HEAD_SIZE ? size : HEAD_SIZE};

    if (!nd_json_accept(&in, '{'))
        return false;
    /* Two of the keys that stand before "data"; a foreign JSON may have one by chance. */
    const bool has_data = head_holds(bytes, in.size, "\"data\"");
    return (head_holds(bytes, in.size, "\"task\"") &&
            (head_holds(bytes, in.size, "\"level\"") || has_data)) ||
           head_holds(bytes, in.size, "\"dump_data_dir\"");
}

static bool file_is_ours(int folder, const char *name)
{
    unsigned char head[HEAD_SIZE];
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    const ssize_t got = read(fd, head, sizeof head);
    close(fd);
    return got > 0 && nd_msprobe_head(head, (uint64_t)got);
}

static bool name_is_json(const char *name)
{
    return strcmp(name, "dump.json") == 0 || strcmp(name, "debug.json") == 0;
}

/* "dump_tensor_data" with a file whose name ends like one of msprobe's. */
static bool folder_has_tensors(int folder)
{
    const int fd =
        openat(folder, "dump_tensor_data", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const stream = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;

    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (const struct dirent *entry; !found && (entry = readdir(stream)) != NULL;) {
        const size_t len = strlen(entry->d_name);
        found = (len > 3 && strcmp(entry->d_name + len - 3, ".pt") == 0) ||
                (len > 4 && strcmp(entry->d_name + len - 4, ".npy") == 0);
    }
    closedir(stream);
    return found;
}

struct probe {
    unsigned left; /* folders that may still be opened */
};

static bool folder_probe(struct probe *probe, int parent, const char *name, unsigned depth)
{
    const int fd =
        depth == MAX_DEPTH || probe->left == 0
            ? -1
            : openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const stream = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;

    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    probe->left--;
    if (file_is_ours(fd, "dump.json") || file_is_ours(fd, "debug.json") ||
        folder_has_tensors(fd))
        found = true;
    for (const struct dirent *entry; !found && (entry = readdir(stream)) != NULL;)
        found = entry->d_name[0] != '.' &&
                (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
                folder_probe(probe, fd, entry->d_name, depth + 1);
    closedir(stream);
    return found;
}

bool nd_msprobe_tree_probe(int fd)
{
    struct probe probe = {.left = PROBE_FOLDERS};

    return folder_probe(&probe, fd, ".", 0);
}

/* --- walking ------------------------------------------------------------------------- */

const char *nd_msprobe_path(struct dump *dump, const char *folder, const char *name)
{
    return *folder == '\0' ? nd_arena_string(dump->arena, name)
                           : nd_arena_format(dump->arena, "%s/%s", folder, name);
}

/* "step12" with word "step": 12; -1 for anything else, "step_1" and "step012" too. */
static int64_t numbered(const char *at, size_t len, const char *word)
{
    const size_t word_len = strlen(word);
    int64_t number = 0;

    if (len <= word_len || len > word_len + 15 || memcmp(at, word, word_len) != 0 ||
        (at[word_len] == '0' && len > word_len + 1))
        return -1;
    for (size_t i = word_len; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

/* Takes step and rank off the end of a site's path. */
static enum nd_status site_place(struct dump *dump, struct msprobe_site *site,
                                 struct nd_error *err)
{
    size_t end = strlen(site->folder);

    site->step = site->rank = site->process = -1;
    while (end > 0) {
        size_t at = end;
        while (at > 0 && site->folder[at - 1] != '/')
            at--;
        const char *const word = site->folder + at;
        const int64_t step = numbered(word, end - at, "step");
        const int64_t rank = numbered(word, end - at, "rank");
        const int64_t process = numbered(word, end - at, "proc");
        const bool fresh = site->rank < 0 && site->process < 0;
        if (step >= 0 && site->step < 0)
            site->step = step;
        else if (rank >= 0 && fresh)
            site->rank = rank;
        else if (process >= 0 && fresh)
            site->process = process;
        else
            break;
        end = at == 0 ? 0 : at - 1;
    }
    site->outer = nd_arena_copy(dump->arena, site->folder, end);
    return site->outer == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status site_add(struct dump *dump, struct msprobe_sites *list,
                               const struct dump_directory *directory, struct nd_error *err)
{
    struct msprobe_site site = {.folder = directory->path};
    size_t json = 0;

    for (size_t i = 0; i < directory->name_count; i++) {
        if (name_is_json(directory->names[i]) && json < 2)
            site.json[json++] = directory->names[i];
        site.has_stack |= strcmp(directory->names[i], "stack.json") == 0;
        site.has_construct |= strcmp(directory->names[i], "construct.json") == 0;
    }
    for (size_t i = 0; i < directory->folder_count; i++)
        site.has_tensors |= strcmp(directory->folders[i], "dump_tensor_data") == 0;
    if (json == 0 && !site.has_tensors)
        return ND_OK;
    ND_TRY(site_place(dump, &site, err));
    struct msprobe_site *const sites = nd_arena_grow(dump->arena, list->sites, list->count,
                                                     &list->capacity, sizeof *sites);
    if (sites == NULL)
        return nd_fail_memory(err);
    list->sites = sites;
    sites[list->count++] = site;
    return ND_OK;
}

static enum nd_status walk(struct dump *dump, const char *folder, unsigned depth,
                           unsigned *inout_left, struct msprobe_sites *list,
                           struct nd_error *err)
{
    struct dump_directory directory;

    if (*inout_left == 0)
        return nd_fail(err, ND_ERR_LIMIT, "at most 65536 folders", "more");
    --*inout_left;
    ND_TRY(nd_dump_directory_read(dump, folder, &directory, err));
    ND_TRY(site_add(dump, list, &directory, err));
    for (size_t i = 0; i < directory.folder_count && depth + 1 < MAX_DEPTH; i++) {
        if (directory.folders[i][0] == '.' ||
            strcmp(directory.folders[i], "dump_tensor_data") == 0)
            continue;
        const char *const path = nd_msprobe_path(dump, folder, directory.folders[i]);
        if (path == NULL)
            return nd_fail_memory(err);
        ND_TRY(walk(dump, path, depth + 1, inout_left, list, err));
    }
    return ND_OK;
}

/* --- order and processes ------------------------------------------------------------- */

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Ranks before processes, so that a group's first site tells whether it has ranks. */
static int by_group(const void *a, const void *b)
{
    const struct msprobe_site *x = a, *y = b;
    int order = nd_natural_compare(x->outer, y->outer);

    if (order == 0)
        order = strcmp(x->outer, y->outer);
    if (order == 0)
        order = compare_number(x->step, y->step);
    if (order == 0)
        order = compare_number(y->rank >= 0, x->rank >= 0);
    if (order == 0)
        order = compare_number(x->rank, y->rank);
    if (order == 0)
        order = compare_number(x->process, y->process);
    return order != 0 ? order : strcmp(x->folder, y->folder);
}

static int by_place(const void *a, const void *b)
{
    const struct msprobe_site *x = a, *y = b;
    int order = compare_number(x->step, y->step);

    if (order == 0)
        order = compare_number(x->rank, y->rank);
    return order != 0 ? order : by_group(a, b);
}

static bool same_group(const struct msprobe_site *a, const struct msprobe_site *b)
{
    return a->step == b->step && strcmp(a->outer, b->outer) == 0;
}

static enum nd_status ignore_process(struct dump *dump, const struct msprobe_site *site,
                                     struct nd_error *err)
{
    const char *const what = nd_arena_format(
        dump->arena, "%s: a process without a rank beside ranks", site->folder);

    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(dump, what, err);
}

/* Gives processes ranks, or takes them out; sites are sorted by group. */
static enum nd_status settle_processes(struct dump *dump, struct msprobe_sites *list,
                                       struct nd_error *err)
{
    size_t kept = 0;

    for (size_t first = 0, end; first < list->count; first = end) {
        struct msprobe_site *const sites = list->sites;
        const bool has_ranks = sites[first].rank >= 0;
        for (end = first; end < list->count && same_group(&sites[first], &sites[end]);)
            end++;
        int64_t number = 0;
        for (size_t i = first; i < end; i++) {
            if (sites[i].process >= 0 && has_ranks) {
                ND_TRY(ignore_process(dump, &sites[i], err));
                continue;
            }
            if (sites[i].process >= 0 && end - first > 1)
                sites[i].rank = number++;
            sites[kept++] = sites[i];
        }
    }
    list->count = kept;
    return ND_OK;
}

enum nd_status nd_msprobe_tree_walk(struct dump *dump, struct msprobe_sites *ret_sites,
                                    struct nd_error *err)
{
    struct msprobe_sites list = {0};
    unsigned left = MAX_FOLDERS;

    ND_TRY(walk(dump, "", 0, &left, &list, err));
    if (list.count > 1)
        qsort(list.sites, list.count, sizeof *list.sites, by_group);
    ND_TRY(settle_processes(dump, &list, err));
    for (size_t i = 1; i < list.count; i++)
        list.has_outers |= strcmp(list.sites[0].outer, list.sites[i].outer) != 0;
    if (list.count > 1)
        qsort(list.sites, list.count, sizeof *list.sites, by_place);
    *ret_sites = list;
    return ND_OK;
}
