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
#include "metrics/metric.h"

enum {
    UNIT = MEASURE_UNIT,
    BATCH_PAIRS = 512
};
static const uint64_t BATCH_BYTES = 4ull << 30;

struct job {
    struct layer_pair *layer;
    struct slot_pair  *slot;
    struct pair_views  views;
    struct moments_pivot pivot;
    size_t             first_unit, unit_count;
    bool               changed; /* a file shrank meanwhile */
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

static void job_open(void *user, size_t i, unsigned worker)
{
    struct batch *batch = user;
    struct job   *job = &batch->jobs[i];

    (void)worker;
    nd_pair_open(batch->comparison, job->layer, job->slot, &job->views);
    if (job->views.ready)
        job->pivot = nd_moments_pivot(&job->views.view[0], &job->views.view[1],
                                      job->views.real[0], job->views.real[1]);
}

/* Only bytes seen in the dump's own mapping: what was inflated may be in memory alone. */
static void unit_release(const struct job *job, const struct unit *unit)
{
    for (unsigned side = 0; side < 2; side++) {
        const struct tensor_view *view = &job->views.view[side];
        const struct dump_slot   *slot = job->slot->side[side];
        const unsigned            size = nd_dtype_info(view->dtype)->size;
        if (job->views.is_open[side] && slot->extent.codec == CODEC_STORED && view->contiguous)
            nd_map_was_read(view->data + (view->base + unit->first) * size, unit->count * size);
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
    nd_moments_init(&unit->moments);
    nd_stage_init(job->views.view, &stage);
    nd_stage_measure(&stage, batch->comparison->kernels, job->views.view, job->views.real,
                     unit->first, unit->count, &job->pivot, &policy, &unit->moments);
    nd_stage_done(&stage);
    unit_release(job, unit);
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

/* --- batches --------------------------------------------------------------------------- */

static enum nd_status job_finish(struct batch *batch, struct job *job, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    struct slot_pair  *slot = job->slot;

    if (job->views.ready) {
        slot->state = SLOT_COMPARED;
        job_fold(batch, job);
        if (nd_slot_is_hopeless(slot))
            ND_TRY(nd_slot_search(comparison, slot, &job->views, err));
    } else {
        slot->state = job->views.search ? SLOT_SHAPE : SLOT_UNREADABLE;
        if (job->views.search) {
            slot->integer = nd_pair_is_integer(&job->views);
            ND_TRY(nd_slot_search(comparison, slot, &job->views, err));
            slot->state = job->views.ready         ? SLOT_COMPARED
                          : job->views.contradicts ? SLOT_UNREADABLE
                                                   : SLOT_SHAPE;
        }
        if (!job->views.ready) {
            slot->reason = nd_arena_string(comparison->arena, job->views.reason);
            return slot->reason == NULL ? nd_fail_memory(err) : ND_OK;
        }
    }
    if (job->views.squeezed)
        nd_slot_note(slot, "squeezed");
    if (job->views.converted != NULL)
        nd_slot_note(slot, "variance_as_rstd");
    if (job->views.contradicts)
        nd_slot_note(slot, "layout_contradicts");
    if (job->views.padding[0] > 0 || job->views.padding[1] > 0)
        nd_slot_note(slot, "padding_nonzero");
    slot->result.shape = job->views.view[0].shape;
    return nd_slot_wants_detail(comparison, slot)
               ? nd_slot_detail(comparison, slot, &job->views, err)
               : ND_OK;
}

static enum nd_status batch_run(struct batch *batch, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    const unsigned     jobs = comparison->options->jobs;
    enum nd_status     status = ND_OK;

    nd_pool_run(jobs, batch->job_count, job_open, NULL, batch);
    if (batch_cut(batch)) {
        nd_pool_run(jobs, batch->unit_count, unit_measure, batch_tick, batch);
        for (size_t j = 0; j < batch->job_count && status == ND_OK; j++)
            status = job_finish(batch, &batch->jobs[j], err);
    } else {
        status = nd_fail_memory(err);
    }
    for (size_t j = 0; j < batch->job_count; j++) {
        const char *const shrunk = nd_pair_close(&batch->jobs[j].views);
        if (shrunk != NULL && status == ND_OK) {
            status = nd_fail(err, ND_ERR_CHANGED, "a file that stays as it is while it is read",
                             "less than at the start: the file shrank during the comparison");
            nd_error_file(err, shrunk);
        }
    }
    comparison->bytes_done += atomic_load(&batch->done);
    free(batch->units);
    return status;
}

/* Equal checksums prove equality.  Where they differ, or stand alone, statistics beside them
 * say how far the sides are apart; what those do not show is a matter of the checksums. */
static void measure_checksum(struct comparison *comparison, struct layer_pair *layer,
                             struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];
    const bool both = c != NULL && r->evidence == c->evidence &&
                      strcspn(r->checksum, ":") == strcspn(c->checksum, ":");

    slot->differs = both && strcmp(r->checksum, c->checksum) != 0;
    if (c != NULL && (!both || slot->differs) &&
        (r->has_statistics || r->evidence == ND_EVIDENCE_VALUES) &&
        (c->has_statistics || c->evidence == ND_EVIDENCE_VALUES)) {
        nd_compare_statistics(comparison, layer, slot);
        if (!both || slot->state != SLOT_COMPARED || slot->differs)
            return;
        slot->differs = true;
    }
    slot->state = both ? SLOT_COMPARED : SLOT_SKIPPED;
    slot->reason = both ? NULL : "a checksum beside values";
    slot->result.evidence = ND_EVIDENCE_CHECKSUM;
    slot->result.drift = slot->result.hidden_up_to = (double)NAN;
}

/* Decides without reading values; true: the pair goes into a batch. */
static bool needs_values(struct comparison *comparison, struct layer_pair *layer,
                         struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];

    if (r != NULL && (r->undefined || (c != NULL && c->undefined) ||
                      nd_layer_leaves_undefined(layer->side[0], r->name))) {
        slot->undefined = true;
        slot->state = SLOT_SKIPPED;
        slot->reason = "undefined by nature";
        return false;
    }
    if (r == NULL || (c == NULL && layer->part_count == 0)) {
        slot->state = SLOT_ONE_SIDED;
        return false;
    }
    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->broken != NULL &&
            !slot->side[side]->layout_broken) {
            slot->state = SLOT_UNREADABLE;
            slot->reason = slot->side[side]->broken;
            return false;
        }
    if (layer->part_count > 0 && r->evidence == ND_EVIDENCE_VALUES)
        return true;
    if (c == NULL || r->evidence == ND_EVIDENCE_CHECKSUM || c->evidence == ND_EVIDENCE_CHECKSUM) {
        measure_checksum(comparison, layer, slot);
        return false;
    }
    if (r->evidence == ND_EVIDENCE_VALUES && c->evidence == ND_EVIDENCE_VALUES)
        return true;
    nd_compare_statistics(comparison, layer, slot);
    return false;
}

