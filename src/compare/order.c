/*
 * Execution order of the paired layers: an --order file first, then the better of the two
 * dumps' own orders, and step by step over all ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/fusion.h"
#include "compare/select.h"

struct place {
    int64_t step;
    size_t  at; /* position within its step and rank */
    size_t  within; /* among those of one position */
    int64_t rank;
    size_t  index;
};

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->within != y->within)
        return x->within < y->within ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Where the candidate knows the order and the reference does not, a paired layer stands at
 * its candidate's place, one that went into a fused operator before it, and another one
 * right behind its predecessor by name. */
static enum nd_status borrow_order(const struct comparison *comparison,
                                   const struct side_layers *sides, const struct fusion *fusion,
                                   struct place *places, struct nd_error *err)
{
    size_t *at = nd_arena_alloc(comparison->arena, fusion->graph.count + 1, sizeof *at);
    size_t  last = 0;

    if (at == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < fusion->graph.count; i++)
        at[i] = ND_NO_INDEX;
    for (size_t i = 0; fusion->graph.count > 0 && i < sides[1].count; i++) {
        const struct atc_op *op =
            nd_fusion_op(comparison->arena, fusion, sides[1].layers[i]->name);
        if (op != NULL && at[op - fusion->graph.ops] == ND_NO_INDEX)
            at[op - fusion->graph.ops] = i;
    }
    for (size_t i = 0; i < sides[0].count; i++) {
        size_t               within;
        const struct atc_op *op =
            nd_fusion_of(comparison->arena, fusion, sides[0].layers[i]->name, &within);
        const bool is_known = op != NULL && at[op - fusion->graph.ops] != ND_NO_INDEX;
        places[i].within = is_known ? within : SIZE_MAX;
        if (sides[0].partner[i] != ND_NO_INDEX)
            last = sides[0].partner[i];
        else if (is_known)
            last = at[op - fusion->graph.ops];
        places[i].at = last;
    }
    return ND_OK;
}

/* Positions count within one step and rank, so that ranks are read side by side. */
static void count_places(const struct side_layers *side, struct place *places)
{
    /* Layers of one (step, rank) stand together in a dump; a change starts a new count. */
    size_t begin = 0;

    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        if (i > 0 && (layer->step != side->layers[i - 1]->step ||
                      layer->rank != side->layers[i - 1]->rank))
            begin = i;
        places[i].at = i - begin;
    }
}

struct named_line {
    const char *name;
    size_t      line;
};

static int named_order(const void *a, const void *b)
{
    const struct named_line *x = a, *y = b;
    const int                order = strcmp(x->name, y->name);

    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static enum nd_status read_order_lines(struct arena *arena, const struct map *map,
                                       struct named_line **ret_lines, size_t *ret_count,
                                       struct nd_error *err)
{
    const char        *at = map->size == 0 ? "" : (const char *)map->bytes, *end = at + map->size;
    struct named_line *lines = NULL;
    size_t             count = 0, capacity = 0;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        const char *from = at, *to = stop;
        while (from < to && (*from == ' ' || *from == '\t'))
            from++;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
            to--;
        at = stop + 1;
        if (from == to || *from == '#')
            continue;
        struct named_line *grown = nd_arena_grow(arena, lines, count, &capacity, sizeof *grown);
        if (grown == NULL)
            return nd_fail_memory(err);
        lines = grown;
        lines[count] = (struct named_line){nd_arena_copy(arena, from, (size_t)(to - from)), count};
        if (lines[count++].name == NULL)
            return nd_fail_memory(err);
    }
    if (count > 1)
        qsort(lines, count, sizeof *lines, named_order);
    *ret_lines = lines;
    *ret_count = count;
    return ND_OK;
}

/* Layers that the file names stand in its order; the others keep their place behind them. */
static enum nd_status apply_order_file(struct comparison *comparison, struct side_layers *sides,
                                       struct place *places, struct nd_error *err)
{
    struct map         map;
    struct named_line *lines = NULL;
    size_t             count = 0;

    ND_TRY(nd_map_open(comparison->options->order_file, &map, err));
    const enum nd_status status = read_order_lines(comparison->arena, &map, &lines, &count, err);
    nd_map_close(&map);
    ND_TRY(status);
    size_t fitting = 0;
    for (size_t i = 0; i < sides[0].count; i++) {
        size_t low = 0, high = count;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (strcmp(lines[middle].name, sides[0].layers[i]->name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        const bool named = low < count && strcmp(lines[low].name, sides[0].layers[i]->name) == 0;
        places[i].at = named ? lines[low].line : count + places[i].at;
        fitting += named;
    }
    if (fitting == 0 && count > 0) {
        nd_fail_key(err, ND_ERR_USAGE, "--order", "names of layers, one a line",
                    "%zu lines, none of them the name of a reference layer", count);
        nd_error_file(err, comparison->options->order_file);
        return ND_ERR_USAGE;
    }
    return ND_OK;
}

enum nd_status nd_select_order(struct comparison *comparison, struct side_layers *sides,
                               const struct fusion *fusion, struct nd_error *err)
{
    struct arena       *arena = comparison->scratch;
    struct side_layers *reference = &sides[0];
    struct place       *places = nd_arena_alloc(arena, reference->count + 1, sizeof *places);
    struct side_layers  sorted = {.count = reference->count};

    sorted.layers = nd_arena_alloc(arena, reference->count + 1, sizeof *sorted.layers);
    sorted.partner = nd_arena_alloc(arena, reference->count + 1, sizeof *sorted.partner);
    sorted.match = nd_arena_alloc(arena, reference->count + 1, sizeof *sorted.match);
    sorted.parted = nd_arena_alloc(arena, reference->count + 1, sizeof *sorted.parted);
    if (places == NULL || sorted.layers == NULL || sorted.partner == NULL || sorted.match == NULL ||
        sorted.parted == NULL)
        return nd_fail_memory(err);
    count_places(reference, places);
    comparison->order_borrowed = comparison->dump[0]->order == ND_ORDER_NAME &&
                                 comparison->dump[1]->order < ND_ORDER_NAME;
    if (comparison->order_borrowed)
        ND_TRY(borrow_order(comparison, sides, fusion, places, err));
    if (comparison->options->order_file != NULL)
        ND_TRY(apply_order_file(comparison, sides, places, err));
    for (size_t i = 0; i < reference->count; i++) {
        places[i].step = reference->layers[i]->step;
        places[i].rank = reference->layers[i]->rank;
        places[i].index = i;
    }
    qsort(places, reference->count, sizeof *places, place_order);
    for (size_t i = 0; i < reference->count; i++) {
        sorted.layers[i] = reference->layers[places[i].index];
        sorted.partner[i] = reference->partner[places[i].index];
        sorted.match[i] = reference->match[places[i].index];
        sorted.parted[i] = reference->parted != NULL && reference->parted[places[i].index];
        if (sorted.partner[i] != ND_NO_INDEX)
            sides[1].partner[sorted.partner[i]] = i;
    }
    *reference = sorted;
    return ND_OK;
}
