/*
 * Evidence for the checks: the bytes of every slot that has values, as views.  A view is
 * larger than most names, and most layers are looked at once or never: so views are made as
 * they are asked for, and each worker keeps those of the layers that it looked at last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/compare.h"
#include "formats/extent.h"

enum { MAX_OWN_MAPPINGS = 24000 }; /* the kernel allows 65,530 a process by default */

/* What was opened at the start, of slots that have no mapping of their file to lie in. */
struct held {
    size_t layer, slot;
    unsigned side;
    const unsigned char *data;
    struct map map;
    void *memory;
};

/* Values that a check can look at; the checks reason about real numbers: complex values are
 * measured, not explained. */
static bool is_viewable(const struct dump_slot *slot)
{
    return slot->evidence == ND_EVIDENCE_VALUES && slot->broken == NULL &&
           !slot->undefined && slot->dtype != ND_DTYPE_NONE &&
           nd_dtype_info(slot->dtype)->kind != ND_KIND_COMPLEX;
}

/* Whether opening it costs a mapping, or memory. */
static bool is_costly(const struct dump *dump, const struct dump_slot *slot)
{
    return slot->extent.codec != CODEC_STORED || !dump->files[slot->extent.file].is_mapped;
}

/* What the checks see of each of a layer's slots. */
struct seen_slot {
    const struct dump_slot *slot; /* with another layout than the dump says, maybe */
    const char *name;             /* of the partner, where slots are paired across names */
};

static void see_slots(unsigned side, const struct layer_pair *pair,
                      struct seen_slot *ret_seen)
{
    const struct dump_layer *layer = pair->side[side];

    for (size_t s = 0; s < layer->slot_count; s++)
        ret_seen[s] = (struct seen_slot){&layer->slots[s], layer->slots[s].name};
    for (size_t s = 0; s < pair->slot_count; s++) {
        const struct slot_pair *slot = &pair->slots[s];
        if (slot->side[side] == NULL)
            continue;
        struct seen_slot *const own = &ret_seen[slot->side[side] - layer->slots];
        if (slot->adjusted[side] != NULL)
            own->slot = slot->adjusted[side];
        if (side == 1 && pair->reordered) /* without a partner a name that meets none */
            own->name = slot->side[0] != NULL ? slot->side[0]->name : "unpaired";
    }
}

/* --- what is opened at the start ----------------------------------------------------- */

struct opening {
    struct evidence *evidence;
    uint64_t spool_left;  /* bytes that deflated members may take, */
    uint64_t memory_left; /* and of those that may lie in memory */
    size_t own_mappings;
    struct seen_slot *seen; /* room for one layer's slots */
    size_t seen_room;
};

/* False: out of memory. */
static bool hold(struct evidence *evidence, const struct held *held)
{
    if (evidence->held_count == evidence->held_capacity) {
        const size_t want = evidence->held_capacity * 2 + 64;
        struct held *list = realloc(evidence->held, want * sizeof *list);
        if (list == NULL)
            return false;
        evidence->held = list;
        evidence->held_capacity = want;
    }
    evidence->held[evidence->held_count++] = *held;
    return true;
}

/* Whether there is room for a decoded member.  Where it will lie depends on the machine,
 * what the checks see does not: each that may lie in memory counts. */
static bool take_room(struct opening *opening, const struct dump_slot *slot)
{
    const uint64_t size = slot->extent.raw_size;
    const bool in_memory = size <= ND_MEMBER_IN_MEMORY;

    if (size > opening->spool_left || (in_memory && size > opening->memory_left))
        return false;
    opening->spool_left -= size;
    opening->memory_left -= in_memory ? size : 0;
    opening->evidence->memory += in_memory ? size : 0;
    return true;
}

static enum nd_status hold_slot(struct opening *opening, const struct dump *dump,
                                const struct dump_slot *slot, struct held *held,
                                struct nd_error *err)
{
    struct open_slot open;

    if (slot->extent.codec != CODEC_STORED && !take_room(opening, slot))
        return ND_OK;
    if (opening->own_mappings >= MAX_OWN_MAPPINGS ||
        nd_slot_open(dump, slot, &open, NULL) != ND_OK)
        return ND_OK; /* it was reported when it was compared */
    opening->own_mappings += open.has_own_map;
    held->data = open.storage.data;
    held->map = open.has_own_map ? open.own_map : (struct map){.guard = -1};
    held->memory = open.own_memory;
    if (hold(opening->evidence, held))
        return ND_OK;
    (void)nd_slot_close(&open);
    return nd_fail_memory(err);
}

