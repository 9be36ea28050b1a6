/*
 * The files of a dump: one that was typed, standard input, or many below a folder.  Every
 * name that comes from a folder or a file is opened below the root (folders.c), and only
 * regular files are read.
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY, d_type */
#include "formats/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"

/* Linux allows a process 65530 mappings; half are left for what is opened while comparing. */
enum { MAX_MAPPED = 32768, AHEAD = 1024 };

static atomic_size_t mapped_count; /* by all dumps */

static enum nd_status file_push(struct dump *dump, const struct dump_file *file,
                                size_t *ret_file, struct nd_error *err)
{
    struct dump_file *const files = nd_arena_grow(
        dump->arena, dump->files, dump->file_count, &dump->file_capacity, sizeof *files);
    if (files == NULL)
        return nd_fail_memory(err);
    dump->files = files;
    files[dump->file_count] = *file;
    *ret_file = dump->file_count++;
    atomic_fetch_add(&mapped_count, 1);
    return ND_OK;
}

/* Puts the decompressed bytes in the place of compressed ones. */
static enum nd_status map_unpack(struct map *map, bool *ret_is_gzip, struct nd_error *err)
{
    struct map unpacked;

    *ret_is_gzip = nd_is_gzip(map->bytes, map->size);
    if (!*ret_is_gzip)
        return ND_OK;
    ND_TRY(nd_gunzip(map->bytes, map->size, &unpacked, err));
    const bool intact = nd_map_intact(map);
    nd_map_close(map);
    *map = unpacked;
    if (!intact) {
        nd_map_close(map);
        return nd_fail(err, ND_ERR_CHANGED, NULL,
                       "the file shrank while it was decompressed");
    }
    return ND_OK;
}

/* Puts a mapping into the list of files, or closes it. */
static enum nd_status file_keep(struct dump *dump, const struct dump_file *file,
                                size_t *ret_file, struct nd_error *err)
{
    const enum nd_status status = file_push(dump, file, ret_file, err);

    if (status != ND_OK) {
        struct map map = file->map;
        nd_map_close(&map);
    }
    return status;
}

/* Takes a fresh mapping, unpacked if need be. */
static enum nd_status file_take(struct dump *dump, const char *path, const char *open_name,
                                struct map map, size_t *ret_file, struct nd_error *err)
{
    struct dump_file file = {.path = path, .open_name = open_name, .is_mapped = true};

    file.disk_size = map.size;
    const enum nd_status status = map_unpack(&map, &file.is_gzip, err);
    if (status != ND_OK) {
        nd_map_close(&map);
        nd_error_file(err, path);
        return status;
    }
    file.map = map;
    file.size = map.size;
    return file_keep(dump, &file, ret_file, err);
}

enum nd_status nd_dump_file_take(struct dump *dump, const char *path, struct map *map,
                                 size_t *ret_file, struct nd_error *err)
{
    const struct dump_file file = {.path = path,
                                   .map = *map,
                                   .is_mapped = true,
                                   .size = map->size,
                                   .disk_size = map->size};

    *map = (struct map){.guard = -1};
    return file_keep(dump, &file, ret_file, err);
}

enum nd_status nd_files_borrow(struct dump *dump, const void *bytes, uint64_t size,
                               struct nd_error *err)
{
    struct dump_file file = {.path = dump->path, .is_mapped = true, .disk_size = size};
    size_t index;

    dump->is_lone = true;
    file.is_gzip = nd_is_gzip(bytes, size);
    file.is_borrowed = !file.is_gzip;
    file.map = (struct map){.bytes = bytes, .size = size, .guard = -1};
    if (file.is_gzip)
        ND_TRY(nd_gunzip(bytes, size, &file.map, err));
    file.size = file.map.size;
    return file.is_gzip ? file_keep(dump, &file, &index, err)
                        : file_push(dump, &file, &index, err);
}

/* --- standard input ---------------------------------------------------------------- */

static enum nd_status spool_input(struct map *ret_map, struct nd_error *err)
{
    enum { BLOCK = 256 * 1024 };
    unsigned char *const block = malloc(BLOCK);
    const int fd = nd_spool_new();
    enum nd_status status = ND_OK;

