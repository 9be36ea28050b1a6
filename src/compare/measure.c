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
#include "metrics/metric.h"

enum {
    UNIT = 16 * MOMENTS_CHUNK, /* positions a unit of work measures */
    BATCH_PAIRS = 512,
    DETAIL_UNITS = 64 /* details (70 KB each) held at once */
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

void nd_measure_serially(const struct kernel_set *kernels, const struct tensor_view *view,
                         const enum nd_dtype *real, const struct moments_policy *policy,
                         struct nd_moments *ret)
{
    const struct moments_pivot pivot = nd_moments_pivot(&view[0], &view[1], real[0], real[1]);

    nd_moments_init(ret);
    for (uint64_t at = 0; at < view[0].count; at += MOMENTS_CHUNK) {
        const uint64_t    left = view[0].count - at;
        struct nd_moments chunk;
        nd_moments_measure(kernels, &view[0], &view[1], real[0], real[1], at,
                           left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &pivot, policy, &chunk);
        nd_moments_fold(ret, &chunk);
    }
}

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

static struct moments_policy policy_of(const struct comparison *comparison, double scale)
{
    return (struct moments_policy){.nan_strict = comparison->options->nan_strict, .scale = scale};
}

static void unit_measure(void *user, size_t i, unsigned worker)
{
    struct batch        *batch = user;
    struct unit         *unit = &batch->units[i];
    const struct job    *job = &batch->jobs[unit->job];
    const struct moments_policy policy = policy_of(batch->comparison, 1);

    (void)worker;
    nd_moments_init(&unit->moments);
    for (uint64_t at = 0; at < unit->count; at += MOMENTS_CHUNK) {
        const uint64_t    left = unit->count - at;
        struct nd_moments chunk;
        nd_moments_measure(batch->comparison->kernels, &job->views.view[0], &job->views.view[1],
                           job->views.real[0], job->views.real[1], unit->first + at,
                           left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &job->pivot, &policy,
                           &chunk);
        nd_moments_fold(&unit->moments, &chunk);
    }
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

static bool both_integers(const struct pair_views *views)
{
    for (unsigned side = 0; side < 2; side++) {
        const enum nd_kind kind = nd_dtype_info(views->view[side].dtype)->kind;
        if (kind != ND_KIND_INT && kind != ND_KIND_BOOL)
            return false;
    }
    return true;
}

static void slot_set_moments(const struct comparison *comparison, struct slot_pair *slot,
                             const struct nd_moments *moments)
{
    struct nd_slot *result = &slot->result;
    double          value[2] = {0, 0};

    slot->moments = *moments;
    slot->measured = true;
    result->n = moments->n;
    result->differ = moments->differ;
    result->bit_equal = moments->bit_equal;
    result->nonfinite_mismatches = moments->mismatches;
    result->masked = moments->masked;
    for (unsigned side = 0; side < 2; side++)
        result->nonfinite[side] = (struct nd_nonfinite_side){
            moments->side[side].nan, moments->side[side].pos_inf, moments->side[side].neg_inf};
    const double n = (double)moments->n;
    slot->rms[0] = moments->n == 0 ? 0 : sqrt(moments->sum_rr / n) / moments->scale;
    slot->rms[1] = moments->n == 0 ? 0 : sqrt(moments->sum_cc / n) / moments->scale;
    slot->differs = moments->differ > 0 || moments->masks_differ > 0;
    if (slot->integer)
        result->drift = moments->total == 0 ? 0 : (double)moments->differ / (double)moments->total;
    else if (comparison->metric->value(moments, slot->detail, value))
        result->drift = value[0];
    else
        result->drift = 0;
    if (moments->masks_differ > 0)
        nd_slot_note(slot, "mask_constants_differ");
    if (moments->total == 0)
        nd_slot_note(slot, "empty");
    else if (moments->n == 0 && moments->masked > 0)
        nd_slot_note(slot, "all_masked");
    else if (moments->n == 0)
        nd_slot_note(slot, "no_finite_positions");
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
        const struct moments_policy policy = policy_of(comparison, scale);
        nd_measure_serially(comparison->kernels, job->views.view, job->views.real, &policy, &moments);
    }
    job->slot->integer = both_integers(&job->views);
    slot_set_moments(comparison, job->slot, &moments);
}

/* --- the detail pass ---------------------------------------------------------------- */

struct detail_work {
    const struct pair_views *views;
    struct detail_params     params;
    uint64_t                 first; /* of unit 0 of this round */
    struct nd_detail        *details;
};

static void detail_unit(void *user, size_t i, unsigned worker)
{
    const struct detail_work *work = user;
    const uint64_t            at = work->first + i * (uint64_t)UNIT;
    const uint64_t            left = work->views->view[0].count - at;

    (void)worker;
    nd_detail_init(&work->details[i]);
    nd_detail_measure(&work->views->view[0], &work->views->view[1], &work->params, at,
                      left < UNIT ? left : UNIT, &work->details[i]);
}

static struct detail_params detail_params_of(const struct comparison *comparison,
                                             const struct slot_pair *slot,
                                             const struct pair_views *views)
{
    const struct nd_options *options = comparison->options;
    struct detail_params     params = {.rms_r = slot->rms[0], .nan_strict = options->nan_strict,
                                       .real = {views->real[0], views->real[1]}};

    params.rel_floor = isnan(options->rel_floor) ? slot->rms[0] * 0x1p-20 : options->rel_floor;
    params.worst = options->worst > DETAIL_WORST ? DETAIL_WORST : (unsigned)options->worst;
    params.ulp_dtype = nd_dtype_coarser(views->real[0], views->real[1]);
    if (nd_dtype_roundoff(params.ulp_dtype) == 0 || slot->integer)
        params.ulp_dtype = ND_DTYPE_NONE;
    return params;
}

static enum nd_status slot_detail(const struct comparison *comparison, struct slot_pair *slot,
                                  const struct pair_views *views, struct nd_error *err)
{
    const uint64_t     units = views->view[0].count / UNIT + 1;
    const size_t       room = units < DETAIL_UNITS ? (size_t)units : DETAIL_UNITS;
    struct detail_work work = {.views = views};
    struct nd_detail  *total = nd_arena_alloc(comparison->arena, 1, sizeof *total);

    work.details = calloc(room, sizeof *work.details);
    if (total == NULL || work.details == NULL) {
        free(work.details);
        return nd_fail_memory(err);
    }
    work.params = detail_params_of(comparison, slot, views);
    nd_detail_init(total);
    for (uint64_t done = 0; done < units; done += room) {
        const size_t round = units - done < room ? (size_t)(units - done) : room;
        work.first = done * (uint64_t)UNIT;
        nd_pool_run(comparison->options->jobs, round, detail_unit, NULL, &work);
        for (size_t i = 0; i < round; i++)
            nd_detail_fold(total, &work.details[i]);
    }
    free(work.details);
    slot->detail = total;
    if (comparison->metric->detail && !slot->integer) {
        double value[2] = {0, 0};
        slot->result.drift = comparison->metric->value(&slot->moments, total, value) ? value[0] : 0;
    }
    return ND_OK;
}

static bool wants_detail(const struct comparison *comparison, const struct slot_pair *slot)
{
    double max_abs = slot->moments.max_abs / slot->moments.scale;

    if (comparison->options->metrics_all || comparison->metric->detail)
        return true;
    return slot->moments.differ > 0 && (max_abs >= 0.1 * slot->rms[0] ||
                                        slot->result.drift > comparison->options->tiers[1]);
}

/* --- layouts -------------------------------------------------------------------------- */

/* A plain comparison this far off is worth a search (two unrelated tensors give 1.4). */
static const double HOPELESS = 0.3;

static enum nd_status job_search(struct batch *batch, struct job *job, struct nd_error *err)
{
    struct comparison   *comparison = batch->comparison;
    struct slot_pair    *slot = job->slot;
    struct found_layout  found;
    struct nd_moments    moments;
    const double         plain = job->views.ready ? slot->result.drift : (double)INFINITY;
    double               value[2];
    const struct metric *drift = nd_metric_by_name("rel_l2");

