/*
 * Freezing: the measured slots of a layer as constant data of the result.
 */
#include <math.h>
#include <string.h>

#include "compare/compare.h"
#include "metrics/metric.h"

static const char *dtype_name(const struct dump_slot *slot)
{
    if (slot == NULL)
        return NULL;
    const enum nd_dtype dtype = nd_slot_dtype(slot);
    return dtype == ND_DTYPE_NONE ? slot->dtype_text : nd_dtype_info(dtype)->name;
}

static const char *layout_name(const struct dump_slot *slot)
{
    if (slot == NULL)
        return NULL;
    return slot->layout != NULL ? slot->layout->name : slot->layout_text;
}

static const struct nd_shape *slot_shape(const struct dump_slot *slot)
{
    return slot->logical != NULL ? slot->logical : &slot->storage;
}

/* How many metrics the slot's evidence can have. */
static size_t metrics_within_reach(const struct slot_pair *slot)
{
    size_t count = 0;

    for (size_t i = 0; i < nd_metric_count(); i++)
        count += !nd_metric_at(i)->detail || slot->detail != NULL;
    return count;
}

static enum nd_status freeze_metrics(struct arena *arena, const struct slot_pair *slot,
                                     struct nd_slot *result, struct nd_error *err)
{
    struct nd_metric_value *values =
        nd_arena_alloc(arena, metrics_within_reach(slot), sizeof *values);
    size_t count = 0;

    if (values == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < nd_metric_count(); i++) {
        const struct metric    *metric = nd_metric_at(i);
        struct nd_metric_value *value = &values[count];
        if ((metric->detail && slot->detail == NULL) ||
            !metric->value(slot->moments, metric->detail ? slot->detail : NULL, value->value))
            continue;
        value->key = metric->key;
        value->kind = metric->index ? ND_METRIC_INDEX : metric->pair ? ND_METRIC_PAIR
                                                                     : ND_METRIC_NUMBER;
        if (metric->index) {
            uint64_t *index = nd_arena_alloc(arena, result->shape.rank, sizeof *index);
            if (index == NULL)
                return nd_fail_memory(err);
            nd_shape_unravel(&result->shape, (uint64_t)value->value[0], index);
            value->index = index;
            value->index_len = result->shape.rank;
        }
        count++;
    }
    result->metrics = values;
    result->metric_count = count;
    return ND_OK;
}

/* A print is shown under the same keys as values are. */
static enum nd_status freeze_print(struct arena *arena, const struct slot_pair *slot,
                                   struct nd_slot *result, struct nd_error *err)
{
    static const char *const keys[] = {[STATISTIC_MIN] = "min", [STATISTIC_MAX] = "max",
                                       [STATISTIC_MEAN] = "mean", [STATISTIC_NORM] = "norm"};
    static const enum statistic order[] = {STATISTIC_MIN, STATISTIC_MAX, STATISTIC_MEAN,
                                           STATISTIC_NORM};
    struct nd_metric_value     *values = nd_arena_alloc(arena, STATISTIC_COUNT, sizeof *values);
    size_t                      count = 0;

    if (values == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < STATISTIC_COUNT; i++) {
        const enum statistic s = order[i];
        const bool absent[2] = {isnan(slot->print[0]->value[s]) && !slot->print[0]->is_nan[s],
                                isnan(slot->print[1]->value[s]) && !slot->print[1]->is_nan[s]};
        if (absent[0] || absent[1])
            continue;
        values[count].key = keys[s];
        values[count].kind = ND_METRIC_PAIR;
        values[count].value[0] = slot->print[0]->value[s];
        values[count++].value[1] = slot->print[1]->value[s];
    }
    result->metrics = values;
    result->metric_count = count;
    return ND_OK;
}

static enum nd_status freeze_slices(struct arena *arena, const struct slot_pair *slot,
                                    struct nd_slot *result, struct nd_error *err)
{
    if (!slot->channel.known && !slot->row.known)
        return ND_OK;
    struct nd_slice *slices = nd_arena_alloc(arena, 2, sizeof *slices);
    if (slices == NULL)
        return nd_fail_memory(err);
    slices[0] = (struct nd_slice){.axis = slot->channel.axis, .index_len = 1,
                                  .index = {slot->channel.at}, .drift = slot->channel.drift};
    result->worst_channel = slot->channel.known ? &slices[0] : NULL;
    result->worst_row = slot->row.known ? &slices[1] : NULL;
    if (!slot->row.known)
        return ND_OK;
    slices[1].drift = slot->row.drift;
    slices[1].index_len = result->shape.rank - 1;
    nd_shape_unravel(&result->shape, slot->row.at, slices[1].index);
    return ND_OK;
}

static enum nd_status freeze_worst(struct arena *arena, const struct slot_pair *slot,
                                   struct nd_slot *result, struct nd_error *err)
{
    const struct nd_detail *detail = slot->detail;

