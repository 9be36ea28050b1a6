/*
 * Chunked arena.  Large requests get a chunk of their own, so that a chunk's size stays
 * small, a dump of few tensors costs little, and a long list grows in place of itself.
 *
 * An arena that has become large takes pages from the kernel, some dozens at a time: that
 * is one fault instead of dozens, and what is freed leaves the process, whichever thread
 * asked for it and whatever was allocated since.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_POPULATE */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CHUNK_SIZE = 32 * 1024,
    LARGE = CHUNK_SIZE / 4,
    SMALL_CHUNKS = 16,         /* before the arena counts as large */
    MAPPED_SIZE = 256 * 1024   /* the chunk's head included: whole pages */
};

struct chunk {
    struct chunk *next, *before;
    size_t        size, used;
    bool          mapped;
    alignas(max_align_t) unsigned char bytes[];
};

struct arena {
    struct chunk *chunks;
    unsigned      small_chunks;
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
        if (chunk->mapped)
            munmap(chunk, MAPPED_SIZE);
        else
            free(chunk);
        chunk = next;
    }
    free(arena);
}

/* The bytes that count elements take; 0: too many. */
static size_t rounded(size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);

    if (size != 0 && count > (SIZE_MAX / 2) / size)
        return 0;
    return count == 0 || size == 0 ? align : (count * size + align - 1) / align * align;
}

/* Puts a chunk into the list: the half-full one stays in front of a large one. */
static void chunk_link(struct arena *arena, struct chunk *chunk, bool is_large)
{
    struct chunk *const front = arena->chunks;

    if (is_large && front != NULL) {
        chunk->before = front;
        chunk->next = front->next;
        front->next = chunk;
    } else {
        chunk->before = NULL;
        chunk->next = front;
        arena->chunks = chunk;
    }
    if (chunk->next != NULL)
        chunk->next->before = chunk;
}

static struct chunk *chunk_map(void)
{
    struct chunk *const chunk = mmap(NULL, MAPPED_SIZE, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (chunk == MAP_FAILED)
        return NULL;
    chunk->mapped = true;
    chunk->size = MAPPED_SIZE - sizeof *chunk;
    return chunk;
}

/* Zeroed, with room for `want` bytes; NULL: out of memory. */
static struct chunk *chunk_new(struct arena *arena, size_t want)
{
    const size_t room = want > LARGE ? want : CHUNK_SIZE;

    if (want <= LARGE && arena->small_chunks++ >= SMALL_CHUNKS)
        return chunk_map();
    struct chunk *const chunk = calloc(1, sizeof *chunk + room);
    if (chunk != NULL)
        chunk->size = room;
    return chunk;
}

void *nd_arena_alloc(struct arena *arena, size_t count, size_t size)
{
    const size_t  want = rounded(count, size);
    struct chunk *chunk = arena->chunks;

    if (want == 0)
        return NULL;
    if (want > LARGE || chunk == NULL || chunk->size - chunk->used < want) {
        chunk = chunk_new(arena, want);
        if (chunk == NULL)
            return NULL;
        chunk_link(arena, chunk, want > LARGE);
    }
    void *place = chunk->bytes + chunk->used;
    chunk->used += want;
    return place;
}

/* A list that has a chunk of its own, grown with it; NULL: out of memory. */
static void *chunk_grow(struct arena *arena, void *list, size_t old, size_t want)
{
    unsigned char *const bytes = list;
    struct chunk *const  chunk = (struct chunk *)(void *)(bytes - offsetof(struct chunk, bytes));
    struct chunk *const  moved = realloc(chunk, sizeof *chunk + want);

    if (moved == NULL)
        return NULL;
    if (moved->before != NULL)
        moved->before->next = moved;
    else
        arena->chunks = moved;
    if (moved->next != NULL)
        moved->next->before = moved;
    memset(moved->bytes + old, 0, want - old);
    moved->size = moved->used = want;
    return moved->bytes;
}

void nd_arena_take(struct arena *arena, struct arena *from)
{
    while (from != NULL && from->chunks != NULL) {
        struct chunk *const chunk = from->chunks;
        from->chunks = chunk->next;
        chunk->before = chunk->next = NULL;
        chunk_link(arena, chunk, true); /* behind the one that is being filled */
    }
    free(from);
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
    const size_t old = *capacity == 0 ? 0 : rounded(*capacity, element_size);
    /* Long lists cost a move of pages, if that: they need not double. */
    const size_t want = *capacity == 0 ? 8
                        : old > LARGE  ? *capacity + *capacity / 4
                                       : *capacity * 2;
    const size_t size = rounded(want, element_size);
    void        *moved = size == 0     ? NULL
                         : old > LARGE ? chunk_grow(arena, list, old, size)
                                       : nd_arena_alloc(arena, want, element_size);
    if (moved == NULL)
        return NULL;
    if (count > 0 && old <= LARGE)
        memcpy(moved, list, count * element_size);
    *capacity = want;
    return moved;
}
