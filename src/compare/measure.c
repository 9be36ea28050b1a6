/*
 * Measuring: pairs are opened, measured and closed in batches, so that neither mappings
 * nor spooled members pile up.  Inside a batch the units of work are fixed runs of chunks:
 * the cut depends on sizes alone, and units are folded in index order, so that the number
 * of threads changes nothing.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/slot_pair.h"
#include "compare/stage.h"
#include "compare/stream.h"
#include "metrics/metric.h"

enum {
    UNIT = MEASURE_UNIT,
    BATCH_PAIRS = 512,
    UNITS_AHEAD = 4,
    ADVISE_LEAST = 1 << 20 /* bytes: below that readahead has it already */
};
static const uint64_t BATCH_BYTES = 4ull << 30, BATCH_DECODED = 32ull << 20;

struct job {
    struct layer_pair *layer;
    struct slot_pair  *slot;
    struct pair_views  views;
    struct moments_pivot pivot;
    size_t             first_unit, unit_count;
    bool               streams; /* decoded as it is measured */
};

struct unit {
    size_t            job;
    uint64_t          first, count;
    struct nd_moments moments;
};

struct batch {
    struct comparison *comparison;
    struct job        *jobs;
    size_t             job_count;
    struct unit       *units;
    size_t             unit_count;
    atomic_uint_least64_t done; /* bytes, for the progress bar */
};

static uint64_t slot_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL)
            bytes += slot->side[side]->extent.raw_size;
    return bytes;
}

/* What opening decodes, into memory if it is small: a batch holds little of that. */
static uint64_t decoded_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->extent.codec == CODEC_DEFLATE)
            bytes += slot->side[side]->extent.raw_size;
    return bytes;
}

static void job_open(void *user, size_t i, unsigned worker)
{
    struct batch *batch = user;
    struct job   *job = &batch->jobs[i];

    (void)worker;
    if (job->streams)
        return;
    nd_pair_open(batch->comparison, job->layer, job->slot, &job->views);
    if (job->views.ready)
        job->pivot = nd_moments_pivot(&job->views.view[0], &job->views.view[1],
                                      job->views.real[0], job->views.real[1]);
}

/* Where the bytes of a unit lie that are read in place; NULL: they are not. */
static const unsigned char *unit_bytes(const struct job *job, const struct unit *unit,
                                       unsigned side, uint64_t *ret_size)
{
    const struct tensor_view *view = &job->views.view[side];
    const struct dump_slot   *slot = job->slot->side[side];
    const unsigned            size = nd_dtype_info(view->dtype)->size;

    if (!job->views.is_open[side] || slot->extent.codec != CODEC_STORED || !view->contiguous)
        return NULL;
    *ret_size = unit->count * size;
    return view->data + (view->base + unit->first) * size;
}

/* A disk is kept busy with what the threads need next; what was read leaves the process, so
 * that its size stays small whatever the dump's. */
static void unit_advise(const struct batch *batch, size_t i, bool is_read)
{
    uint64_t size;

    for (unsigned side = 0; i < batch->unit_count && side < 2; side++) {
        const struct unit   *unit = &batch->units[i];
        const unsigned char *bytes =
            unit_bytes(&batch->jobs[unit->job], unit, side, &size);
        if (bytes == NULL)
            continue;
        if (is_read)
            nd_map_was_read(bytes, size);
        else if (size >= ADVISE_LEAST)
            nd_map_will_read(bytes, size);
    }
}

static void unit_measure(void *user, size_t i, unsigned worker)
{
    struct batch        *batch = user;
    struct unit         *unit = &batch->units[i];
    const struct job    *job = &batch->jobs[unit->job];
    const struct moments_policy policy = nd_policy_moments(batch->comparison, 1);
    struct stage         stage;

    (void)worker;
    unit_advise(batch, i + UNITS_AHEAD, false);
    nd_moments_init(&unit->moments);
    nd_stage_init(job->views.view, &stage);
    nd_stage_measure(&stage, batch->comparison->kernels, job->views.view, job->views.real,
                     unit->first, unit->count, &job->pivot, &policy, &unit->moments);
    nd_stage_done(&stage);
    unit_advise(batch, i, true);
    const unsigned bytes = nd_dtype_info(job->views.view[0].dtype)->size +
                           nd_dtype_info(job->views.view[1].dtype)->size;
    atomic_fetch_add(&batch->done, unit->count * bytes);
}

