/*
 * Pairing the slots of a pair of layers, by name.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"
#include "compare/select.h"

static int slot_order(const void *a, const void *b)
{
    return strcmp((*(const struct dump_slot *const *)a)->name,
                  (*(const struct dump_slot *const *)b)->name);
}

enum { FEW_SLOTS = 8 }; /* are searched one by one */

/* A layer's slots; sorted by name if there are many, as in a hostile layer. */
struct slot_index {
    const struct dump_layer *layer;
    const struct dump_slot **sorted; /* NULL: few */
};

static enum nd_status index_slots(struct arena *arena, const struct dump_layer *layer,
                                  struct slot_index *ret_index, struct nd_error *err)
{
    const struct dump_slot **list = NULL;

    if (layer->slot_count > FEW_SLOTS) {
        list = nd_arena_alloc(arena, layer->slot_count, sizeof *list);
        if (list == NULL)
            return nd_fail_memory(err);
        for (size_t i = 0; i < layer->slot_count; i++)
            list[i] = &layer->slots[i];
        qsort(list, layer->slot_count, sizeof *list, slot_order);
    }
    *ret_index = (struct slot_index){layer, list};
    return ND_OK;
}

static const struct dump_slot *slot_find(const struct slot_index *index, const char *name)
{
    const struct dump_layer       *layer = index->layer;
    const struct dump_slot         key = {.name = name}, *wanted = &key;
    const struct dump_slot *const *hit = NULL;

    for (size_t i = 0; index->sorted == NULL && i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    if (index->sorted != NULL)
        hit = bsearch(&wanted, index->sorted, layer->slot_count, sizeof *hit, slot_order);
    return hit == NULL ? NULL : *hit;
}

/* How many slots of b have no namesake in a. */
static size_t count_alone(const struct slot_index *a, const struct dump_layer *b)
{
    size_t count = 0;

    for (size_t i = 0; i < b->slot_count; i++)
        count += slot_find(a, b->slots[i].name) == NULL;
    return count;
}

/* The reference's slots in its order, then those that only the candidate has. */
enum nd_status nd_pair_slots(struct comparison *comparison, struct layer_pair *pair,
                                 struct nd_error *err)
{
    static const struct dump_layer nothing;
    const struct dump_layer       *a = pair->side[0];
    const struct dump_layer       *b = pair->side[1] == NULL ? &nothing : pair->side[1];
    struct slot_index              of_a = {0}, of_b = {0};

    ND_TRY(index_slots(comparison->scratch, a, &of_a, err));
    ND_TRY(index_slots(comparison->scratch, b, &of_b, err));
    /* Those of a map may be of fused operators, whose pairs are parted again (fusion.c). */
    const size_t more = pair->match == ND_MATCH_MAP ? b->slot_count : count_alone(&of_a, b);
    pair->slots =
        nd_arena_alloc(comparison->arena, a->slot_count + more, sizeof *pair->slots);
    if (pair->slots == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < a->slot_count; i++) {
        if (!nd_select_slot(comparison->options, a->slots[i].name))
            continue;
        struct slot_pair *slot = &pair->slots[pair->slot_count++];
        slot->side[0] = &a->slots[i];
        slot->side[1] = slot_find(&of_b, a->slots[i].name);
    }
    for (size_t i = 0; i < b->slot_count; i++)
        if (slot_find(&of_a, b->slots[i].name) == NULL &&
            nd_select_slot(comparison->options, b->slots[i].name))
            pair->slots[pair->slot_count++].side[1] = &b->slots[i];
    /* Two lone tensors are a pair whatever their slots are called. */
    if (pair->match == ND_MATCH_LONE && a->slot_count == 1 && b->slot_count == 1 &&
        pair->slot_count == 2) {
        pair->slots[0].side[1] = &b->slots[0];
        pair->slot_count = 1;
    }
    return ND_OK;
}
