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
    FREE_ELEMENTS = 1 << 24,
    COMPARED_PER_REPLAYED = 64,
    LEAST_BITS = 16,
    MOST_BITS = 22
};

/* Elements of a norm's replay, over those of other formulas: cheap, but they tell less. */
enum { NORM_OVER_OTHERS = 4 };

/* Multiply-adds: a quarter of a second of one thread, and one for every few compared. */
enum {
    FREE_TERMS = 1 << 27,
    COMPARED_PER_TERM = 8,
    LEAST_TERMS = 1 << 16,
    MOST_TERMS = 1 << 22
};

/* What can be recomputed of one layer. */
struct demand {
    uint64_t elements;
    bool is_norm, is_product;
};

static struct demand demand_of(const struct nd_layer *layer)
{
    const struct op *op = layer->role == ND_ROLE_CONTAINER ? NULL : nd_op_for(layer->type);
    struct demand demand = {.is_norm = op != NULL && op->norm != NULL,
                            .is_product = op != NULL && op->product};

    for (size_t s = 0; op != NULL && s < layer->slot_count; s++)
        if (strcmp(layer->slots[s].name, "output.0") == 0 &&
            layer->slots[s].tier != ND_TIER_EXACT)
            demand.elements = layer->slots[s].n;
    return demand;
}

/* Elements that all replays take under a limit for norms of 2^bits. */
static uint64_t cost_under(const struct demand *demands, size_t count, unsigned bits)
{
    const uint64_t norm = (uint64_t)1 << bits, other = norm / NORM_OVER_OTHERS;
    uint64_t cost = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t most = demands[i].is_norm ? norm : other;
        if (!demands[i].is_product)
            cost += demands[i].elements < most ? demands[i].elements : most;
    }
    return cost;
}

static uint64_t terms_under(const struct demand *demands, size_t count, uint64_t compared)
{
    uint64_t products = 1;

    for (size_t i = 0; i < count; i++)
        products += demands[i].is_product && demands[i].elements > 0;
    const uint64_t each = (FREE_TERMS + compared / COMPARED_PER_TERM) / products;
    return each < LEAST_TERMS ? LEAST_TERMS : each > MOST_TERMS ? MOST_TERMS : each;
}

struct replay_budget nd_replay_budget(const struct nd_result *result)
{
    struct demand *demands = malloc((result->layer_count + 1) * sizeof *demands);
    uint64_t compared = 0;
    unsigned bits = MOST_BITS;
    struct replay_budget budget = {.terms = LEAST_TERMS};

    for (size_t i = 0; demands != NULL && i < result->layer_count; i++) {
        demands[i] = demand_of(&result->layers[i]);
        for (size_t s = 0; s < result->layers[i].slot_count; s++)
            compared += result->layers[i].slots[s].n;
    }
    const uint64_t room = FREE_ELEMENTS + compared / COMPARED_PER_REPLAYED;
    while (bits > LEAST_BITS &&
           (demands == NULL || cost_under(demands, result->layer_count, bits) > room))
        bits--;
    budget.norm = (uint64_t)1 << bits;
    budget.other = budget.norm / NORM_OVER_OTHERS;
    if (demands != NULL)
        budget.terms = terms_under(demands, result->layer_count, compared);
    free(demands);
    return budget;
}
