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
    return slot->has_logical ? &slot->logical : &slot->storage;
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
            !metric->value(&slot->moments, metric->detail ? slot->detail : NULL, value->value))
            continue;
        value->key = metric->key;
        value->kind = metric->index ? ND_METRIC_INDEX : metric->pair ? ND_METRIC_PAIR
                                                                     : ND_METRIC_NUMBER;
        if (metric->index) {
            value->index_len = result->shape.rank;
            nd_shape_unravel(&result->shape, (uint64_t)value->value[0], value->index);
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
        const bool absent[2] = {isnan(slot->print[0].value[s]) && !slot->print[0].is_nan[s],
                                isnan(slot->print[1].value[s]) && !slot->print[1].is_nan[s]};
        if (absent[0] || absent[1])
            continue;
        values[count].key = keys[s];
        values[count].kind = ND_METRIC_PAIR;
        values[count].value[0] = slot->print[0].value[s];
        values[count++].value[1] = slot->print[1].value[s];
    }
    result->metrics = values;
    result->metric_count = count;
    return ND_OK;
}

static void freeze_slices(const struct slot_pair *slot, struct nd_slot *result)
{
    result->worst_channel = (struct nd_slice){.known = slot->channel.known,
                                              .axis = slot->channel.axis, .index_len = 1,
                                              .index = {slot->channel.at},
                                              .drift = slot->channel.drift};
    result->worst_row = (struct nd_slice){.known = slot->row.known, .drift = slot->row.drift};
    if (!slot->row.known)
        return;
    nd_shape_unravel(&result->shape, slot->row.at, result->worst_row.index);
    result->worst_row.index_len = result->shape.rank - 1;
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
        worst[k].index_len = result->shape.rank;
        nd_shape_unravel(&result->shape, detail->worst[k].at, worst[k].index);
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

static enum nd_status freeze_slot(struct comparison *comparison, struct slot_pair *slot,
                                  struct nd_slot *ret, struct nd_error *err)
{
    struct nd_slot *result = &slot->result;

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
        result->shape_of[side] = *slot_shape(dumped);
        if (layout_name(dumped) != NULL && result->layout_how == NULL) {
            result->layout[side] = layout_name(dumped);
            if (dumped->layout != NULL && nd_layout_padded(dumped->layout) && dumped->storage.rank > 0)
                result->c0 = (uint32_t)dumped->storage.dim[dumped->storage.rank - 1];
        }
    }
    if (result->layout_how == NULL && (result->layout[0] != NULL || result->layout[1] != NULL))
        result->layout_how = "declared";
    if (!slot->measured && slot->side[0] != NULL)
        result->shape = result->shape_of[0];
    if (comparison->dump[0]->partial || comparison->dump[1]->partial)
        nd_slot_note(slot, "partial_dump");
    ND_TRY(freeze_notes(comparison->arena, slot, result, err));
    if (slot->measured) {
        ND_TRY(freeze_metrics(comparison->arena, slot, result, err));
        ND_TRY(freeze_worst(comparison->arena, slot, result, err));
        freeze_slices(slot, result);
    } else if (slot->state == SLOT_COMPARED && result->evidence == ND_EVIDENCE_STATISTICS) {
        ND_TRY(freeze_print(comparison->arena, slot, result, err));
    }
    *ret = *result;
    return ND_OK;
}

enum nd_status nd_freeze_layer(struct comparison *comparison, struct layer_pair *pair,
                               struct nd_layer *layer, struct nd_error *err)
{
    struct nd_slot *slots = nd_arena_alloc(comparison->arena, pair->slot_count, sizeof *slots);
    size_t          count = 0, worst = ND_NO_INDEX;

    if (slots == NULL)
        return nd_fail_memory(err);
    for (size_t s = 0; s < pair->slot_count; s++) {
        const enum slot_state state = pair->slots[s].state;
        if (state != SLOT_COMPARED && state != SLOT_SHAPE && state != SLOT_UNREADABLE)
            continue; /* one-sided and skipped slots stand in the coverage lists */
        if (s == pair->worst_slot)
            worst = count;
        ND_TRY(freeze_slot(comparison, &pair->slots[s], &slots[count++], err));
    }
    layer->slots = slots;
    layer->slot_count = count;
    layer->worst_slot = worst;
    return ND_OK;
}