static bool layer_has_costly(const struct dump *dump, const struct dump_layer *layer)
{
    for (size_t s = 0; s < layer->slot_count; s++)
        if (is_costly(dump, &layer->slots[s]))
            return true;
    return false;
}

static enum nd_status hold_layer(struct opening *opening, size_t index, unsigned side,
                                 struct nd_error *err)
{
    const struct comparison *comparison = opening->evidence->comparison;
    const struct layer_pair *pair = &comparison->layers[index];
    const struct dump_layer *layer = pair->side[side];
    const struct dump *dump = comparison->dump[side];

    if (layer == NULL || !layer_has_costly(dump, layer))
        return ND_OK;
    if (layer->slot_count > opening->seen_room) {
        free(opening->seen);
        opening->seen = malloc(layer->slot_count * sizeof *opening->seen);
        opening->seen_room = opening->seen == NULL ? 0 : layer->slot_count;
        if (opening->seen == NULL)
            return nd_fail_memory(err);
    }
    see_slots(side, pair, opening->seen);
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct dump_slot *slot = opening->seen[s].slot;
        struct held held = {.layer = index, .side = side, .slot = s};
        if (is_viewable(slot) && is_costly(dump, slot))
            ND_TRY(hold_slot(opening, dump, slot, &held, err));
    }
    return ND_OK;
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
    struct evidence evidence = {.comparison = comparison};
    const uint64_t max_mem = comparison->options->max_mem;
    struct opening opening = {.evidence = &evidence,
                              .spool_left = is_worth_decoding(comparison) ? max_mem : 0,
                              .memory_left = max_mem / 4 * 3}; /* the rest is for replays */
    enum nd_status status = ND_OK;

    evidence.glances = calloc(ND_POOL_WORKERS, sizeof *evidence.glances);
    if (evidence.glances == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count && status == ND_OK; i++)
        for (unsigned side = 0; side < 2 && status == ND_OK; side++)
            status = hold_layer(&opening, i, side, err);
    free(opening.seen);
    if (status == ND_OK)
        *ret = evidence;
    else
        nd_evidence_close(&evidence);
    return status;
}

/* --- what is looked at --------------------------------------------------------------- */

/* The views of one layer. */
struct looked {
    size_t layer;  /* its number plus one; 0: free */
    uint64_t when; /* it was last looked at */
    struct layer_pair_view pair;
    struct layer_view side[2];
    struct slot_view *slots[2];
    size_t room[2];
};

enum { HINTS = 4 * ND_LOOKS_KEPT };

struct glance {
    struct looked looked[ND_LOOKS_KEPT];
    uint16_t hint[HINTS]; /* where a layer was put, by its number */
    uint64_t looks;
    struct seen_slot *seen;
    size_t seen_room;
};

