/*
 * Worker threads over an index range.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_JOBS = 256 };

struct pool {
    atomic_size_t    next;
    size_t           count;
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
        const size_t i = atomic_fetch_add(&pool->next, 1);
        if (i >= pool->count)
            return NULL;
        pool->work(pool->user, i, worker->number);
        if (worker->number == 0 && pool->tick != NULL)
            pool->tick(pool->user, i);
    }
}

void nd_pool_run(unsigned jobs, size_t count, nd_pool_fn *work, nd_pool_tick_fn *tick, void *user)
{
    struct pool   pool = {.count = count, .work = work, .tick = tick, .user = user};
    struct worker workers[MAX_JOBS];
    unsigned      running = 1;

    if (jobs == 0)
        jobs = nd_pool_processors();
    if (jobs > MAX_JOBS)
        jobs = MAX_JOBS;
    workers[0] = (struct worker){.pool = &pool};
    for (; running < jobs && running < count; running++) {
        workers[running] = (struct worker){.pool = &pool, .number = running};
        if (pthread_create(&workers[running].thread, NULL, worker_run, &workers[running]) != 0)
            break; /* fewer threads give the same result */
    }
    worker_run(&workers[0]);
    for (unsigned i = 1; i < running; i++)
        pthread_join(workers[i].thread, NULL);
}
