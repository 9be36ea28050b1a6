/*
 * Gradients at a kink.  A value that rounds to just above zero on one side and just below it
 * on the other lets the gradient through a ReLU on one side only.  Nobody is at fault, and
 * yet one element of that gradient is all off: a localised fault by its looks.
 *
 * It is excused where the dumps prove it: at every position that is off the gradient is zero
 * on one side, and the value that it belongs to, dumped in the forward pass, lies on both
 * sides of the kink, no further apart than that tensor's noise.  (So with a maximum that two
 * values share: see kink_tie.h.)  What a layer makes of such a gradient is as local as what
 * came in, and is excused with it.
 */
#include "compare/kink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/kink_tie.h"
#include "compare/slot_pair.h"

/* s from which an element is a fault's; as in the rule of localised faults. */
static const double OFF = 0.1;
/* Errors of single elements over the rms error of their tensor, in honest pairs. */
static const double NOISE_REACH = 16;
/* A layer may sharpen a local error a little, no more. */
static const double CARRIED_GAIN = 4;

/* Where the slope of a common activation falls to zero, or starts from it: ReLU, ReLU6,
 * Hardtanh, Hardswish, Hardsigmoid. */
static const double KINKS[] = {0, 6, 3, -3, 1, -1};

enum { BLOCK = 4096, GRADIENT = 0, VALUE = 2 };

struct forward_index {
    struct layer_pair **layers; /* the forward ones, sorted; NULL: not made yet */
    size_t              count;
};

static int place_compare(const struct layer_pair *a, const struct layer_pair *b)
{
    const int name = strcmp(a->side[0]->name, b->side[0]->name);

    if (name != 0)
        return name;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->side[0]->call > b->side[0]->call) - (a->side[0]->call < b->side[0]->call);
}

static int place_sort(const void *a, const void *b)
{
    const struct layer_pair *const *left = a, *const *right = b;

    return place_compare(*left, *right);
}

static int place_find(const void *key, const void *element)
{
    const struct layer_pair *const *of = element;

    return place_compare(key, *of);
}

static bool index_make(struct comparison *comparison, struct forward_index *index)
{
    index->layers = malloc((comparison->layer_count + 1) * sizeof(struct layer_pair *));
    if (index->layers == NULL)
        return false;
    for (size_t i = 0; i < comparison->layer_count; i++)
        if (comparison->layers[i].side[0]->direction != DIRECTION_BACKWARD &&
            comparison->layers[i].side[1] != NULL)
            index->layers[index->count++] = &comparison->layers[i];
    qsort(index->layers, index->count, sizeof *index->layers, place_sort);
    return true;
}

static struct slot_pair *slot_of(const struct layer_pair *layer, const char *kind,
                                 const char *number)
{
    for (size_t s = 0; s < layer->slot_count; s++) {
        const char  *name = layer->slots[s].side[0] == NULL ? "" : layer->slots[s].side[0]->name;
        const size_t len = strlen(kind);
        if (strncmp(name, kind, len) == 0 && strcmp(name + len, number) == 0)
            return &layer->slots[s];
    }
    return NULL;
}

static bool is_kind(const struct slot_pair *slot, const char *kind)
{
    return slot->side[0] != NULL && strncmp(slot->side[0]->name, kind, strlen(kind)) == 0;
}

static bool is_value(const struct slot_pair *slot)
{
    return slot != NULL && slot->measured && !slot->integer && slot->moments->mismatches == 0 &&
           slot->moments->n > 0;
}

/*
 * The forward tensor that a gradient belongs to: what a layer's backward pass takes in is the
 * gradient of its output, what it hands on that of its input.  An activation's own output
 * stands for an input that was not dumped.
 */
static struct slot_pair *value_of(const struct forward_index *index,
                                  const struct layer_pair *layer, const struct slot_pair *slot,
                                  struct layer_pair **ret_layer)
{
    struct layer_pair *const *const found =
        bsearch(layer, index->layers, index->count, sizeof *index->layers, place_find);
    const bool  taken = is_kind(slot, "input.");
    const char *number = strchr(slot->side[0]->name, '.') + 1;

    if (found == NULL)
        return NULL;
    *ret_layer = *found;
    struct slot_pair *value = slot_of(*found, taken ? "output." : "input.", number);
    if (!is_value(value) && !taken)
        value = slot_of(*found, "output.", number);
    return is_value(value) && value->moments->total == slot->moments->total ? value : NULL;
}

struct scan {
    struct pair_views   views[2]; /* of the gradient, of the value */
    double             *room;     /* BLOCK of each side of each */
    double              rms, reach;
    struct off_element *off; /* MAX_OFF of them */
    uint64_t            count;
};

static bool crosses(double a, double b, double reach)
{
    if (!(fabs(a - b) <= reach) || a == b)
        return false;
    for (size_t k = 0; k < sizeof KINKS / sizeof *KINKS; k++)
        if ((a > KINKS[k]) != (b > KINKS[k]))
            return true;
    return false;
}

/* False where more is off than a few elements. */
static bool scan_block(struct scan *scan, uint64_t first, uint64_t count)
{
    for (unsigned k = 0; k < 4; k++)
        nd_view_decode(&scan->views[k / 2].view[k % 2], first, count, scan->room + k * BLOCK);
    const double *const r = scan->room + GRADIENT * BLOCK, *const c = r + BLOCK;
    const double *const x = scan->room + VALUE * BLOCK, *const y = x + BLOCK;
    for (uint64_t i = 0; i < count; i++) {
        if (!(fabs(c[i] - r[i]) >= OFF * (fabs(r[i]) + scan->rms)))
            continue;
        if (scan->count == MAX_OFF)
            return false;
        scan->off[scan->count++] = (struct off_element){
            .index = first + i,
            .error = c[i] - r[i],
            .value = {x[i], y[i]},
            .is_explained = (r[i] == 0) != (c[i] == 0) && crosses(x[i], y[i], scan->reach)};
    }
    return true;
}

