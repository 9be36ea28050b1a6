/*
 * From figures to tiers and failures, slot by slot and layer by layer, under the policy of
 * the options.  What depends on the diagnosis (--fail-on origin, unexpected) is added in
 * conclude.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/compare.h"
#include "compare/kink.h"
#include "metrics/metric.h"

/* A slot is rounding residue when both sides lie under this many units of roundoff of the
 * layer's largest slot (a convolution's bias gradient before BatchNorm is 0 in theory). */
static const double NEGLIGIBLE_UNITS = 64;

void nd_slot_note(struct slot_pair *slot, const char *note)
{
    size_t count = 0;

    while (count < MAX_NOTES && slot->notes[count] != NULL) {
        if (strcmp(slot->notes[count], note) == 0)
            return;
        count++;
    }
    if (count < MAX_NOTES)
        slot->notes[count] = note;
}

enum nd_dtype nd_slot_dtype(const struct dump_slot *slot)
{
    return slot->real_dtype != ND_DTYPE_NONE ? slot->real_dtype : slot->dtype;
}

enum nd_tier nd_tier_of(const double *tiers, double drift)
{
    if (drift <= tiers[0])
        return ND_TIER_NOISE;
    if (drift <= tiers[1])
        return ND_TIER_REDUCTION;
    return drift < tiers[2] ? ND_TIER_ELEVATED : ND_TIER_FAULT; /* a NaN drift is a fault */
}

static bool is_kind(const struct slot_pair *slot, const char *kind)
{
    const struct dump_slot *any = slot->side[0] != NULL ? slot->side[0] : slot->side[1];
    const size_t            len = strlen(kind);

    return strncmp(any->name, kind, len) == 0 && (any->name[len] == '.' || any->name[len] == '\0');
}

/* One-sided params, states and inputs are only listed; what the layer computed must be there. */
static bool must_be_there(const struct slot_pair *slot)
{
    return !is_kind(slot, "param") && !is_kind(slot, "state") && !is_kind(slot, "input") &&
           !is_kind(slot, "state_after");
}

/* Slots of one direction share a scale: gradients among themselves, outputs among
 * themselves.  An output is not residue because its input is large (in bfloat16, 64 u is a
 * quarter of it), and nothing is known of inputs, parameters and states. */
enum scale_group { SCALE_NONE, SCALE_GRADIENT, SCALE_OUTPUT, SCALE_COUNT };

static enum scale_group scale_group_of(const struct layer_pair *layer, const struct slot_pair *slot)
{
    if (is_kind(slot, "param") || is_kind(slot, "state") || is_kind(slot, "state_after"))
        return SCALE_NONE;
    if (is_kind(slot, "grad") || layer->side[0]->direction == DIRECTION_BACKWARD)
        return SCALE_GRADIENT;
    return is_kind(slot, "input") ? SCALE_NONE : SCALE_OUTPUT;
}

struct scale {
    double largest;     /* rms, of either side */
    double roundoff[2]; /* of each side's coarsest dtype */
};

static void scales_take(struct scale *scales, const struct layer_pair *layer,
                        const struct slot_pair *slot)
{
    struct scale *scale = &scales[scale_group_of(layer, slot)];

    for (unsigned side = 0; side < 2 && slot->measured; side++) {
        const struct dump_slot *of = slot->side[side];
        scale->largest = fmax(scale->largest, slot->rms[side]);
        if (of != NULL)
            scale->roundoff[side] =
                fmax(scale->roundoff[side], nd_dtype_roundoff(nd_slot_dtype(of)));
    }
}

static bool is_residue(const struct slot_pair *slot, const struct scale *scale)
{
    const double u = nd_dtype_roundoff(
        nd_dtype_coarser(nd_slot_dtype(slot->side[0]),
                         slot->side[1] == NULL ? ND_DTYPE_NONE : nd_slot_dtype(slot->side[1])));

    for (unsigned side = 0; side < 2; side++)
        if (!(slot->rms[side] <=
              NEGLIGIBLE_UNITS * fmax(u, scale->roundoff[side]) * scale->largest))
            return false;
    return true;
}

