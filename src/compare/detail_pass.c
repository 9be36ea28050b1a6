/*
 * The detail pass over one pair: the tensors are read again, now that rms is known.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/slot_pair.h"
#include "metrics/metric.h"

enum {
    DETAIL_UNIT = 4 * MOMENTS_CHUNK, /* so small that the last is soon done */
    DETAIL_UNITS = 64                /* sums (70 KB each) held at once */
};

struct detail_work {
    const struct comparison *comparison;
    const struct pair_views *views;
    struct detail_params     params;
    uint64_t                 first; /* of unit 0 of this round */
    struct nd_detail_sums   *sums;
};

static void detail_unit(void *user, size_t i, unsigned worker)
{
    const struct detail_work *work = user;
    const uint64_t            at = work->first + i * (uint64_t)DETAIL_UNIT;
    const uint64_t            left = work->views->view[0].count - at;

    (void)worker;
    nd_detail_init(&work->sums[i]);
    nd_detail_measure(work->comparison->kernels, &work->views->view[0],
                      &work->views->view[1], &work->params, at,
                      left < DETAIL_UNIT ? left : DETAIL_UNIT, &work->sums[i]);
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

static uint64_t pair_bytes(const struct pair_views *views, uint64_t count)
{
    return count * (nd_dtype_info(views->view[0].dtype)->size +
                    nd_dtype_info(views->view[1].dtype)->size);
}

static void detail_tick(void *user, size_t started)
{
    const struct detail_work *work = user;
    const struct nd_options  *options = work->comparison->options;
    const uint64_t            read = work->first + started * (uint64_t)DETAIL_UNIT;

    if (options->progress != NULL)
        options->progress(options->progress_user, "detail",
                          work->comparison->detail_done + pair_bytes(work->views, read),
                          work->comparison->bytes_total);
}

/* Without the places for worst elements that it has not: there may be many such pairs. */
static struct nd_detail *detail_keep(struct arena *arena, const struct nd_detail *detail)
{
    const size_t size = offsetof(struct nd_detail, worst) +
                        detail->worst_count * sizeof detail->worst[0];
    void *const  kept = nd_arena_alloc(arena, 1, size);

    if (kept != NULL)
        memcpy(kept, detail, size);
    return kept;
}

static void slices_unit(void *user, size_t i, unsigned worker)
{
    (void)worker;
    nd_slices_part(user, i);
}

static enum nd_status measure_slices(const struct comparison *comparison,
                                     struct slot_pair *slot, const struct pair_views *views,
                                     struct nd_error *err)
{
    struct slices slices;

    if (!nd_slices_init(&slices, comparison->kernels, views->view, views->real, slot->rms[0]))
        return nd_fail_memory(err);
    nd_pool_run(comparison->options->jobs, slices.part_count, slices_unit, NULL, &slices);
    nd_slices_end(&slices, &slot->channel, &slot->row);
    nd_slices_done(&slices);
    return ND_OK;
}

enum nd_status nd_slot_detail(struct comparison *comparison, struct slot_pair *slot,
                              const struct pair_views *views, struct nd_error *err)
{
    const uint64_t     units = views->view[0].count / DETAIL_UNIT + 1;
    /* One unit is the total. */
    const size_t       room = units == 1             ? 0
                              : units < DETAIL_UNITS ? (size_t)units
                                                     : DETAIL_UNITS;
    struct detail_work work = {.comparison = comparison, .views = views};

    work.sums = malloc((room + 1) * sizeof *work.sums); /* the last holds the total */
    if (work.sums == NULL)
        return nd_fail_memory(err);
    struct nd_detail_sums *const total = &work.sums[room];
    work.params = detail_params_of(comparison, slot, views);
    if (room > 0)
        nd_detail_init(total);
    else
        detail_unit(&work, 0, 0);
    for (uint64_t done = 0; room > 0 && done < units; done += room) {
        const size_t round = units - done < room ? (size_t)(units - done) : room;
        work.first = done * (uint64_t)DETAIL_UNIT;
        nd_pool_run(comparison->options->jobs, round, detail_unit, detail_tick, &work);
        for (size_t i = 0; i < round; i++)
            nd_detail_fold(total, &work.sums[i]);
    }
    comparison->detail_done += pair_bytes(views, views->view[0].count);
    nd_detail_settle(total);
    slot->detail = detail_keep(comparison->arena, &total->detail);
    free(work.sums);
    if (slot->detail == NULL)
        return nd_fail_memory(err);
    ND_TRY(measure_slices(comparison, slot, views, err));
    slot->result->drift = nd_slot_drift(comparison, slot);
    return ND_OK;
}

bool nd_slot_wants_detail(const struct comparison *comparison, const struct slot_pair *slot)
{
    double max_abs = slot->moments->max_abs / slot->moments->scale;

    if (comparison->options->metrics_all || comparison->metric->detail)
        return true;
    return slot->moments->differ > 0 && (max_abs >= 0.1 * slot->rms[0] ||
                                        slot->result->drift > comparison->options->tiers[1]);
}

enum nd_status nd_measure_detail(struct comparison *comparison, struct layer_pair *layer,
                                 struct nd_error *err)
{
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        struct pair_views views;
        if (!slot->measured || slot->detail != NULL || slot->result->layout_how != NULL)
            continue;
        nd_pair_open(comparison, layer, slot, &views);
        const enum nd_status status =
            views.ready ? nd_slot_detail(comparison, slot, &views, err) : ND_OK;
        (void)nd_pair_close(&views);
        ND_TRY(status);
    }
    return ND_OK;
}
