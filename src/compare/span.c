/*
 * The place where drift entered, as far as the dumps tell.  Operators without a partner
 * (one side fuses what the other computes in steps, or left a call out) are passed over, so
 * that a first diverging layer may stand behind several that nobody compared: the span from
 * the last common point that agrees to it, and what is in between.
 */
#include <math.h>
#include <string.h>

#include "compare/select.h"

static bool is_point(const struct nd_layer *layer)
{
    return layer->candidate_name != NULL && layer->tier != ND_TIER_NONE &&
           layer->role != ND_ROLE_CONTAINER;
}

static bool agrees(const struct nd_result *result, const struct nd_layer *layer)
{
    return layer->role == ND_ROLE_CLEAN || layer->drift <= result->policy.tiers[1];
}

static bool same_moment(const struct nd_layer *a, const struct nd_layer *b)
{
    return a->step == b->step && a->rank == b->rank &&
           strcmp(a->direction, b->direction) == 0;
}

/* The last common point before a layer; one that agrees, if there is one. */
static size_t point_before(const struct nd_result *result, size_t to)
{
    for (size_t i = to; i-- > 0;)
        if (is_point(&result->layers[i]) && agrees(result, &result->layers[i]) &&
            same_moment(&result->layers[i], &result->layers[to]))
            return i;
    return ND_NO_INDEX;
}

static bool is_between(const struct dump_layer *layer, const struct dump_layer *from,
                       const struct dump_layer *to)
{
    return layer->step == to->step && layer->rank == to->rank &&
           layer->direction == to->direction && layer < to &&
           (from == NULL || layer > from);
}

/* Candidate layers without a partner between those of the two points, as its dump has them.
 */
static size_t skipped_of_candidate(const struct comparison *comparison, size_t from,
                                   size_t to, const char **names)
{
    const struct dump_layer *a =
        from == ND_NO_INDEX ? NULL : comparison->layers[from].side[1];
    const struct dump_layer *b = comparison->layers[to].side[1];
    size_t count = 0;

    for (size_t i = 0; i < comparison->unpaired_candidate_count; i++)
        if (comparison->dump[1]->order == ND_ORDER_RECORDED && !comparison->by_graph &&
            is_between(comparison->unpaired_candidate[i], a, b)) {
            if (names != NULL)
                names[count] = comparison->unpaired_candidate[i]->name;
            count++;
        }
    return count;
}

static size_t skipped_of_reference(const struct comparison *comparison,
                                   const struct nd_result *result, size_t from, size_t to,
                                   const char **names)
{
    size_t count = 0;

    for (size_t i = from == ND_NO_INDEX ? 0 : from + 1; i < to; i++)
        if (comparison->layers[i].side[1] == NULL &&
            comparison->layers[i].covered_by == NULL &&
            result->layers[i].role != ND_ROLE_CONTAINER &&
            same_moment(&result->layers[i], &result->layers[to])) {
            if (names != NULL)
                names[count] = result->layers[i].name;
            count++;
        }
    return count;
}

/* A layer whose own inputs agree is the place itself; by name nothing is between others. */
static bool has_span(const struct comparison *comparison, const struct nd_result *result)
{
    const struct nd_first *first = &result->first;
    const bool is_gap = first->role != NULL && strcmp(first->role, "gap") == 0;

    if (first->layer == ND_NO_INDEX || comparison->layers[first->layer].side[1] == NULL ||
        (comparison->dump[0]->order >= ND_ORDER_NAME &&
         comparison->dump[1]->order >= ND_ORDER_NAME))
        return false;
    return is_gap || isnan(first->input_drift) ||
           first->input_drift > result->policy.tiers[1];
}

enum nd_status nd_span_find(struct comparison *comparison, struct nd_result *result,
                            struct nd_error *err)
{
    struct nd_span *span = &result->first.span;
    const size_t to = result->first.layer;

    *span = (struct nd_span){.from = ND_NO_INDEX, .to = ND_NO_INDEX};
    if (!has_span(comparison, result))
        return ND_OK;
    const size_t from = point_before(result, to);
    const size_t count[2] = {skipped_of_reference(comparison, result, from, to, NULL),
                             skipped_of_candidate(comparison, from, to, NULL)};
    const bool is_gap =
        result->first.role != NULL && strcmp(result->first.role, "gap") == 0;
    if (count[0] + count[1] == 0 && !(is_gap && from != ND_NO_INDEX))
        return ND_OK;
    for (unsigned side = 0; side < 2; side++) {
        const char **names =
            nd_arena_alloc(comparison->arena, count[side] + 1, sizeof *names);
        if (names == NULL)
            return nd_fail_memory(err);
        if (side == 0)
            skipped_of_reference(comparison, result, from, to, names);
        else
            skipped_of_candidate(comparison, from, to, names);
        span->skipped[side] = names;
        span->skipped_count[side] = count[side];
    }
    for (size_t i = 0; i < result->layer_count; i++)
        span->points += is_point(&result->layers[i]);
    span->from = from;
    span->to = to;
    return ND_OK;
}

void nd_stack_find(const struct comparison *comparison, struct nd_result *result)
{
    const struct layer_pair *pair = result->first.layer == ND_NO_INDEX
                                        ? NULL
                                        : &comparison->layers[result->first.layer];

    for (unsigned side = 0; side < 2; side++)
        result->first.stack[side] =
            pair == NULL || pair->side[side] == NULL ? NULL : pair->side[side]->stack;
}
