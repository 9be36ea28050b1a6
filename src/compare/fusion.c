/*
 * Fused operators.
 *
 * A device operator holds the output of the last of the framework's operators in it, and
 * what stood between has no output of its own: a BatchNorm that was folded into its
 * convolution is compared at the folded output, and counts as covered by it.
 */
#include "compare/fusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fused {
    const char *key; /* escaped */
    const struct atc_op *op;
    size_t place; /* among the operators in it */
};

static int fused_order(const void *a, const void *b)
{
    const struct fused *x = a, *y = b;
    const int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x->op > y->op) - (x->op < y->op);
}

/* Dumps write '_' for what a file's name cannot hold. */
static const char *fusion_key(struct arena *arena, const char *name)
{
    char *key = nd_arena_string(arena, name);

    for (char *p = key; p != NULL && *p != '\0'; p++)
        if (*p == ' ' || *p == '.' || *p == '/' || *p == '\\' || *p == ':')
            *p = '_';
    return key;
}

static const struct fused *fused_find(const struct fused *list, size_t count,
                                      const char *key)
{
    size_t low = 0, high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(list[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(list[low].key, key) == 0 ? &list[low] : NULL;
}

enum nd_status nd_fusion_read(struct comparison *comparison, struct fusion *ret,
                              struct nd_error *err)
{
    struct arena *arena = comparison->arena;
    size_t originals = 0;

    *ret = (struct fusion){.original_count = 0};
    if (comparison->options->fusion_file == NULL)
        return ND_OK;
    ND_TRY(nd_atc_graph_read(arena, comparison->options->fusion_file, &ret->graph, err));
    for (size_t i = 0; i < ret->graph.count; i++)
        originals += ret->graph.ops[i].original_count;
    ret->by_name = nd_arena_alloc(arena, ret->graph.count + 1, sizeof *ret->by_name);
    ret->by_original = nd_arena_alloc(arena, originals + 1, sizeof *ret->by_original);
    if (ret->by_name == NULL || ret->by_original == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < ret->graph.count; i++) {
        const struct atc_op *op = &ret->graph.ops[i];
        ret->by_name[i] = (struct fused){fusion_key(arena, op->name), op, 0};
        if (ret->by_name[i].key == NULL)
            return nd_fail_memory(err);
        for (size_t k = 0; k < op->original_count; k++) {
            struct fused *entry = &ret->by_original[ret->original_count++];
            *entry = (struct fused){fusion_key(arena, op->originals[k]), op, k};
            if (entry->key == NULL)
                return nd_fail_memory(err);
        }
    }
    qsort(ret->by_name, ret->graph.count, sizeof *ret->by_name, fused_order);
    qsort(ret->by_original, ret->original_count, sizeof *ret->by_original, fused_order);
    return ND_OK;
}

const struct atc_op *nd_fusion_op(struct arena *arena, const struct fusion *fusion,
                                  const char *name)
{
    const char *key = fusion->graph.count == 0 ? NULL : fusion_key(arena, name);
    const struct fused *fused =
        key == NULL ? NULL : fused_find(fusion->by_name, fusion->graph.count, key);

    return fused == NULL ? NULL : fused->op;
}

const struct atc_op *nd_fusion_of(struct arena *arena, const struct fusion *fusion,
                                  const char *name, size_t *ret_within)
{
    const char *key = fusion->graph.count == 0 ? NULL : fusion_key(arena, name);
    const struct fused *fused =
        key == NULL ? NULL : fused_find(fusion->by_original, fusion->original_count, key);

    if (fused == NULL)
        return NULL;
    *ret_within = fused->place;
    return fused->op;
}

/* --- order ----------------------------------------------------------------------------- */

struct ordered {
    const struct dump_layer *layer;
    uint64_t id;
    size_t index;
};

static int ordered_order(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->layer->step != y->layer->step)
        return x->layer->step < y->layer->step ? -1 : 1;
    if (x->layer->rank != y->layer->rank)
        return x->layer->rank < y->layer->rank ? -1 : 1;
    if (x->layer->call != y->layer->call)
        return x->layer->call < y->layer->call ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Where the graph knows the candidate's operators and its dump records no order of its own,
 * their ids are the order. */
static enum nd_status fusion_order(struct comparison *comparison, struct side_layers *side,
                                   const struct fusion *fusion, struct nd_error *err)
{
    struct ordered *list = nd_arena_alloc(comparison->arena, side->count + 1, sizeof *list);
    size_t known = 0;
    uint64_t last = 0;

    if (list == NULL)
        return nd_fail_memory(err);
    if (comparison->dump[1]->order < ND_ORDER_NAME)
        return ND_OK;
    for (size_t i = 0; i < side->count; i++) {
        const struct atc_op *op =
            nd_fusion_op(comparison->arena, fusion, side->layers[i]->name);
        known += op != NULL;
        last = op != NULL ? op->order : last; /* what is unknown stays behind its namesake */
        list[i] = (struct ordered){side->layers[i], last, i};
    }
    if (known * 2 <= side->count)
        return ND_OK;
    qsort(list, side->count, sizeof *list, ordered_order);
    for (size_t i = 0; i < side->count; i++)
        side->layers[i] = list[i].layer;
    /* The graph records what the dump does not. */
    ((struct dump *)(uintptr_t)comparison->dump[1])->order = ND_ORDER_RECORDED;
    comparison->by_graph = true;
    return ND_OK;
}

enum nd_status nd_fusion_prepare(struct comparison *comparison, struct side_layers *side,
                                 struct fusion *fusion, struct nd_error *err)
{
    if (fusion->graph.count == 0)
        return ND_OK;
    ND_TRY(fusion_order(comparison, side, fusion, err));
    ND_TRY(nd_fusion_split(comparison->arena, fusion, side, err));
    if (fusion->part_count > 1)
        qsort(fusion->parts, fusion->part_count, sizeof *fusion->parts,
              nd_fusion_part_order);
    return ND_OK;
}

/* --- pairing -------------------------------------------------------------------------- */

/* The layer whose output a fused operator holds: as the compiler says, else the last. */
static const char *fused_target(const struct atc_op *op)
{
    if (op->origin != NULL)
        return op->origin;
    return op->original_count == 0 ? NULL : op->originals[op->original_count - 1];
}

/* An operator that was split into several ends in the one whose output is said to be its,
 * else in the last of them. */
static int target_order(const void *a, const void *b)
{
    const struct fused *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    const bool said_x = x->op->output_count > 0 && x->op->outputs[0].origin != NULL;
    const bool said_y = y->op->output_count > 0 && y->op->outputs[0].origin != NULL;

    if (order != 0)
        return order;
    if (said_x != said_y)
        return said_x - said_y;
    return (x->op->order > y->op->order) - (x->op->order < y->op->order);
}

static enum nd_status list_targets(struct arena *arena, const struct side_layers *side,
                                   struct fusion *fusion, struct nd_error *err)
{
    fusion->by_target = nd_arena_alloc(arena, side->count + 1, sizeof *fusion->by_target);
    if (fusion->by_target == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const struct atc_op *op = nd_fusion_op(arena, fusion, side->layers[i]->name);
        const char *target = op == NULL ? NULL : fused_target(op);
        if (target == NULL || nd_fusion_part_origin(fusion, side->layers[i]) != NULL)
            continue;
        const char *key = fusion_key(arena, target);
        if (key == NULL)
            return nd_fail_memory(err);
        fusion->by_target[fusion->target_count++] = (struct fused){key, op, 0};
    }
    if (fusion->target_count > 1)
        qsort(fusion->by_target, fusion->target_count, sizeof *fusion->by_target,
              target_order);
    return ND_OK;
}

/* Does the operator hold the final output of its target? */
static bool is_last_of(const struct fusion *fusion, const struct atc_op *op,
                       const char *key)
{
    size_t low = 0, high = fusion->target_count; /* behind the last of this target */

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(fusion->by_target[middle].key, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ||
           target_order(&fusion->by_target[low - 1], &(struct fused){key, op, 0}) == 0;
}

static const char *fused_key_of(struct arena *arena, const void *user,
                                const struct dump_layer *layer, unsigned side)
{
    const struct fusion *fusion = user;
    const char *target = side == 0 ? layer->name : nd_fusion_part_origin(fusion, layer);

    if (target != NULL)
        return fusion_key(arena, target);
    const struct atc_op *op = nd_fusion_op(arena, fusion, layer->name);
    target = op == NULL ? NULL : fused_target(op);
    const char *key = target == NULL ? NULL : fusion_key(arena, target);
    return key == NULL || !is_last_of(fusion, op, key) ? NULL : key;
}

enum nd_status nd_align_fused(struct comparison *comparison, struct side_layers *sides,
                              struct fusion *fusion, struct nd_error *err)
{
    if (fusion->graph.count == 0)
        return ND_OK;
    ND_TRY(list_targets(comparison->arena, &sides[1], fusion, err));
    return nd_align_by_key(sides, fused_key_of, fusion, ND_MATCH_MAP,
                           err);
}

/* --- what fused operators leave ------------------------------------------------------ */

/* Inputs and outputs are of different operators here, and so are the weights: those of a
 * convolution that took its norm in are neither's. */
static bool is_of_first(const char *slot)
{
    return strncmp(slot, "input", 5) == 0 || strncmp(slot, "param", 5) == 0 ||
           strncmp(slot, "state", 5) == 0;
}

/* What belongs to the first operator of several, beside what belongs to the last. */
enum nd_status nd_part_inputs(struct arena *arena, struct layer_pair *layer,
                              struct nd_error *err)
{
    const size_t count = layer->slot_count;
    struct slot_pair *slots = nd_arena_alloc(arena, 2 * count + 1, sizeof *slots);

    if (slots == NULL)
        return nd_fail_memory(err);
    if (count > 0)
        memcpy(slots, layer->slots, count * sizeof *slots);
    layer->slots = slots;
    layer->reordered = true; /* what has no partner is not what the last one computed from */
    for (size_t s = 0; s < count; s++) {
        struct slot_pair *slot = &slots[s];
        if (slot->side[0] == NULL || slot->side[1] == NULL ||
            !is_of_first(slot->side[0]->name))
            continue;
        slots[layer->slot_count++].side[1] = slot->side[1];
        slot->side[1] = NULL;
    }
    return ND_OK;
}

/* Operators that a compiler drops in inference, by a part of their type or name. */
static bool is_eliminable(const struct dump_layer *layer)
{
    static const char *const parts[] = {"Identity", "identity", "Dropout", "dropout"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(*layer->type != '\0' ? layer->type : layer->name, parts[i]) != NULL)
            return true;
    return false;
}

static bool is_declared(const struct dump_layer *layer, const char *key)
{
    for (size_t i = 0; i < layer->attribute_count; i++)
        if (strcmp(layer->attributes[i].key, key) == 0)
            return true;
    return false;
}

/* What the graph says that the operator was given, as if its dump had said it. */
static enum nd_status fusion_declare(struct comparison *comparison, const struct atc_op *op,
                                     const struct dump_layer *dumped, struct nd_error *err)
{
    struct dump *const dump = (struct dump *)(uintptr_t)comparison->dump[1];
    struct dump_layer *const layer = (struct dump_layer *)(uintptr_t)dumped;
    const struct attribute given[] = {
        {.key = "epsilon", .kind = ATTRIBUTE_NUMBER, .number = op->epsilon},
        {.key = "is_training", .kind = ATTRIBUTE_BOOL, .number = (double)op->training}};

    if (!isnan(op->epsilon) && !is_declared(layer, "epsilon") && !is_declared(layer, "eps"))
        ND_TRY(nd_dump_add_attribute(dump, layer, &given[0], err));
    if (op->training >= 0 && !is_declared(layer, "is_training") &&
        !is_declared(layer, "training"))
        ND_TRY(nd_dump_add_attribute(dump, layer, &given[1], err));
    return ND_OK;
}

enum nd_status nd_fusion_cover(struct comparison *comparison, const struct fusion *fusion,
                               struct nd_error *err)
{
    for (size_t i = 0; fusion->graph.count > 0 && i < comparison->layer_count; i++) {
        struct layer_pair *layer = &comparison->layers[i];
        const char *key = fusion_key(comparison->arena, layer->side[0]->name);
        const struct fused *fused;
        if (key == NULL)
            return nd_fail_memory(err);
        fused = fused_find(fusion->by_original, fusion->original_count, key);
        if (fused != NULL)
            layer->original = fused->op->originals[fused->place];
        const struct atc_op *const own =
            layer->side[1] == NULL
                ? NULL
                : nd_fusion_op(comparison->arena, fusion, layer->side[1]->name);
        if (own != NULL)
            ND_TRY(fusion_declare(comparison, own, layer->side[1], err));
        if (layer->side[1] != NULL) {
            if (fused != NULL && fused->op->original_count > 1 &&
                layer->match == ND_MATCH_MAP)
                ND_TRY(nd_part_inputs(comparison->arena, layer, err));
        } else if (fused != NULL) {
            layer->covered_by = fused->op->name;
        } else if (is_eliminable(layer->side[0])) {
            layer->covered_by = "eliminated by the compiler";
        }
    }
    return ND_OK;
}
