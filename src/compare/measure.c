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
#include "compare/measure_job.h"
#include "compare/stage.h"
#include "compare/stored.h"
#include "compare/stream.h"

enum {
    UNIT = MEASURE_UNIT,
    BATCH_PAIRS = 512,
    UNITS_AHEAD = 4,
    UNITS_TOGETHER = 4,
    ADVISE_LEAST = 1 << 20 /* bytes: below that readahead has it already */
};
static const uint64_t BATCH_BYTES = 4ull << 30, BATCH_DECODED = 32ull << 20;

struct unit {
    size_t            job;
    uint64_t          first, count;
    size_t            together; /* units that are measured with it; 0: one before does this */
    struct nd_moments moments;
};

struct part {
    struct comparison comparison;
    struct nd_options options;
};

struct batch {
    struct comparison *comparison;
    struct part      **parts; /* one a worker that met a small job */
    struct job        *jobs;
    size_t             job_count;
    struct unit       *units;
    size_t             unit_count;
    atomic_uint_least64_t done; /* bytes, for the progress bar */
};

/* What opening decodes, into memory if it is small: a batch holds little of that. */
static uint64_t decoded_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->extent.codec == CODEC_DEFLATE)
            bytes += slot->side[side]->extent.raw_size;
    return bytes;
}

/* A worker's own comparison: small jobs allocate, and run no threads of their own. */
static struct part *part_of(struct batch *batch, unsigned worker)
{
    struct part **const part = &batch->parts[worker];

    if (*part == NULL) {
        *part = calloc(1, sizeof **part);
        if (*part == NULL)
            return NULL;
        (*part)->options = *batch->comparison->options;
        (*part)->options.jobs = 1;
        (*part)->options.progress = NULL;
        (*part)->comparison = *batch->comparison;
        (*part)->comparison.options = &(*part)->options;
        (*part)->comparison.arena = nd_arena_new();
    }
    return (*part)->comparison.arena == NULL ? NULL : *part;
}

static void parts_end(struct comparison *comparison, struct part **parts)
{
    for (unsigned i = 0; i < ND_POOL_WORKERS; i++) {
        if (parts[i] == NULL)
            continue;
        nd_arena_take(comparison->arena, parts[i]->comparison.arena);
        free(parts[i]);
    }
    free(parts);
}

static void job_open(void *user, size_t i, unsigned worker)
{
    struct batch *batch = user;
    struct job   *job = &batch->jobs[i];

    if (job->streams)
        return;
    nd_job_open(batch->comparison, job);
    struct part *const part = nd_job_is_small(job) ? part_of(batch, worker) : NULL;
    if (part != NULL)
        nd_job_do(&part->comparison, job,
                  batch->comparison->options->progress == NULL ? NULL : &batch->done);
}

/* A disk is kept busy with what the threads need next. */
static void unit_announce(const struct batch *batch, size_t i)
{
    uint64_t size;

    for (unsigned side = 0; i < batch->unit_count && side < 2; side++) {
        const struct unit   *unit = &batch->units[i];
        const unsigned char *bytes =
            nd_job_bytes(&batch->jobs[unit->job], unit->first, unit->count, side, &size);
        if (bytes != NULL && size >= ADVISE_LEAST)
            nd_map_will_read(bytes, size);
    }
}

static void unit_measure(void *user, size_t i, unsigned worker)
{
    struct batch *batch = user;
    struct unit  *unit = &batch->units[i];

    struct nd_moments moments[UNITS_TOGETHER];
    uint64_t          count = 0;

    (void)worker;
    unit_announce(batch, i + UNITS_AHEAD);
    for (size_t k = 0; k < unit->together; k++)
        count += unit[k].count;
    if (unit->together > 0)
        nd_job_measure(batch->comparison, &batch->jobs[unit->job], unit->first, count,
                       &batch->done, moments);
    for (size_t k = 0; k < unit->together; k++)
        unit[k].moments = moments[k];
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

/* How many units of a job one thread measures at once: that changes no figure. */
static size_t units_together(const struct batch *batch, const struct job *job)
{
    const unsigned jobs = batch->comparison->options->jobs;
    const size_t   threads = jobs > 0 ? jobs : nd_pool_processors();
    const uint64_t share = job->views.view[0].count / UNIT / (2 * threads) + 1;

    if (!nd_stage_wants_more(job->views.view, UNIT))
        return 1;
    return share < UNITS_TOGETHER ? (size_t)share : UNITS_TOGETHER;
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
        const size_t together = units_together(batch, job);
        for (size_t u = 0; u < job->unit_count; u += together)
            batch->units[job->first_unit + u].together =
                job->unit_count - u < together ? job->unit_count - u : together;
    }
    return true;
}

