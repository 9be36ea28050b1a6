/*
 * Blocks and what is in them.
 *
 *   1. a container is only a frame if layers inside it are compared: then those are judged.
 *      What is inside is told by its path below the container's, or by its parent
 *   2. where one side dumped calls of functions and the other modules, a block of the
 *      reference has no partner.  It is covered if the tensor that it returns is compared
 *      in another place: it is a slot of a paired layer
 *   3. a call of the reference inside a module that the other side dumped as one is
 *      covered by that module: cover_calls.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* True if some name in the sorted list begins with `frame` and a separator. */
static bool frames_others(const char **names, size_t count, const char *frame)
{
    const size_t len = strlen(frame);

    if (len == 0)
        return count > 1;
    for (const char *separator = "./"; *separator != '\0'; separator++) {
        size_t low = 0, high = count; /* the first name >= frame + separator */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const int order = strncmp(names[middle], frame, len);
            if (order < 0 || (order == 0 && (unsigned char)names[middle][len] <
                                                (unsigned char)*separator))
                low = middle + 1;
            else
                high = middle;
        }
        if (low < count && strncmp(names[low], frame, len) == 0 &&
            names[low][len] == *separator)
            return true;
    }
    return false;
}

/* A module's path, forward and backward apart; "" for what is inside no module. */
static const char *directed_path(struct arena *arena, const struct dump_layer *layer)
{
    const char *path = nd_module_path(arena, layer);
    size_t base;

    if (path == NULL || *path == '\0' || nd_call_base(layer->name, &base) ||
        strstr(path, "parameters_grad") != NULL) /* of a module, not below it */
        return path == NULL ? NULL : "";
    return nd_arena_format(arena, "%d.%s", layer->direction, path);
}

struct place {
    struct named_layer layer;
    size_t index;
};

/* Marks what stands above the paired layers by their parents' names. */
static enum nd_status mark_parents(const struct comparison *comparison, bool *above,
                                   struct nd_error *err)
{
    const size_t count = comparison->layer_count;
    struct place *places = malloc((count + 1) * sizeof *places);

    if (places == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct dump_layer *layer = comparison->layers[i].side[0];
        places[i] = (struct place){{layer->name, layer->step, layer->rank}, i};
    }
    if (count > 1)
        qsort(places, count, sizeof *places, nd_named_layer_order);
    for (size_t i = 0; i < count; i++) {
        const struct dump_layer *layer = comparison->layers[i].side[0];
        while (comparison->layers[i].side[1] != NULL && layer->parent != NULL) {
            const struct place wanted = {{layer->parent, layer->step, layer->rank}, 0};
            const struct place *hit =
                bsearch(&wanted, places, count, sizeof *places, nd_named_layer_order);
            if (hit == NULL || above[hit->index])
                break; /* the rest of the way is marked */
            above[hit->index] = true;
            layer = comparison->layers[hit->index].side[0];
        }
    }
    free(places);
    return ND_OK;
}

static bool any_container(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->layer_count; i++)
        if (comparison->layers[i].side[0]->container)
            return true;
    return false;
}

enum nd_status nd_mark_containers(struct comparison *comparison, struct nd_error *err)
{
    const size_t count = comparison->layer_count;

    if (!any_container(comparison))
        return ND_OK;
    const char **names = nd_arena_alloc(comparison->scratch, count + 1, sizeof *names);
    const char **paths = nd_arena_alloc(comparison->scratch, count + 1, sizeof *paths);
    bool *above = nd_arena_alloc(comparison->scratch, count + 1, sizeof *above);
    size_t paired = 0;

    if (names == NULL || paths == NULL || above == NULL)
        return nd_fail_memory(err);
    /* Only leaves that are compared take its frame's place: where the other side dumped the
     * blocks alone, the blocks are what is judged. */
    for (size_t i = 0; i < count; i++) {
        const struct dump_layer *layer = comparison->layers[i].side[0];
        if (comparison->layers[i].side[1] == NULL)
            continue;
        names[paired] = layer->name;
        paths[paired] = directed_path(comparison->scratch, layer);
        if (paths[paired++] == NULL)
            return nd_fail_memory(err);
    }
    qsort(names, paired, sizeof *names, name_order);
    qsort(paths, paired, sizeof *paths, name_order);
    ND_TRY(mark_parents(comparison, above, err));
    for (size_t i = 0; i < count; i++) {
        const struct dump_layer *layer = comparison->layers[i].side[0];
        const char *path = layer->container ? directed_path(comparison->scratch, layer) : "";
        if (path == NULL)
            return nd_fail_memory(err);
        comparison->layers[i].container =
            layer->container && (above[i] || frames_others(names, paired, layer->name) ||
                                 (*path != '\0' && frames_others(paths, paired, path)));
    }
    return ND_OK;
}

/* --- what is compared in another place ----------------------------------------------- */

/* A tensor of the reference that is compared, by what tells it: where it lies, else its
 * statistics. */
struct compared {
    const struct dump_slot *slot;
    const struct layer_pair *pair;
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_statistic(double a, double b)
{
    return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b);
}

static bool has_print(const struct dump_slot *slot)
{
    const double *value = slot->statistics.value;

    return slot->has_statistics && !isnan(value[STATISTIC_MAX]) &&
           !isnan(value[STATISTIC_MIN]) && !isnan(value[STATISTIC_MEAN]) &&
           !isnan(value[STATISTIC_NORM]);
}

