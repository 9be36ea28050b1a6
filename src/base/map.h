/*
 * Read-only views of whole files.  Regular files are mapped, but those below a page, which
 * are read: that costs less.  A pipe or a decompressed stream is spooled to an unlinked
 * temporary file first.
 *
 * A mapped file that shrinks would raise SIGBUS: once nd_map_guard() has run, the
 * handler puts zero pages under the hole and marks the mapping; nd_map_intact() tells.
 */
#ifndef ND_BASE_MAP_H
#define ND_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"

struct map {
    const unsigned char *bytes; /* NULL when size is 0 */
    uint64_t             size;
    int                  guard; /* index into the guard table, -1: none */
    bool                 in_memory; /* allocated, not mapped */
};

/* Opens path (never a FIFO or a device; symbolic links are followed for typed paths). */
enum nd_status nd_map_open(const char *path, struct map *ret_map, struct nd_error *err);
/* Opens name relative to a directory descriptor, never through a symbolic link. */
enum nd_status nd_map_open_at(int directory, const char *name, struct map *ret_map,
                              struct nd_error *err);
/* Maps an open descriptor of a regular file; the descriptor stays the caller's. */
enum nd_status nd_map_fd(int fd, struct map *ret_map, struct nd_error *err);
void           nd_map_close(struct map *map);
bool           nd_map_intact(const struct map *map);

/* Installs the SIGBUS handler, for the whole process. */
void nd_map_guard(void);

/* How often a mapped file turned out to have shrunk, in the whole process so far. */
unsigned nd_map_shrink_count(void);

/* Hints; no effect on correctness. */
/* These bytes of a file mapping come next: they are read in the background, unless they
 * seem to be in memory. */
void nd_map_will_read(const void *bytes, uint64_t size);
/* These bytes of a file mapping were read: whole pages inside leave the process (and stay
 * in the page cache), so that its resident size does not grow with the dump. */
void nd_map_was_read(const void *bytes, uint64_t size);

/* A temporary file that has no name; -1 with errno set on failure. */
int nd_spool_new(void);
/* Writes all of it; false with errno set on failure. */
bool nd_spool_write(int fd, const void *bytes, uint64_t size);

#endif