    if (detail == NULL || detail->worst_count == 0)
        return ND_OK;
    struct nd_worst *worst = nd_arena_alloc(arena, detail->worst_count, sizeof *worst);
    if (worst == NULL)
        return nd_fail_memory(err);
    for (unsigned k = 0; k < detail->worst_count; k++) {
        uint64_t *index = nd_arena_alloc(arena, result->shape.rank, sizeof *index);
        if (index == NULL)
            return nd_fail_memory(err);
        nd_shape_unravel(&result->shape, detail->worst[k].at, index);
        worst[k].index = index;
        worst[k].index_len = result->shape.rank;
        worst[k].reference = detail->worst[k].r;
        worst[k].candidate = detail->worst[k].c;
    }
    result->worst = worst;
    result->worst_count = detail->worst_count;
    return ND_OK;
}

static enum nd_status freeze_notes(struct arena *arena, struct slot_pair *slot,
                                   struct nd_slot *result, struct nd_error *err)
{
    size_t count = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->note != NULL)
            nd_slot_note(slot, slot->side[side]->note);
    if (slot->side[0] != NULL && slot->side[1] != NULL && slot->state == SLOT_COMPARED) {
        const char *r = dtype_name(slot->side[0]), *c = dtype_name(slot->side[1]);
        if (r != NULL && c != NULL && strcmp(r, c) != 0)
            nd_slot_note(slot, "dtype_differs");
    }
    while (count < MAX_NOTES && slot->notes[count] != NULL)
        count++;
    const char **notes = nd_arena_alloc(arena, count + 1, sizeof *notes);
    if (notes == NULL)
        return nd_fail_memory(err);
    memcpy(notes, slot->notes, count * sizeof *notes);
    result->notes = notes;
    result->note_count = count;
    return ND_OK;
}

/* One-sided and skipped slots stand in the coverage lists. */
static bool is_reported(const struct slot_pair *slot)
{
    return slot->state == SLOT_COMPARED || slot->state == SLOT_SHAPE ||
           slot->state == SLOT_UNREADABLE;
}

static enum nd_status freeze_slot(struct comparison *comparison, struct slot_pair *slot,
                                  struct nd_error *err)
{
    static const struct nd_shape none;
    struct nd_slot              *result = slot->result;

    result->shape_of[0] = result->shape_of[1] = &none;
    result->name = slot->side[0] != NULL ? slot->side[0]->name : slot->side[1]->name;
    const bool found = result->layout_how != NULL && strcmp(result->layout_how, "found") == 0;
    for (unsigned side = 0; side < 2; side++) {
        /* A layout that was found is told apart from what the dump said. */
        const struct dump_slot *dumped = slot->adjusted[side] != NULL && !found
                                             ? slot->adjusted[side]
                                             : slot->side[side];
        if (dumped == NULL)
            continue;
        result->dtype[side] = dtype_name(dumped);
        result->shape_of[side] = slot_shape(dumped);
        if (layout_name(dumped) != NULL && result->layout_how == NULL) {
            result->layout[side] = layout_name(dumped);
            if (dumped->layout != NULL && nd_layout_padded(dumped->layout) && dumped->storage.rank > 0)
                result->c0 = (uint32_t)dumped->storage.dim[dumped->storage.rank - 1];
        }
    }
    if (result->layout_how == NULL && (result->layout[0] != NULL || result->layout[1] != NULL))
        result->layout_how = "declared";
    if (!slot->measured && slot->side[0] != NULL)
        result->shape = *result->shape_of[0];
    if (comparison->dump[0]->partial || comparison->dump[1]->partial)
        nd_slot_note(slot, "partial_dump");
    ND_TRY(freeze_notes(comparison->arena, slot, result, err));
    if (slot->measured) {
        ND_TRY(freeze_metrics(comparison->arena, slot, result, err));
        ND_TRY(freeze_worst(comparison->arena, slot, result, err));
        ND_TRY(freeze_slices(comparison->arena, slot, result, err));
    } else if (slot->state == SLOT_COMPARED && result->evidence == ND_EVIDENCE_STATISTICS &&
               slot->print[0] != NULL && slot->print[1] != NULL) {
        ND_TRY(freeze_print(comparison->arena, slot, result, err));
    }
    return ND_OK;
}

/* The results that reports see, side by side: a layer's lie so from the start. */
static struct nd_slot *gather_results(struct arena *arena, struct layer_pair *pair,
                                      size_t count)
{
    struct nd_slot *slots;
    size_t          at = 0;

    if (count == pair->slot_count)
        return count == 0 ? nd_arena_alloc(arena, 0, 0) : pair->slots[0].result;
    slots = nd_arena_alloc(arena, count, sizeof *slots);
    for (size_t s = 0; slots != NULL && s < pair->slot_count; s++) {
        if (!is_reported(&pair->slots[s]))
            continue;
        slots[at] = *pair->slots[s].result;
        pair->slots[s].result = &slots[at++];
    }
    return slots;
}

enum nd_status nd_freeze_layer(struct comparison *comparison, struct layer_pair *pair,
                               struct nd_layer *layer, struct nd_error *err)
{
    size_t count = 0, worst = ND_NO_INDEX;

    for (size_t s = 0; s < pair->slot_count; s++) {
        if (!is_reported(&pair->slots[s]))
            continue;
        if (s == pair->worst_slot)
            worst = count;
        count++;
        ND_TRY(freeze_slot(comparison, &pair->slots[s], err));
    }
    layer->slots = gather_results(comparison->arena, pair, count);
    if (layer->slots == NULL)
        return nd_fail_memory(err);
    layer->slot_count = count;
    layer->worst_slot = worst;
    return ND_OK;
}
