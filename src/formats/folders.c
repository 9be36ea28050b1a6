/*
 * Folders below the root of a dump.  A path is opened component by component, never
 * through a symbolic link and never upwards, so that no name in a dump, and nobody who
 * swaps a folder for a link meanwhile, makes us read a file elsewhere.
 */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY, d_type */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/files.h"

enum { MAX_ENTRIES = 1000000 }; /* of one folder */

static bool component_is_plain(const char *at, size_t len)
{
    return len > 0 && !(len == 1 && at[0] == '.') &&
           !(len == 2 && at[0] == '.' && at[1] == '.');
}

/* Opens the folder part of a relative path below root, one component after the other;
 * *ret_name is the last component.  -1 with errno; may return root itself. */
static int folder_open(int root, const char *relative, const char **ret_name)
{
    char buffer[NAME_MAX + 1];
    int at = root;

    for (;;) {
        const char *const slash = strchr(relative, '/');
        const size_t len = slash == NULL ? strlen(relative) : (size_t)(slash - relative);
        const bool plain = component_is_plain(relative, len) && len <= NAME_MAX;
        if (slash == NULL && plain) {
            *ret_name = relative;
            return at;
        }
        int next = -1;
        if (plain) {
            memcpy(buffer, relative, len);
            buffer[len] = '\0';
            next = openat(at, buffer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } else {
            errno = EINVAL;
        }
        const int error_number = errno;
        if (at != root)
            close(at);
        errno = error_number;
        if (next < 0)
            return -1;
        at = next;
        relative = slash + 1;
    }
}

static enum nd_status fail_link(struct nd_error *err, int error_number)
{
    if (error_number == ELOOP || error_number == ENOTDIR)
        return nd_fail(err, ND_ERR_IO, "a regular file below the dump's folder",
                       "a symbolic link, which is not followed");
    if (error_number == EINVAL)
        return nd_fail(err, ND_ERR_MALFORMED, "a file name below the dump's folder",
                       "a path that leaves it");
    return nd_fail_errno(err, NULL, error_number);
}

enum nd_status nd_folder_map(int root, const char *relative, struct map *ret_map,
                             struct nd_error *err)
{
    const char *name;
    const int folder = folder_open(root, relative, &name);

    if (folder < 0)
        return fail_link(err, errno);
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    const int error_number = errno;
    if (folder != root)
        close(folder);
    if (fd < 0)
        return fail_link(err, error_number);
    const enum nd_status status = nd_map_fd(fd, ret_map, err);
    close(fd);
    return status;
}

/* --- listing ----------------------------------------------------------------------- */

struct entry_list {
    const char **names;
    size_t count, capacity;
};

static bool list_add(struct dump *dump, struct entry_list *list, const char *name)
{
    const char **const names = nd_arena_grow(dump->arena, list->names, list->count,
                                             &list->capacity, sizeof *names);
    if (names == NULL)
        return false;
    list->names = names;
    names[list->count] = nd_arena_string(dump->arena, name);
    return names[list->count++] != NULL;
}

static int by_bytes(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void list_sort(struct entry_list *list)
{
    if (list->count > 1)
        qsort(list->names, list->count, sizeof *list->names, by_bytes);
}

static unsigned char entry_type(DIR *stream, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return DT_UNKNOWN;
    return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

static enum nd_status stream_read(struct dump *dump, DIR *stream,
                                  struct entry_list lists[3], struct nd_error *err)
{
    errno = 0;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const unsigned char type = entry_type(stream, entry);
        const int which = type == DT_REG ? 0 : type == DT_DIR ? 1 : 2;
        if (!list_add(dump, &lists[which], entry->d_name))
            return nd_fail_memory(err);
        if (lists[which].count > MAX_ENTRIES)
            return nd_fail(err, ND_ERR_LIMIT, "at most 1000000 files in a folder", "more");
    }
    return errno == 0 ? ND_OK : nd_fail_errno(err, NULL, errno);
}

static DIR *stream_open(int root, const char *folder)
{
    const char *name = ".";
    const int parent = *folder == '\0' ? root : folder_open(root, folder, &name);

    if (parent < 0)
        return NULL;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error_number = errno;
    if (parent != root)
        close(parent);
    errno = error_number;
    DIR *const stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL && fd >= 0)
        close(fd);
    return stream;
}

enum nd_status nd_dump_directory_read(struct dump *dump, const char *folder,
                                      struct dump_directory *ret_directory,
                                      struct nd_error *err)
{
    struct entry_list lists[3] = {{0}};

    if (*folder == '\0' && dump->top != NULL) {
        *ret_directory = *dump->top;
        return ND_OK;
    }
    ND_TRY(nd_root_open(dump, err));
    DIR *const stream = stream_open(dump->root_fd, folder);
    if (stream == NULL)
        return fail_link(err, errno);
    const enum nd_status status = stream_read(dump, stream, lists, err);
    closedir(stream);
    ND_TRY(status);
    for (int i = 0; i < 3; i++)
        list_sort(&lists[i]);
    const char *const path = nd_arena_string(dump->arena, folder);
    if (path == NULL)
        return nd_fail_memory(err);
    *ret_directory = (struct dump_directory){
        .fd = *folder == '\0' ? dump->root_fd : -1,
        .path = path,
        .names = lists[0].names,
        .name_count = lists[0].count,
        .folders = lists[1].names,
        .folder_count = lists[1].count,
        .others = lists[2].names,
        .other_count = lists[2].count,
    };
    if (*folder != '\0')
        return ND_OK;
    dump->top = nd_arena_alloc(dump->arena, 1, sizeof *dump->top);
    if (dump->top == NULL)
        return nd_fail_memory(err);
    *dump->top = *ret_directory;
    return ND_OK;
}