static void mark_negligible(const struct comparison *comparison, struct layer_pair *layer)
{
    const double floor = comparison->options->abs_floor;
    struct scale scales[SCALE_COUNT] = {{0}};

    for (size_t s = 0; s < layer->slot_count; s++)
        scales_take(scales, layer, &layer->slots[s]);
    scales[SCALE_NONE].largest = 0;
    /* What is left of a sum that is 0 in theory is residue of the gradients that were summed,
     * whatever it is kept in; an output is not, of another output. */
    scales[SCALE_OUTPUT].roundoff[0] = scales[SCALE_OUTPUT].roundoff[1] = 0;
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        if (!slot->measured || slot->integer || slot->moments->differ == 0)
            continue;
        slot->negligible = isnan(floor)
                               ? is_residue(slot, &scales[scale_group_of(layer, slot)])
                               : slot->rms[0] <= floor && slot->rms[1] <= floor;
        if (slot->negligible)
            nd_slot_note(slot, "rounding_residue");
    }
}

/* 1 <= a <= n/8 and b <= a, with a and b the elements whose scaled error is a fault's and
 * nearly one: few wrong values in an otherwise right tensor. */
bool nd_slot_looks_localised(const struct slot_pair *slot)
{
    const struct nd_detail *detail = slot->detail;

    return detail != NULL && !slot->integer && detail->scaled_fault >= 1 &&
           detail->scaled_fault <= detail->n / 8 && detail->scaled_elevated <= detail->scaled_fault;
}

static void judge_compared(const struct comparison *comparison, struct slot_pair *slot)
{
    struct nd_slot *result = slot->result;
    const double   *tiers = comparison->options->tiers;

    if (result->evidence == ND_EVIDENCE_CHECKSUM) {
        result->tier = slot->differs ? ND_TIER_CHECKSUM : ND_TIER_EXACT;
        return;
    }
    if (result->tier == ND_TIER_UNRESOLVED && result->evidence == ND_EVIDENCE_STATISTICS)
        return;
    slot->localised = nd_slot_looks_localised(slot) && !slot->kink;
    if (slot->kink)
        nd_slot_note(slot, "gradient_at_kink");
    if (result->evidence == ND_EVIDENCE_VALUES && slot->moments->differ == 0 &&
        result->nonfinite_mismatches == 0)
        result->tier = ND_TIER_EXACT;
    else if (slot->one_lsb)
        result->tier = ND_TIER_ELEVATED;
    else if (slot->integer || result->nonfinite_mismatches > 0)
        result->tier = ND_TIER_FAULT;
    else
        result->tier = nd_tier_of(tiers, result->drift);
    if (slot->negligible) {
        slot->localised = false;
        if (result->tier == ND_TIER_FAULT && result->nonfinite_mismatches == 0)
            result->tier = ND_TIER_ELEVATED;
    } else if (slot->localised) {
        result->tier = ND_TIER_FAULT;
        nd_slot_note(slot, "localised");
    }
}

struct bound {
    double number;
    bool   strictly_over; /* --fail-on elevated: over the second bound */
    bool   excused;       /* --tol also excuses the localised fault and the integers */
};

static struct bound layer_bound(const struct comparison *comparison, const struct dump_layer *layer)
{
    const struct nd_options *options = comparison->options;
    struct bound             bound = {.number = options->tiers[2]};

    if (options->fail_on == ND_FAIL_ON_NUMBER)
        bound.number = options->fail_on_number;
    if (options->fail_on == ND_FAIL_ON_ELEVATED)
        bound = (struct bound){.number = options->tiers[1], .strictly_over = true};
    for (size_t i = 0; i < options->tol.count; i++) { /* the last that fits wins */
        const char *rule = options->tol.items[i], *equals = strrchr(rule, '=');
        char        glob[4096];
        double      number;
        if (equals == NULL || (size_t)(equals - rule) >= sizeof glob ||
            nd_number_read(equals + 1, equals + 1 + strlen(equals + 1), &number) == NULL)
            continue; /* refused by nd_compare before */
        memcpy(glob, rule, (size_t)(equals - rule));
        glob[equals - rule] = '\0';
        if (nd_glob_match(glob, layer->name))
            bound = (struct bound){.number = number, .excused = true};
    }
    return bound;
}