static uint64_t slot_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL)
            bytes += slot->side[side]->extent.raw_size;
    return bytes;
}

enum nd_status nd_measure(struct comparison *comparison, struct nd_error *err)
{
    struct batch   batch = {.comparison = comparison};
    uint64_t       bytes = 0;
    enum nd_status status = ND_OK;

    batch.jobs = calloc(BATCH_PAIRS, sizeof *batch.jobs);
    if (batch.jobs == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count && status == ND_OK; i++) {
        struct layer_pair *layer = &comparison->layers[i];
        for (size_t s = 0; s < layer->slot_count && status == ND_OK; s++) {
            struct slot_pair *slot = &layer->slots[s];
            slot->result.drift = slot->result.hidden_up_to = slot->result.found_drift = (double)NAN;
            slot->rms[0] = slot->rms[1] = (double)NAN;
            if (!needs_values(comparison, layer, slot))
                continue;
            if (batch.job_count == BATCH_PAIRS || (bytes > BATCH_BYTES && batch.job_count > 0)) {
                status = batch_run(&batch, err);
                batch = (struct batch){.comparison = comparison, .jobs = batch.jobs};
                bytes = 0;
            }
            batch.jobs[batch.job_count++] = (struct job){.layer = layer, .slot = slot};
            bytes += slot_bytes(slot);
        }
    }
    if (status == ND_OK && batch.job_count > 0)
        status = batch_run(&batch, err);
    free(batch.jobs);
    return status;
}
