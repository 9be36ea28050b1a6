/*
 * The end of the story: coverage, the last output, failures that hang on the diagnosis,
 * verdict and exit status.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "compare/select.h"
#include "compare/slot_pair.h"
#include "compare/top1.h"
#include "compare/verdict.h"

struct name_list {
    const char **names;
    size_t       count, capacity;
};

static bool list_add(struct arena *arena, struct name_list *list, const char *name)
{
    const char **names =
        nd_arena_grow(arena, list->names, list->count, &list->capacity, sizeof *names);

    if (names == NULL || name == NULL)
        return false;
    list->names = names;
    list->names[list->count++] = name;
    return true;
}

struct skip_list {
    struct nd_named *items;
    size_t           count, capacity;
};

static bool skip_add(struct arena *arena, struct skip_list *list, const char *name,
                     const char *reason)
{
    struct nd_named *items =
        nd_arena_grow(arena, list->items, list->count, &list->capacity, sizeof *items);

    if (items == NULL || name == NULL)
        return false;
    list->items = items;
    list->items[list->count++] = (struct nd_named){name, reason};
    return true;
}

static uint64_t view_bytes(const struct slot_pair *slot)
{
    uint64_t bytes = 0;

    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL && slot->side[side]->evidence == ND_EVIDENCE_VALUES)
            bytes += slot->moments->total * nd_dtype_info(slot->side[side]->dtype)->size;
    return bytes;
}

static bool cover_slot(struct arena *arena, const char *layer, const struct slot_pair *slot,
                       struct nd_coverage *coverage, struct name_list *only,
                       struct skip_list *skipped)
{
    const struct dump_slot *any = slot->side[0] != NULL ? slot->side[0] : slot->side[1];

    if (slot->state == SLOT_COMPARED) {
        coverage->tensors_compared++;
        coverage->bytes_compared += slot->measured ? view_bytes(slot) : 0;
        return true;
    }
    const char *name = nd_arena_format(arena, "%s.%s", layer, any->name);
    return slot->state == SLOT_ONE_SIDED ? list_add(arena, &only[slot->side[0] == NULL], name)
                                         : skip_add(arena, skipped, name, slot->reason);
}

/* A layer without a partner: what of it cannot be read is named with its reason. */
static bool cover_alone(struct arena *arena, const struct dump_layer *layer,
                        struct name_list *only, struct skip_list *skipped)
{
    bool fine = list_add(arena, only, layer->name);

    for (size_t s = 0; s < layer->slot_count && fine; s++)
        if (layer->slots[s].broken != NULL)
            fine = skip_add(arena, skipped,
                            nd_arena_format(arena, "%s.%s", layer->name, layer->slots[s].name),
                            layer->slots[s].broken);
    return fine;
}

enum nd_status nd_cover(struct comparison *comparison, struct nd_coverage *coverage,
                        struct nd_error *err)
{
    struct arena    *arena = comparison->arena;
    struct name_list only[2] = {{0}};
    struct skip_list skipped = {0}, covered = {0};
    bool             fine = true;

    for (size_t i = 0; i < comparison->layer_count && fine; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        if (pair->covered_by != NULL) {
            fine = skip_add(arena, &covered, pair->side[0]->name, pair->covered_by);
            continue;
        }
        if (pair->side[1] == NULL) {
            fine = cover_alone(arena, pair->side[0], &only[0], &skipped);
            continue;
        }
        coverage->pairs++;
        for (size_t s = 0; s < pair->slot_count && fine; s++)
            fine = cover_slot(arena, pair->side[0]->name, &pair->slots[s], coverage, only, &skipped);
    }
    for (size_t i = 0; i < comparison->unpaired_candidate_count && fine; i++)
        fine = cover_alone(arena, comparison->unpaired_candidate[i], &only[1], &skipped);
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < comparison->dump[side]->layer_count && fine; i++)
            if (comparison->dump[side]->layers[i].recompute)
                fine = skip_add(arena, &skipped, comparison->dump[side]->layers[i].name,
                                "recomputed call");
    if (!fine)
        return nd_fail_memory(err);
    coverage->reference_only = only[0].names;
    coverage->reference_only_count = only[0].count;
    coverage->candidate_only = only[1].names;
    coverage->candidate_only_count = only[1].count;
    coverage->covered_by = covered.items;
    coverage->covered_by_count = covered.count;
    coverage->skipped = skipped.items;
    coverage->skipped_count = skipped.count;
    coverage->excluded = comparison->excluded;
    coverage->bytes_total = comparison->dump[0]->bytes + comparison->dump[1]->bytes;
    return ND_OK;
}

