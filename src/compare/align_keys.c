/*
 * Pairing by key: both sides are sorted by key and merged, so that dumps of 100,000 layers
 * pair in n log n whatever their names are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

static int keyed_order(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    const int           order = strcmp(x->key, y->key);

    if (order != 0)
        return order;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Of a function's call, as its name has it: not every format says it apart. */
static int64_t call_number(const struct dump_layer *layer)
{
    size_t len;

    return nd_call_base(layer->name, &len) ? strtoll(layer->name + len + 1, NULL, 10)
                                           : layer->call;
}

/* What all layers of one step, rank and direction have before their names; most layers have
 * it in common with the one before. */
struct key_head {
    const struct dump_layer *of; /* NULL: none yet */
    char text[64];
    size_t len;
};

static void key_head_make(struct key_head *head, const struct dump_layer *layer)
{
    if (head->of != NULL && head->of->step == layer->step && head->of->rank == layer->rank &&
        head->of->direction == layer->direction)
        return;
    head->of = layer;
    head->len = (size_t)snprintf(head->text, sizeof head->text, "%" PRId64 "|%" PRId64 "|%d|",
                                 layer->step, layer->rank, layer->direction);
}

static const char *key_text(struct arena *arena, struct key_head *head,
                            const struct dump_layer *layer, const char *name)
{
    const size_t len = strlen(name) + 1;

    key_head_make(head, layer);
    char *const text = nd_arena_alloc(arena, head->len + len, 1);
    if (text != NULL) {
        memcpy(text, head->text, head->len);
        memcpy(text + head->len, name, len);
    }
    return text;
}

static enum nd_status keyed_list(struct arena *arena, const struct side_layers *side, key_fn *key,
                                 const void *user, unsigned number, struct keyed **ret_list,
                                 size_t *ret_count, struct nd_error *err)
{
    struct keyed *list = nd_arena_alloc(arena, side->count + 1, sizeof *list);
    size_t        count = 0;
    struct key_head head = {0};

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        const bool  is_free = side->partner[i] == ND_NO_INDEX &&
                             (side->held == NULL || !side->held[i]);
        const char *name = is_free ? key(arena, user, layer, number) : NULL;
        if (name == NULL)
            continue;
        list[count].key = key_text(arena, &head, layer, name);
        if (list[count].key == NULL)
            return nd_fail_memory(err);
        list[count].call = call_number(layer);
        list[count++].index = i;
    }
    qsort(list, count, sizeof *list, keyed_order);
    *ret_list = list;
    *ret_count = count;
    return ND_OK;
}

void nd_align_pair(struct side_layers *sides, size_t a, size_t b, enum nd_match match)
{
    sides[0].partner[a] = b;
    sides[1].partner[b] = a;
    sides[0].match[a] = sides[1].match[b] = match;
}

/* Two runs of one key: in order where they are equally long, since numbers shift where calls
 * were taken out as recomputed; else equal calls first, then what is left in order. */
static void pair_runs(struct side_layers *sides, const struct keyed *a, size_t na,
                      const struct keyed *b, size_t nb, enum nd_match match)
{
    for (size_t i = 0, k = 0; na != nb && i < na && k < nb;) {
        if (a[i].call == b[k].call)
            nd_align_pair(sides, a[i++].index, b[k++].index, match);
        else if (a[i].call < b[k].call)
            i++;
        else
            k++;
    }
    for (size_t i = 0, k = 0; i < na && k < nb;) {
        if (sides[0].partner[a[i].index] != ND_NO_INDEX)
            i++;
        else if (sides[1].partner[b[k].index] != ND_NO_INDEX)
            k++;
        else
            nd_align_pair(sides, a[i++].index, b[k++].index, match);
    }
}

static size_t run_length(const struct keyed *list, size_t count, size_t from)
{
    size_t to = from + 1;

    while (to < count && strcmp(list[to].key, list[from].key) == 0)
        to++;
    return to - from;
}

static enum nd_status merge_runs(struct arena *arena, struct side_layers *sides, key_fn *key,
                                 const void *user, enum nd_match match, run_fn *run,
                                 struct nd_error *err)
{
    struct keyed *a, *b;
    size_t        na, nb;

    ND_TRY(keyed_list(arena, &sides[0], key, user, 0, &a, &na, err));
    ND_TRY(keyed_list(arena, &sides[1], key, user, 1, &b, &nb, err));
    for (size_t i = 0, k = 0; i < na && k < nb;) {
        const int    order = strcmp(a[i].key, b[k].key);
        const size_t run_a = run_length(a, na, i), run_b = run_length(b, nb, k);
        if (order == 0)
            run(sides, a + i, run_a, b + k, run_b, match);
        i += order <= 0 ? run_a : 0;
        k += order >= 0 ? run_b : 0;
    }
    return ND_OK;
}

/* The keys are as much text as the names of both dumps, and nobody needs them afterwards. */
enum nd_status nd_align_runs(struct side_layers *sides, key_fn *key, const void *user,
                             enum nd_match match, run_fn *run, struct nd_error *err)
{
    struct arena *const arena = nd_arena_new();
    const enum nd_status status = arena == NULL
                                      ? nd_fail_memory(err)
                                      : merge_runs(arena, sides, key, user, match, run, err);

    nd_arena_free(arena);
    return status;
}

enum nd_status nd_align_by_key(struct side_layers *sides, key_fn *key, const void *user,
                               enum nd_match match, struct nd_error *err)
{
    return nd_align_runs(sides, key, user, match, pair_runs, err);
}

int nd_named_layer_order(const void *a, const void *b)
{
    const struct named_layer *x = a, *y = b;
    const int order = strcmp(x->name, y->name);

    if (order != 0)
        return order;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}
