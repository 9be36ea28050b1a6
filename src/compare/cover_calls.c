/*
 * A call of the reference inside a module that the other side dumped as one, with nothing
 * in it, is covered by that module.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

struct module {
    struct named_layer layer; /* on both sides, after mapping: the reference's spelling */
    const struct layer_pair *pair;
};

static bool is_framed(const struct layer_pair *pair)
{
    return pair->side[1] == NULL && pair->covered_by == NULL &&
           pair->side[0]->frame != NULL;
}

static bool any_framed(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->layer_count; i++)
        if (is_framed(&comparison->layers[i]))
            return true;
    return false;
}

/* The module that a call ran in, by the name that construct.json gives it: paired
 * under that name on the reference's side, or as it is on the candidate's. */
enum nd_status nd_cover_calls(struct comparison *comparison, struct nd_error *err)
{
    if (!any_framed(comparison))
        return ND_OK;
    struct module *list = malloc((2 * comparison->layer_count + 1) * sizeof *list);
    size_t count = 0, base;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count; i++)
        for (unsigned side = 0; side < 2 && comparison->layers[i].side[1] != NULL; side++) {
            const struct dump_layer *layer = comparison->layers[i].side[side];
            if (!comparison->layers[i].side[1]->container &&
                !nd_call_base(layer->name, &base))
                list[count++] = (struct module){{layer->name, layer->step, layer->rank},
                                                &comparison->layers[i]};
        }
    if (count > 1)
        qsort(list, count, sizeof *list, nd_named_layer_order);
    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair *pair = &comparison->layers[i];
        const struct dump_layer *call = pair->side[0];
        if (!is_framed(pair))
            continue;
        const struct module wanted = {{call->frame, call->step, call->rank}, NULL};
        const struct module *hit =
            bsearch(&wanted, list, count, sizeof *list, nd_named_layer_order);
        if (hit != NULL)
            pair->covered_by = hit->pair->side[1]->name;
    }
    free(list);
    return ND_OK;
}
