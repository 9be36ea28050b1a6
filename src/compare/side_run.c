/*
 * Side runs.
 */
#include "compare/side_run.h"

#include <math.h>
#include <string.h>

#include "metrics/metric.h"

/* Parts of a fused operator's outputs stand elsewhere. */
static bool is_of(const struct dump *dump, const struct dump_layer *layer)
{
    return layer != NULL && dump->layer_count > 0 && layer >= dump->layers &&
           layer < dump->layers + dump->layer_count;
}

/* Layers stand in the dump's own array: an index per dump layer finds the main pair. */
static size_t *places_of(const struct comparison *comparison, unsigned anchored)
{
    const struct dump *dump = comparison->dump[anchored];
    size_t            *places =
        nd_arena_alloc(comparison->arena, dump->layer_count + 1, sizeof *places);

    for (size_t i = 0; places != NULL && i < dump->layer_count; i++)
        places[i] = ND_NO_INDEX;
    for (size_t i = 0; places != NULL && i < comparison->layer_count; i++)
        if (is_of(dump, comparison->layers[i].side[anchored]))
            places[comparison->layers[i].side[anchored] - dump->layers] = i;
    return places;
}

static bool all_bits_equal(const struct layer_pair *pair)
{
    for (size_t s = 0; s < pair->slot_count; s++)
        if (pair->slots[s].measured && !pair->slots[s].result->bit_equal)
            return false;
    return true;
}

static void count_layer(const struct nd_layer *layer, const struct layer_pair *pair,
                        struct side_run *run)
{
    const bool over = layer->tier == ND_TIER_ELEVATED || layer->tier == ND_TIER_FAULT;

    if (layer->tier == ND_TIER_NONE || pair->container)
        return;
    run->compared++;
    run->bit_equal = run->bit_equal && all_bits_equal(pair);
    if (layer->drift > run->worst)
        run->worst = layer->drift;
    run->over += over;
    if (over && run->first_over == NULL)
        run->first_over = layer->name;
}

/* Where the run's layers stand among the comparison's, and what they say there. */
struct anchoring {
    unsigned anchor;
    size_t  *places; /* NULL: nowhere */
    double  *drift;
};

static enum nd_status run_pairs(struct comparison *side, const struct anchoring *at,
                                struct side_run *run, struct nd_error *err)
{
    struct nd_result result = {0};

    ND_TRY(nd_align(side, err));
    ND_TRY(nd_measure(side, err));
    ND_TRY(nd_judge(side, &result, err));
    for (size_t i = 0; i < side->layer_count; i++) {
        const struct dump_layer *layer =
            at->places != NULL ? side->layers[i].side[at->anchor] : NULL;
        count_layer(&result.layers[i], &side->layers[i], run);
        if (layer == NULL || !is_of(side->dump[at->anchor], layer))
            continue;
        const size_t place = at->places[layer - side->dump[at->anchor]->layers];
        if (place != ND_NO_INDEX && result.layers[i].tier != ND_TIER_NONE)
            at->drift[place] = result.layers[i].drift;
    }
    return ND_OK;
}

enum nd_status nd_side_run(const struct comparison *comparison, const struct dump *from,
                           const struct dump *to, unsigned anchor, unsigned anchored,
                           struct side_run *ret, struct nd_error *err)
{
    struct nd_options options = *comparison->options;
    struct comparison side = {.options = &options,
                              .dump = {from, to}, .kernels = comparison->kernels,
                              .metric = nd_metric_by_name("rel_l2"),
                              .family = comparison->family};
    struct side_run   run = {.given = true, .bit_equal = true};
    double *drift = nd_arena_alloc(comparison->arena, comparison->layer_count + 1, sizeof *drift);
    const struct anchoring at = {
        anchor, anchor < 2 ? places_of(comparison, anchored) : NULL, drift};

    if (drift == NULL || (anchor < 2 && at.places == NULL))
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count; i++)
        drift[i] = (double)NAN;
    options.metrics_all = false;
    options.order_file = NULL;
    options.map_file = anchor < 2 ? NULL : options.map_file;
    options.layout = (struct nd_strings){0};
    options.progress = NULL;
    side.bytes_total = from->bytes + to->bytes;
    side.arena = nd_arena_new(); /* a whole comparison, of which little is kept */
    enum nd_status status =
        side.arena == NULL ? nd_fail_memory(err) : run_pairs(&side, &at, &run, err);
    if (status == ND_OK && run.first_over != NULL) {
        run.first_over = nd_arena_string(comparison->arena, run.first_over);
        status = run.first_over == NULL ? nd_fail_memory(err) : ND_OK;
    }
    nd_arena_free(side.arena);
    run.drift = drift;
    if (status == ND_OK)
        *ret = run;
    return status;
}
