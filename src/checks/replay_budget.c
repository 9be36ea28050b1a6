/*
 * Recomputing an element in float64 costs about as much as comparing thirty, and the first
 * diverging layer is looked at besides.  A dump of a few million elements is recomputed
 * whole, which takes a moment; of larger ones each layer gives a sample.  A sample of 2^16
 * elements still shows a coherent error of half the rounding of one element with a hundred
 * standard errors; what is local is looked for at the worst element, which the comparison
 * knows.
 */
#include "checks/replay_budget.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"

enum {
    FREE_ELEMENTS = 1 << 21,
    COMPARED_PER_REPLAYED = 64,
    LEAST_BITS = 16,
    MOST_BITS = 22
};

/* Elements of a norm's replay, over those of other formulas: cheap, but they tell less. */
enum { NORM_OVER_OTHERS = 4 };

/* Multiply-adds: some ten milliseconds of one thread, and one for every few compared. */
enum {
    FREE_TERMS = 1 << 23,
    COMPARED_PER_TERM = 8,
    LEAST_TERM_BITS = 16,
    MOST_TERM_BITS = 22
};

/* What can be recomputed of one layer. */
struct demand {
    uint64_t elements; /* of its output */
    uint64_t terms;    /* of a product, that one element sums over; 0: no product */
    bool is_norm;
};

/* A product sums over the last axis of its input, a convolution over a filter; a weight is
 * not always compared. */
static uint64_t demand_terms(const struct nd_layer *layer)
{
    uint64_t terms = 1;

    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct nd_shape *shape = &layer->slots[s].shape;
        if (strcmp(layer->slots[s].name, "param.weight") == 0 && shape->rank > 2) {
            for (uint32_t k = 1; k < shape->rank; k++)
                terms *= shape->dim[k];
            return terms;
        }
    }
    for (size_t s = 0; s < layer->slot_count; s++) {
        const struct nd_shape *shape = &layer->slots[s].shape;
        if (strcmp(layer->slots[s].name, "input.0") == 0 && shape->rank > 0)
            terms = shape->dim[shape->rank - 1];
    }
    return terms > 0 ? terms : 1;
}

static struct demand demand_of(const struct nd_layer *layer)
{
    const struct op *op = layer->role == ND_ROLE_CONTAINER ? NULL : nd_op_for(layer->type);
    struct demand demand = {.is_norm = op != NULL && op->norm != NULL};

    for (size_t s = 0; op != NULL && s < layer->slot_count; s++)
        if (strcmp(layer->slots[s].name, "output.0") == 0 &&
            layer->slots[s].tier != ND_TIER_EXACT)
            demand.elements = layer->slots[s].n;
    if (op != NULL && op->product)
        demand.terms = demand_terms(layer);
    return demand;
}

/* Elements that all replays take under a limit for norms of 2^bits. */
static uint64_t cost_under(const struct demand *demands, size_t count, unsigned bits)
{
    const uint64_t norm = (uint64_t)1 << bits, other = norm / NORM_OVER_OTHERS;
    uint64_t cost = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t most = demands[i].is_norm ? norm : other;
        if (demands[i].terms == 0)
            cost += demands[i].elements < most ? demands[i].elements : most;
    }
    return cost;
}

/* Multiply-adds that all products take under a limit of 2^bits. */
static uint64_t terms_under(const struct demand *demands, size_t count, unsigned bits)
{
    const uint64_t most = (uint64_t)1 << bits;
    uint64_t cost = 0;

    for (size_t i = 0; i < count; i++)
        if (demands[i].terms > 0)
            cost += demands[i].elements < most / demands[i].terms
                        ? demands[i].elements * demands[i].terms
                        : most;
    return cost;
}

typedef uint64_t under_fn(const struct demand *demands, size_t count, unsigned bits);

/* The most bits that keep the cost within the room: what is small is recomputed whole, and
 * the rest in equal parts. */
static uint64_t limit_within(under_fn *cost, const struct demand *demands, size_t count,
                             uint64_t room, unsigned most, unsigned least)
{
    while (most > least && (demands == NULL || cost(demands, count, most) > room))
        most--;
    return (uint64_t)1 << most;
}

struct replay_budget nd_replay_budget(const struct nd_result *result)
{
    const size_t count = result->layer_count;
    struct demand *demands = malloc((count + 1) * sizeof *demands);
    uint64_t compared = 0;
    struct replay_budget budget;

    for (size_t i = 0; demands != NULL && i < count; i++) {
        demands[i] = demand_of(&result->layers[i]);
        for (size_t s = 0; s < result->layers[i].slot_count; s++)
            compared += result->layers[i].slots[s].n;
    }
    budget.norm = limit_within(cost_under, demands, count,
                               FREE_ELEMENTS + compared / COMPARED_PER_REPLAYED, MOST_BITS,
                               LEAST_BITS);
    budget.other = budget.norm / NORM_OVER_OTHERS;
    budget.terms = limit_within(terms_under, demands, count,
                                FREE_TERMS + compared / COMPARED_PER_TERM, MOST_TERM_BITS,
                                LEAST_TERM_BITS);
    free(demands);
    return budget;
}
