/*
 * Did the difference come in from outside?  The model's own input, or a layer's weights.
 */
#include "checks/subject.h"

#include <math.h>
#include <string.h>

static const struct nd_slot *source_slot(const struct subject *subject, const char *kind)
{
    const struct nd_slot *worst = NULL;

    for (size_t i = 0; i < subject->layer->slot_count; i++) {
        const struct nd_slot *slot = &subject->layer->slots[i];
        if (!nd_slot_is(slot, kind) || slot->tier > ND_TIER_FAULT ||
            slot->tier == ND_TIER_EXACT)
            continue;
        if (worst == NULL || !(nd_slot_rel(slot) <= nd_slot_rel(worst)))
            worst = slot;
    }
    return worst;
}

enum { SOURCE_BUDGET = 1 << 16 };

/* One side's input lies on a narrower grid and is no further off than rounding to it. */
static bool source_is_rounded(const struct subject *subject, const struct nd_slot *slot)
{
    for (int side = 0; side < 2; side++) {
        const struct slot_view *view = nd_layer_slot(subject->pair->side[side], slot->name);
        struct grid_shares shares;
        if (view == NULL || !view->has_tensor)
            continue;
        nd_grid_shares(&view->tensor, SOURCE_BUDGET, &shares);
        const enum grid grid = nd_grid_of(&shares, view->real_dtype);
        if (grid != GRID_NONE && nd_slot_rel(slot) <= nd_grid_roundoff(grid))
            return true;
    }
    return false;
}

static void source_input(struct subject *subject)
{
    const struct nd_slot *slot = source_slot(subject, "input");

    if (slot == NULL)
        return;
    subject->is_rounded_input = source_is_rounded(subject, slot);
    if (subject->is_rounded_input)
        return;
    const struct hypothesis differs = {
        .id = "different_input", .residual = (double)NAN, .is_certain = true};
    ND_PROPOSE(subject, differs, ND_WORD("slot", slot->name),
               ND_NUMBER("drift", slot->drift), ND_NUMBER("differ", (double)slot->differ));
}

static void source_weights(struct subject *subject)
{
    const struct slot_group *params = &subject->own->params;

    if (params->worst == ND_NO_INDEX)
        return;
    const struct hypothesis differs = {
        .id = "different_weights", .residual = (double)NAN, .is_certain = true};
    ND_PROPOSE(subject, differs, ND_WORD("slot", subject->layer->slots[params->worst].name),
               ND_NUMBER("drift", params->rel),
               ND_NUMBER("median", subject->origin->weights_median));
}

/*
 * Most weights differ and none stands out: the runs have been apart for some steps.  Rounding
 * of one side's weights is no parting, see weights.c.
 */
static void source_parted(struct subject *subject)
{
    const struct slot_group *params = &subject->own->params;
    const struct hypothesis parted = {
        .id = "different_weights",
        .residual = (double)NAN,
        .is_fingerprint = true,
        .penalty = -0.5,
        .summary = ND_PHRASE(subject->arena, "summary.different_weights.parted",
                             ND_NUMBER("median", subject->origin->weights_median))};

    if (subject->origin->weights_parted && params->count > 0 && !params->equal)
        ND_PROPOSE(subject, parted, ND_NUMBER("median", subject->origin->weights_median));
}

/* The weights were equal one step before, and the optimiser made them differ. */
static bool source_is_update(const struct subject *subject)
{
    for (size_t i = 0; i < subject->hypothesis_count; i++)
        if (strcmp(subject->hypotheses[i].id, "optimizer_update") == 0)
            return true;
    return subject->kind == ORIGIN_UPDATE;
}

/* Nothing dumped stands before this layer: its input or its weights may be to blame. */
static void source_unseen(struct subject *subject)
{
    const bool weights_equal = subject->own->params.seen > 0 && subject->own->params.equal;
    bool is_first = subject->own->in.seen == 0;

    for (size_t i = 0; i < subject->index && is_first; i++)
        is_first = subject->facts[i].container || subject->facts[i].out.seen == 0;
    if (!is_first)
        return;
    const struct hypothesis input = {.id = "different_input",
                                     .residual = (double)NAN,
                                     .summary =
                                         nd_phrase_plain("summary.different_input.unseen")};
    const struct hypothesis weights = {
        .id = "different_weights",
        .residual = (double)NAN,
        .summary = nd_phrase_plain("summary.different_weights.unseen")};
    nd_propose(subject, &input);
    if (!weights_equal)
        nd_propose(subject, &weights);
}

static void source_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    if (source_is_update(subject))
        return;
    if (subject->kind == ORIGIN_INPUT)
        source_input(subject);
    else if (subject->kind == ORIGIN_WEIGHTS)
        source_weights(subject);
    else
        source_unseen(subject);
    if (subject->kind != ORIGIN_INPUT && subject->kind != ORIGIN_WEIGHTS)
        source_parted(subject);
}

const struct check nd_check_source = {.id = "source", .run = source_run};
