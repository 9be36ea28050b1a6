/*
 * Evidence for the checks: every slot's bytes at hand, as views.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

enum { MAX_OWN_MAPPINGS = 24000 }; /* the kernel allows 65,530 a process by default */

struct opening {
    struct comparison *comparison;
    struct evidence   *evidence;
    uint64_t           spool_left; /* bytes that deflated members may take */
    size_t             own_mappings;
};

static void open_slot_view(struct opening *opening, unsigned side, const struct dump_slot *slot,
                           struct slot_view *ret)
{
    const struct dump *dump = opening->comparison->dump[side];
    struct open_slot  *open = &opening->evidence->open[opening->evidence->open_count];
    struct nd_error    err;

    *ret = (struct slot_view){.name = slot->name, .real_dtype = nd_slot_dtype(slot),
                              .layout = slot->layout != NULL ? slot->layout->name : slot->layout_text,
                              .c0 = slot->c0,
                              .statistics = slot->has_statistics ? &slot->statistics : NULL};
    if (slot->evidence != ND_EVIDENCE_VALUES || slot->broken != NULL || slot->undefined)
        return;
    /* The checks reason about real numbers: complex values are measured, not explained. */
    if (slot->dtype == ND_DTYPE_NONE || nd_dtype_info(slot->dtype)->kind == ND_KIND_COMPLEX)
        return;
    if (slot->extent.codec == CODEC_DEFLATE) {
        if (slot->extent.raw_size > opening->spool_left)
            return;
        opening->spool_left -= slot->extent.raw_size;
    }
    if (opening->own_mappings >= MAX_OWN_MAPPINGS ||
        nd_slot_open(dump, slot, open, &err) != ND_OK)
        return; /* it was reported when it was compared */
    opening->own_mappings += open->has_own_map;
    opening->evidence->open_count++;
    ret->has_tensor = true;
    ret->tensor = open->view;
}

/* The layer's slots, some of them with another layout than the dump says. */
static const struct dump_slot **adjusted_slots(struct arena *arena, unsigned side,
                                               const struct layer_pair *pair)
{
    const struct dump_layer *layer = pair->side[side];
    const struct dump_slot **list = nd_arena_alloc(arena, layer->slot_count + 1, sizeof *list);

    for (size_t s = 0; list != NULL && s < layer->slot_count; s++)
        list[s] = &layer->slots[s];
    for (size_t s = 0; list != NULL && s < pair->slot_count; s++)
        if (pair->slots[s].adjusted[side] != NULL && pair->slots[s].side[side] != NULL)
            list[pair->slots[s].side[side] - layer->slots] = pair->slots[s].adjusted[side];
    return list;
}

/* Slots paired across names: the candidate's get the names of their partners, and those
 * without one a name that meets none. */
static bool rename_slots(struct arena *arena, const struct layer_pair *pair,
                         const struct dump_layer *layer, struct slot_view *slots)
{
    for (size_t s = 0; s < pair->slot_count; s++) {
        const struct slot_pair *slot = &pair->slots[s];
        if (slot->side[1] == NULL)
            continue;
        const char *name = slot->side[0] != NULL
                               ? slot->side[0]->name
                               : nd_arena_format(arena, "unpaired.%s", slot->side[1]->name);
        if (name == NULL)
            return false;
        slots[slot->side[1] - layer->slots].name = name;
    }
    return true;
}

static struct layer_view *layer_view_of(struct opening *opening, unsigned side,
                                        const struct layer_pair *pair)
{
    const struct dump_layer *layer = pair->side[side];
    struct arena      *arena = opening->comparison->arena;
    struct layer_view *view = nd_arena_alloc(arena, 1, sizeof *view);
    struct slot_view  *slots = nd_arena_alloc(arena, layer->slot_count, sizeof *slots);

    const struct dump_slot **seen = adjusted_slots(arena, side, pair);

    if (view == NULL || slots == NULL || seen == NULL)
        return NULL;
    *view = (struct layer_view){.name = layer->name, .type = layer->type,
                                .direction = layer->direction == DIRECTION_BACKWARD ? "backward"
                                                                                    : "forward",
                                .call = layer->call, .attributes = layer->attributes,
                                .attribute_count = layer->attribute_count, .slots = slots,
                                .slot_count = layer->slot_count, .container = layer->container};
    for (size_t s = 0; s < layer->slot_count; s++)
        open_slot_view(opening, side, seen[s], &slots[s]);
    if (side == 1 && pair->reordered && !rename_slots(arena, pair, layer, slots))
        return NULL;
    return view;
}

enum nd_status nd_evidence_open(struct comparison *comparison, struct evidence *ret,
                                struct nd_error *err)
{
    struct evidence evidence = {0};
    struct opening  opening = {.comparison = comparison, .evidence = &evidence,
                               .spool_left = comparison->options->max_mem};
    size_t          slots = 0;

    for (size_t i = 0; i < comparison->layer_count; i++)
        for (unsigned side = 0; side < 2; side++)
            if (comparison->layers[i].side[side] != NULL)
                slots += comparison->layers[i].side[side]->slot_count;
    evidence.layers = nd_arena_alloc(comparison->arena, comparison->layer_count + 1,
                                     sizeof *evidence.layers);
    evidence.open = calloc(slots + 1, sizeof *evidence.open);
    if (evidence.layers == NULL || evidence.open == NULL) {
        free(evidence.open);
        return nd_fail_memory(err);
    }
    for (size_t i = 0; i < comparison->layer_count; i++)
        for (unsigned side = 0; side < 2; side++) {
            if (comparison->layers[i].side[side] == NULL)
                continue;
            evidence.layers[i].side[side] =
                layer_view_of(&opening, side, &comparison->layers[i]);
            if (evidence.layers[i].side[side] == NULL) {
                nd_evidence_close(&evidence);
                return nd_fail_memory(err);
            }
        }
    *ret = evidence;
    return ND_OK;
}

void nd_evidence_close(struct evidence *evidence)
{
    for (size_t i = 0; i < evidence->open_count; i++)
        (void)nd_slot_close(&evidence->open[i]);
    free(evidence->open);
    *evidence = (struct evidence){0};
}
