/*
 * Feeds: three blocks go around between the thread that decodes and the one that measures,
 * so that neither waits while the other is as fast.
 */
#include "compare/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct feed {
    const struct dump      *dump;
    const struct dump_slot *slot;
    struct tensor_view      view;
    unsigned                size; /* of an element */
    uint64_t                block, count; /* elements: of a block, in all */
    uint64_t                at;           /* elements handed out */
    uint64_t                given;        /* of them in the last block */
    struct slot_stream     *stream;       /* NULL: the bytes lie in view */
    unsigned char          *const *bytes; /* the room's */
    enum nd_status          status;
    struct nd_error         error;

    bool            ahead, is_started;
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    uint64_t        made, taken; /* blocks decoded; blocks that the reader is done with */
    bool            ended, stop;
};

static uint64_t block_elements(const struct feed *feed, uint64_t at)
{
    const uint64_t left = feed->count - at;
    return left < feed->block ? left : feed->block;
}

static enum nd_status decode(struct feed *feed, uint64_t at, unsigned char *out,
                             struct nd_error *err)
{
    if (feed->stream == NULL)
        ND_TRY(nd_slot_stream_open(feed->dump, feed->slot, &feed->stream, err));
    return nd_slot_stream_read(feed->stream, out, block_elements(feed, at) * feed->size, err);
}

static void *feed_run(void *argument)
{
    struct feed *const feed = argument;
    enum nd_status     status = ND_OK;

    for (uint64_t k = 0; status == ND_OK && k * feed->block < feed->count; k++) {
        pthread_mutex_lock(&feed->lock);
        while (!feed->stop && k - feed->taken >= ND_FEED_BLOCKS)
            pthread_cond_wait(&feed->moved, &feed->lock);
        const bool stop = feed->stop;
        pthread_mutex_unlock(&feed->lock);
        if (stop)
            break;
        status = decode(feed, k * feed->block, feed->bytes[k % ND_FEED_BLOCKS], &feed->error);
        pthread_mutex_lock(&feed->lock);
        feed->status = status;
        feed->made += status == ND_OK;
        pthread_cond_signal(&feed->moved);
        pthread_mutex_unlock(&feed->lock);
    }
    pthread_mutex_lock(&feed->lock);
    feed->ended = true;
    pthread_cond_signal(&feed->moved);
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

static void feed_free(struct feed *feed)
{
    if (feed->ahead) {
        pthread_cond_destroy(&feed->moved);
        pthread_mutex_destroy(&feed->lock);
    }
    free(feed);
}

void nd_feed_room_done(struct feed_room *room)
{
    for (int i = 0; i < ND_FEED_BLOCKS; i++)
        free(room->bytes[i]);
    memset(room, 0, sizeof *room);
}

/* Makes the first `blocks` blocks of the room at least `size` bytes large. */
static bool room_reserve(struct feed_room *room, int blocks, uint64_t size)
{
    for (int i = 0; i < blocks; i++) {
        if (room->size[i] >= size)
            continue;
        free(room->bytes[i]);
        room->bytes[i] = malloc((size_t)size);
        room->size[i] = room->bytes[i] == NULL ? 0 : size;
        if (room->bytes[i] == NULL)
            return false;
    }
    return true;
}

struct feed *nd_feed_new(const struct dump *dump, const struct dump_slot *slot,
                         const struct tensor_view *view, uint64_t block, bool ahead,
                         struct feed_room *room)
{
    struct feed *const feed = calloc(1, sizeof *feed);

    if (feed == NULL)
        return NULL;
    *feed = (struct feed){.dump = dump, .slot = slot, .view = *view, .block = block,
                          .size = nd_dtype_info(view->dtype)->size, .count = view->count};
    if (view->data != NULL || view->count == 0)
        return feed;
    ahead = ahead && view->count > block;
    if (!room_reserve(room, ahead ? ND_FEED_BLOCKS : 1,
                      (view->count < block ? view->count : block) * feed->size)) {
        feed_free(feed);
        return NULL;
    }
    feed->bytes = room->bytes;
    if (ahead && pthread_mutex_init(&feed->lock, NULL) == 0) {
        feed->ahead = pthread_cond_init(&feed->moved, NULL) == 0;
        if (!feed->ahead)
            pthread_mutex_destroy(&feed->lock);
    }
    /* Without the thread the reader decodes: the same bytes, later. */
    feed->is_started = feed->ahead &&
                       pthread_create(&feed->thread, NULL, feed_run, feed) == 0;
    return feed;
}

/* The block that the thread makes next, or NULL where it failed. */
static const unsigned char *next_made(struct feed *feed)
{
    const uint64_t k = feed->at / feed->block;

    pthread_mutex_lock(&feed->lock);
    feed->taken = k;
    pthread_cond_signal(&feed->moved);
    while (feed->made <= k && !feed->ended)
        pthread_cond_wait(&feed->moved, &feed->lock);
    const bool is_there = feed->made > k;
    pthread_mutex_unlock(&feed->lock);
    return is_there ? feed->bytes[k % ND_FEED_BLOCKS] : NULL;
}

/* What was read of a mapped side need not stay. */
static void release_given(const struct feed *feed)
{
    if (feed->given > 0 && feed->slot->extent.codec == CODEC_STORED)
        nd_map_was_read(feed->view.data +
                            (feed->view.base + feed->at - feed->given) * feed->size,
                        feed->given * feed->size);
}

const unsigned char *nd_feed_next(struct feed *feed)
{
    const unsigned char *bytes;

    if (!feed->is_started && feed->status != ND_OK)
        return NULL;
    if (feed->view.data != NULL) {
        release_given(feed);
        bytes = feed->view.data + (feed->view.base + feed->at) * feed->size;
    } else if (feed->is_started) {
        bytes = next_made(feed);
    } else {
        feed->status = decode(feed, feed->at, feed->bytes[0], &feed->error);
        bytes = feed->status == ND_OK ? feed->bytes[0] : NULL;
    }
    feed->given = block_elements(feed, feed->at);
    feed->at += feed->given;
    return bytes;
}

enum nd_status nd_feed_done(struct feed *feed, struct nd_error *err)
{
    if (feed->view.data != NULL)
        release_given(feed);
    if (feed->is_started) {
        pthread_mutex_lock(&feed->lock);
        feed->stop = true;
        pthread_cond_signal(&feed->moved);
        pthread_mutex_unlock(&feed->lock);
        pthread_join(feed->thread, NULL);
    }
    enum nd_status status = feed->status;
    if (status != ND_OK && err != NULL)
        *err = feed->error;
    if (feed->stream == NULL && feed->view.data == NULL && status == ND_OK)
        status = nd_slot_stream_open(feed->dump, feed->slot, &feed->stream, err);
    if (feed->stream != NULL) {
        const bool           to_end = status == ND_OK && feed->at == feed->count;
        const enum nd_status end =
            nd_slot_stream_close(feed->stream, to_end, status == ND_OK ? err : NULL);
        status = status == ND_OK ? end : status;
    }
    feed_free(feed);
    return status;
}
