/*
 * A gradient is computed from the gradient that came in and from what the forward pass of
 * the same layer saved: its input, its output, its statistics.  So far as those differ, the
 * gradient may too.
 */
#include "checks/saved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct saved {
    const char *name;
    int64_t step, rank;
    double rel; /* the largest error of the layer's forward calls */
};

static int saved_compare(const void *a, const void *b)
{
    const struct saved *left = a, *right = b;
    const int name = strcmp(left->name, right->name);

    if (name != 0)
        return name;
    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static struct saved saved_key(const struct nd_layer *layer)
{
    return (struct saved){.name = layer->name, .step = layer->step, .rank = layer->rank};
}

static bool has_error(const struct layer_facts *facts)
{
    return facts->pair && !facts->container && facts->in.count + facts->out.count > 0;
}

static double forward_error(const struct layer_facts *facts)
{
    return fmax(facts->in.rel, facts->out.rel);
}

/* One entry a name, of the forward layers; *ret_count of them.  NULL without memory. */
static struct saved *saved_list(const struct nd_result *result,
                                const struct layer_facts *facts, size_t *ret_count)
{
    struct saved *list = calloc(result->layer_count + 1, sizeof *list);
    size_t count = 0, kept = 0;

    for (size_t i = 0; list != NULL && i < result->layer_count; i++) {
        if (!facts[i].forward || !has_error(&facts[i]))
            continue;
        list[count] = saved_key(&result->layers[i]);
        list[count++].rel = forward_error(&facts[i]);
    }
    if (count > 1)
        qsort(list, count, sizeof *list, saved_compare);
    for (size_t i = 0; i < count; i++)
        if (kept > 0 && saved_compare(&list[kept - 1], &list[i]) == 0)
            list[kept - 1].rel = fmax(list[kept - 1].rel, list[i].rel);
        else
            list[kept++] = list[i];
    *ret_count = kept;
    return list;
}

bool nd_saved_gather(const struct nd_result *result, struct layer_facts *facts)
{
    struct saved *list;
    size_t count, backward = 0;

    for (size_t i = 0; i < result->layer_count; i++)
        backward += !facts[i].forward;
    if (backward == 0)
        return true;
    list = saved_list(result, facts, &count);
    if (list == NULL)
        return false;
    for (size_t i = 0; i < result->layer_count; i++) {
        const struct saved key = saved_key(&result->layers[i]);
        const struct saved *found =
            facts[i].forward ? NULL
                             : bsearch(&key, list, count, sizeof *list, saved_compare);
        if (found != NULL)
            facts[i].saved = found->rel;
    }
    free(list);
    return true;
}