    if (block == NULL)
        status = nd_fail_memory(err);
    else if (fd < 0)
        status = nd_fail_errno(err, "a temporary file", errno);
    while (status == ND_OK) {
        const ssize_t got = read(STDIN_FILENO, block, BLOCK);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            status = nd_fail_errno(err, "standard input", errno);
        else if (got > 0 && !nd_spool_write(fd, block, (uint64_t)got))
            status = nd_fail_errno(err, "a temporary file", errno);
    }
    if (status == ND_OK)
        status = nd_map_fd(fd, ret_map, err);
    if (fd >= 0)
        close(fd);
    free(block);
    return status;
}

/* A redirected file is mapped like any other; a pipe is spooled. */
static enum nd_status map_input(struct map *ret_map, struct nd_error *err)
{
    struct stat st;

    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
        lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        return nd_map_fd(STDIN_FILENO, ret_map, err);
    return spool_input(ret_map, err);
}

/* --- what was typed ---------------------------------------------------------------- */

static enum nd_status refuse_special(const char *path, mode_t mode, struct nd_error *err)
{
    const char *what = S_ISFIFO(mode)                   ? "a pipe"
                       : S_ISSOCK(mode)                 ? "a socket"
                       : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                        : "not a regular file";
    nd_fail(err, ND_ERR_IO, "a regular file or a directory", "%s", what);
    nd_error_hint(err, "pipes are read from standard input: give '-' as the path");
    nd_error_file(err, path);
    return ND_ERR_IO;
}

enum nd_status nd_files_open(struct dump *dump, struct nd_error *err)
{
    struct stat st;
    struct map map;
    size_t file;

    dump->is_lone = true;
    if (strcmp(dump->path, "-") == 0) {
        ND_TRY(map_input(&map, err));
        return file_take(dump, "-", NULL, map, &file, err);
    }
    if (stat(dump->path, &st) != 0)
        return nd_fail_errno(err, dump->path, errno);
    if (S_ISDIR(st.st_mode)) {
        dump->is_lone = false;
        dump->root_fd = open(dump->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dump->root_fd < 0 ? nd_fail_errno(err, dump->path, errno) : ND_OK;
    }
    if (!S_ISREG(st.st_mode))
        return refuse_special(dump->path, st.st_mode, err);
    ND_TRY(nd_map_open(dump->path, &map, err));
    return file_take(dump, dump->path, NULL, map, &file, err);
}

void nd_files_close(struct dump *dump)
{
    nd_files_ahead_done(dump);
    for (size_t i = 0; i < dump->file_count; i++) {
        if (dump->files[i].is_mapped && !dump->files[i].is_borrowed)
            nd_map_close(&dump->files[i].map);
        atomic_fetch_sub(&mapped_count, dump->files[i].is_mapped);
    }
    if (dump->root_fd >= 0)
        close(dump->root_fd);
    dump->root_fd = -1;
}

/* --- below the root ---------------------------------------------------------------- */

/* The root of a lone dump is the folder that holds its file: for shards beside an index. */
enum nd_status nd_root_open(struct dump *dump, struct nd_error *err)
{
    if (dump->root_fd >= 0)
        return ND_OK;
    const bool nowhere = strcmp(dump->path, "-") == 0 || dump->files[0].is_borrowed;
    const char *slash = strrchr(dump->path, '/');
    const char *folder =
        slash == NULL ? "."
        : slash == dump->path
            ? "/"
            : nd_arena_copy(dump->arena, dump->path, (size_t)(slash - dump->path));
    if (nowhere)
        return nd_fail(err, ND_ERR_UNSUPPORTED, "a file in a folder, not a stream",
                       "a reference to other files");
    if (folder == NULL)
        return nd_fail_memory(err);
    dump->root_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dump->root_fd < 0 ? nd_fail_errno(err, folder, errno) : ND_OK;
}

/* Names that will be asked for, and the mappings of AHEAD of them from `first` on. */
struct files_ahead {
    const char *const *names;
    size_t             count, at, first;
    int                root;
    struct map         map[AHEAD];
    bool               is_open[AHEAD];
};

static void ahead_open(void *user, size_t i, unsigned worker)
{
    struct files_ahead *const ahead = user;
    struct nd_error           unused;

    (void)worker;
    ahead->is_open[i] = nd_folder_map(ahead->root, ahead->names[ahead->first + i],
                                      &ahead->map[i], &unused) == ND_OK;
    if (ahead->is_open[i] && ahead->map[i].size > 0)
        (void)*(const volatile unsigned char *)ahead->map[i].bytes; /* brings the page in */
}

static void ahead_fill(struct files_ahead *ahead)
{
    const size_t left = ahead->count - ahead->at;

    ahead->first = ahead->at;
    nd_pool_run(0, left < AHEAD ? left : AHEAD, ahead_open, NULL, ahead);
}

enum nd_status nd_files_ahead(struct dump *dump, const char *const *names, size_t count,
                              struct nd_error *err)
{
    ND_TRY(nd_root_open(dump, err));
    nd_files_ahead_done(dump);
    dump->ahead = calloc(1, sizeof *dump->ahead);
    if (dump->ahead == NULL)
        return nd_fail_memory(err);
    dump->ahead->names = names;
    dump->ahead->count = count;
    dump->ahead->root = dump->root_fd;
    if (count > 0)
        ahead_fill(dump->ahead);
    return ND_OK;
}

void nd_files_ahead_done(struct dump *dump)
{
    for (size_t i = 0; dump->ahead != NULL && i < AHEAD; i++)
        if (dump->ahead->is_open[i])
            nd_map_close(&dump->ahead->map[i]);
    free(dump->ahead);
    dump->ahead = NULL;
}

/* The mapping of a file that was opened ahead; false: it was not. */
static bool ahead_take(struct dump *dump, const char *relative, struct map *ret_map)
{
    struct files_ahead *const ahead = dump->ahead;

    if (ahead == NULL || ahead->at == ahead->count ||
        strcmp(ahead->names[ahead->at], relative) != 0)
        return false;
    if (ahead->at == ahead->first + AHEAD)
        ahead_fill(ahead);
    const size_t i = ahead->at++ - ahead->first;
    if (!ahead->is_open[i])
        return false;
    ahead->is_open[i] = false;
    *ret_map = ahead->map[i];
    return true;
}

enum nd_status nd_dump_file_add(struct dump *dump, const char *relative, size_t *ret_file,
                                struct nd_error *err)
{
    struct map map;

