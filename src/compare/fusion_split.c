/*
 * Fused operators with several outputs.  The compiler says of each output whose it is, and
 * they need not be of one operator: such a layer is parted, so that every output stands
 * beside the reference layer that it comes from, under the number that it has there.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/fusion.h"

enum { MAX_SLOT_NUMBER = 1 << 20 };

/* What the compiler says of a slot; NULL: nothing, or it is no output. */
static const struct atc_output *output_of(const struct atc_op *op,
                                          const struct dump_slot *slot)
{
    size_t number;

    if (!nd_slot_numbered(slot->name, "output.", MAX_SLOT_NUMBER, &number) ||
        number >= op->output_count || op->outputs[number].origin == NULL)
        return NULL;
    return &op->outputs[number];
}

static bool is_plain(const struct atc_op *op, const struct dump_layer *layer)
{
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct atc_output *output = output_of(op, &layer->slots[s]);
        size_t number;
        if (output == NULL ||
            !nd_slot_numbered(layer->slots[s].name, "output.", MAX_SLOT_NUMBER, &number))
            continue;
        if (output->index != number || op->origin == NULL ||
            strcmp(output->origin, op->origin) != 0)
            return false;
    }
    return true;
}

/* The slots of one origin, renumbered; those that nobody claims stay with the main layer.
 */
static enum nd_status part_of(struct arena *arena, const struct atc_op *op,
                              const struct dump_layer *layer, const char *origin,
                              bool is_main, struct dump_layer *ret, struct nd_error *err)
{
    *ret = *layer;
    ret->slot_count = 0;
    ret->slots = nd_arena_alloc(arena, layer->slot_count + 1, sizeof *ret->slots);
    if (ret->slots == NULL)
        return nd_fail_memory(err);
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct atc_output *output = output_of(op, &layer->slots[s]);
        const bool mine = output == NULL ? is_main : strcmp(output->origin, origin) == 0;
        if (!mine)
            continue;
        struct dump_slot *slot = &ret->slots[ret->slot_count++];
        *slot = layer->slots[s];
        if (output != NULL)
            slot->name = nd_arena_format(arena, "output.%zu", (size_t)output->index);
        if (slot->name == NULL)
            return nd_fail_memory(err);
    }
    return ND_OK;
}

static enum nd_status add_part(struct arena *arena, struct fusion *fusion,
                               struct side_layers *side, size_t place,
                               const struct dump_layer *layer, const char *origin,
                               struct nd_error *err)
{
    struct fusion_part *parts = nd_arena_grow(arena, fusion->parts, fusion->part_count,
                                              &fusion->part_capacity, sizeof *parts);
    struct dump_layer *copy = nd_arena_alloc(arena, 1, sizeof *copy);

    if (parts == NULL || copy == NULL)
        return nd_fail_memory(err);
    *copy = *layer;
    fusion->parts = parts;
    parts[fusion->part_count++] = (struct fusion_part){copy, origin};
    side->layers[place] = copy;
    side->partner[place] = ND_NO_INDEX;
    side->match[place] = ND_MATCH_NONE;
    return ND_OK;
}

/* Is this the first output of its origin? */
static bool is_first_of(const struct atc_op *op, const struct dump_layer *layer, size_t s)
{
    const struct atc_output *output = output_of(op, &layer->slots[s]);

    for (size_t i = 0; i < s; i++) {
        const struct atc_output *other = output_of(op, &layer->slots[i]);
        if (other != NULL && strcmp(other->origin, output->origin) == 0)
            return false;
    }
    return true;
}

enum { MAX_PARTED_SLOTS = 256 }; /* outputs are compared with each other */

static enum nd_status split_layer(struct arena *arena, struct fusion *fusion,
                                  struct side_layers *side, size_t i,
                                  const struct atc_op *op, struct nd_error *err)
{
    const struct dump_layer *layer = side->layers[i];
    const char *target = op->origin;
    struct dump_layer part;

    if (layer->slot_count > MAX_PARTED_SLOTS || is_plain(op, layer))
        return ND_OK;
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct atc_output *output = output_of(op, &layer->slots[s]);
        if (output == NULL || !is_first_of(op, layer, s))
            continue;
        const bool is_main = target == NULL || strcmp(output->origin, target) == 0;
        target = target == NULL ? output->origin : target;
        ND_TRY(part_of(arena, op, layer, output->origin, is_main, &part, err));
        ND_TRY(add_part(arena, fusion, side, is_main ? i : side->count++, &part,
                        output->origin, err));
    }
    return ND_OK;
}

/* Room for a part per output beside what there is. */
static enum nd_status make_room(struct arena *arena, struct side_layers *side, size_t more,
                                struct nd_error *err)
{
    const size_t count = side->count + more + 1;
    struct side_layers grown = {.count = side->count};

    grown.layers = nd_arena_alloc(arena, count, sizeof(struct dump_layer *));
    grown.partner = nd_arena_alloc(arena, count, sizeof *grown.partner);
    grown.match = nd_arena_alloc(arena, count, sizeof *grown.match);
    if (grown.layers == NULL || grown.partner == NULL || grown.match == NULL)
        return nd_fail_memory(err);
    if (side->count > 0) {
        memcpy(grown.layers, side->layers, side->count * sizeof(struct dump_layer *));
        memcpy(grown.partner, side->partner, side->count * sizeof *side->partner);
        memcpy(grown.match, side->match, side->count * sizeof *side->match);
    }
    *side = grown;
    return ND_OK;
}

enum nd_status nd_fusion_split(struct arena *arena, struct fusion *fusion,
                               struct side_layers *side, struct nd_error *err)
{
    const size_t count = side->count;
    size_t more = 0;

    for (size_t i = 0; i < count; i++) {
        const struct atc_op *op = nd_fusion_op(arena, fusion, side->layers[i]->name);
        if (op != NULL && !is_plain(op, side->layers[i]))
            more += side->layers[i]->slot_count;
    }
    if (more == 0)
        return ND_OK;
    ND_TRY(make_room(arena, side, more, err));
    for (size_t i = 0; i < count; i++) {
        const struct atc_op *op = nd_fusion_op(arena, fusion, side->layers[i]->name);
        if (op != NULL)
            ND_TRY(split_layer(arena, fusion, side, i, op, err));
    }
    return ND_OK;
}

const char *nd_fusion_part_origin(const struct fusion *fusion,
                                  const struct dump_layer *layer)
{
    const struct fusion_part key = {.layer = layer};
    const struct fusion_part *hit = fusion->part_count == 0
                                        ? NULL
                                        : bsearch(&key, fusion->parts, fusion->part_count,
                                                  sizeof key, nd_fusion_part_order);

    return hit == NULL ? NULL : hit->origin;
}

int nd_fusion_part_order(const void *a, const void *b)
{
    const struct fusion_part *x = a, *y = b;

    return x->layer < y->layer ? -1 : x->layer > y->layer;
}
