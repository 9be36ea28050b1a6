/*
 * Pairing by order for layers that no name paired: within one parent, the longest common
 * sequence of equal type and output shape.  The dtype never takes part: a candidate in
 * another precision is exactly what is to be compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

/* Beyond this many steps of the sequence table a parent is paired greedily. */
enum { MAX_TABLE = 4 * 1024 * 1024 };

struct family {
    const char *key; /* step, rank, direction, parent */
    size_t      index;
};

static int family_order(const void *a, const void *b)
{
    const struct family *x = a, *y = b;
    const int            order = strcmp(x->key, y->key);

    if (order != 0)
        return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

static enum nd_status family_list(struct arena *arena, const struct side_layers *side,
                                  struct family **ret_list, size_t *ret_count,
                                  struct nd_error *err)
{
    struct family *list = nd_arena_alloc(arena, side->count + 1, sizeof *list);
    size_t         count = 0;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        size_t                   base;
        if (side->partner[i] != ND_NO_INDEX || layer->type[0] == '\0' ||
            nd_call_base(layer->name, &base))
            continue; /* without a type, order alone proves nothing; calls have no parent */
        const char *name = nd_normalised_name(arena, layer->name);
        const char *dot = name == NULL ? NULL : strrchr(name, '.');
        const int   len = dot == NULL ? 0 : (int)(dot - name);
        if (name == NULL)
            return nd_fail_memory(err);
        list[count].key = nd_arena_format(arena, "%" PRId64 "|%" PRId64 "|%d|%.*s", layer->step,
                                          layer->rank, layer->direction, len, name);
        if (list[count].key == NULL)
            return nd_fail_memory(err);
        list[count++].index = i;
    }
    qsort(list, count, sizeof *list, family_order);
    *ret_list = list;
    *ret_count = count;
    return ND_OK;
}

static bool alike(const struct dump_layer *a, const struct dump_layer *b)
{
    const struct dump_slot *x = nd_first_slot(a, "output."), *y = nd_first_slot(b, "output.");

    if (strcmp(a->type, b->type) != 0 || x == NULL || y == NULL)
        return false;
    const struct nd_shape p = nd_slot_squeezed(x), q = nd_slot_squeezed(y);
    return nd_shape_equal(&p, &q);
}

static void pair_greedily(struct side_layers *sides, const struct family *a, size_t na,
                          const struct family *b, size_t nb)
{
    for (size_t i = 0, k = 0; i < na && k < nb; i++)
        if (alike(sides[0].layers[a[i].index], sides[1].layers[b[k].index])) {
            nd_align_pair(sides, a[i].index, b[k].index, ND_MATCH_ORDER);
            k++;
        }
}

static enum nd_status pair_family(struct side_layers *sides, const struct family *a, size_t na,
                                  const struct family *b, size_t nb, struct nd_error *err)
{
    if (na > MAX_TABLE / (nb + 1)) {
        pair_greedily(sides, a, na, b, nb);
        return ND_OK;
    }
    const size_t width = nb + 1;
    uint32_t    *best = calloc((na + 1) * width, sizeof *best);
    if (best == NULL)
        return nd_fail_memory(err);
    for (size_t i = na; i-- > 0;)
        for (size_t k = nb; k-- > 0;) {
            const uint32_t down = best[(i + 1) * width + k], right = best[i * width + k + 1];
            uint32_t       most = down > right ? down : right;
            if (alike(sides[0].layers[a[i].index], sides[1].layers[b[k].index]) &&
                best[(i + 1) * width + k + 1] + 1 > most)
                most = best[(i + 1) * width + k + 1] + 1;
            best[i * width + k] = most;
        }
    for (size_t i = 0, k = 0; i < na && k < nb;) {
        if (alike(sides[0].layers[a[i].index], sides[1].layers[b[k].index]) &&
            best[i * width + k] == best[(i + 1) * width + k + 1] + 1)
            nd_align_pair(sides, a[i++].index, b[k++].index, ND_MATCH_ORDER);
        else if (best[(i + 1) * width + k] >= best[i * width + k + 1])
            i++;
        else
            k++;
    }
    free(best);
    return ND_OK;
}

static size_t run_length(const struct family *list, size_t count, size_t from)
{
    size_t to = from + 1;

    while (to < count && strcmp(list[to].key, list[from].key) == 0)
        to++;
    return to - from;
}

enum nd_status nd_align_by_order(struct arena *arena, struct side_layers *sides,
                                 struct nd_error *err)
{
    struct family *a, *b;
    size_t         na, nb;

    ND_TRY(family_list(arena, &sides[0], &a, &na, err));
    ND_TRY(family_list(arena, &sides[1], &b, &nb, err));
    for (size_t i = 0, k = 0; i < na && k < nb;) {
        const int    order = strcmp(a[i].key, b[k].key);
        const size_t run_a = run_length(a, na, i), run_b = run_length(b, nb, k);
        if (order == 0)
            ND_TRY(pair_family(sides, a + i, run_a, b + k, run_b, err));
        i += order <= 0 ? run_a : 0;
        k += order >= 0 ? run_b : 0;
    }
    return ND_OK;
}