static void batch_tick(void *user, size_t started)
{
    struct batch            *batch = user;
    const struct nd_options *options = batch->comparison->options;

    (void)started;
    if (options->progress != NULL)
        options->progress(options->progress_user, "compare",
                          batch->comparison->bytes_done + atomic_load(&batch->done),
                          batch->comparison->bytes_total);
}

/* Cuts the ready jobs into units. */
static bool batch_cut(struct batch *batch)
{
    size_t count = 0;

    for (size_t j = 0; j < batch->job_count; j++)
        if (batch->jobs[j].views.ready)
            count += (size_t)(batch->jobs[j].views.view[0].count / UNIT + 1);
    batch->units = calloc(count + 1, sizeof *batch->units);
    if (batch->units == NULL)
        return false;
    for (size_t j = 0; j < batch->job_count; j++) {
        struct job *job = &batch->jobs[j];
        job->first_unit = batch->unit_count;
        if (!job->views.ready)
            continue;
        for (uint64_t at = 0; at < job->views.view[0].count || at == 0; at += UNIT) {
            const uint64_t left = job->views.view[0].count - at;
            batch->units[batch->unit_count++] =
                (struct unit){.job = j, .first = at, .count = left < UNIT ? left : UNIT};
        }
        job->unit_count = batch->unit_count - job->first_unit;
    }
    return true;
}

/* Folds a job's units; a float64 pair whose sums leave the safe range is measured again,
 * scaled by a power of two. */
static void job_fold(struct batch *batch, struct job *job)
{
    const struct comparison *comparison = batch->comparison;
    struct nd_moments        moments;

    nd_moments_init(&moments);
    for (size_t u = 0; u < job->unit_count; u++)
        nd_moments_fold(&moments, &batch->units[job->first_unit + u].moments);
    const double scale = nd_moments_rescale(&moments);
    if (scale != 1.0) {
        const struct moments_policy policy = nd_policy_moments(comparison, scale);
        nd_measure_serially(comparison->kernels, job->views.view, job->views.real, &policy, &moments);
    }
    job->slot->integer = nd_pair_is_integer(&job->views);
    nd_slot_set_moments(comparison, job->slot, &moments);
}

/* --- streams ---------------------------------------------------------------------------- */

/* What follows the hot pass reads elements in any order. */
static bool wants_bytes(const struct comparison *comparison, const struct slot_pair *slot)
{
    return nd_slot_is_hopeless(slot) || nd_slot_wants_detail(comparison, slot);
}

static void reopen_whole(const struct comparison *comparison, struct job *job)
{
    (void)nd_pair_close(&job->views);
    nd_pair_open(comparison, job->layer, job->slot, &job->views);
}

static enum nd_status batch_stream(struct batch *batch, struct nd_error *err)
{
    struct stream_job *list = malloc((batch->job_count + 1) * sizeof *list);
    size_t             count = 0;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t j = 0; j < batch->job_count; j++) {
        struct job *job = &batch->jobs[j];
        if (job->streams)
            list[count++] = (struct stream_job){.layer = job->layer, .slot = job->slot,
                                                .bytes = slot_bytes(job->slot),
                                                .views = &job->views};
    }
    nd_stream_jobs(batch->comparison, list, count, &batch->done, batch_tick, batch);
    count = 0;
    for (size_t j = 0; j < batch->job_count; j++) {
        struct job *job = &batch->jobs[j];
        if (!job->streams)
            continue;
        job->slot->integer = nd_pair_is_integer(&job->views);
        if (job->views.ready)
            nd_slot_set_moments(batch->comparison, job->slot, &list[count].moments);
        count++;
    }
    free(list);
    return ND_OK;
}

/* --- batches --------------------------------------------------------------------------- */

