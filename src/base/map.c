/*
 * File mappings, spool files and the SIGBUS guard.
 */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mappings open at once that the guard can watch; a dump directory of more files than
 * this is still read, its later files unguarded.  The table is static because a signal
 * handler reads it. */
enum { GUARD_COUNT = 65536 };

struct guard {
    _Atomic(uintptr_t) begin; /* 0: free */
    atomic_size_t      size;
    atomic_bool        hit;
};

static struct guard      guards[GUARD_COUNT];
static atomic_uint       guard_hits; /* holes ever filled */
static atomic_int        guard_top; /* slots ever used */
static struct sigaction  previous_action;
static uintptr_t         guard_page = 4096; /* sysconf is no call for a signal handler */

static void guard_handler(int signal_number, siginfo_t *info, void *context)
{
    const uintptr_t fault = (uintptr_t)info->si_addr;
    const int       top = atomic_load(&guard_top);

    (void)context;
    for (int i = 0; i < top; i++) {
        const uintptr_t begin = atomic_load(&guards[i].begin);
        const size_t    size = atomic_load(&guards[i].size);
        if (begin == 0 || fault < begin || fault - begin >= size)
            continue;
        const uintptr_t page = fault & ~(guard_page - 1);
        /* From the hole to the end: a file shrinks from its tail. */
        if (mmap((void *)page, begin + size - page, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            break;
        atomic_store(&guards[i].hit, true);
        atomic_fetch_add(&guard_hits, 1);
        return;
    }
    sigaction(signal_number, &previous_action, NULL); /* not ours: fault again, for real */
}

void nd_map_guard(void)
{
    struct sigaction action = {0};

    guard_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    action.sa_sigaction = guard_handler;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
}

static int guard_add(const void *bytes, uint64_t size)
{
    static atomic_int hint;
    const int         start = atomic_load(&hint);

    for (int k = 0; k < GUARD_COUNT; k++) {
        const int i = (start + k) % GUARD_COUNT;
        uintptr_t expected = 0;
        /* size is written before begin becomes visible only for a slot we own. */
        if (atomic_load(&guards[i].begin) != 0)
            continue;
        if (!atomic_compare_exchange_strong(&guards[i].begin, &expected, 1))
            continue;
        atomic_store(&guards[i].hit, false);
        atomic_store(&guards[i].size, (size_t)size);
        atomic_store(&guards[i].begin, (uintptr_t)bytes);
        int top = atomic_load(&guard_top);
        while (top < i + 1 && !atomic_compare_exchange_weak(&guard_top, &top, i + 1))
            ;
        atomic_store(&hint, (i + 1) % GUARD_COUNT);
        return i;
    }
    return -1;
}

/* Below this a file is read and not mapped: no page lies whole in it. */
enum { SMALL = 4096 };

static enum nd_status read_small(int fd, struct map *map, struct nd_error *err)
{
    unsigned char *const bytes = malloc((size_t)map->size);
    size_t               at = 0;

    if (bytes == NULL)
        return nd_fail_memory(err);
    while (at < map->size) {
        const ssize_t got = pread(fd, bytes + at, (size_t)map->size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(bytes);
            return got < 0 ? nd_fail_errno(err, NULL, errno)
                           : nd_fail(err, ND_ERR_CHANGED, NULL,
                                     "the file shrank while it was read");
        }
        at += (size_t)got;
    }
    map->bytes = bytes;
    map->in_memory = true;
    return ND_OK;
}

enum nd_status nd_map_fd(int fd, struct map *ret_map, struct nd_error *err)
{
    struct stat st;
    struct map  map = {.guard = -1};

    if (fstat(fd, &st) != 0)
        return nd_fail_errno(err, NULL, errno);
    if (!S_ISREG(st.st_mode))
        return nd_fail(err, ND_ERR_IO, "a regular file",
                       S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    map.size = (uint64_t)st.st_size;
    if (map.size > SIZE_MAX)
        return nd_fail(err, ND_ERR_LIMIT, NULL, "a file larger than the address space");
    if (map.size > 0 && map.size < SMALL) {
        ND_TRY(read_small(fd, &map, err));
    } else if (map.size > 0) {
        void *bytes = mmap(NULL, (size_t)map.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            return nd_fail_errno(err, NULL, errno);
        map.bytes = bytes;
        map.guard = guard_add(bytes, map.size);
    }
    *ret_map = map;
    return ND_OK;
}

static enum nd_status map_opened(int fd, const char *name, struct map *ret_map,
                                 struct nd_error *err)
{
    if (fd < 0)
        return nd_fail_errno(err, name, errno);
    const enum nd_status status = nd_map_fd(fd, ret_map, err);
    if (status != ND_OK)
        nd_error_file(err, name);
    close(fd);
    return status;
}

enum nd_status nd_map_open(const char *path, struct map *ret_map, struct nd_error *err)
{
    return map_opened(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), path, ret_map, err);
}

enum nd_status nd_map_open_at(int directory, const char *name, struct map *ret_map,
                              struct nd_error *err)
{
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    return map_opened(fd, name, ret_map, err);
}

void nd_map_close(struct map *map)
{
    if (map->guard >= 0)
        atomic_store(&guards[map->guard].begin, 0);
    if (map->in_memory)
        free((void *)(uintptr_t)map->bytes);
    else if (map->bytes != NULL)
        munmap((void *)(uintptr_t)map->bytes, (size_t)map->size);
    *map = (struct map){.guard = -1};
}

bool nd_map_intact(const struct map *map)
{
    return map->guard < 0 || !atomic_load(&guards[map->guard].hit);
}

unsigned nd_map_shrink_count(void)
{
    return atomic_load(&guard_hits);
}

void nd_map_will_read(const void *bytes, uint64_t size)
{
    const uintptr_t unit = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)bytes / unit * unit;
    const uintptr_t end = (uintptr_t)bytes + size;
    unsigned char   resident[2] = {0, 0};

    if (size == 0)
        return;
    /* The first page and the last: to ask for pages that are there takes as long as a tenth
     * of comparing them. */
    (void)mincore((void *)begin, 1, &resident[0]);
    (void)mincore((void *)((end - 1) / unit * unit), 1, &resident[1]);
    if (!(resident[0] & resident[1] & 1))
        (void)madvise((void *)begin, end - begin, MADV_WILLNEED);
}

void nd_map_was_read(const void *bytes, uint64_t size)
{
    const uintptr_t unit = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)bytes + unit - 1) / unit * unit;
    const uintptr_t end = ((uintptr_t)bytes + size) / unit * unit;

    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

int nd_spool_new(void)
{
    const char *where = getenv("TMPDIR");
    char        path[4096];

    if (where == NULL || where[0] != '/')
        where = "/tmp";
#ifdef O_TMPFILE
    const int fd = open(where, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
#endif
    if (snprintf(path, sizeof path, "%s/normdiff-XXXXXX", where) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int named = mkstemp(path); /* a file system without unnamed files */
    if (named >= 0)
        unlink(path);
    return named;
}

bool nd_spool_write(int fd, const void *bytes, uint64_t size)
{
    const unsigned char *at = bytes;

    while (size > 0) {
        const size_t  step = size > (1u << 30) ? (1u << 30) : (size_t)size;
        const ssize_t done = write(fd, at, step);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        at += done;
        size -= (uint64_t)done;
    }
    return true;
}