/* --- the last output ---------------------------------------------------------------- */

static size_t last_output(const struct nd_layer *layer)
{
    for (size_t s = 0; s < layer->slot_count; s++)
        if (strncmp(layer->slots[s].name, "output", 6) == 0 && layer->slots[s].tier != ND_TIER_NONE)
            return s;
    return ND_NO_INDEX;
}

/* Behind the model's own output: what runs forward after the first backward layer of the last
 * step is the optimizer, or a recomputation. */
static size_t outcome_end(const struct nd_result *result)
{
    const size_t count = result->layer_count;

    for (size_t i = 0; i < count; i++) {
        const struct nd_layer *layer = &result->layers[i], *last = &result->layers[count - 1];
        if (layer->step != last->step || strcmp(layer->direction, "forward") == 0)
            continue;
        for (size_t k = i; k-- > 0 && result->layers[k].step == last->step;)
            if (last_output(&result->layers[k]) != ND_NO_INDEX)
                return i;
        return count;
    }
    return count;
}

void nd_outcome(struct comparison *comparison, const struct nd_result *result,
                struct nd_outcome *ret)
{
    *ret = (struct nd_outcome){.layer = ND_NO_INDEX, .slot = ND_NO_INDEX, .drift = (double)NAN,
                               .top1_agreement = (double)NAN};
    for (size_t i = outcome_end(result); i-- > 0;) {
        const struct nd_layer *layer = &result->layers[i];
        const size_t           slot = last_output(layer);
        if (slot == ND_NO_INDEX || layer->role == ND_ROLE_CONTAINER ||
            strcmp(layer->direction, "forward") != 0)
            continue;
        ret->layer = i;
        ret->slot = slot;
        ret->drift = layer->slots[slot].drift;
        for (size_t s = 0; s < comparison->layers[i].slot_count; s++) {
            struct slot_pair *pair = &comparison->layers[i].slots[s];
            struct pair_views views;
            if (!pair->measured || pair->side[0] == NULL ||
                strcmp(pair->side[0]->name, layer->slots[slot].name) != 0)
                continue;
            if (!nd_top1_applies(pair))
                continue;
            if (pair->moments->differ == 0 && pair->moments->mismatches == 0 &&
                pair->moments->masked == 0) {
                nd_top1_equal(pair, ret);
                continue;
            }
            nd_pair_open(comparison, &comparison->layers[i], pair, &views);
            if (views.ready)
                nd_top1_count(comparison->options->jobs, &views, ret);
            (void)nd_pair_close(&views);
        }
        return;
    }
}

/* --- verdict -------------------------------------------------------------------------- */

static bool unmatched_allowed(const struct nd_options *options, const char *name)
{
    return options->allow_unmatched || nd_globs_match(&options->allow_unmatched_globs, name);
}

/* How many times the reference's own error against golden a candidate may show: PyTorch's
 * rule for comparing against float64 (torch._dynamo.utils.same), by precision and size. */
static double golden_factor(const struct layer_pair *pair)
{
    const struct slot_pair *slot = &pair->slots[pair->worst_slot];
    const double u = nd_dtype_roundoff(nd_dtype_coarser(nd_slot_dtype(slot->side[0]),
                                                        nd_slot_dtype(slot->side[1])));

    if (slot->moments->n <= 10)
        return 10;
    if (slot->moments->n <= 500)
        return 8;
    return u > 0x1p-20 ? 3 : 2;
}

/* True if the candidate is no farther from golden than the reference is, within reason:
 * then the drift between the two is nobody's fault. */
