/*
 * Measuring pairs whose bytes are deflated without writing them out first: both sides are
 * decoded in step, block after block.
 */
#ifndef ND_COMPARE_STREAM_H
#define ND_COMPARE_STREAM_H

#include <stdatomic.h>

#include "base/pool.h"
#include "compare/slot_pair.h"

struct stream_job {
    const struct layer_pair *layer;
    const struct slot_pair  *slot;
    uint64_t                 bytes;   /* decoded, of both sides */
    struct pair_views       *views;   /* ready, or the reason why not; without data */
    struct nd_moments        moments; /* where views are ready */
};

/*
 * Measures all, on as many threads as the options say, and leaves them in the same order;
 * *inout_done counts bytes, tick is called now and then from the calling thread.
 */
void nd_stream_jobs(const struct comparison *comparison, struct stream_job *jobs, size_t count,
                    atomic_uint_least64_t *inout_done, nd_pool_tick_fn *tick, void *user);

#endif
