/*
 * Comparing prints: max, min, mean and norm where one side (or both) has no values.  What
 * can be seen is a lower bound of the drift; what the printed digits hide is said beside
 * it.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/slot_pair.h"

static const double NOTHING = (double)NAN;

bool nd_statistics_of_values(const struct comparison *comparison, const struct tensor_view *view,
                             enum nd_dtype real, struct statistics *ret)
{
    const struct tensor_view    both[2] = {*view, *view};
    const enum nd_dtype         reals[2] = {real, real};
    const struct moments_policy policy = {.scale = 1, .no_masks = true};
    struct nd_moments           m;

    nd_measure_serially(comparison->kernels, both, reals, &policy, &m);
    *ret = (struct statistics){0};
    for (int s = 0; s < STATISTIC_COUNT; s++) {
        ret->value[s] = NOTHING;
        /* a NaN makes every statistic NaN, as frameworks print it */
        ret->is_nan[s] = m.side[0].nan > 0;
    }
    ret->nan_count = m.side[0].nan;
    const bool pos = m.side[0].pos_inf > 0, neg = m.side[0].neg_inf > 0;
    if (m.side[0].nan > 0 || m.n == 0)
        return false;
    const double n = (double)m.n;
    ret->value[STATISTIC_MAX] = pos ? (double)INFINITY : m.max[0];
    ret->value[STATISTIC_MIN] = neg ? -(double)INFINITY : m.min[0];
    ret->value[STATISTIC_MEAN] = pos && neg ? NOTHING
                                 : pos      ? (double)INFINITY
                                 : neg      ? -(double)INFINITY
                                            : m.sum_r / n;
    ret->value[STATISTIC_NORM] = pos || neg ? (double)INFINITY : sqrt(m.sum_rr);
    return true;
}

/* The two prints of one pair, brought to one scale: norms as rms. */
struct prints {
    const struct statistics *side[2];
    double                   root_n; /* NAN: unknown */
};

static double print_value(const struct prints *prints, unsigned side, int s)
{
    const double value = prints->side[side]->value[s];

    return s == STATISTIC_NORM ? value / prints->root_n : value;
}

static double print_half_unit(const struct prints *prints, int s)
{
    const double sum = prints->side[0]->half_unit[s] + prints->side[1]->half_unit[s];

    return s == STATISTIC_NORM ? sum / prints->root_n : sum;
}

/* An infinite norm beside a finite maximum: the sum of squares overflowed, not the data. */
static bool norm_overflowed(const struct statistics *print)
{
    return isinf(print->value[STATISTIC_NORM]) && isfinite(print->value[STATISTIC_MAX]);
}

struct visible {
    double   drift, hidden, scale;
    unsigned compared, mismatches;
};

static struct visible prints_compare(const struct prints *prints)
{
    struct visible visible = {0};
    double         widest = 0, gap = 0;

    for (int s = 0; s < STATISTIC_COUNT; s++) {
        const double r = print_value(prints, 0, s), c = print_value(prints, 1, s);
        const bool   present[2] = {!isnan(prints->side[0]->value[s]), !isnan(prints->side[1]->value[s])};
        if (isfinite(r) && fabs(r) > visible.scale)
            visible.scale = fabs(r);
        if (s == STATISTIC_NORM && (norm_overflowed(prints->side[0]) || norm_overflowed(prints->side[1])))
            continue;
        if (!present[0] || !present[1] || isnan(r) || isnan(c))
            continue;
        visible.compared++;
        if (!isfinite(r) || !isfinite(c)) {
            visible.mismatches += r != c;
            continue;
        }
        const double rho = print_half_unit(prints, s);
        /* Decimal prints are not exact in binary: a few units of roundoff are no gap. */
        const double slack = 4 * DBL_EPSILON * (fabs(r) > fabs(c) ? fabs(r) : fabs(c));
        const double delta = fabs(c - r) - rho > slack ? fabs(c - r) - rho : 0;
        if (rho > widest)
            widest = rho;
        if (delta > gap)
            gap = delta;
    }
    if (visible.scale == 0) {
        visible.drift = gap > 0 ? (double)INFINITY : 0;
        visible.hidden = widest > 0 ? (double)INFINITY : 0;
    } else {
        visible.drift = gap / visible.scale;
        visible.hidden = widest / visible.scale;
    }
    return visible;
}

static double root_of_count(const struct slot_pair *slot, const struct statistics *const *print)
{
    for (unsigned side = 0; side < 2; side++) {
        uint64_t count;
        const struct dump_slot *dumped = slot->side[side];
        if (dumped->has_shape && nd_shape_count(&dumped->storage, &count) && count > 0)
            return sqrt((double)count);
    }
    /* Without a shape a norm can only stand beside other norms. */
    for (int s = 0; s < STATISTIC_NORM; s++)
        if (!isnan(print[0]->value[s]) && !isnan(print[1]->value[s]))
            return NOTHING;
    return 1;
}

