/*
 * Listing one dump: its layers as they stand, each slot with what its values say.
 */
#include "compare/listing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"
#include "compare/select.h"
#include "compare/slot_pair.h"

struct list_job {
    const struct dump_slot *slot;
    struct nd_list_slot    *row;
    char                    broken[600]; /* why it cannot be read; "" if it can */
};

struct list_work {
    const struct dump       *dump;
    const struct kernel_set *kernels;
    struct list_job         *jobs;
};

static void row_from_moments(const struct nd_moments *m, struct nd_list_slot *row)
{
    row->n = m->total;
    row->nonfinite = (struct nd_nonfinite_side){m->side[0].nan, m->side[0].pos_inf,
                                                m->side[0].neg_inf};
    row->has_stats = m->n > 0;
    if (m->n == 0)
        return;
    row->max = m->max[0];
    row->min = m->min[0];
    row->mean = m->sum_r / (double)m->n / m->scale;
    row->norm = sqrt(m->sum_rr) / m->scale;
}

static void list_slot(void *user, size_t i, unsigned worker)
{
    const struct list_work *work = user;
    struct list_job        *job = &work->jobs[i];
    const enum nd_dtype     real[2] = {nd_slot_dtype(job->slot), nd_slot_dtype(job->slot)};
    struct moments_policy   policy = {.scale = 1, .no_masks = true};
    struct open_slot        open;
    struct nd_error         err = {0};
    struct nd_moments       moments;

    (void)worker;
    if (nd_slot_open(work->dump, job->slot, &open, &err) != ND_OK) {
        snprintf(job->broken, sizeof job->broken, "%s", err.found);
        return;
    }
    const struct tensor_view views[2] = {open.view, open.view};
    nd_measure_serially(work->kernels, views, real, &policy, &moments);
    policy.scale = nd_moments_rescale(&moments);
    if (policy.scale != 1.0)
        nd_measure_serially(work->kernels, views, real, &policy, &moments);
    row_from_moments(&moments, job->row);
    job->row->shape = open.view.shape;
    (void)nd_slot_close(&open);
}

static void attribute_text(struct text *text, const struct attribute *attribute)
{
    char number[32];

    nd_text_printf(text, "%s%s=", text->len == 0 ? "" : " ", attribute->key);
    if (attribute->kind == ATTRIBUTE_BOOL)
        nd_text_puts(text, attribute->number != 0 ? "true" : "false");
    else if (attribute->kind == ATTRIBUTE_NUMBER)
        nd_text_puts(text, nd_number_text(attribute->number, number));
    else if (attribute->kind == ATTRIBUTE_NULL || attribute->text == NULL)
        nd_text_puts(text, "null");
    else
        nd_text_puts(text, attribute->text);
}

static const char *attributes_text(struct arena *arena, const struct dump_layer *layer)
{
    struct text text = {0};

    for (size_t i = 0; i < layer->attribute_count; i++)
        attribute_text(&text, &layer->attributes[i]);
    const char *copy = text.broken ? NULL : nd_arena_copy(arena, text.bytes, text.len);
    nd_text_done(&text);
    return copy;
}

static void row_from_print(const struct dump_slot *slot, struct nd_list_slot *row)
{
    row->max = slot->statistics.value[STATISTIC_MAX];
    row->min = slot->statistics.value[STATISTIC_MIN];
    row->mean = slot->statistics.value[STATISTIC_MEAN];
    row->norm = slot->statistics.value[STATISTIC_NORM];
    row->is_nan[0] = slot->statistics.is_nan[STATISTIC_MAX];
    row->is_nan[1] = slot->statistics.is_nan[STATISTIC_MIN];
    row->is_nan[2] = slot->statistics.is_nan[STATISTIC_MEAN];
    row->is_nan[3] = slot->statistics.is_nan[STATISTIC_NORM];
    row->nonfinite.nan = slot->statistics.nan_count;
    row->has_stats = slot->has_statistics;
}

