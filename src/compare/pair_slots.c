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

/* A layer's slots sorted by name: a hostile layer may hold very many. */
static const struct dump_slot **slots_by_name(struct arena *arena, const struct dump_layer *layer)
{
    const struct dump_slot **list = nd_arena_alloc(arena, layer->slot_count + 1, sizeof *list);

    for (size_t i = 0; list != NULL && i < layer->slot_count; i++)
        list[i] = &layer->slots[i];
    if (list != NULL)
        qsort(list, layer->slot_count, sizeof *list, slot_order);
    return list;
}

static const struct dump_slot *slot_find(const struct dump_slot **list, size_t count,
                                         const char *name)
{
    const struct dump_slot         key = {.name = name}, *wanted = &key;
    const struct dump_slot *const *hit =
        count == 0 ? NULL : bsearch(&wanted, list, count, sizeof *list, slot_order);

    return hit == NULL ? NULL : *hit;
}

/* How many slots of b have no namesake in a. */
static size_t count_alone(const struct dump_slot **of_a, const struct dump_layer *a,
                          const struct dump_layer *b)
{
    size_t count = 0;

    for (size_t i = 0; i < b->slot_count; i++)
        count += slot_find(of_a, a->slot_count, b->slots[i].name) == NULL;
    return count;
}

/* The reference's slots in its order, then those that only the candidate has. */
enum nd_status nd_pair_slots(struct comparison *comparison, struct layer_pair *pair,
                                 struct nd_error *err)
{
    static const struct dump_layer nothing;
    const struct dump_layer       *a = pair->side[0];
    const struct dump_layer       *b = pair->side[1] == NULL ? &nothing : pair->side[1];
    const struct dump_slot       **of_a = slots_by_name(comparison->arena, a);
    const struct dump_slot       **of_b = slots_by_name(comparison->arena, b);

    if (of_a == NULL || of_b == NULL)
        return nd_fail_memory(err);
    /* Those of a map may be of fused operators, whose pairs are parted again (fusion.c). */
    const size_t more = pair->match == ND_MATCH_MAP ? b->slot_count : count_alone(of_a, a, b);
    pair->slots =
        nd_arena_alloc(comparison->arena, a->slot_count + more, sizeof *pair->slots);
    if (pair->slots == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < a->slot_count; i++) {
        if (!nd_select_slot(comparison->options, a->slots[i].name))
            continue;
        struct slot_pair *slot = &pair->slots[pair->slot_count++];
        slot->side[0] = &a->slots[i];
        slot->side[1] = slot_find(of_b, b->slot_count, a->slots[i].name);
    }
    for (size_t i = 0; i < b->slot_count; i++)
        if (slot_find(of_a, a->slot_count, b->slots[i].name) == NULL &&
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
