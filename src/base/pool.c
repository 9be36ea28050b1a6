/*
 * Worker threads over an index range.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/room.h"

/* Of many small units a thread takes several at a time: else the counter that they share is
 * what takes the time.  A share stays so small that the last ones end together. */
enum { LARGEST_SHARE = 16, SHARES_A_JOB = 64 };

struct pool {
    atomic_size_t    next;
    size_t           count, share;
    nd_pool_fn      *work;
    nd_pool_tick_fn *tick;
    void            *user;
};

struct worker {
    struct pool *pool;
    unsigned     number;
    pthread_t    thread;
};

unsigned nd_pool_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (unsigned)count;
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct pool   *pool = worker->pool;

    for (;;) {
        const size_t from = atomic_fetch_add(&pool->next, pool->share);
        if (from >= pool->count)
            return NULL;
        for (size_t i = from; i < from + pool->share && i < pool->count; i++) {
            pool->work(pool->user, i, worker->number);
            if (worker->number == 0 && pool->tick != NULL)
                pool->tick(pool->user, i);
        }
    }
}

/* What it kept of the work's buffers goes with a thread. */
static void *thread_run(void *argument)
{
    (void)worker_run(argument);
    nd_room_clear();
    return NULL;
}

void nd_pool_run(unsigned jobs, size_t count, nd_pool_fn *work, nd_pool_tick_fn *tick, void *user)
{
    struct pool   pool = {.count = count, .work = work, .tick = tick, .user = user};
    struct worker workers[ND_POOL_WORKERS];
    unsigned      running = 1;

    if (jobs == 0)
        jobs = nd_pool_processors();
    if (jobs > ND_POOL_WORKERS)
        jobs = ND_POOL_WORKERS;
    pool.share = count / jobs / SHARES_A_JOB + 1;
    if (pool.share > LARGEST_SHARE)
        pool.share = LARGEST_SHARE;
    workers[0] = (struct worker){.pool = &pool};
    for (; running < jobs && running < count; running++) {
        workers[running] = (struct worker){.pool = &pool, .number = running};
        if (pthread_create(&workers[running].thread, NULL, thread_run, &workers[running]) != 0)
            break; /* fewer threads give the same result */
    }
    worker_run(&workers[0]);
    for (unsigned i = 1; i < running; i++)
        pthread_join(workers[i].thread, NULL);
}
