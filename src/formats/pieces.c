/*
 * Joining the parts of a tensor.
 */
#include "formats/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/files.h"

enum { JOIN_MEMORY = 1 << 20, JOIN_BLOCK = 1 << 18 };

struct joining {
    const struct dump *dump;
    const struct pieces *pieces;
    struct map *maps; /* one a piece */
    bool *is_own;
    unsigned char *block;
    size_t filled, room;
    int fd; /* -1: all of it stays in the block */
};

static enum nd_status joining_flush(struct joining *join, struct nd_error *err)
{
    if (!nd_spool_write(join->fd, join->block, join->filled)) {
        nd_fail_errno(err, "a temporary file", errno);
        nd_error_hint(err, "set TMPDIR to a folder with room for the largest tensor");
        return ND_ERR_IO;
    }
    join->filled = 0;
    return ND_OK;
}

static enum nd_status joining_put(struct joining *join, const unsigned char *at, uint64_t size,
                                  struct nd_error *err)
{
    while (size > 0) {
        const size_t free_room = join->room - join->filled;
        const size_t step = size < free_room ? (size_t)size : free_room;
        memcpy(join->block + join->filled, at, step);
        join->filled += step;
        at += step;
        size -= step;
        if (join->fd >= 0 && join->filled == join->room)
            ND_TRY(joining_flush(join, err));
    }
    return ND_OK;
}

static enum nd_status joining_maps(struct joining *join, struct nd_error *err)
{
    for (size_t p = 0; p < join->pieces->count; p++) {
        const struct dump_file *file = &join->dump->files[join->pieces->piece[p].file];
        join->maps[p] = file->map;
        if (!file->is_mapped) {
            ND_TRY(nd_file_reopen(join->dump, file, &join->maps[p], err));
            join->is_own[p] = true;
        }
    }
    return ND_OK;
}

static enum nd_status joining_copy(struct joining *join, struct nd_error *err)
{
    const struct pieces *pieces = join->pieces;

    for (uint64_t outer = 0; outer < pieces->outer; outer++)
        for (size_t p = 0; p < pieces->count; p++) {
            const struct piece *piece = &pieces->piece[p];
            if (piece->run > 0)
                ND_TRY(joining_put(join,
                                   join->maps[p].bytes + piece->offset + outer * piece->run,
                                   piece->run, err));
        }
    if (join->fd >= 0)
        ND_TRY(joining_flush(join, err));
    for (size_t p = 0; p < pieces->count; p++)
        if (!nd_map_intact(&join->maps[p]))
            return nd_fail(err, ND_ERR_CHANGED, NULL, "the file shrank while it was read");
    return ND_OK;
}

static void joining_done(struct joining *join)
{
    for (size_t p = 0; join->maps != NULL && join->is_own != NULL && p < join->pieces->count; p++)
        if (join->is_own[p])
            nd_map_close(&join->maps[p]);
    free(join->maps);
    free(join->is_own);
    if (join->fd >= 0)
        close(join->fd);
    free(join->block);
}

enum nd_status nd_pieces_open(const struct dump *dump, const struct pieces *pieces,
                              struct open_slot *open, const unsigned char **ret_data,
                              struct nd_error *err)
{
    struct joining join = {.dump = dump, .pieces = pieces, .fd = -1};
    uint64_t total = 0;
    enum nd_status status;

    for (size_t p = 0; p < pieces->count; p++)
        total += pieces->outer * pieces->piece[p].run;
    join.maps = calloc(pieces->count, sizeof *join.maps);
    join.is_own = calloc(pieces->count, sizeof *join.is_own);
    join.room = total <= JOIN_MEMORY ? (size_t)total : JOIN_BLOCK;
    join.block = malloc(join.room + 1);
    if (total > JOIN_MEMORY)
        join.fd = nd_spool_new();
    if (join.maps == NULL || join.is_own == NULL || join.block == NULL)
        status = nd_fail_memory(err);
    else if (total > JOIN_MEMORY && join.fd < 0)
        status = nd_fail_errno(err, "a temporary file", errno);
    else if ((status = joining_maps(&join, err)) == ND_OK)
        status = joining_copy(&join, err);
    if (status == ND_OK && join.fd >= 0) {
        status = nd_map_fd(join.fd, &open->own_map, err);
        open->has_own_map = status == ND_OK;
        *ret_data = open->own_map.bytes;
    } else if (status == ND_OK) {
        *ret_data = open->own_memory = join.block;
        join.block = NULL;
    }
    joining_done(&join);
    return status;
}