    ND_TRY(nd_root_open(dump, err));
    const char *const slash = strrchr(dump->path, '/');
    const size_t in_folder = slash == NULL ? 0 : (size_t)(slash - dump->path) + 1;
    const size_t root_len = dump->is_lone ? in_folder : strlen(dump->path);
    const bool joined = root_len == 0 || dump->path[root_len - 1] == '/';
    const char *const path = nd_arena_format(dump->arena, "%.*s%s%s", (int)root_len,
                                             dump->path, joined ? "" : "/", relative);
    const char *const open_name = nd_arena_string(dump->arena, relative);
    if (path == NULL || open_name == NULL)
        return nd_fail_memory(err);
    const enum nd_status status = ahead_take(dump, relative, &map)
                                      ? ND_OK
                                      : nd_folder_map(dump->root_fd, relative, &map, err);
    if (status != ND_OK) {
        nd_error_file(err, path);
        return status;
    }
    return file_take(dump, path, open_name, map, ret_file, err);
}

void nd_dump_file_rest(struct dump *dump, size_t file)
{
    struct dump_file *const at = &dump->files[file];

    if (!at->is_mapped || at->open_name == NULL || atomic_load(&mapped_count) <= MAX_MAPPED)
        return;
    nd_map_close(&at->map);
    at->is_mapped = false;
    atomic_fetch_sub(&mapped_count, 1);
}

enum nd_status nd_file_reopen(const struct dump *dump, const struct dump_file *file,
                              struct map *ret_map, struct nd_error *err)
{
    struct map map;
    bool is_gzip;

    enum nd_status status = nd_folder_map(dump->root_fd, file->open_name, &map, err);
    if (status == ND_OK) {
        const uint64_t disk_size = map.size;
        status = map_unpack(&map, &is_gzip, err);
        if (status == ND_OK && (disk_size != file->disk_size || map.size != file->size))
            status = nd_fail(err, ND_ERR_CHANGED, NULL,
                             "%" PRIu64 " bytes where there were %" PRIu64, disk_size,
                             file->disk_size);
        if (status != ND_OK)
            nd_map_close(&map);
    }
    if (status != ND_OK)
        nd_error_file(err, file->path);
    else
        *ret_map = map;
    return status;
}

enum nd_status nd_file_wake(struct dump *dump, size_t file, struct nd_error *err)
{
    struct dump_file *const at = &dump->files[file];

    if (at->is_mapped)
        return ND_OK;
    ND_TRY(nd_file_reopen(dump, at, &at->map, err));
    at->is_mapped = true;
    atomic_fetch_add(&mapped_count, 1);
    return ND_OK;
}