static bool reaches(const struct bound *bound, double drift)
{
    return bound->strictly_over ? drift > bound->number : drift >= bound->number;
}

static enum nd_fail compared_fail(const struct comparison *comparison, const struct slot_pair *slot,
                                  const struct bound *bound)
{
    const struct nd_options *options = comparison->options;
    const struct nd_slot    *result = slot->result;
    const bool               any = options->fail_on == ND_FAIL_ON_ANY;

    if (result->evidence == ND_EVIDENCE_CHECKSUM)
        return any && slot->differs ? ND_FAIL_DRIFT : ND_FAIL_NONE;
    if (result->nonfinite_mismatches > 0)
        return ND_FAIL_NONFINITE;
    if (slot->integer && slot->moments->differ > 0 &&
        (!slot->one_lsb || any || options->fail_on == ND_FAIL_ON_ELEVATED) &&
        (!bound->excused || reaches(bound, result->drift)))
        return ND_FAIL_INTEGER;
    if (options->strict_dtype && slot->side[1] != NULL &&
        nd_slot_dtype(slot->side[0]) != nd_slot_dtype(slot->side[1]))
        return ND_FAIL_DTYPE;
    if (slot->integer)
        return ND_FAIL_NONE;
    if (any && slot->differs)
        return ND_FAIL_DRIFT;
    if (slot->negligible && !bound->excused)
        return ND_FAIL_NONE;
    if (result->tier != ND_TIER_UNRESOLVED && result->tier != ND_TIER_EXACT &&
        (reaches(bound, result->drift) || isnan(result->drift)))
        return ND_FAIL_DRIFT;
    return slot->localised && !bound->excused ? ND_FAIL_LOCALISED : ND_FAIL_NONE;
}

static enum nd_fail slot_fail(const struct comparison *comparison, const struct slot_pair *slot,
                              const struct bound *bound)
{
    switch (slot->state) {
    case SLOT_UNREADABLE:
        return ND_FAIL_UNREADABLE;
    case SLOT_SHAPE:
        return slot->result->judged ? ND_FAIL_SHAPE : ND_FAIL_NONE;
    case SLOT_ONE_SIDED:
        return slot->side[0] != NULL && must_be_there(slot) ? ND_FAIL_MISSING : ND_FAIL_NONE;
    case SLOT_SKIPPED:
        return ND_FAIL_NONE;
    case SLOT_COMPARED:
        break;
    }
    return slot->result->judged ? compared_fail(comparison, slot, bound) : ND_FAIL_NONE;
}

static void judge_slots(const struct comparison *comparison, struct layer_pair *layer)
{
    bool beside_inputs = false;

    mark_negligible(comparison, layer);
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        slot->one_lsb = slot->state == SLOT_COMPARED && slot->integer && is_kind(slot, "output") &&
                        slot->moments->differ > 0 && slot->moments->max_abs <= 1 &&
                        nd_layer_quantises(layer->side[0]);
        if (slot->one_lsb)
            nd_slot_note(slot, "one_lsb");
        if (slot->state == SLOT_COMPARED)
            judge_compared(comparison, slot);
        else
            slot->result->tier = slot->state == SLOT_SHAPE ? ND_TIER_FAULT : ND_TIER_NONE;
        if (slot->state == SLOT_COMPARED || slot->state == SLOT_SHAPE)
            beside_inputs = beside_inputs || !is_kind(slot, "input");
    }
    for (size_t s = 0; s < layer->slot_count; s++)
        layer->slots[s].result->judged = !is_kind(&layer->slots[s], "input") || !beside_inputs;
}

/* Worst last; what stands outside the scale lies between reduction and elevated. */
static int severity(enum nd_tier tier)
{
    static const int order[] = {[ND_TIER_EXACT] = 1,      [ND_TIER_NOISE] = 2,
                                [ND_TIER_REDUCTION] = 3,  [ND_TIER_UNRESOLVED] = 4,
                                [ND_TIER_CHECKSUM] = 5,   [ND_TIER_ELEVATED] = 6,
                                [ND_TIER_FAULT] = 7,      [ND_TIER_NONE] = 0};
    return order[tier];
}