    if (!nd_search_layout(&job->views, plain, &found))
        return ND_OK;
    const struct moments_policy policy = policy_of(comparison, 1);
    nd_measure_serially(comparison->kernels, found.view, job->views.real, &policy, &moments);
    if (!drift->value(&moments, NULL, value) || !(value[0] < 1e-1))
        return ND_OK; /* the samples agreed by luck */
    for (unsigned side = 0; side < 2; side++)
        if (found.label[side][0] != '\0') {
            slot->result.layout[side] = nd_arena_string(comparison->arena, found.label[side]);
            if (slot->result.layout[side] == NULL)
                return nd_fail_memory(err);
        }
    slot->result.layout_how = "found";
    slot->result.c0 = found.c0;
    slot->result.found_drift = value[0];
    if (job->views.ready) {
        nd_slot_note(slot, "equal_under_layout"); /* the plain drift stands: it is what is there */
        return ND_OK;
    }
    memcpy(job->views.view, found.view, sizeof found.view);
    job->views.ready = true;
    nd_slot_note(slot, strcmp(found.label[1], "reshaped") == 0 ? "reshaped" : "layout_found");
    slot_set_moments(comparison, slot, &moments);
    return ND_OK;
}

/* --- batches --------------------------------------------------------------------------- */

static enum nd_status job_finish(struct batch *batch, struct job *job, struct nd_error *err)
{
    struct comparison *comparison = batch->comparison;
    struct slot_pair  *slot = job->slot;

