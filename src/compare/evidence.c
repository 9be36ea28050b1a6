/*
 * Evidence for the checks: the bytes of every slot that has values, as views.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

enum { MAX_OWN_MAPPINGS = 24000 }; /* the kernel allows 65,530 a process by default */

/* What must be released of an opened slot: most have nothing. */
struct held {
    struct map map;
    void      *memory;
};

struct opening {
    struct comparison *comparison;
    struct evidence   *evidence;
    uint64_t           spool_left; /* bytes that deflated members may take */
    size_t             own_mappings;
};

/* Keeps what the view of an opened slot lies in; false: out of memory. */
static bool hold(struct evidence *evidence, const struct open_slot *open)
{
    const struct map none = {.guard = -1};

    if (!open->has_own_map && open->own_memory == NULL)
        return true;
    if (evidence->held_count == evidence->held_capacity) {
        const size_t want = evidence->held_capacity * 2 + 64;
        struct held *list = realloc(evidence->held, want * sizeof *list);
        if (list == NULL)
            return false;
        evidence->held = list;
        evidence->held_capacity = want;
    }
    evidence->held[evidence->held_count++] =
        (struct held){open->has_own_map ? open->own_map : none, open->own_memory};
    return true;
}

/* Values that a check can look at; the checks reason about real numbers: complex values are
 * measured, not explained. */
static bool is_viewable(const struct dump_slot *slot)
{
    return slot->evidence == ND_EVIDENCE_VALUES && slot->broken == NULL && !slot->undefined &&
           slot->dtype != ND_DTYPE_NONE &&
           nd_dtype_info(slot->dtype)->kind != ND_KIND_COMPLEX;
}

/* False where the slot is not there for the checks. */
static bool open_slot_view(struct opening *opening, unsigned side, const struct dump_slot *slot,
                           struct slot_view *ret)
{
    const struct dump *dump = opening->comparison->dump[side];
    struct open_slot   open;
    struct nd_error    err;

    if (!is_viewable(slot))
        return false;
    if (slot->extent.codec != CODEC_STORED) {
        if (slot->extent.raw_size > opening->spool_left)
            return false;
        opening->spool_left -= slot->extent.raw_size;
    }
    if (opening->own_mappings >= MAX_OWN_MAPPINGS ||
        nd_slot_open(dump, slot, &open, &err) != ND_OK)
        return false; /* it was reported when it was compared */
    opening->own_mappings += open.has_own_map;
    if (!hold(opening->evidence, &open)) {
        (void)nd_slot_close(&open);
        return false;
    }
    *ret = (struct slot_view){.name = slot->name, .real_dtype = nd_slot_dtype(slot),
                              .layout = slot->layout != NULL ? slot->layout->name : slot->layout_text,
                              .c0 = slot->c0, .valid = slot->valid,
                              .valid_count = slot->valid_count, .has_tensor = true, .tensor = open.view,
                              .statistics = slot->has_statistics ? &slot->statistics : NULL};
    return true;
}

/* What the checks see of each of a layer's slots. */
struct seen_slot {
    const struct dump_slot *slot; /* with another layout than the dump says, maybe */
    const char             *name; /* of the partner, where slots are paired across names */
};

/* NULL: out of memory. */
static struct seen_slot *see_slots(struct arena *arena, unsigned side,
                                   const struct layer_pair *pair)
{
    const struct dump_layer *layer = pair->side[side];
    struct seen_slot        *seen = malloc((layer->slot_count + 1) * sizeof *seen);

    for (size_t s = 0; seen != NULL && s < layer->slot_count; s++)
        seen[s] = (struct seen_slot){&layer->slots[s], layer->slots[s].name};
    for (size_t s = 0; seen != NULL && s < pair->slot_count; s++) {
        const struct slot_pair *slot = &pair->slots[s];
        if (slot->side[side] == NULL)
            continue;
        struct seen_slot *const own = &seen[slot->side[side] - layer->slots];
        if (slot->adjusted[side] != NULL)
            own->slot = slot->adjusted[side];
        if (side == 0 || !pair->reordered)
            continue;
        /* Without a partner a name that meets none. */
        own->name = slot->side[0] != NULL
                        ? slot->side[0]->name
                        : nd_arena_format(arena, "unpaired.%s", slot->side[1]->name);
        if (own->name == NULL) {
            free(seen);
            return NULL;
        }
    }
    return seen;
}

static struct layer_view *layer_view_of(struct opening *opening, unsigned side,
                                        const struct layer_pair *pair)
{
    const struct dump_layer *layer = pair->side[side];
    struct arena            *arena = opening->comparison->arena;
    struct layer_view       *view = nd_arena_alloc(arena, 1, sizeof *view);
    struct seen_slot        *seen = see_slots(arena, side, pair);
    size_t                   viewable = 0, count = 0;

    for (size_t s = 0; seen != NULL && s < layer->slot_count; s++)
        viewable += is_viewable(seen[s].slot);
    struct slot_view *slots = nd_arena_alloc(arena, viewable, sizeof *slots);
    if (view == NULL || slots == NULL || seen == NULL) {
        free(seen);
        return NULL;
    }
    for (size_t s = 0; s < layer->slot_count; s++)
        if (open_slot_view(opening, side, seen[s].slot, &slots[count]))
            slots[count++].name = seen[s].name;
    free(seen);
    *view = (struct layer_view){.name = layer->name, .type = layer->type,
                                .direction = layer->direction == DIRECTION_BACKWARD ? "backward"
                                                                                    : "forward",
                                .call = layer->call, .attributes = layer->attributes,
                                .attribute_count = layer->attribute_count, .slots = slots,
                                .slot_count = count, .container = layer->container};
    return view;
}

/* To decode members again costs as much as comparing them did; where all agree to within
 * ordinary noise nothing is left to explain. */
static bool is_worth_decoding(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->layer_count; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        for (size_t s = 0; s < pair->slot_count; s++) {
            const struct nd_slot *result = pair->slots[s].result;
            if (pair->slots[s].state == SLOT_SHAPE ||
                (pair->slots[s].measured && result->tier > ND_TIER_NOISE &&
                 result->tier != ND_TIER_NONE))
                return true;
        }
    }
    return false;
}

enum nd_status nd_evidence_open(struct comparison *comparison, struct evidence *ret,
                                struct nd_error *err)
{
    struct evidence evidence = {0};
    struct opening  opening = {.comparison = comparison, .evidence = &evidence,
                               .spool_left = is_worth_decoding(comparison)
                                                 ? comparison->options->max_mem
                                                 : 0};

    evidence.layers = nd_arena_alloc(comparison->arena, comparison->layer_count + 1,
                                     sizeof *evidence.layers);
    if (evidence.layers == NULL)
        return nd_fail_memory(err);
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
    for (size_t i = 0; i < evidence->held_count; i++) {
        nd_map_close(&evidence->held[i].map);
        free(evidence->held[i].memory);
    }
    free(evidence->held);
    *evidence = (struct evidence){0};
}