/* Whether a slot says more about its layer than the one found so far.  In one tier a figure
 * of values goes before an integer's share of positions: a counter that differs is 1. */
static bool is_worse(const struct slot_pair *slot, const struct slot_pair *than)
{
    const enum nd_tier tier = slot->result->tier;

    if (than == NULL || tier != than->result->tier)
        return than == NULL || severity(tier) > severity(than->result->tier);
    if (slot->integer != than->integer)
        return than->integer;
    return slot->result->drift > than->result->drift;
}

static void layer_worst(struct layer_pair *pair, struct nd_layer *layer)
{
    layer->tier = ND_TIER_NONE;
    layer->drift = (double)NAN;
    pair->worst_slot = ND_NO_INDEX;
    for (size_t s = 0; s < pair->slot_count; s++) {
        const struct nd_slot *slot = pair->slots[s].result;
        if (!slot->judged || slot->tier == ND_TIER_NONE)
            continue;
        if (is_worse(&pair->slots[s],
                     pair->worst_slot == ND_NO_INDEX ? NULL : &pair->slots[pair->worst_slot])) {
            layer->tier = slot->tier;
            layer->drift = slot->drift;
            pair->worst_slot = s;
        }
    }
}

/* The first failure of each sort, in the order of enum nd_fail. */
static void judge_layer(const struct comparison *comparison, struct layer_pair *pair,
                        const struct bound *bound)
{
    size_t compared = 0, skipped = 0;

    pair->uncompared = pair->drifted = ND_FAIL_NONE;
    if (pair->container || comparison->options->fail_on == ND_FAIL_ON_NEVER)
        return;
    if (pair->side[1] == NULL && pair->covered_by == NULL)
        pair->uncompared = ND_FAIL_MISSING;
    for (size_t s = 0; s < pair->slot_count && pair->side[1] != NULL; s++) {
        const enum nd_fail fail = slot_fail(comparison, &pair->slots[s], bound);
        enum nd_fail      *first = fail == ND_FAIL_MISSING || fail == ND_FAIL_UNREADABLE
                                       ? &pair->uncompared
                                       : &pair->drifted;
        pair->slots[s].result->fails = fail;
        if (fail != ND_FAIL_NONE && (*first == ND_FAIL_NONE || fail < *first))
            *first = fail;
        compared += pair->slots[s].state == SLOT_COMPARED || pair->slots[s].state == SLOT_SHAPE;
        skipped += pair->slots[s].undefined;
    }
    /* Paired by name, but nothing of it could be compared. */
    if (pair->uncompared == ND_FAIL_NONE && compared == 0 && skipped == 0 &&
        pair->side[0]->slot_count > 0 && pair->side[1] != NULL)
        pair->uncompared = ND_FAIL_MISSING;
}

enum nd_status nd_judge(struct comparison *comparison, struct nd_result *result,
                        struct nd_error *err)
{
    struct nd_layer *layers =
        nd_arena_alloc(comparison->arena, comparison->layer_count + 1, sizeof *layers);

    if (layers == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_kinks_find(comparison, err));
    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair  *pair = &comparison->layers[i];
        struct nd_layer    *layer = &layers[i];
        const struct bound  bound = layer_bound(comparison, pair->side[0]);
        judge_slots(comparison, pair);
        layer->index = i;
        layer->step = pair->step;
        layer->rank = pair->rank;
        layer->name = pair->side[0]->name;
        layer->original = pair->original;
        layer->candidate_name = pair->side[1] == NULL ? NULL : pair->side[1]->name;
        layer->type = pair->side[0]->type;
        layer->direction = pair->side[0]->direction == DIRECTION_BACKWARD ? "backward" : "forward";
        layer->matched_by = pair->match;
        layer->bound = bound.number;
        layer->role = pair->container ? ND_ROLE_CONTAINER : ND_ROLE_UNKNOWN;
        layer_worst(pair, layer);
        judge_layer(comparison, pair, &bound);
        ND_TRY(nd_freeze_layer(comparison, pair, layer, err));
    }
    result->layers = layers;
    result->layer_count = comparison->layer_count;
    return ND_OK;
}