    if (job->views.ready) {
        slot->state = SLOT_COMPARED;
        job_fold(batch, job);
        if (!slot->integer && slot->result.drift >= HOPELESS && slot->moments.n >= 8)
            ND_TRY(job_search(batch, job, err));
    } else {
        slot->state = job->views.search ? SLOT_SHAPE : SLOT_UNREADABLE;
        if (job->views.search) {
            slot->integer = both_integers(&job->views);
            ND_TRY(job_search(batch, job, err));
            slot->state = job->views.ready ? SLOT_COMPARED : SLOT_SHAPE;
        }
        if (!job->views.ready) {
            slot->reason = nd_arena_string(comparison->arena, job->views.reason);
            return slot->reason == NULL ? nd_fail_memory(err) : ND_OK;
        }
    }
    if (job->views.squeezed)
        nd_slot_note(slot, "squeezed");
    if (job->views.padding[0] > 0 || job->views.padding[1] > 0)
        nd_slot_note(slot, "padding_nonzero");
    slot->result.shape = job->views.view[0].shape;
    return wants_detail(comparison, slot) ? slot_detail(comparison, slot, &job->views, err) : ND_OK;
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
    for (size_t j = 0; j < batch->job_count; j++)
        if (!nd_pair_close(&batch->jobs[j].views) && status == ND_OK) {
            status = nd_fail(err, ND_ERR_CHANGED, "a file that stays as it is while it is read",
                             "a dump file shrank during the comparison");
            nd_error_file(err, comparison->dump[0]->path);
        }
    comparison->bytes_done += atomic_load(&batch->done);
    free(batch->units);
    return status;
}

/* Decides without reading values; true: the pair goes into a batch. */
static bool needs_values(struct comparison *comparison, struct layer_pair *layer,
                         struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];

    if (r == NULL || (c == NULL && layer->part_count == 0)) {
        slot->state = SLOT_ONE_SIDED;
        return false;
    }
    if (r->undefined || (c != NULL && c->undefined)) {
        slot->state = SLOT_SKIPPED;
        slot->reason = "undefined by nature";
        return false;
    }
    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->broken != NULL) {
            slot->state = SLOT_UNREADABLE;
            slot->reason = slot->side[side]->broken;
            return false;
        }
    if (layer->part_count > 0 && r->evidence == ND_EVIDENCE_VALUES)
        return true;
    if (c == NULL || r->evidence == ND_EVIDENCE_CHECKSUM || c->evidence == ND_EVIDENCE_CHECKSUM) {
        const bool both = c != NULL && r->evidence == c->evidence;
        slot->state = both ? SLOT_COMPARED : SLOT_SKIPPED;
        slot->reason = both ? NULL : "a checksum beside values";
        slot->result.evidence = ND_EVIDENCE_CHECKSUM;
        slot->differs = both && strcmp(r->checksum, c->checksum) != 0;
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

enum nd_status nd_measure_detail(struct comparison *comparison, struct layer_pair *layer,
                                 struct nd_error *err)
{
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        struct pair_views views;
        if (!slot->measured || slot->detail != NULL || slot->result.layout_how != NULL)
            continue;
        nd_pair_open(comparison, layer, slot, &views);
        const enum nd_status status =
            views.ready ? slot_detail(comparison, slot, &views, err) : ND_OK;
        (void)nd_pair_close(&views);
        ND_TRY(status);
    }
    return ND_OK;
}
