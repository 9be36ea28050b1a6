/*
 * Tiles: measuring a device layout whose rows lie side by side in memory and are long (the
 * channels of NC1HWC0, of large images).  All rows of a bundle advance together, a block of
 * each at a time, so that memory is read once and what was gathered of it is measured while
 * it is in the cache.  Blocks are measured out of order; their sums are added in order.
 */
#ifndef ND_COMPARE_TILES_H
#define ND_COMPARE_TILES_H

#include "kernels/pass.h"

struct tiles;

/* NULL: the views are no case for that, or memory is short.  budget: bytes. */
struct tiles *nd_tiles_new(const struct tensor_view *view, uint64_t budget);
void nd_tiles_free(struct tiles *tiles);

/* Positions [first, first + count) go into the pass, and the sums of each `part` of them
 * into one of inout; first and part are multiples of MOMENTS_CHUNK, and so is count but at
 * the end of the views. */
void nd_tiles_measure(struct tiles *tiles, struct moments_pass *pass, uint64_t first,
                      uint64_t count, uint64_t part, struct nd_moments *inout);

#endif