static void list_row(const struct dump_slot *slot, struct nd_list_slot *row)
{
    const enum nd_dtype dtype = nd_slot_dtype(slot);

    *row = (struct nd_list_slot){
        .name = slot->name, .evidence = slot->evidence,
        .dtype = dtype == ND_DTYPE_NONE ? slot->dtype_text : nd_dtype_info(dtype)->name,
        .shape = slot->logical != NULL ? *slot->logical : slot->storage, .storage = slot->storage,
        .layout = slot->layout != NULL ? slot->layout->name : slot->layout_text,
        .broken = slot->broken, .max = (double)NAN, .min = (double)NAN, .mean = (double)NAN,
        .norm = (double)NAN,
    };
    if (slot->has_statistics)
        row_from_print(slot, row);
}

static enum nd_status list_layers(const struct side_layers *chosen,
                                  const struct nd_options *options, struct arena *arena,
                                  struct list_job *jobs, size_t *ret_job_count,
                                  struct nd_listing *listing, struct nd_error *err)
{
    struct nd_list_layer *rows = nd_arena_alloc(arena, chosen->count + 1, sizeof *rows);
    size_t                job_count = 0;

    if (rows == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < chosen->count; i++) {
        const struct dump_layer *layer = chosen->layers[i];
        struct nd_list_slot *slots = nd_arena_alloc(arena, layer->slot_count + 1, sizeof *slots);
        size_t               count = 0;
        rows[i] = (struct nd_list_layer){
            .name = layer->name, .type = layer->type, .call = layer->call, .step = layer->step,
            .rank = layer->rank, .container = layer->container, .slots = slots,
            .direction = layer->direction == DIRECTION_BACKWARD ? "backward" : "forward",
            .attributes = attributes_text(arena, layer),
        };
        if (slots == NULL || rows[i].attributes == NULL)
            return nd_fail_memory(err);
        for (size_t s = 0; s < layer->slot_count; s++) {
            if (!nd_select_slot(options, layer->slots[s].name))
                continue;
            list_row(&layer->slots[s], &slots[count]);
            if (layer->slots[s].evidence == ND_EVIDENCE_VALUES && layer->slots[s].broken == NULL)
                jobs[job_count++] = (struct list_job){.slot = &layer->slots[s], .row = &slots[count]};
            count++;
        }
        rows[i].slot_count = count;
    }
    listing->layers = rows;
    listing->layer_count = chosen->count;
    *ret_job_count = job_count;
    return ND_OK;
}

enum nd_status nd_list_dump(const struct dump *dump, const struct nd_options *options,
                            const struct kernel_set *kernels, struct arena *arena,
                            struct nd_listing *listing, struct nd_error *err)
{
    struct comparison  comparison = {.arena = arena, .scratch = arena, .options = options,
                                     .dump = {dump, dump}};
    struct side_layers chosen;
    struct list_work   work = {.dump = dump, .kernels = kernels};
    size_t             slots = 0, job_count = 0;

    ND_TRY(nd_select_layers(&comparison, 0, &chosen, err));
    for (size_t i = 0; i < chosen.count; i++)
        slots += chosen.layers[i]->slot_count;
    work.jobs = calloc(slots + 1, sizeof *work.jobs);
    if (work.jobs == NULL)
        return nd_fail_memory(err);
    enum nd_status status =
        list_layers(&chosen, options, arena, work.jobs, &job_count, listing, err);
    if (status == ND_OK)
        nd_pool_run(options->jobs, job_count, list_slot, NULL, &work);
    for (size_t i = 0; status == ND_OK && i < job_count; i++)
        if (work.jobs[i].broken[0] != '\0') {
            work.jobs[i].row->broken = nd_arena_string(arena, work.jobs[i].broken);
            if (work.jobs[i].row->broken == NULL)
                status = nd_fail_memory(err);
        }
    free(work.jobs);
    listing->ignored = dump->ignored;
    listing->ignored_count = dump->ignored_count;
    return status;
}
