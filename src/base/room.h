/*
 * Large buffers that are wanted again and again.  A fresh one costs a fault of the system
 * a page, which is more than most passes over it; so each thread keeps a few that it gave
 * back.
 */
#ifndef ND_BASE_ROOM_H
#define ND_BASE_ROOM_H

#include <stddef.h>
#include <stdint.h>

/* `count` elements of `size` bytes, not cleared; NULL: out of memory.  To be given back by
 * the thread that took it. */
void *nd_room_take(uint64_t count, size_t size);
void nd_room_give(void *room); /* NULL is fine */

/* Frees what the calling thread keeps. */
void nd_room_clear(void);

#endif
