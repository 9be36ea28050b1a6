/*
 * Chunked arena.  Large requests get a chunk of their own, so that a chunk's size stays
 * small and a dump of few tensors costs little.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE = 32 * 1024 };

struct chunk {
    struct chunk *next;
    size_t        size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct arena {
    struct chunk *chunks;
};

struct arena *nd_arena_new(void)
{
    return calloc(1, sizeof(struct arena));
}

void nd_arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    for (struct chunk *chunk = arena->chunks; chunk != NULL;) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(arena);
}

void *nd_arena_alloc(struct arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);

    if (size != 0 && count > (SIZE_MAX / 2) / size)
        return NULL;
    const size_t want = (count * size + align - 1) / align * align;

    struct chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->size - chunk->used < want) {
        const size_t room = want > CHUNK_SIZE / 4 ? want : CHUNK_SIZE;
        struct chunk *fresh = calloc(1, sizeof *fresh + room);
        if (fresh == NULL)
            return NULL;
        fresh->size = room;
        if (room == want && chunk != NULL) { /* keep the half-full chunk in front */
            fresh->next = chunk->next;
            chunk->next = fresh;
        } else {
            fresh->next = chunk;
            arena->chunks = fresh;
        }
        chunk = fresh;
    }
    void *place = chunk->bytes + chunk->used;
    chunk->used += want;
    return place;
}

char *nd_arena_copy(struct arena *arena, const char *text, size_t len)
{
    char *copy = nd_arena_alloc(arena, len + 1, 1);

    if (copy != NULL && len > 0)
        memcpy(copy, text, len);
    return copy;
}

char *nd_arena_string(struct arena *arena, const char *text)
{
    return nd_arena_copy(arena, text, strlen(text));
}

char *nd_arena_format(struct arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0)
        return NULL;
    char *text = nd_arena_alloc(arena, (size_t)len + 1, 1);
    if (text != NULL) {
        va_start(args, fmt);
        vsnprintf(text, (size_t)len + 1, fmt, args);
        va_end(args);
    }
    return text;
}

void *nd_arena_grow(struct arena *arena, void *list, size_t count, size_t *capacity,
                    size_t element_size)
{
    if (count < *capacity)
        return list;
    const size_t want = *capacity == 0 ? 8 : *capacity * 2;
    void        *moved = nd_arena_alloc(arena, want, element_size);
    if (moved == NULL)
        return NULL;
    if (count > 0)
        memcpy(moved, list, count * element_size);
    *capacity = want;
    return moved;
}