static bool cleared_by_golden(const struct comparison *comparison, const struct layer_pair *pair,
                              size_t i)
{
    if (comparison->golden[0] == NULL || pair->worst_slot == ND_NO_INDEX ||
        pair->slots[pair->worst_slot].side[1] == NULL)
        return false;
    const struct slot_pair *slot = &pair->slots[pair->worst_slot];
    const double r = comparison->golden[0][i], c = comparison->golden[1][i];
    /* One rounding leaves 0.4247 u (uniform in log of the significand). */
    const double floor = 0.4247 * nd_dtype_roundoff(nd_dtype_coarser(nd_slot_dtype(slot->side[0]),
                                                                     nd_slot_dtype(slot->side[1])));
    const double share = golden_factor(pair) * r;
    return c <= (share > 4 * floor ? share : 4 * floor); /* false if either is NAN */
}

/* What the diagnosis, --golden and --allow-unmatched leave of a layer's failures. */
static enum nd_fail final_drift(const struct comparison *comparison, const struct nd_result *result,
                                const struct layer_pair *pair, const struct nd_layer *layer)
{
    const struct nd_options *options = comparison->options;

    if ((pair->drifted == ND_FAIL_DRIFT || pair->drifted == ND_FAIL_LOCALISED) &&
        cleared_by_golden(comparison, pair, layer->index))
        return ND_FAIL_NONE;
    if (options->fail_on == ND_FAIL_ON_UNEXPECTED && layer->expected == ND_YES &&
        pair->drifted == ND_FAIL_DRIFT)
        return ND_FAIL_NONE;
    if (options->fail_on == ND_FAIL_ON_ORIGIN && result->first_origin == layer->index &&
        pair->drifted == ND_FAIL_NONE)
        return ND_FAIL_DRIFT;
    return pair->drifted;
}

static void count_layer(struct nd_result *result, const struct nd_layer *layer)
{
    if (layer->role == ND_ROLE_CONTAINER)
        return; /* its leaves are counted */
    if (layer->tier < ND_TIER_COUNT)
        result->summary[layer->tier]++;
    const bool elevated = layer->tier == ND_TIER_ELEVATED || layer->tier == ND_TIER_FAULT;
    if (elevated && result->first_elevated == ND_NO_INDEX)
        result->first_elevated = layer->index;
    if (layer->tier == ND_TIER_FAULT && result->first_fault == ND_NO_INDEX)
        result->first_fault = layer->index;
}

/* What excuses a layer excuses its slots. */
static void excuse_slots(const struct nd_layer *layer)
{
    struct nd_slot *slots = (struct nd_slot *)(uintptr_t)layer->slots;

    for (size_t s = 0; s < layer->slot_count && layer->fails == ND_FAIL_NONE; s++)
        slots[s].fails = ND_FAIL_NONE;
}

void nd_conclude(const struct comparison *comparison, struct nd_result *result)
{
    struct nd_layer *layers = (struct nd_layer *)(uintptr_t)result->layers;
    struct tally     tally = {.failing = 0};

    result->first_elevated = result->first_fault = ND_NO_INDEX;
    memset(result->summary, 0, sizeof result->summary);
    for (size_t i = 0; i < result->layer_count; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        const enum nd_fail uncompared = unmatched_allowed(comparison->options, layers[i].name)
                                            ? ND_FAIL_NONE
                                            : pair->uncompared;
        const enum nd_fail drift = final_drift(comparison, result, pair, &layers[i]);
        layers[i].fails = uncompared != ND_FAIL_NONE && (drift == ND_FAIL_NONE || uncompared < drift)
                              ? uncompared
                              : drift;
        excuse_slots(&layers[i]);
        count_layer(result, &layers[i]);
        tally.missing += uncompared != ND_FAIL_NONE;
        tally.failing += drift != ND_FAIL_NONE;
        tally.kind[drift]++;
        tally.origins += drift == ND_FAIL_DRIFT && pair->drifted == ND_FAIL_NONE;
        tally.excused += drift == ND_FAIL_NONE && layers[i].tier == ND_TIER_FAULT &&
                         layers[i].role != ND_ROLE_CONTAINER;
    }
    result->coverage.uncompared_layers = tally.missing;
    nd_verdict(comparison, &tally, result);
}
