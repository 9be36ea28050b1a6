/*
 * One side of a pair in blocks, in logical order: where it lies, or decoded as it comes, by
 * a thread of its own if one is to spare.
 */
#ifndef ND_COMPARE_FEED_H
#define ND_COMPARE_FEED_H

#include "compare/compare.h"

struct feed;

/*
 * `view` is the side's, whole and contiguous; without data (NULL) the slot is decoded.
 * Blocks hold `block` elements, the last one what is left; ahead: a thread decodes the next
 * one meanwhile.  NULL: out of memory.
 */
struct feed *nd_feed_new(const struct dump *dump, const struct dump_slot *slot,
                         const struct tensor_view *view, uint64_t block, bool ahead);
/* The next block's bytes, which are good until the next call; NULL: see nd_feed_done. */
const unsigned char *nd_feed_next(struct feed *feed);
/* Frees it.  After the last block: what only the end of the data tells. */
enum nd_status nd_feed_done(struct feed *feed, struct nd_error *err);

#endif