/* Statistics first: a tool that writes them writes each slot's values on their own. */
static int slot_order(const struct dump_slot *x, const struct dump_slot *y)
{
    const struct nd_shape p = nd_slot_squeezed(x), q = nd_slot_squeezed(y);
    const bool prints = has_print(x) && has_print(y);
    int order = has_print(x) - has_print(y);

    if (order == 0)
        order = compare_u64(p.rank, q.rank);
    for (uint32_t k = 0; order == 0 && k < p.rank; k++)
        order = compare_u64(p.dim[k], q.dim[k]);
    for (int s = 0; order == 0 && prints && s < STATISTIC_COUNT; s++)
        order = compare_statistic(x->statistics.value[s], y->statistics.value[s]);
    if (order == 0 && !prints)
        order = compare_u64(x->extent.file, y->extent.file);
    if (order == 0 && !prints)
        order = compare_u64(x->extent.offset, y->extent.offset);
    return order;
}

static int compared_order(const void *a, const void *b)
{
    const struct compared *x = a, *y = b;
    const int order = slot_order(x->slot, y->slot);

    if (order != 0)
        return order;
    return x->pair < y->pair ? -1 : x->pair > y->pair;
}

/* Only what says enough: a tensor of its own, or four statistics of more than one element.
 */
static bool tells(const struct dump_slot *slot)
{
    uint64_t count;
    const struct nd_shape shape = nd_slot_squeezed(slot);

    return slot->broken == NULL && slot->has_shape && nd_shape_count(&shape, &count) &&
           count > 1 && (has_print(slot) || slot->evidence == ND_EVIDENCE_VALUES);
}

static enum nd_status list_compared(const struct comparison *comparison,
                                    struct compared **ret_list, size_t *ret_count,
                                    struct nd_error *err)
{
    size_t room = 0, count = 0;

    for (size_t i = 0; i < comparison->layer_count; i++)
        room += comparison->layers[i].slot_count;
    struct compared *list = malloc((room + 1) * sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < comparison->layer_count; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        for (size_t s = 0; pair->side[1] != NULL && s < pair->slot_count; s++)
            if (pair->slots[s].side[0] != NULL && pair->slots[s].side[1] != NULL &&
                tells(pair->slots[s].side[0]))
                list[count++] = (struct compared){pair->slots[s].side[0], pair};
    }
    if (count > 1)
        qsort(list, count, sizeof *list, compared_order);
    *ret_list = list;
    *ret_count = count;
    return ND_OK;
}

/* The paired layer that has the same tensor; NULL: none. */
static const struct layer_pair *find_compared(const struct compared *list, size_t count,
                                              const struct dump_slot *slot)
{
    size_t low = 0, high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (slot_order(list[middle].slot, slot) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && slot_order(list[low].slot, slot) == 0 ? list[low].pair : NULL;
}

/* Rule 2: every tensor that the block returns. */
static const char *covered_block(const struct layer_pair *pair, const struct compared *list,
                                 size_t count)
{
    const struct layer_pair *by = NULL;

    for (size_t s = 0; s < pair->slot_count; s++) {
        const struct dump_slot *slot = pair->slots[s].side[0];
        if (slot == NULL || strncmp(slot->name, "output", 6) != 0)
            continue;
        const struct layer_pair *other =
            tells(slot) ? find_compared(list, count, slot) : NULL;
        if (other == NULL)
            return NULL;
        by = by == NULL ? other : by;
    }
    return by == NULL ? NULL : by->side[1]->name;
}

/* Did one side dump calls where the other dumped modules? */
static bool levels_differ(const struct comparison *comparison)
{
    size_t base;

    for (size_t i = 0; i < comparison->layer_count; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        if (pair->side[1] != NULL && nd_call_base(pair->side[0]->name, &base) !=
                                         nd_call_base(pair->side[1]->name, &base))
            return true;
    }
    return false;
}

/* Calls of the reference that no module of the candidate stands for cost the exit status:
 * say why. */
static enum nd_status warn_levels(struct comparison *comparison, struct nd_error *err)
{
    size_t alone = 0, base;
    bool has_calls = false;

    for (size_t i = 0; i < comparison->layer_count; i++) {
        const struct layer_pair *pair = &comparison->layers[i];
        has_calls = has_calls ||
                    (pair->side[1] != NULL && nd_call_base(pair->side[1]->name, &base));
        alone += pair->side[1] == NULL && pair->covered_by == NULL &&
                 nd_call_base(pair->side[0]->name, &base);
    }
    for (size_t i = 0; i < comparison->unpaired_candidate_count; i++)
        has_calls =
            has_calls || nd_call_base(comparison->unpaired_candidate[i]->name, &base);
    if (alone == 0 || has_calls)
        return ND_OK;
    return nd_warn(comparison, "warning.levels",
                   (const struct nd_param[]){
                       {"count", NULL, (double)alone}
    },
                   1, err);
}

enum nd_status nd_cover_frames(struct comparison *comparison, struct nd_error *err)
{
    struct compared *list = NULL;
    size_t count = 0;

    ND_TRY(nd_cover_calls(comparison, err));
    if (!levels_differ(comparison))
        return warn_levels(comparison, err);
    ND_TRY(list_compared(comparison, &list, &count, err));
    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair *pair = &comparison->layers[i];
        if (pair->side[1] == NULL && pair->covered_by == NULL && pair->side[0]->container)
            pair->covered_by = covered_block(pair, list, count);
    }
    free(list);
    return warn_levels(comparison, err);
}
