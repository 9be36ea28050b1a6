/*
 * A layer whose parameters the optimiser moved differently: they agreed one step before,
 * and so did their gradients.
 */
#include "checks/update_fit.h"
#include "checks/walk.h"

#include "checks/phrase.h"

/* Few values are enough to see that two steps differ; the rules are tried on these. */
enum { JUDGED_VALUES = 4096, JUDGED_FITS = 4 };

/* No rule of one pair of constants moves both sides.  Where they stood apart before, what
 * momentum made of that is no difference of the rules: both have to be known. */
static bool update_differs(const struct update *update, const struct update_gap *gap)
{
    struct update_rule rule[2];
    bool fits[2];

    for (int side = 0; side < 2; side++) {
        if (nd_update_is_narrowed(update, side))
            return !update->has_noise;
        if (nd_update_is_still(update, side))
            return gap->still[side] > 0.5;
        fits[side] = nd_update_fit(update, side, &rule[side]);
    }
    if (fits[0] && fits[1])
        return nd_update_rules_differ(update, rule);
    return !update->has_noise && !nd_update_is_damage(update, fits, rule);
}

bool nd_walk_judge_update(struct walk *walk, size_t i)
{
    const struct slot_group *params = &walk->facts[i].params;
    const struct nd_layer *layer = &walk->input->result->layers[i];
    struct update update;
    struct update_gap gap;

    if (walk->run->is_tainted || walk->was_tainted || params->count == 0 || params->equal ||
        walk->updates_fitted == JUDGED_FITS ||
        !nd_update_load(walk->input, &walk->steps, i, JUDGED_VALUES, &update))
        return false;
    bool differs = nd_update_gap(&update, &gap) && gap.rel > gap.allowed;
    if (differs) {
        walk->updates_fitted++;
        differs = update_differs(&update, &gap);
    }
    if (differs) {
        const struct nd_slot *slot = &layer->slots[update.slot];
        walk->origin->roles[i] = ND_ROLE_ORIGIN;
        walk->origin->kinds[i] = ORIGIN_UPDATE;
        walk->origin->why[i] =
            ND_PHRASE(walk->arena, "why.update", ND_WORD("slot", slot->name),
                      ND_NUMBER("drift", nd_slot_rel(slot)),
                      ND_NUMBER("gradient", update.grad_rel), ND_NUMBER("gap", gap.rel));
        walk->update_slot = update.slot;
    }
    nd_update_done(&update);
    return differs;
}
