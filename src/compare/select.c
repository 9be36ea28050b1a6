/*
 * Selection and order of layers.
 */
#include "compare/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool nd_globs_match(const struct nd_strings *globs, const char *name)
{
    for (size_t i = 0; i < globs->count; i++)
        if (nd_glob_match(globs->items[i], name))
            return true;
    return false;
}

/* --slots names kinds: "output" takes output.0, output.1 ... */
bool nd_select_slot(const struct nd_options *options, const char *slot_name)
{
    const size_t kind = strcspn(slot_name, ".");

    if (options->slots.count == 0)
        return true;
    for (size_t i = 0; i < options->slots.count; i++) {
        const char *want = options->slots.items[i];
        if ((strlen(want) == kind && memcmp(want, slot_name, kind) == 0) ||
            nd_glob_match(want, slot_name))
            return true;
    }
    return false;
}

static bool asked_for(const struct nd_options *options, const struct dump_layer *layer)
{
    if (options->step >= 0 && layer->step >= 0 && layer->step != options->step)
        return false;
    if (options->rank >= 0 && layer->rank >= 0 && layer->rank != options->rank)
        return false;
    if (options->direction != NULL && layer->direction != (strcmp(options->direction, "backward") == 0
                                                               ? DIRECTION_BACKWARD
                                                               : DIRECTION_FORWARD))
        return false;
    return true;
}

/* A layer that carries none of the slots of --slots is left out like an excluded one. */
static bool has_asked_slot(const struct nd_options *options, const struct dump_layer *layer)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (nd_select_slot(options, layer->slots[i].name))
            return true;
    return layer->slot_count == 0;
}

static bool included(const struct nd_options *options, const struct dump_layer *layer)
{
    if (options->include.count > 0 && !nd_globs_match(&options->include, layer->name))
        return false;
    return !nd_globs_match(&options->exclude, layer->name);
}

static int by_name(const void *a, const void *b)
{
    const struct dump_layer *x = *(const struct dump_layer *const *)a;
    const struct dump_layer *y = *(const struct dump_layer *const *)b;
    const int                order = nd_natural_compare(x->name, y->name);

    if (order != 0)
        return order;
    return x < y ? -1 : x > y;
}

static int by_time(const void *a, const void *b)
{
    const struct dump_layer *x = *(const struct dump_layer *const *)a;
    const struct dump_layer *y = *(const struct dump_layer *const *)b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* As a reader that sorts names leaves them. */
static bool is_sorted(const struct dump_layer *const *layers, size_t count,
                      int (*order)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++)
        if (order(&layers[i - 1], &layers[i]) > 0)
            return false;
    return true;
}

enum nd_status nd_select_layers(struct comparison *comparison, unsigned side,
                                struct side_layers *ret_side, struct nd_error *err)
{
    const struct dump  *dump = comparison->dump[side];
    struct side_layers  chosen = {0};
    struct arena       *arena = comparison->scratch;

    chosen.layers = nd_arena_alloc(arena, dump->layer_count + 1, sizeof *chosen.layers);
    chosen.partner = nd_arena_alloc(arena, dump->layer_count + 1, sizeof *chosen.partner);
    chosen.match = nd_arena_alloc(arena, dump->layer_count + 1, sizeof *chosen.match);
    if (chosen.layers == NULL || chosen.partner == NULL || chosen.match == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < dump->layer_count; i++) {
        const struct dump_layer *layer = &dump->layers[i];
        if (layer->recompute || !asked_for(comparison->options, layer))
            continue;
        if (!included(comparison->options, layer) ||
            !has_asked_slot(comparison->options, layer)) {
            comparison->excluded += side == 0;
            continue;
        }
        chosen.partner[chosen.count] = ND_NO_INDEX;
        chosen.layers[chosen.count++] = layer;
    }
    if (dump->order == ND_ORDER_NAME && !is_sorted(chosen.layers, chosen.count, by_name))
        qsort(chosen.layers, chosen.count, sizeof *chosen.layers, by_name);
    else if (dump->order == ND_ORDER_TIMESTAMP)
        qsort(chosen.layers, chosen.count, sizeof *chosen.layers, by_time);
    *ret_side = chosen;
    return ND_OK;
}