/* What a side's values would print; false: they cannot be read. */
static bool print_compute(const struct comparison *comparison, unsigned side,
                          const struct dump_slot *slot, struct statistics *ret_print,
                          struct slot_pair *pair)
{
    struct open_slot open;
    struct nd_error  err = {0};

    if (slot->broken == NULL && nd_slot_open(comparison->dump[side], slot, &open, &err) == ND_OK) {
        (void)nd_statistics_of_values(comparison, &open.view, nd_slot_dtype(slot), ret_print);
        (void)nd_slot_close(&open);
        return true;
    }
    pair->state = SLOT_UNREADABLE;
    pair->reason = slot->broken != NULL ? slot->broken
                                        : nd_arena_format(comparison->arena, "%s", err.found);
    return false;
}

static bool print_of(const struct comparison *comparison, unsigned side,
                     const struct dump_slot *slot, struct statistics *computed,
                     const struct statistics **ret_print, struct slot_pair *pair)
{
    if (slot->evidence == ND_EVIDENCE_VALUES && pair->print[side] == NULL) {
        *ret_print = computed;
        return print_compute(comparison, side, slot, computed, pair);
    }
    *ret_print = pair->print[side] != NULL ? pair->print[side] : &slot->statistics;
    return true;
}

/* --- ahead ------------------------------------------------------------------------------ */

struct print_job {
    struct slot_pair  *pair;
    unsigned           side;
    struct statistics *print;
    bool               is_made;
};

struct print_jobs {
    const struct comparison *comparison;
    struct print_job        *jobs;
    size_t                   count;
};

/* The side whose values stand beside the other's prints; 2: neither. */
static unsigned values_side(const struct layer_pair *layer, const struct slot_pair *pair)
{
    const struct dump_slot *const *side = pair->side;

    if (layer->part_count > 0 || side[0] == NULL || side[1] == NULL || side[0]->undefined ||
        side[1]->undefined || side[0]->evidence == side[1]->evidence)
        return 2;
    for (unsigned s = 0; s < 2; s++)
        if (side[s]->evidence == ND_EVIDENCE_VALUES && side[s]->broken == NULL &&
            side[!s]->has_statistics && side[!s]->broken == NULL)
            return s;
    return 2;
}

static void jobs_find(struct print_jobs *found)
{
    const struct comparison *comparison = found->comparison;

    found->count = 0;
    for (size_t i = 0; i < comparison->layer_count; i++)
        for (size_t s = 0; s < comparison->layers[i].slot_count; s++) {
            struct slot_pair *const pair = &comparison->layers[i].slots[s];
            const unsigned          side = values_side(&comparison->layers[i], pair);
            if (side == 2)
                continue;
            if (found->jobs != NULL)
                found->jobs[found->count] = (struct print_job){.pair = pair, .side = side};
            found->count++;
        }
}

static void print_make(void *user, size_t i, unsigned worker)
{
    const struct print_jobs *found = user;
    struct print_job        *job = &found->jobs[i];
    const struct dump_slot  *slot = job->pair->side[job->side];
    struct open_slot         open;

    (void)worker;
    if (nd_slot_open(found->comparison->dump[job->side], slot, &open, NULL) != ND_OK)
        return; /* comparing the pair says why */
    (void)nd_statistics_of_values(found->comparison, &open.view, nd_slot_dtype(slot), job->print);
    (void)nd_slot_close(&open);
    job->is_made = true;
}

void nd_statistics_ahead(struct comparison *comparison)
{
    struct print_jobs found = {.comparison = comparison};

    jobs_find(&found);
    if (comparison->options->jobs == 1 || found.count < 2)
        return;
    struct statistics *const prints =
        nd_arena_alloc(comparison->arena, found.count, sizeof *prints);
    found.jobs = malloc(found.count * sizeof *found.jobs);
    if (prints != NULL && found.jobs != NULL) {
        jobs_find(&found);
        for (size_t i = 0; i < found.count; i++)
            found.jobs[i].print = &prints[i];
        nd_pool_run(comparison->options->jobs, found.count, print_make, NULL, &found);
        for (size_t i = 0; i < found.count; i++)
            if (found.jobs[i].is_made)
                found.jobs[i].pair->print[found.jobs[i].side] = found.jobs[i].print;
    }
    free(found.jobs);
}

