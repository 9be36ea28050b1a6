/*
 * Finding a parameter at the step before, and loading it.
 */
#include "checks/update_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the same layer at another step --- */

struct step_key {
    const char *name;
    int64_t rank, step;
};

static int key_compare(const struct step_key *a, const struct step_key *b)
{
    const int names = strcmp(a->name, b->name);

    if (names != 0)
        return names;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

struct step_entry {
    struct step_key key;
    size_t layer;
};

static int entry_compare(const void *a, const void *b)
{
    const struct step_entry *left = a, *right = b;
    const int keys = key_compare(&left->key, &right->key);

    if (keys != 0)
        return keys;
    return left->layer < right->layer ? -1 : left->layer > right->layer;
}

static struct step_key key_of(const struct nd_result *result, size_t i)
{
    const struct nd_layer *layer = &result->layers[i];

    return (struct step_key){layer->name, layer->rank, layer->step};
}

static bool has_steps(const struct nd_result *result)
{
    for (size_t i = 1; i < result->layer_count; i++)
        if (result->layers[i].step != result->layers[0].step)
            return true;
    return false;
}

bool nd_steps_index(const struct nd_result *result, struct step_index *ret_index)
{
    *ret_index = (struct step_index){.result = result};
    if (!has_steps(result))
        return true;
    struct step_entry *entries = calloc(result->layer_count, sizeof *entries);
    size_t *layers = calloc(result->layer_count, sizeof *layers);
    if (entries == NULL || layers == NULL) {
        free(entries);
        free(layers);
        return false;
    }
    for (size_t i = 0; i < result->layer_count; i++)
        entries[i] = (struct step_entry){key_of(result, i), i};
    qsort(entries, result->layer_count, sizeof *entries, entry_compare);
    for (size_t i = 0; i < result->layer_count; i++)
        layers[i] = entries[i].layer;
    free(entries);
    ret_index->layers = layers;
    ret_index->count = result->layer_count;
    return true;
}

void nd_steps_done(struct step_index *index)
{
    free(index->layers);
    *index = (struct step_index){.layers = NULL};
}

/* The first place in the index at or after this key. */
static size_t index_find(const struct step_index *index, const struct step_key *key)
{
    size_t low = 0, high = index->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct step_key at = key_of(index->result, index->layers[middle]);
        if (key_compare(&at, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- slots --- */

/* A slot of both sides, in values of one shape. */
struct pair_slot {
    const struct nd_slot *compared;
    struct slot_view view[2];
};

static bool slot_values(const struct layer_pair_view *pair, const struct nd_slot *slot,
                        struct pair_slot *ret)
{
    ret->compared = slot;
    for (int side = 0; side < 2; side++) {
        if (pair->side[side] == NULL)
            return false;
        const struct slot_view *view = nd_layer_slot(pair->side[side], slot->name);
        if (view == NULL || !view->has_tensor ||
            nd_dtype_info(view->tensor.dtype)->kind != ND_KIND_FLOAT)
            return false;
        ret->view[side] = *view;
    }
    return nd_slot_measured(slot) && slot->nonfinite_mismatches == 0 &&
           nd_shape_equal(&ret->view[0].tensor.shape, &ret->view[1].tensor.shape);
}

/* Calls of one layer in one step, and differing parameters of one call, that are looked at.
 */
enum { SAME_NAME = 16, SAME_LAYER = 64 };

/* kind.name of the layers that are called like layer i, `back` steps earlier. */
static bool slot_before(const struct diagnosis_input *input, const struct step_index *index,
                        size_t i, int64_t back, const char *kind, const char *name,
                        struct pair_slot *ret)
{
    struct step_key key = key_of(input->result, i);
    char wanted[256];

    if (index->layers == NULL || key.step < back ||
        (size_t)snprintf(wanted, sizeof wanted, "%s.%s", kind, name) >= sizeof wanted)
        return false;
    key.step -= back;
    const size_t from = index_find(index, &key);
    size_t to = from;
    while (to < index->count && to < from + SAME_NAME) {
        const struct step_key at = key_of(input->result, index->layers[to]);
        if (key_compare(&at, &key) != 0)
            break;
        to++;
    }
    while (to-- > from) { /* the last one: what several backward calls have added up */
        const struct nd_layer *layer = &input->result->layers[index->layers[to]];
        for (size_t s = 0; s < layer->slot_count; s++)
            if (strcmp(layer->slots[s].name, wanted) == 0 &&
                slot_values(nd_pair_of(input, index->layers[to]), &layer->slots[s], ret))
                return true;
    }
    return false;
}

/* --- loading --- */

enum { BLOCKS = 64 };

/* Blocks of equal length at equal distances; `n` is at most the tensor's count. */
static bool take(const struct slot_view *slot, uint64_t n, double **ret_values)
{
    const struct tensor_view *view = &slot->tensor;
    const uint64_t blocks = n < view->count ? BLOCKS : 1;
    const uint64_t length = n / blocks;
    double *values = malloc((n > 0 ? n : 1) * sizeof *values);

    if (values == NULL)
        return false;
    for (uint64_t b = 0; b < blocks; b++)
        nd_view_decode(view, blocks == 1 ? 0 : (view->count - length) / (blocks - 1) * b,
                       length, values + b * length);
    *ret_values = values;
    return true;
}

static bool take_pair(const struct pair_slot *slot, uint64_t n, double **first,
                      double **second)
{
    return take(&slot->view[0], n, first) && take(&slot->view[1], n, second);
}

void nd_update_done(struct update *update)
{
    for (int side = 0; side < 2; side++) {
        for (int j = 0; j <= UPDATE_HISTORY; j++)
            free(update->p[side][j]);
        for (int j = 0; j < UPDATE_HISTORY; j++)
            free(update->g[side][j]);
    }
    *update = (struct update){.n = 0};
}

/* The gradients of one step further back, with the parameters that they belong to. */
static bool load_step(const struct diagnosis_input *input, const struct step_index *index,
                      struct update *update)
{
    const unsigned j = update->history;
    struct pair_slot p, g;

    if (!slot_before(input, index, update->layer, j + 1, "param", update->name, &p) ||
        !slot_before(input, index, update->layer, j + 1, "grad", update->name, &g) ||
        p.view[0].tensor.count != g.view[0].tensor.count)
        return false;
    const uint64_t count = p.view[0].tensor.count;
    if (count != update->total)
        return false;
    if (j == 0)
        update->has_noise = nd_slot_rel(p.compared) > nd_slot_roundoff(p.compared);
    update->grad_rel = fmax(update->grad_rel, nd_slot_rel(g.compared));
    for (int side = 0; side < 2; side++)
        update->grad_roundoff[side] =
            fmax(update->grad_roundoff[side], nd_dtype_roundoff(g.view[side].real_dtype));
    if (!take_pair(&p, update->n, &update->p[0][j + 1], &update->p[1][j + 1]) ||
        !take_pair(&g, update->n, &update->g[0][j], &update->g[1][j]))
        return false;
    update->history++;
    return true;
}

static const char *param_name(const struct nd_slot *slot)
{
    return nd_slot_is(slot, "param") && slot->name[5] == '.' ? slot->name + 6 : NULL;
}

/* What stood apart before is no longer the whole story where this much was added. */
static const double PARTED = 8;

/* It agreed before the step, so did its gradient, and now it does not. */
static bool is_parted(const struct diagnosis_input *input, const struct step_index *index,
                      size_t i, const struct nd_slot *slot, struct pair_slot *after)
{
    const char *name = param_name(slot);
    struct pair_slot p, g;

    if (name == NULL || slot->tier == ND_TIER_EXACT ||
        !slot_values(nd_pair_of(input, i), slot, after) ||
        !slot_before(input, index, i, 1, "param", name, &p) ||
        !slot_before(input, index, i, 1, "grad", name, &g) ||
        !nd_shape_equal(&p.view[0].tensor.shape, &after->view[0].tensor.shape))
        return false;
    return nd_slot_rel(p.compared) <=
               fmax(nd_slot_roundoff(p.compared), nd_slot_rel(slot) / PARTED) &&
           nd_slot_rel(g.compared) <= fmax(1e-3, 4 * nd_slot_roundoff(g.compared));
}

enum { GRID_LOOK = 1 << 14 };

static void load_precision(const struct slot_view *after, int side, struct update *update)
{
    struct grid_shares shares;

    nd_grid_shares(&after->tensor, GRID_LOOK, &shares);
    update->grid[side] = nd_grid_of(&shares, after->real_dtype);
    update->dtype[side] = after->real_dtype;
    update->roundoff[side] = nd_dtype_roundoff(after->real_dtype);
    if (update->grid[side] != GRID_NONE)
        update->roundoff[side] =
            fmax(update->roundoff[side], nd_grid_roundoff(update->grid[side]));
}

bool nd_update_load(const struct diagnosis_input *input, const struct step_index *index,
                    size_t i, uint64_t elements, struct update *ret_update)
{
    const struct nd_layer *layer = &input->result->layers[i];
    struct update update = {.layer = i, .slot = ND_NO_INDEX};
    unsigned tried = 0;
    struct pair_slot after = {.compared = NULL}, one;

    for (size_t s = 0; s < layer->slot_count && index->layers != NULL && tried < SAME_LAYER;
         s++) {
        if (param_name(&layer->slots[s]) == NULL || layer->slots[s].tier == ND_TIER_EXACT)
            continue;
        tried++;
        if ((update.slot == ND_NO_INDEX || layer->slots[s].n > after.compared->n) &&
            is_parted(input, index, i, &layer->slots[s], &one)) {
            update.slot = s;
            after = one;
        }
    }
    if (update.slot == ND_NO_INDEX)
        return false;
    update.total = after.view[0].tensor.count;
    update.name = param_name(after.compared);
    update.n = update.total <= elements ? update.total : elements / BLOCKS * BLOCKS;
    for (int side = 0; side < 2; side++)
        load_precision(&after.view[side], side, &update);
    bool good = take_pair(&after, update.n, &update.p[0][0], &update.p[1][0]) &&
                load_step(input, index, &update);
    while (good && update.history < UPDATE_HISTORY && load_step(input, index, &update))
        ;
    if (good)
        *ret_update = update;
    else
        nd_update_done(&update);
    return good;
}

/* --- one parameter that the sides disagree about --- */

enum { MOVED_LOOK = 4096 };

double nd_update_moved(const struct diagnosis_input *input, const struct step_index *index,
                       size_t i, size_t slot)
{
    const struct nd_slot *own = &input->result->layers[i].slots[slot];
    const char *name = param_name(own);
    double *now = NULL, *then = NULL, moved = 0, size = 0;
    struct pair_slot after, before;

    if (index->layers == NULL || name == NULL ||
        !slot_values(nd_pair_of(input, i), own, &after))
        return 0;
    int64_t back = 1;
    while (slot_before(input, index, i, back, "param", name, &before) &&
           nd_slot_rel(before.compared) > nd_slot_rel(own) / PARTED && back < UPDATE_HISTORY)
        back++;
    if (!slot_before(input, index, i, back, "param", name, &before) ||
        nd_slot_rel(before.compared) > nd_slot_rel(own) / PARTED ||
        before.view[0].tensor.count != after.view[0].tensor.count)
        return 0;
    const uint64_t count = after.view[0].tensor.count;
    const uint64_t n = count < MOVED_LOOK ? count : MOVED_LOOK;
    if (take(&after.view[0], n, &now) && take(&before.view[0], n, &then))
        for (uint64_t k = 0; k < n; k++) {
            moved += (now[k] - then[k]) * (now[k] - then[k]);
            size += now[k] * now[k];
        }
    free(now);
    free(then);
    return size > 0 && moved > 0 ? sqrt(moved / size) : 0;
}

/* --- all parameters of a step --- */

enum { COUNT_LIMIT = 4096, COUNT_LOOK = 64 };

static bool is_still(const struct pair_slot *before, const struct pair_slot *after,
                     int side)
{
    double *p[2] = {NULL, NULL};
    const uint64_t count = after->view[side].tensor.count;
    const uint64_t n = count < COUNT_LOOK ? count : COUNT_LOOK;
    bool still = before->view[side].tensor.count == count &&
                 take(&before->view[side], n, &p[0]) && take(&after->view[side], n, &p[1]);

    for (uint64_t i = 0; i < n && still; i++)
        still = p[0][i] == p[1][i];
    free(p[0]);
    free(p[1]);
    return still;
}

static void count_layer(const struct diagnosis_input *input, const struct step_index *index,
                        size_t k, int side, size_t *ret_still, size_t *ret_count)
{
    const struct nd_layer *layer = &input->result->layers[k];
    unsigned tried = 0;

    for (size_t s = 0; s < layer->slot_count && tried < SAME_LAYER; s++) {
        struct pair_slot grad, before, after;
        const char *name = param_name(&layer->slots[s]);
        tried += name != NULL;
        if (name == NULL || !slot_values(nd_pair_of(input, k), &layer->slots[s], &after) ||
            !slot_before(input, index, k, 1, "grad", name, &grad) ||
            !slot_before(input, index, k, 1, "param", name, &before))
            continue;
        (*ret_count)++;
        *ret_still += is_still(&before, &after, side);
    }
}

void nd_update_count(const struct diagnosis_input *input, const struct step_index *index,
                     size_t i, int side, size_t *ret_still, size_t *ret_count)
{
    const struct nd_layer *own = &input->result->layers[i];

    *ret_still = *ret_count = 0;
    for (size_t k = 0; k < input->result->layer_count && *ret_count < COUNT_LIMIT; k++) {
        const struct nd_layer *layer = &input->result->layers[k];
        if (layer->step == own->step && layer->rank == own->rank)
            count_layer(input, index, k, side, ret_still, ret_count);
    }
}