/* SHAPE stays that, unless a declared layout was to blame. */
static enum nd_status job_unreadable(const struct comparison *comparison, struct job *job,
                                     struct nd_error *err)
{
    if (!job->views.search || job->views.contradicts)
        job->slot->state = SLOT_UNREADABLE;
    job->slot->reason = nd_arena_string(comparison->arena, job->views.reason);
    return job->slot->reason == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status job_finish(struct batch *batch, struct job *job, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    struct slot_pair  *slot = job->slot;

    if (job->views.ready) {
        slot->state = SLOT_COMPARED;
        if (!job->streams)
            job_fold(batch, job);
        if (job->streams && wants_bytes(comparison, slot))
            reopen_whole(comparison, job);
        if (!job->views.ready)
            return job_unreadable(comparison, job, err);
        if (nd_slot_is_hopeless(slot))
            ND_TRY(nd_slot_search(comparison, slot, &job->views, err));
    } else {
        slot->state = job->views.search ? SLOT_SHAPE : SLOT_UNREADABLE;
        if (job->views.search) {
            slot->integer = nd_pair_is_integer(&job->views);
            ND_TRY(nd_slot_search(comparison, slot, &job->views, err));
            slot->state = job->views.ready ? SLOT_COMPARED : SLOT_SHAPE;
        }
        if (!job->views.ready)
            return job_unreadable(comparison, job, err);
    }
    if (job->views.squeezed)
        nd_slot_note(slot, "squeezed");
    if (job->views.converted != NULL)
        nd_slot_note(slot, "variance_as_rstd");
    if (job->views.contradicts)
        nd_slot_note(slot, "layout_contradicts");
    if (job->views.padding[0] > 0 || job->views.padding[1] > 0)
        nd_slot_note(slot, "padding_nonzero");
    slot->result->shape = job->views.view[0].shape;
    return nd_slot_wants_detail(comparison, slot)
               ? nd_slot_detail(comparison, slot, &job->views, err)
               : ND_OK;
}

static enum nd_status job_close(struct job *job, struct nd_error *err)
{
    const char *const shrunk = nd_pair_close(&job->views);

    if (shrunk == NULL)
        return ND_OK;
    nd_fail(err, ND_ERR_CHANGED, "a file that stays as it is while it is read",
            "less than at the start: the file shrank during the comparison");
    nd_error_file(err, shrunk);
    return ND_ERR_CHANGED;
}

static enum nd_status batch_run(struct batch *batch, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    const unsigned     jobs = comparison->options->jobs;
    enum nd_status     status = ND_OK;

    nd_pool_run(jobs, batch->job_count, job_open, NULL, batch);
    if (batch_cut(batch)) {
        nd_pool_run(jobs, batch->unit_count, unit_measure, batch_tick, batch);
        status = batch_stream(batch, err);
        for (size_t j = 0; j < batch->job_count && status == ND_OK; j++) {
            status = job_finish(batch, &batch->jobs[j], err);
            if (batch->jobs[j].streams && status == ND_OK)
                status = job_close(&batch->jobs[j], err);
        }
    } else {
        status = nd_fail_memory(err);
    }
    for (size_t j = 0; j < batch->job_count; j++) {
        const enum nd_status end = job_close(&batch->jobs[j], status == ND_OK ? err : NULL);
        status = status == ND_OK ? end : status;
    }
    comparison->bytes_done += atomic_load(&batch->done);
    free(batch->units);
    return status;
}

static bool add_results(struct arena *arena, struct layer_pair *layer)
{
    struct nd_slot *results = nd_arena_alloc(arena, layer->slot_count, sizeof *results);

    for (size_t s = 0; results != NULL && s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        slot->result = &results[s];
        slot->result->drift = slot->result->hidden_up_to = (double)NAN;
        slot->result->found_drift = slot->rms[0] = slot->rms[1] = (double)NAN;
    }
    return results != NULL;
}

enum nd_status nd_measure(struct comparison *comparison, struct nd_error *err)
{
    struct batch   batch = {.comparison = comparison};
    uint64_t       bytes = 0, decoded = 0;
    enum nd_status status = ND_OK;

    batch.jobs = calloc(BATCH_PAIRS, sizeof *batch.jobs);
    if (batch.jobs == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count && status == ND_OK; i++) {
        struct layer_pair *layer = &comparison->layers[i];
        if (!add_results(comparison->arena, layer))
            status = nd_fail_memory(err);
        for (size_t s = 0; s < layer->slot_count && status == ND_OK; s++) {
            struct slot_pair *slot = &layer->slots[s];
            if (!nd_slot_needs_values(comparison, layer, slot))
                continue;
            const bool streams = nd_pair_streams(layer, slot);
            decoded += streams ? 0 : decoded_bytes(slot);
            if (batch.job_count == BATCH_PAIRS ||
                ((bytes > BATCH_BYTES || decoded > BATCH_DECODED) && batch.job_count > 0)) {
                status = batch_run(&batch, err);
                batch = (struct batch){.comparison = comparison, .jobs = batch.jobs};
                bytes = 0;
                decoded = streams ? 0 : decoded_bytes(slot);
            }
            batch.jobs[batch.job_count++] =
                (struct job){.layer = layer, .slot = slot, .streams = streams};
            bytes += slot_bytes(slot);
        }
    }
    if (status == ND_OK && batch.job_count > 0)
        status = batch_run(&batch, err);
    free(batch.jobs);
    return status;
}
