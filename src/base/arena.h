/*
 * One lifetime, one arena: everything allocated from it is freed at once.  Pointers stay
 * valid until nd_arena_free().  Not thread-safe.
 */
#ifndef ND_BASE_ARENA_H
#define ND_BASE_ARENA_H

#include <stddef.h>

#include "base/fail.h"

struct arena;

struct arena *nd_arena_new(void); /* NULL: out of memory */
void          nd_arena_free(struct arena *arena);

/* Zeroed, aligned for any object; NULL: out of memory or count * size overflows. */
void *nd_arena_alloc(struct arena *arena, size_t count, size_t size);
char *nd_arena_copy(struct arena *arena, const char *text, size_t len); /* adds a NUL */
char *nd_arena_string(struct arena *arena, const char *text);
char *nd_arena_format(struct arena *arena, const char *fmt, ...) ND_PRINTF(2, 3);

/* Gives all that `from` (NULL: nothing) holds to `arena`, and frees it. */
void nd_arena_take(struct arena *arena, struct arena *from);

/*
 * Makes room for one more element in a list that the same call made: returns the list, moved
 * when `count` has reached *capacity, and then the old place is void.  NULL: out of memory
 * (the old list stays valid).
 */
void *nd_arena_grow(struct arena *arena, void *list, size_t count, size_t *capacity,
                    size_t element_size);

#endif
