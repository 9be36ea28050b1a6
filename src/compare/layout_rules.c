/*
 * --layout [ref:|cand:]GLOB=FORMAT[:C0]: what the user knows about the bytes wins over
 * what the dump says.  A padded format takes the logical shape from the other side where
 * its own dump does not tell.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/layout_rules.h"

struct layout_rule {
    bool                 side[2];
    char                 glob[512];
    const struct layout *layout;
    uint32_t             c0;
};

static enum nd_status rule_read(const char *text, struct layout_rule *ret, struct nd_error *err)
{
    static const char form[] = "[ref:|cand:]GLOB=FORMAT[:C0] with a layout that is known";
    const char       *at = text, *equals;
    char              name[64];

    *ret = (struct layout_rule){.side = {true, true}};
    if (strncmp(at, "ref:", 4) == 0) {
        ret->side[1] = false;
        at += 4;
    } else if (strncmp(at, "cand:", 5) == 0) {
        ret->side[0] = false;
        at += 5;
    }
    equals = strrchr(at, '=');
    if (equals == NULL || equals == at || (size_t)(equals - at) >= sizeof ret->glob)
        return nd_fail_key(err, ND_ERR_USAGE, "--layout", form, "\"%s\"", text);
    memcpy(ret->glob, at, (size_t)(equals - at));
    const char  *colon = strchr(equals, ':');
    const size_t len = colon == NULL ? strlen(equals + 1) : (size_t)(colon - equals - 1);
    if (len == 0 || len >= sizeof name)
        return nd_fail_key(err, ND_ERR_USAGE, "--layout", form, "\"%s\"", text);
    memcpy(name, equals + 1, len);
    name[len] = '\0';
    ret->layout = nd_layout_by_name(name);
    if (colon != NULL) {
        char               *end;
        const unsigned long c0 = strtoul(colon + 1, &end, 10);
        if (*end != '\0' || c0 == 0 || c0 > 1024)
            return nd_fail_key(err, ND_ERR_USAGE, "--layout", form, "\"%s\"", text);
        ret->c0 = (uint32_t)c0;
    }
    if (ret->layout == NULL)
        return nd_fail_key(err, ND_ERR_USAGE, "--layout", form, "\"%s\"", text);
    return ND_OK;
}

static const struct nd_shape *logical_of(const struct dump_slot *slot)
{
    return slot->logical != NULL ? slot->logical : &slot->storage;
}

static bool rule_fits(const struct layout_rule *rule, const char *layer, const char *slot)
{
    char full[4096 + 300];

    if (nd_glob_match(rule->glob, layer))
        return true;
    if (strlen(layer) + strlen(slot) + 2 > sizeof full)
        return false;
    strcpy(full, layer);
    strcat(full, ".");
    strcat(full, slot);
    return nd_glob_match(rule->glob, full);
}

/* Where the dump shows the bytes under another rank, the block size that their count allows
 * gives the stored shape. */
static void rebuild_storage(const struct layout_rule *rule, struct dump_slot *slot)
{
    static const uint32_t usual[] = {16, 32, 8, 4, 64};
    const size_t          tries = rule->c0 != 0 ? 1 : sizeof usual / sizeof *usual;
    uint64_t              a, b;

    if (slot->logical == NULL || !nd_shape_count(&slot->storage, &b))
        return;
    for (size_t i = 0; i < tries; i++) {
        const uint32_t  c0 = rule->c0 != 0 ? rule->c0 : usual[i];
        struct nd_shape stored;
        if (!nd_layout_storage(rule->layout, slot->logical, c0, &stored) ||
            !nd_shape_count(&stored, &a) || a != b)
            continue;
        if (rule->c0 != 0 || slot->storage.rank != stored.rank)
            slot->storage = stored;
        return;
    }
}

/* Copies the slot of one side, with the layout in place. */
static enum nd_status slot_adjust(struct arena *arena, const struct layout_rule *rule,
                                  struct slot_pair *pair, unsigned side, struct nd_error *err)
{
    const struct dump_slot *dumped = pair->side[side], *other = pair->side[!side];
    struct dump_slot       *slot = nd_arena_alloc(arena, 1, sizeof *slot);

    if (slot == NULL)
        return nd_fail_memory(err);
    *slot = *dumped;
    slot->layout = rule->layout;
    slot->c0 = rule->c0;
    slot->layout_text = NULL;
    if (slot->logical == NULL && other != NULL && nd_layout_padded(rule->layout) &&
        nd_layout_takes_rank(rule->layout, logical_of(other)->rank))
        slot->logical = logical_of(other); /* an unpadded layout derives it */
    rebuild_storage(rule, slot);
    pair->adjusted[side] = slot;
    return ND_OK;
}

enum nd_status nd_layout_rules_apply(struct comparison *comparison, struct nd_error *err)
{
    const struct nd_strings *texts = &comparison->options->layout;

    for (size_t t = 0; t < texts->count; t++) {
        struct layout_rule rule;
        ND_TRY(rule_read(texts->items[t], &rule, err));
        for (size_t i = 0; i < comparison->layer_count; i++) {
            struct layer_pair *layer = &comparison->layers[i];
            for (size_t s = 0; s < layer->slot_count; s++)
                for (unsigned side = 0; side < 2; side++) {
                    struct slot_pair *pair = &layer->slots[s];
                    if (rule.side[side] && pair->side[side] != NULL &&
                        pair->side[side]->evidence == ND_EVIDENCE_VALUES &&
                        rule_fits(&rule, layer->side[0]->name, pair->side[side]->name))
                        ND_TRY(slot_adjust(comparison->arena, &rule, pair, side, err));
                }
        }
    }
    return ND_OK;
}
