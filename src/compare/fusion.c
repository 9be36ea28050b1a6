/*
 * Fused operators.
 *
 * A device operator holds the output of the last of the framework's operators in it, and
 * what stood between has no output of its own: a BatchNorm that was folded into its
 * convolution is compared at the folded output, and counts as covered by it.
 */
#include "compare/fusion.h"

#include <stdlib.h>
#include <string.h>

struct fused {
    const char *key; /* escaped */
    const struct atc_op *op;
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
        ret->by_name[i] = (struct fused){fusion_key(arena, op->name), op};
        if (ret->by_name[i].key == NULL)
            return nd_fail_memory(err);
        for (size_t k = 0; k < op->original_count; k++) {
            struct fused *entry = &ret->by_original[ret->original_count++];
            *entry = (struct fused){fusion_key(arena, op->originals[k]), op};
            if (entry->key == NULL)
                return nd_fail_memory(err);
        }
    }
    qsort(ret->by_name, ret->graph.count, sizeof *ret->by_name, fused_order);
    qsort(ret->by_original, ret->original_count, sizeof *ret->by_original, fused_order);
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

static const char *fused_key_of(struct arena *arena, const void *user,
                                const struct dump_layer *layer, unsigned side)
{
    const struct fusion *fusion = user;
    const char *key = fusion_key(arena, layer->name);

    if (side == 0 || key == NULL)
        return key;
    const struct fused *fused = fused_find(fusion->by_name, fusion->graph.count, key);
    const char *target = fused == NULL ? NULL : fused_target(fused->op);
    return target == NULL ? NULL : fusion_key(arena, target);
}

enum nd_status nd_align_fused(struct comparison *comparison, struct side_layers *sides,
                              const struct fusion *fusion, struct nd_error *err)
{
    if (fusion->graph.count == 0)
        return ND_OK;
    return nd_align_by_key(comparison->arena, sides, fused_key_of, fusion, ND_MATCH_MAP,
                           err);
}

/* --- what fused operators leave ---------------------------------------------------------
 */

/* Inputs of the first operator of several, beside those of the last. */
static void part_inputs(struct layer_pair *layer)
{
    const size_t count = layer->slot_count;

    for (size_t s = 0; s < count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        if (slot->side[0] == NULL || slot->side[1] == NULL ||
            strncmp(slot->side[0]->name, "input", 5) != 0)
            continue;
        /* pair_slots left room for all slots of both sides. */
        layer->slots[layer->slot_count++].side[1] = slot->side[1];
        slot->side[1] = NULL;
        layer->reordered = true;
    }
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
        if (layer->side[1] != NULL) {
            if (fused != NULL && fused->op->original_count > 1 &&
                layer->match == ND_MATCH_MAP)
                part_inputs(layer);
        } else if (fused != NULL) {
            layer->covered_by = fused->op->name;
        } else if (is_eliminable(layer->side[0])) {
            layer->covered_by = "eliminated by the compiler";
        }
    }
    return ND_OK;
}
