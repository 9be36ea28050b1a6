/*
 * Worker threads over an index range: no queue, no locks in the work.
 */
#ifndef ND_BASE_POOL_H
#define ND_BASE_POOL_H

#include <stddef.h>

enum { ND_POOL_WORKERS = 256 }; /* at most: workers count from 0 */

typedef void nd_pool_fn(void *user, size_t index, unsigned worker);
typedef void nd_pool_tick_fn(void *user, size_t started);

/*
 * Calls work(user, i, worker) once for every i in [0, count), on `jobs` threads (the
 * caller is one of them; 0: as many as there are processors), in any order.  tick (may be
 * NULL) is called now and then from the calling thread between units of its own work.
 */
void nd_pool_run(unsigned jobs, size_t count, nd_pool_fn *work, nd_pool_tick_fn *tick, void *user);

unsigned nd_pool_processors(void);

#endif