/* What is kept of a print: itself where the dump has it; NULL: no memory for a computed one. */
static const struct statistics *print_keep(struct arena *arena, const struct statistics *print,
                                           const struct statistics *computed)
{
    if (print != computed)
        return print;
    struct statistics *const kept = nd_arena_alloc(arena, 1, sizeof *kept);
    if (kept != NULL)
        *kept = *computed;
    return kept;
}

/* A mean of both infinities is NaN although no element is. */
static bool shows_nan(const struct statistics *print, int s)
{
    const bool cancelled = s == STATISTIC_MEAN && print->value[STATISTIC_MAX] == HUGE_VAL &&
                           print->value[STATISTIC_MIN] == -HUGE_VAL;

    return print->is_nan[s] && isnan(print->value[s]) && !cancelled;
}

/* Statistics that both sides print as NaN. */
static unsigned nan_agreements(const struct statistics *const *print)
{
    unsigned count = 0;

    for (int s = 0; s < STATISTIC_COUNT; s++)
        count += shows_nan(print[0], s) && shows_nan(print[1], s);
    return count;
}

/* A statistic that is NaN as printed (not missing) on one side and a number on the other: but
 * of a print that counts its NaNs the number is that of the other elements. */
static unsigned nan_mismatches(const struct statistics *const *print)
{
    bool     holds_nan[2] = {print[0]->nan_count > 0, print[1]->nan_count > 0};
    unsigned count = 0;

    for (unsigned side = 0; side < 2; side++)
        for (int s = 0; s < STATISTIC_COUNT; s++)
            holds_nan[side] = holds_nan[side] || shows_nan(print[side], s);
    count += holds_nan[0] != holds_nan[1];
    for (int s = 0; s < STATISTIC_COUNT; s++)
        for (unsigned side = 0; side < 2; side++)
            count += shows_nan(print[side], s) && !isnan(print[!side]->value[s]) &&
                     print[!side]->nan_count == 0;
    return count;
}

static void shapes_of_prints(struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];

    if (!r->has_shape || !c->has_shape ||
        (r->logical == NULL && c->logical == NULL && nd_shape_equal(&r->storage, &c->storage)))
        return;
    const struct nd_shape a = nd_shape_squeezed(r->logical != NULL ? r->logical : &r->storage);
    const struct nd_shape b = nd_shape_squeezed(c->logical != NULL ? c->logical : &c->storage);
    uint64_t              n, k;
    if (nd_shape_equal(&a, &b))
        return;
    /* A layout may reorder a print's tensor, never change how many elements it has. */
    if (nd_shape_count(&a, &n) && nd_shape_count(&b, &k) && n == k) {
        nd_slot_note(slot, "shape_differs");
        return;
    }
    slot->state = SLOT_SHAPE;
    slot->reason = "shapes differ";
}

void nd_compare_statistics(const struct comparison *comparison, const struct layer_pair *layer,
                           struct slot_pair *slot)
{
    struct statistics        computed[2];
    const struct statistics *print[2];
    struct nd_slot          *result = slot->result;

    (void)layer;
    result->evidence = ND_EVIDENCE_STATISTICS;
    for (unsigned side = 0; side < 2; side++)
        if (!print_of(comparison, side, slot->side[side], &computed[side], &print[side], slot))
            return;
    for (unsigned side = 0; side < 2; side++)
        slot->print[side] = print_keep(comparison->arena, print[side], &computed[side]);
    shapes_of_prints(slot);
    if (slot->state == SLOT_SHAPE)
        return;
    const struct prints  prints = {{print[0], print[1]}, root_of_count(slot, print)};
    const struct visible visible = prints_compare(&prints);
    const unsigned       nans = nan_agreements(print);
    result->nonfinite_mismatches = visible.mismatches + nan_mismatches(print) +
                                   (comparison->options->nan_strict ? nans : 0);
    if (norm_overflowed(print[0]) || norm_overflowed(print[1]))
        nd_slot_note(slot, "statistic_overflowed");
    if (visible.compared == 0 && nans > 0)
        nd_slot_note(slot, "no_finite_positions");
    if (visible.compared == 0 && nans == 0 && result->nonfinite_mismatches == 0) {
        slot->state = SLOT_SKIPPED;
        slot->reason = "the two sides print no statistic in common";
        return;
    }
    result->drift = visible.drift;
    result->hidden_up_to = visible.hidden;
    slot->differs = visible.drift > 0 || result->nonfinite_mismatches > 0;
    if (visible.drift == 0 && visible.hidden > 1e-1 && result->nonfinite_mismatches == 0)
        result->tier = ND_TIER_UNRESOLVED;
    else
        result->tier = ND_TIER_NOISE; /* judge.c takes it from drift; never exact */
    slot->state = SLOT_COMPARED;
}