static void job_fold(const struct batch *batch, struct job *job)
{
    nd_moments_init(&job->moments);
    for (size_t u = 0; u < job->unit_count; u++)
        nd_moments_fold(&job->moments, &batch->units[job->first_unit + u].moments);
}

/* --- streams ---------------------------------------------------------------------------- */

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
                                                .bytes = nd_slot_pair_bytes(job->slot),
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

static enum nd_status batch_finish(const struct batch *batch, struct job *job,
                                   struct nd_error *err)
{
    if (job->is_done)
        return nd_job_status(job, err);
    if (job->views.ready && !job->streams)
        job_fold(batch, job);
    ND_TRY(nd_job_finish(batch->comparison, job, err));
    return job->streams ? nd_job_close(job, err) : ND_OK;
}

static enum nd_status batch_run(struct batch *batch, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    const unsigned     jobs = comparison->options->jobs;
    enum nd_status     status = ND_OK;

    nd_pairs_check_stored(comparison, &batch->jobs->slot, sizeof *batch->jobs, batch->job_count);
    nd_pool_run(jobs, batch->job_count, job_open, batch_tick, batch);
    if (batch_cut(batch)) {
        nd_pool_run(jobs, batch->unit_count, unit_measure, batch_tick, batch);
        status = batch_stream(batch, err);
        for (size_t j = 0; j < batch->job_count && status == ND_OK; j++)
            status = batch_finish(batch, &batch->jobs[j], err);
    } else {
        status = nd_fail_memory(err);
    }
    for (size_t j = 0; j < batch->job_count; j++) {
        const enum nd_status end = nd_job_close(&batch->jobs[j], status == ND_OK ? err : NULL);
        status = status == ND_OK ? end : status;
    }
    comparison->bytes_done += atomic_load(&batch->done);
    free(batch->units);
    return status;
}

static bool add_results(struct arena *arena, struct layer_pair *layer)
{
    static const struct nd_moments nothing;
    struct nd_slot *results = nd_arena_alloc(arena, layer->slot_count, sizeof *results);

    for (size_t s = 0; results != NULL && s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        slot->result = &results[s];
        slot->moments = &nothing;
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

    nd_statistics_ahead(comparison);
    batch.jobs = calloc(BATCH_PAIRS, sizeof *batch.jobs);
    batch.parts = calloc(ND_POOL_WORKERS, sizeof *batch.parts);
    if (batch.jobs == NULL || batch.parts == NULL) {
        free(batch.jobs);
        free(batch.parts);
        return nd_fail_memory(err);
    }
    for (size_t i = 0; i < comparison->layer_count && status == ND_OK; i++) {
        struct layer_pair *layer = &comparison->layers[i];
        if (!add_results(comparison->arena, layer))
            status = nd_fail_memory(err);
        for (size_t s = 0; s < layer->slot_count && status == ND_OK; s++) {
            struct slot_pair *slot = &layer->slots[s];
            if (!nd_slot_needs_values(comparison, layer, slot))
                continue;
            slot->moments = nd_arena_alloc(comparison->arena, 1, sizeof *slot->moments);
            if (slot->moments == NULL) {
                status = nd_fail_memory(err);
                break;
            }
            const bool streams = nd_pair_streams(layer, slot);
            decoded += streams ? 0 : decoded_bytes(slot);
            if (batch.job_count == BATCH_PAIRS ||
                ((bytes > BATCH_BYTES || decoded > BATCH_DECODED) && batch.job_count > 0)) {
                status = batch_run(&batch, err);
                batch = (struct batch){.comparison = comparison, .jobs = batch.jobs,
                                       .parts = batch.parts};
                bytes = 0;
                decoded = streams ? 0 : decoded_bytes(slot);
            }
            batch.jobs[batch.job_count++] =
                (struct job){.layer = layer, .slot = slot, .streams = streams};
            bytes += nd_slot_pair_bytes(slot);
        }
    }
    if (status == ND_OK && batch.job_count > 0)
        status = batch_run(&batch, err);
    free(batch.jobs);
    parts_end(comparison, batch.parts);
    return status;
}
