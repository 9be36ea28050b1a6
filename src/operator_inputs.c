/*
 * Inputs of an operator beside the parameters of a module: what CANN's BatchNorm gets as its
 * second input is the weight that PyTorch's module keeps.
 */
#include <string.h>

#include "formats/format.h"
#include "operators.h"

enum { MAX_INPUTS = 16 }; /* more than any operator of the table has */

static bool same_count(const struct dump_slot *a, const struct dump_slot *b)
{
    uint64_t n, k;

    return a->broken == NULL && b->broken == NULL &&
           nd_shape_count(a->logical != NULL ? a->logical : &a->storage, &n) &&
           nd_shape_count(b->logical != NULL ? b->logical : &b->storage, &k) && n == k;
}

/* The pair that only one side has, under a name; NULL: none. */
static struct slot_pair *lone_pair(struct layer_pair *layer, unsigned side, const char *name)
{
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *pair = &layer->slots[s];
        if (pair->side[side] != NULL && pair->side[!side] == NULL &&
            strcmp(pair->side[side]->name, name) == 0)
            return pair;
    }
    return NULL;
}

/* The inputs of `side` under the other side's parameters. */
static bool pair_side(struct layer_pair *layer, const struct ascend_op *op, unsigned side)
{
    bool moved = false;

    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *own = &layer->slots[s];
        size_t number;
        if (own->side[side] == NULL || own->side[!side] != NULL ||
            !nd_slot_numbered(own->side[side]->name, "input.", MAX_INPUTS, &number))
            continue;
        const char *slot = nd_ascend_parameter(op, number);
        struct slot_pair *other = slot == NULL ? NULL : lone_pair(layer, !side, slot);
        if (other == NULL || !same_count(own->side[side], other->side[!side]))
            continue;
        other->side[side] = own->side[side];
        own->side[side] = NULL;
        moved = true;
    }
    return moved;
}

/* A framework's function of the same name has its arguments in another order. */
static bool is_device_operator(const struct dump *dump, const struct dump_layer *layer)
{
    return nd_ascend_is_native(layer->type) ||
           strncmp(dump->format->name, "cann", 4) == 0;
}

void nd_operators_pair_inputs(const struct comparison *comparison, struct layer_pair *layer,
                              const struct ascend_op *const *op)
{
    size_t kept = 0;
    bool moved = false;

    /* The candidate is the side that has an operator's inputs; in the other direction the
     * slot would be named after the candidate. */
    if (op[1] != NULL && layer->part_count == 0 &&
        is_device_operator(comparison->dump[1], layer->side[1]))
        moved = pair_side(layer, op[1], 1);
    if (!moved)
        return;
    layer->reordered = true;
    for (size_t s = 0; s < layer->slot_count; s++)
        if (layer->slots[s].side[0] != NULL || layer->slots[s].side[1] != NULL)
            layer->slots[kept++] = layer->slots[s];
    layer->slot_count = kept;
}