/* The first of what is held of a layer and all after it. */
static size_t held_from(const struct evidence *evidence, size_t layer)
{
    size_t low = 0, high = evidence->held_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (evidence->held[middle].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct held *held_slot(const struct evidence *evidence, size_t *at,
                                    size_t layer, unsigned side, size_t slot)
{
    if (*at == evidence->held_count)
        return NULL;
    const struct held *held = &evidence->held[*at];
    if (held->layer != layer || held->side != side || held->slot != slot)
        return NULL;
    (*at)++;
    return held;
}

/* False where the slot is not there for the checks. */
static bool view_tensor(const struct dump *dump, const struct dump_slot *slot,
                        const struct held *held, struct tensor_view *ret)
{
    struct tensor_view storage;
    struct open_slot open;

    if (held != NULL)
        return nd_slot_storage_view(slot, held->data, nd_extent_payload(&slot->extent),
                                    &storage, NULL) == ND_OK &&
               nd_slot_logical_view(slot, &storage, ret, NULL) == ND_OK;
    if (is_costly(dump, slot) || nd_slot_open(dump, slot, &open, NULL) != ND_OK)
        return false;
    *ret = open.view;
    (void)nd_slot_close(&open); /* it lies in the file's mapping */
    return true;
}

static void view_layer(struct evidence *evidence, struct glance *glance, size_t index,
                       unsigned side, size_t *at, struct looked *looked)
{
    const struct comparison *comparison = evidence->comparison;
    const struct layer_pair *pair = &comparison->layers[index];
    const struct dump_layer *layer = pair->side[side];
    struct slot_view *slots = looked->slots[side];
    size_t count = 0;

    see_slots(side, pair, glance->seen);
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct dump_slot *slot = glance->seen[s].slot;
        if (!is_viewable(slot) ||
            !view_tensor(comparison->dump[side], slot,
                         held_slot(evidence, at, index, side, s), &slots[count].tensor))
            continue;
        struct slot_view *const view = &slots[count++];
        view->name = glance->seen[s].name;
        view->has_tensor = true;
        view->real_dtype = nd_slot_dtype(slot);
        view->layout = slot->layout != NULL ? slot->layout->name : slot->layout_text;
        view->c0 = slot->c0;
        view->valid = slot->valid;
        view->valid_count = slot->valid_count;
        view->statistics = slot->has_statistics ? &slot->statistics : NULL;
    }
    looked->side[side] = (struct layer_view){
        .name = layer->name,
        .type = layer->type,
        .direction = layer->direction == DIRECTION_BACKWARD ? "backward" : "forward",
        .call = layer->call,
        .attributes = layer->attributes,
        .attribute_count = layer->attribute_count,
        .slots = slots,
        .slot_count = count,
        .container = layer->container};
    looked->pair.side[side] = &looked->side[side];
}

/* Room for the slots of a layer; false: out of memory. */
static bool glance_room(struct glance *glance, struct looked *looked, unsigned side,
                        size_t count)
{
    if (count > looked->room[side]) {
        free(looked->slots[side]);
        looked->slots[side] = malloc(count * sizeof **looked->slots);
        looked->room[side] = looked->slots[side] == NULL ? 0 : count;
    }
    if (count > glance->seen_room) {
        free(glance->seen);
        glance->seen = malloc(count * sizeof *glance->seen);
        glance->seen_room = glance->seen == NULL ? 0 : count;
    }
    return count <= looked->room[side] && count <= glance->seen_room;
}

/* Where a layer's views are; if they are nowhere, those that were looked at longest ago. */
static struct looked *glance_find(struct glance *glance, size_t index)
{
    uint16_t *const hint = &glance->hint[index % HINTS];
    struct looked *found = &glance->looked[*hint];

    for (size_t i = 0; i < ND_LOOKS_KEPT && found->layer != index + 1; i++)
        if (glance->looked[i].layer == index + 1 || glance->looked[i].when < found->when)
            found = &glance->looked[i];
    *hint = (uint16_t)(found - glance->looked);
    found->when = ++glance->looks;
    return found;
}

const struct layer_pair_view *nd_evidence_look(void *layers, unsigned worker, size_t index)
{
    static const struct layer_pair_view nothing;
    struct evidence *const evidence = layers;
    const struct layer_pair *const pair = &evidence->comparison->layers[index];
    struct glance **glance = &evidence->glances[worker];

    if (*glance == NULL)
        *glance = calloc(1, sizeof **glance);
    if (*glance == NULL) {
        atomic_store(&evidence->short_of_memory, true);
        return &nothing;
    }
    struct looked *const looked = glance_find(*glance, index);
    if (looked->layer == index + 1)
        return &looked->pair;
    size_t at = held_from(evidence, index);
    looked->layer = 0;
    looked->pair = nothing;
    for (unsigned side = 0; side < 2; side++) {
        if (pair->side[side] == NULL)
            continue;
        if (!glance_room(*glance, looked, side, pair->side[side]->slot_count)) {
            atomic_store(&evidence->short_of_memory, true);
            return &nothing;
        }
        view_layer(evidence, *glance, index, side, &at, looked);
    }
    looked->layer = index + 1;
    return &looked->pair;
}

static void glance_free(struct glance *glance)
{
    if (glance == NULL)
        return;
    for (size_t i = 0; i < ND_LOOKS_KEPT; i++)
        for (unsigned side = 0; side < 2; side++)
            free(glance->looked[i].slots[side]);
    free(glance->seen);
    free(glance);
}

void nd_evidence_close(struct evidence *evidence)
{
    for (size_t i = 0; i < evidence->held_count; i++) {
        nd_map_close(&evidence->held[i].map);
        free(evidence->held[i].memory);
    }
    for (unsigned i = 0; evidence->glances != NULL && i < ND_POOL_WORKERS; i++)
        glance_free(evidence->glances[i]);
    free(evidence->held);
    free(evidence->glances);
    *evidence = (struct evidence){0};
}
