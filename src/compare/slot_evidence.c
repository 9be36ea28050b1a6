/*
 * What can be said of a pair of slots without reading values: that one is missing, broken or
 * undefined, and whether checksums and statistics agree.
 */
#include <math.h>
#include <string.h>

#include "compare/slot_pair.h"

/* Equal checksums prove equality.  Where they differ, or stand alone, statistics beside them
 * say how far the sides are apart; what those do not show is a matter of the checksums. */
static void measure_checksum(struct comparison *comparison, struct layer_pair *layer,
                             struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];
    const bool both = c != NULL && r->evidence == c->evidence &&
                      strcspn(r->checksum, ":") == strcspn(c->checksum, ":");

    slot->differs = both && strcmp(r->checksum, c->checksum) != 0;
    if (c != NULL && (!both || slot->differs) &&
        (r->has_statistics || r->evidence == ND_EVIDENCE_VALUES) &&
        (c->has_statistics || c->evidence == ND_EVIDENCE_VALUES)) {
        nd_compare_statistics(comparison, layer, slot);
        if (!both || slot->state != SLOT_COMPARED || slot->differs)
            return;
        slot->differs = true;
    }
    slot->state = both ? SLOT_COMPARED : SLOT_SKIPPED;
    slot->reason = both ? NULL : "a checksum beside values";
    slot->result->evidence = ND_EVIDENCE_CHECKSUM;
    slot->result->drift = slot->result->hidden_up_to = (double)NAN;
}

bool nd_slot_needs_values(struct comparison *comparison, struct layer_pair *layer,
                          struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];

    if (r != NULL && (r->undefined || (c != NULL && c->undefined) ||
                      nd_layer_leaves_undefined(layer->side[0], r->name))) {
        slot->undefined = true;
        slot->state = SLOT_SKIPPED;
        slot->reason = "undefined by nature";
        return false;
    }
    if (r == NULL || (c == NULL && layer->part_count == 0)) {
        slot->state = SLOT_ONE_SIDED;
        return false;
    }
    if (nd_slot_is_image(layer, slot) && nd_slot_skip_image(comparison->arena, slot))
        return false;
    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->broken != NULL &&
            !slot->side[side]->layout_broken) {
            slot->state = SLOT_UNREADABLE;
            slot->reason = slot->side[side]->broken;
            return false;
        }
    if (layer->part_count > 0 && r->evidence == ND_EVIDENCE_VALUES)
        return true;
    if (c == NULL || r->evidence == ND_EVIDENCE_CHECKSUM || c->evidence == ND_EVIDENCE_CHECKSUM) {
        measure_checksum(comparison, layer, slot);
        return false;
    }
    if (r->evidence == ND_EVIDENCE_VALUES && c->evidence == ND_EVIDENCE_VALUES)
        return true;
    nd_compare_statistics(comparison, layer, slot);
    return false;
}
