/*
 * What is special to gradients: those of biases are sums in which most of what came in
 * cancels, and those at an activation's kink depend on the last digit.
 */
#include <math.h>
#include <string.h>

#include "checks/phrase.h"
#include "checks/walk.h"

static bool is_noted(const struct nd_slot *slot, const char *note)
{
    for (size_t i = 0; i < slot->note_count; i++)
        if (strcmp(slot->notes[i], note) == 0)
            return true;
    return false;
}

static double slot_size(const struct nd_slot *slot)
{
    return nd_slot_number(slot, "norm", 0);
}

/*
 * A bias takes the sum of the gradients that come in, a norm's weight that of their
 * products with values about 1: errors of either sign leave as much of the sum as they are
 * together, however little of the gradients themselves is left.
 */
static double sum_gain(const struct nd_layer *layer, const struct layer_facts *facts,
                       const struct nd_slot *slot)
{
    const bool is_norm = facts->op != NULL && facts->op->norm != NULL;
    const bool is_sum = strcmp(slot->name, "grad.bias") == 0 ||
                        (is_norm && strcmp(slot->name, "grad.weight") == 0);
    const double size = slot_size(slot);

    if (!is_sum || facts->in.worst == ND_NO_INDEX || facts->in.worst >= layer->slot_count)
        return 1;
    const double taken = slot_size(&layer->slots[facts->in.worst]);
    return size > 0 && taken > size ? taken / size : 1;
}

double nd_gradient_excess(const struct nd_layer *layer, const struct layer_facts *facts,
                          double limit)
{
    double excess = 0;

    for (size_t k = 0; k < layer->slot_count; k++) {
        const struct nd_slot *slot = &layer->slots[k];
        if ((!nd_slot_is(slot, "output") && !nd_slot_is(slot, "grad")) ||
            slot->tier > ND_TIER_FAULT || !nd_slot_measured(slot))
            continue;
        excess = fmax(excess, nd_slot_rel(slot) / (limit * sum_gain(layer, facts, slot)));
    }
    return excess;
}

bool nd_walk_judge_kink(struct walk *walk, size_t i)
{
    const struct nd_layer *layer = &walk->input->result->layers[i];
    bool noted = false;

    for (size_t k = 0; k < layer->slot_count; k++)
        noted = noted || is_noted(&layer->slots[k], "gradient_at_kink");
    if (!noted || walk->facts[i].forward)
        return false;
    walk->origin->roles[i] = ND_ROLE_INHERITED;
    walk->origin->kinds[i] = ORIGIN_NONE;
    walk->origin->why[i] = nd_phrase_plain("why.kink");
    return true;
}

bool nd_is_residue_only(const struct nd_layer *layer)
{
    bool any = false;

    for (size_t k = 0; k < layer->slot_count; k++) {
        const struct nd_slot *slot = &layer->slots[k];
        if (!slot->judged || (slot->tier != ND_TIER_ELEVATED && slot->tier != ND_TIER_FAULT))
            continue;
        if (slot->tier == ND_TIER_FAULT || !is_noted(slot, "rounding_residue"))
            return false;
        any = true;
    }
    return any;
}
