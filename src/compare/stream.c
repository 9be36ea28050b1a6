/*
 * Streamed pairs.  Chunks and units are cut and folded as they are of pairs that lie in
 * memory, so that the figures are the same bits.
 */
#include "compare/stream.h"

#include <stdlib.h>
#include <string.h>

#include "compare/feed.h"

struct streamed {
    const struct comparison *comparison;
    const struct pair_views *views;
    struct feed             *feed[2];
    struct feed_room        *room; /* of both sides */
    struct moments_pivot     pivot;
    bool                     has_pivot; /* a position that sums run over was seen */
    nd_pool_tick_fn         *tick;      /* NULL: on a thread that does not show progress */
    void                    *user;
};

static const struct dump_slot *slot_of(const struct slot_pair *slot, unsigned side)
{
    return slot->adjusted[side] != NULL ? slot->adjusted[side] : slot->side[side];
}

/* Views of one chunk at hand; false: a side failed. */
static bool next_chunk(struct streamed *streamed, uint64_t count, struct tensor_view *ret_view)
{
    const struct nd_shape shape = {.rank = 1, .dim = {count}};

    for (unsigned side = 0; side < 2; side++) {
        const struct tensor_view *whole = &streamed->views->view[side];
        const unsigned char      *bytes = nd_feed_next(streamed->feed[side]);
        if (bytes == NULL)
            return false;
        nd_view_contiguous(&ret_view[side], bytes,
                           count * nd_dtype_info(whole->dtype)->size, whole->dtype, &shape);
        ret_view[side].swapped = whole->swapped;
    }
    return true;
}

static void measure_chunk(struct streamed *streamed, const struct tensor_view *view,
                          const struct moments_policy *policy, struct nd_moments *ret)
{
    const enum nd_dtype *real = streamed->views->real;

    /* The first pair that counts; before it nothing depends on the pivot. */
    if (!streamed->has_pivot)
        streamed->pivot = nd_moments_pivot(streamed->comparison->kernels, &view[0], &view[1],
                                           real[0], real[1]);
    nd_moments_measure(streamed->comparison->kernels, &view[0], &view[1], real[0], real[1], 0,
                       view[0].count, &streamed->pivot, policy, ret);
    streamed->has_pivot = streamed->has_pivot || ret->n > 0;
}

/* One run over the pair; false: a side failed. */
static bool measure_once(struct streamed *streamed, double scale,
                         atomic_uint_least64_t *inout_done, struct nd_moments *ret)
{
    const struct moments_policy policy = nd_policy_moments(streamed->comparison, scale);
    const uint64_t              total = streamed->views->view[0].count;
    struct nd_moments           unit, chunk;
    struct tensor_view          view[2];

    nd_moments_init(ret);
    for (uint64_t at = 0; at < total;) {
        const uint64_t end = total - at < MEASURE_UNIT ? total : at + MEASURE_UNIT;
        nd_moments_init(&unit);
        while (at < end) {
            const uint64_t n = end - at < MOMENTS_CHUNK ? end - at : MOMENTS_CHUNK;
            if (!next_chunk(streamed, n, view))
                return false;
            measure_chunk(streamed, view, &policy, &chunk);
            chunk.max_abs_at += at;
            nd_moments_fold(&unit, &chunk);
            at += n;
            atomic_fetch_add(inout_done, view[0].data_size + view[1].data_size);
            if (streamed->tick != NULL)
                streamed->tick(streamed->user, 0);
        }
        nd_moments_fold(ret, &unit);
    }
    return true;
}

/* Runs over the pair from its start; the sides' statuses go into views. */
static bool run(struct streamed *streamed, const struct slot_pair *slot, bool ahead,
                double scale, atomic_uint_least64_t *inout_done, struct pair_views *views,
                struct nd_moments *ret)
{
    bool            fine = true, is_read = false;
    struct nd_error err;

    for (unsigned side = 0; side < 2; side++) {
        streamed->feed[side] = nd_feed_new(streamed->comparison->dump[side], slot_of(slot, side),
                                           &views->view[side], MOMENTS_CHUNK,
                                           ahead && side == 0, &streamed->room[side]);
        fine = fine && streamed->feed[side] != NULL;
    }
    if (fine)
        is_read = measure_once(streamed, scale, inout_done, ret);
    else
        nd_fail_memory(&err);
    for (unsigned side = 0; side < 2; side++) {
        if (streamed->feed[side] == NULL) {
            nd_pair_fail(views, side, &err);
        } else if (nd_feed_done(streamed->feed[side], &err) != ND_OK && views->ready) {
            nd_pair_fail(views, side, &err);
        }
    }
    return is_read && views->ready;
}