static bool is_real(const struct tensor_view *view)
{
    return nd_dtype_info(view->dtype)->kind == ND_KIND_FLOAT;
}

/* All that is off lies at a kink, or where a maximum is shared. */
static bool is_explained(const struct scan *scan)
{
    uint64_t explained = 0;

    for (uint64_t i = 0; i < scan->count; i++)
        explained += scan->off[i].is_explained;
    return explained > 0 && explained == scan->count;
}

static bool scan_all(struct scan *scan, bool is_maximum)
{
    const uint64_t count = scan->views[0].view[0].count;
    bool           good = true;

    for (unsigned k = 0; k < 2; k++)
        good = good && scan->views[k].ready && scan->views[k].view[0].count == count &&
               is_real(&scan->views[k].view[0]) && is_real(&scan->views[k].view[1]);
    if (!good)
        return false;
    scan->room = malloc(4 * BLOCK * sizeof *scan->room);
    scan->off = malloc(MAX_OFF * sizeof *scan->off);
    good = scan->room != NULL && scan->off != NULL;
    for (uint64_t at = 0; good && at < count; at += BLOCK)
        good = scan_block(scan, at, count - at < BLOCK ? count - at : BLOCK);
    if (good && is_maximum)
        good = nd_ties_explain(scan->off, scan->count, &scan->views[1].view[0].shape,
                               scan->reach);
    good = good && is_explained(scan);
    free(scan->off);
    free(scan->room);
    return good;
}

/* A layer that hands its gradient to the largest of its inputs. */
static bool takes_maximum(const struct layer_pair *layer)
{
    const char *const type = layer->side[0]->type;

    return strstr(type, "MaxPool") != NULL || strstr(type, "max_pool") != NULL;
}

/* Everything that is off in this gradient lies at a kink. */
static bool is_proved(const struct comparison *comparison, const struct forward_index *index,
                      const struct layer_pair *layer, const struct slot_pair *slot)
{
    struct layer_pair      *from = NULL;
    const struct slot_pair *value = value_of(index, layer, slot, &from);
    struct scan             scan = {.rms = slot->rms[0]};

    if (value == NULL || slot->result->layout_how != NULL || value->result->layout_how != NULL)
        return false;
    const struct nd_moments *const moments = value->moments;
    scan.reach = NOISE_REACH * sqrt(moments->sum_ee / (double)moments->n) / moments->scale;
    nd_pair_open(comparison, layer, slot, &scan.views[0]);
    nd_pair_open(comparison, from, value, &scan.views[1]);
    const bool proved =
        scan_all(&scan, takes_maximum(layer) && is_kind(slot, "output."));
    (void)nd_pair_close(&scan.views[1]);
    (void)nd_pair_close(&scan.views[0]);
    return proved;
}

static bool is_local(const struct slot_pair *slot)
{
    return slot->measured && slot->detail != NULL && slot->detail->scaled_fault > 0;
}

/*
 * The largest scaled error of an input whose own local error is excused, or comes from behind
 * a kink; 0: none.  Marks the inputs that are proved.
 */
static double judge_taken(const struct comparison *comparison, const struct forward_index *index,
                          struct layer_pair *layer, bool behind)
{
    double worst = 0;

    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        if (slot->side[0] == NULL || !is_kind(slot, "input.") || !is_local(slot))
            continue;
        slot->kink = is_proved(comparison, index, layer, slot);
        if (slot->kink || behind)
            worst = fmax(worst, slot->detail->max_scaled);
    }
    return worst;
}

static bool judge_layer(const struct comparison *comparison, const struct forward_index *index,
                        struct layer_pair *layer, bool behind)
{
    const double taken = judge_taken(comparison, index, layer, behind);

    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *slot = &layer->slots[s];
        if (slot->side[0] == NULL || is_kind(slot, "input.") || is_kind(slot, "param.") ||
            is_kind(slot, "state") || !nd_slot_looks_localised(slot))
            continue;
        slot->kink = slot->detail->max_scaled <= CARRIED_GAIN * taken ||
                     (is_kind(slot, "output.") && is_proved(comparison, index, layer, slot));
    }
    for (size_t s = 0; s < layer->slot_count; s++)
        behind = behind || layer->slots[s].kink;
    return behind;
}

static bool wants_judging(const struct layer_pair *layer)
{
    if (layer->side[0]->direction != DIRECTION_BACKWARD || layer->side[1] == NULL)
        return false;
    for (size_t s = 0; s < layer->slot_count; s++)
        if (nd_slot_looks_localised(&layer->slots[s]))
            return true;
    return false;
}

enum nd_status nd_kinks_find(struct comparison *comparison, struct nd_error *err)
{
    struct forward_index index = {NULL, 0};
    bool                 behind = false;

    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair *const layer = &comparison->layers[i];
        if (i > 0 && (layer->step != layer[-1].step || layer->rank != layer[-1].rank))
            behind = false;
        if (!wants_judging(layer))
            continue;
        if (index.layers == NULL && !index_make(comparison, &index))
            return nd_fail_memory(err);
        behind = judge_layer(comparison, &index, layer, behind);
    }
    free(index.layers);
    return ND_OK;
}
