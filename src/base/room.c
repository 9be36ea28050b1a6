/*
 * Buffers kept by a thread.
 */
#include "base/room.h"

#include <stdbool.h>
#include <stdlib.h>

/* What a thread keeps at most; smaller buffers come from the heap fast enough. */
enum { ROOMS = 16, ROOM_LEAST = 1 << 15, ROOM_KEPT = 1 << 26 };

#if defined(__SANITIZE_ADDRESS__)
enum { ROOM_IS_USED = 0 }; /* a buffer that comes again would hide what uses it too late */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { ROOM_IS_USED = 0 };
#else
enum { ROOM_IS_USED = 1 };
#endif
#else
enum { ROOM_IS_USED = 1 };
#endif

/* Before each buffer; as long as the strictest alignment and a line of the cache. */
union room {
    size_t size;
    unsigned char line[64];
};

struct kept {
    union room *room[ROOMS];
    unsigned count;
    size_t bytes;
};

static _Thread_local struct kept kept;

static union room *kept_remove(unsigned i)
{
    union room *room = kept.room[i];

    kept.bytes -= room->size;
    kept.room[i] = kept.room[--kept.count];
    return room;
}

/* The smallest that is large enough, unless it is far too large. */
static union room *kept_take(size_t size)
{
    unsigned best = ROOMS;

    for (unsigned i = 0; i < kept.count; i++)
        if (kept.room[i]->size >= size && kept.room[i]->size / 2 <= size &&
            (best == ROOMS || kept.room[i]->size < kept.room[best]->size))
            best = i;
    return best == ROOMS ? NULL : kept_remove(best);
}

void *nd_room_take(uint64_t count, size_t size)
{
    union room *room = NULL;

    if (count > (SIZE_MAX - sizeof *room) / size)
        return NULL;
    size *= (size_t)count;
    if (ROOM_IS_USED && size >= ROOM_LEAST)
        room = kept_take(size);
    if (room == NULL) {
        room = malloc(sizeof *room + size);
        if (room == NULL)
            return NULL;
        room->size = size;
    }
    return room + 1;
}

void nd_room_give(void *buffer)
{
    union room *room = buffer;

    if (room == NULL)
        return;
    room--;
    if (!ROOM_IS_USED || room->size < ROOM_LEAST || room->size > ROOM_KEPT) {
        free(room);
        return;
    }
    /* Full: the oldest go. */
    while (kept.count == ROOMS || kept.bytes + room->size > ROOM_KEPT)
        free(kept_remove(0));
    kept.room[kept.count++] = room;
    kept.bytes += room->size;
}

void nd_room_clear(void)
{
    while (kept.count > 0)
        free(kept_remove(0));
}
