/*
 * One side of a pair in blocks, in logical order: where it lies, or decoded as it comes, by
 * a thread of its own if one is to spare.
 */
#ifndef ND_COMPARE_FEED_H
#define ND_COMPARE_FEED_H

#include "compare/compare.h"

struct feed;

/* Blocks that a feed leaves to the next one, which would find new memory page by page;
 * zeroed at first, for one feed at a time. */
enum { ND_FEED_BLOCKS = 3 };
struct feed_room {
    unsigned char *bytes[ND_FEED_BLOCKS];
    uint64_t       size[ND_FEED_BLOCKS];
};
void nd_feed_room_done(struct feed_room *room);

/*
 * `view` is the side's, whole and contiguous; without data (NULL) the slot is decoded.
 * Blocks hold `block` elements, the last one what is left; ahead: a thread decodes the next
 * one meanwhile.  The room stays until the feed is done.  NULL: out of memory.
 */
struct feed *nd_feed_new(const struct dump *dump, const struct dump_slot *slot,
                         const struct tensor_view *view, uint64_t block, bool ahead,
                         struct feed_room *room);
/* The next block's bytes, which are good until the next call; NULL: see nd_feed_done. */
const unsigned char *nd_feed_next(struct feed *feed);
/* Frees it.  After the last block: what only the end of the data tells. */
enum nd_status nd_feed_done(struct feed *feed, struct nd_error *err);

#endif