static void measure_pair(struct streamed *streamed, const struct slot_pair *slot, bool ahead,
                         atomic_uint_least64_t *inout_done, struct pair_views *views,
                         struct nd_moments *ret)
{
    atomic_uint_least64_t again; /* what is read twice counts once */

    atomic_init(&again, 0);
    if (!run(streamed, slot, ahead, 1, inout_done, views, ret))
        return;
    const double scale = nd_moments_rescale(ret);
    if (scale != 1.0)
        (void)run(streamed, slot, ahead, scale, &again, views, ret);
}

/* --- many pairs -------------------------------------------------------------------------- */

/* A pair from this size on (bytes of both sides) is decoded by two threads: so no thread is
 * left alone with the last one. */
static const uint64_t AHEAD_LEAST = 8 << 20;

struct work {
    const struct comparison *comparison;
    struct stream_job      **jobs; /* largest first */
    bool                     ahead;
    struct feed_room       (*rooms)[2]; /* of each thread */
    atomic_uint_least64_t   *done;
    nd_pool_tick_fn         *tick;
    void                    *user;
};

static void work_one(void *user, size_t i, unsigned worker)
{
    struct work       *work = user;
    struct stream_job *job = work->jobs[i];
    struct streamed    streamed = {.comparison = work->comparison, .views = job->views,
                                   .room = work->rooms[worker],
                                   .tick = worker == 0 ? work->tick : NULL,
                                   .user = work->user};

    nd_pair_open_stream(work->comparison, job->slot, job->views);
    if (job->views->ready)
        measure_pair(&streamed, job->slot, work->ahead, work->done, job->views, &job->moments);
}

static int by_size(const void *a, const void *b)
{
    const struct stream_job *x = *(struct stream_job *const *)a,
                            *y = *(struct stream_job *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void rooms_done(struct feed_room (*rooms)[2], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned side = 0; side < 2; side++)
            nd_feed_room_done(&rooms[i][side]);
}

/* Without memory to plan: any order will do. */
static void work_serially(struct work *work, struct stream_job *jobs, size_t count)
{
    struct feed_room   room[1][2];
    struct stream_job *one;

    memset(room, 0, sizeof room);
    work->rooms = room;
    work->jobs = &one;
    for (size_t i = 0; i < count; i++) {
        one = &jobs[i];
        work_one(work, 0, 0);
    }
    rooms_done(room, 1);
}

/* Large pairs first, each on two threads. */
static void work_shared(struct work *work, struct stream_job **order, size_t count,
                        unsigned threads)
{
    size_t large = 0;

    if (count > 1)
        qsort(order, count, sizeof *order, by_size);
    while (threads > 1 && large < count && order[large]->bytes >= AHEAD_LEAST)
        large++;
    work->jobs = order;
    work->ahead = true;
    nd_pool_run((threads + 1) / 2, large, work_one, NULL, work);
    work->jobs = order + large;
    work->ahead = false;
    nd_pool_run(threads, count - large, work_one, NULL, work);
}

void nd_stream_jobs(const struct comparison *comparison, struct stream_job *jobs, size_t count,
                    atomic_uint_least64_t *inout_done, nd_pool_tick_fn *tick, void *user)
{
    const unsigned asked = comparison->options->jobs;
    const unsigned wanted = asked == 0 ? nd_pool_processors() : asked;
    const unsigned threads = wanted < ND_POOL_WORKERS ? wanted : ND_POOL_WORKERS;
    struct stream_job **order = malloc((count + 1) * sizeof *order);
    struct work         work = {.comparison = comparison, .done = inout_done,
                                .tick = tick, .user = user};

    work.rooms = calloc(threads, sizeof *work.rooms);
    struct feed_room (*const rooms)[2] = work.rooms;
    for (size_t i = 0; order != NULL && i < count; i++)
        order[i] = &jobs[i];
    if (order == NULL || rooms == NULL)
        work_serially(&work, jobs, count);
    else
        work_shared(&work, order, count, threads);
    if (rooms != NULL)
        rooms_done(rooms, threads);
    free(rooms);
    free(order);
}
