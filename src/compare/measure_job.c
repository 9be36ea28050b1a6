/*
 * One pair: opened, measured, looked at again where the figures ask for it, closed.
 */
#include "compare/measure_job.h"

#include "compare/stage.h"

uint64_t nd_slot_pair_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL)
            bytes += slot->side[side]->extent.raw_size;
    return bytes;
}

const unsigned char *nd_job_bytes(const struct job *job, uint64_t first, uint64_t count,
                                  unsigned side, uint64_t *ret_size)
{
    const struct tensor_view *view = &job->views.view[side];
    const struct dump_slot *slot = job->slot->side[side];
    const unsigned size = nd_dtype_info(view->dtype)->size;

    if (!job->views.is_open[side] || slot->extent.codec != CODEC_STORED ||
        !view->contiguous)
        return NULL;
    *ret_size = count * size;
    return view->data + (view->base + first) * size;
}

/* What was read leaves the process, so that its size stays small whatever the dump's. */
static void job_was_read(const struct job *job, uint64_t first, uint64_t count)
{
    uint64_t size;

    for (unsigned side = 0; side < 2; side++) {
        const unsigned char *bytes = nd_job_bytes(job, first, count, side, &size);
        if (bytes != NULL)
            nd_map_was_read(bytes, size);
    }
}

void nd_job_measure(const struct comparison *comparison, const struct job *job,
                    uint64_t first, uint64_t count, atomic_uint_least64_t *done,
                    struct nd_moments *ret_moments)
{
    const struct moments_policy policy = nd_policy_moments(comparison, 1);
    struct stage stage;

    for (uint64_t at = 0; at < count || at == 0; at += MEASURE_UNIT)
        nd_moments_init(&ret_moments[at / MEASURE_UNIT]);
    nd_stage_init(job->views.view, &stage);
    nd_stage_measure_parts(&stage, comparison->kernels, job->views.view, job->views.real,
                           first, count, MEASURE_UNIT, &job->pivot, &policy, ret_moments);
    nd_stage_done(&stage);
    job_was_read(job, first, count);
    if (done != NULL)
        atomic_fetch_add(done, count * (nd_dtype_info(job->views.view[0].dtype)->size +
                                        nd_dtype_info(job->views.view[1].dtype)->size));
}

void nd_job_open(const struct comparison *comparison, struct job *job)
{
    nd_pair_open(comparison, job->layer, job->slot, &job->views);
    if (job->views.ready)
        job->pivot =
            nd_moments_pivot(comparison->kernels, &job->views.view[0], &job->views.view[1],
                             job->views.real[0], job->views.real[1]);
}

/* A float64 pair whose sums leave the safe range is measured again, scaled by a power of
 * two. */
static void job_set(const struct comparison *comparison, struct job *job)
{
    struct nd_moments moments = job->moments;
    const double scale = nd_moments_rescale(&moments);

    if (scale != 1.0) {
        const struct moments_policy policy = nd_policy_moments(comparison, scale);
        nd_measure_serially(comparison->kernels, job->views.view, job->views.real, &policy,
                            &moments);
    }
    job->slot->integer = nd_pair_is_integer(&job->views);
    nd_slot_set_moments(comparison, job->slot, &moments);
}

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

/* SHAPE stays that, unless a declared layout was to blame. */
static enum nd_status job_unreadable(const struct comparison *comparison, struct job *job,
                                     struct nd_error *err)
{
    if (!job->views.search || job->views.contradicts)
        job->slot->state = SLOT_UNREADABLE;
    job->slot->reason = nd_arena_string(comparison->arena, job->views.reason);
    return job->slot->reason == NULL ? nd_fail_memory(err) : ND_OK;
}

enum nd_status nd_job_finish(struct comparison *comparison, struct job *job,
                             struct nd_error *err)
{
    struct slot_pair *slot = job->slot;

    if (job->views.ready) {
        slot->state = SLOT_COMPARED;
        if (!job->streams)
            job_set(comparison, job);
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

static enum nd_status shrunk_fail(const char *path, struct nd_error *err)
{
    nd_fail(err, ND_ERR_CHANGED, "a file that stays as it is while it is read",
            "less than at the start: the file shrank during the comparison");
    nd_error_file(err, path);
    return ND_ERR_CHANGED;
}

enum nd_status nd_job_close(struct job *job, struct nd_error *err)
{
    const char *const shrunk = nd_pair_close(&job->views);

    return shrunk == NULL ? ND_OK : shrunk_fail(shrunk, err);
}

/* --- small ones ---------------------------------------------------------------------- */

enum { SMALL = 1 << 16 }; /* elements */

bool nd_job_is_small(const struct job *job)
{
    return (job->views.ready || job->views.unreadable || job->views.search) &&
           job->views.view[0].count <= SMALL && job->views.view[1].count <= SMALL;
}

void nd_job_do(struct comparison *comparison, struct job *job, atomic_uint_least64_t *done)
{
    struct nd_moments moments;

    if (job->views.ready) {
        nd_job_measure(comparison, job, 0, job->views.view[0].count, done, &moments);
        nd_moments_init(&job->moments);
        nd_moments_fold(&job->moments, &moments);
    }
    job->status = nd_job_finish(comparison, job, NULL);
    job->shrunk = nd_pair_close(&job->views);
    job->is_done = true;
}

enum nd_status nd_job_status(const struct job *job, struct nd_error *err)
{
    if (job->status != ND_OK) /* nothing else can go wrong */
        return nd_fail_memory(err);
    return job->shrunk == NULL ? ND_OK : shrunk_fail(job->shrunk, err);
}
