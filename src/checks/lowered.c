/*
 * Rounding the reference to the candidate's type tells what one layer loses; what all
 * layers lose together adds up in squares, for roundings know nothing of each other.  A
 * layer's own error is what its inputs do not explain.
 */
#include "checks/lowered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOWERED_LEAST = 3, LOWERED_BUDGET = 8192, LOWERED_BLOCK = 256, LOWERED_BEFORE = 4 };

/* Nine layers of ten: inputs, outputs and an operator kept wide do not speak against it. */
static const double LOWERED_SHARE = 0.9;

/* Honest layers multiply the relative error of their inputs by no more than this, and stay
 * within this many roundings of their own. */
static const double STANDS_OUT = 4;

/* One rounding to nearest leaves this share of the roundoff, as root mean square. */
static const double ONE_ROUNDING = 0.4247;

static enum grid grid_named(const char *name)
{
    return name == NULL                    ? GRID_NONE
           : strcmp(name, "float16") == 0  ? GRID_F16
           : strcmp(name, "bfloat16") == 0 ? GRID_BF16
                                           : GRID_NONE;
}

/* A layer with a value that was compared: containers and integers say nothing. */
static const struct nd_slot *lowered_slot(const struct nd_layer *layer,
                                          const struct layer_facts *facts)
{
    if (!facts->pair || facts->container || facts->out.worst == ND_NO_INDEX)
        return NULL;
    return &layer->slots[facts->out.worst];
}

/* The type that a side computed in: declared, or the grid that its values lie on. */
static enum grid side_grid(const struct nd_slot *slot, const struct layer_facts *facts,
                           int side)
{
    const enum grid declared = grid_named(slot->dtype[side]);

    if (declared != GRID_NONE)
        return declared;
    return facts->grid[side] == GRID_F16 || facts->grid[side] == GRID_BF16 ? facts->grid[side]
                                                                           : GRID_NONE;
}

/* The narrow type of nine candidate layers of ten; GRID_NONE: there is none. */
static enum grid lowered_grid(const struct nd_result *result, const struct layer_facts *facts,
                              struct nd_lowered *ret)
{
    size_t on[GRID_COUNT + 1] = {0};

    for (size_t i = 0; i < result->layer_count; i++) {
        const struct nd_slot *slot = lowered_slot(&result->layers[i], &facts[i]);
        if (slot == NULL)
            continue;
        ret->of++;
        if (side_grid(slot, &facts[i], 0) != GRID_NONE)
            continue;
        const enum grid grid = side_grid(slot, &facts[i], 1);
        on[grid]++;
        if (grid != GRID_NONE && ret->dtype[0] == NULL)
            ret->dtype[0] = slot->dtype[0];
    }
    const enum grid most = on[GRID_F16] >= on[GRID_BF16] ? GRID_F16 : GRID_BF16;
    ret->layers = on[most];
    return on[most] >= LOWERED_LEAST && (double)on[most] >= LOWERED_SHARE * (double)ret->of
               ? most
               : GRID_NONE;
}

/* ||r - round(r)|| / ||r|| of the reference, over blocks spread evenly. */
static double rounding_of(const struct layer_pair_view *pair, const char *name, enum grid grid)
{
    const struct slot_view *slot =
        pair->side[0] == NULL ? NULL : nd_layer_slot(pair->side[0], name);
    const double usual = ONE_ROUNDING * nd_grid_roundoff(grid);
    double values[LOWERED_BLOCK], error = 0, size = 0;

    if (slot == NULL || !slot->has_tensor || slot->tensor.count == 0 ||
        nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT)
        return usual;
    const uint64_t count = slot->tensor.count;
    const uint64_t blocks = count < LOWERED_BUDGET ? (count - 1) / LOWERED_BLOCK + 1
                                                   : LOWERED_BUDGET / LOWERED_BLOCK;
    for (uint64_t b = 0; b < blocks; b++) {
        const uint64_t first = blocks == 1 ? 0 : count / blocks * b;
        const uint64_t n = count - first < LOWERED_BLOCK ? count - first : LOWERED_BLOCK;
        nd_view_decode(&slot->tensor, first, n, values);
        for (uint64_t i = 0; i < n; i++) {
            const double e = values[i] - nd_grid_round(grid, values[i]);
            if (!isfinite(e))
                continue;
            error += e * e;
            size += values[i] * values[i];
        }
    }
    return size > 0 ? sqrt(error / size) : usual;
}

static double beyond(double out, double in)
{
    return out > in ? sqrt((out - in) * (out + in)) : 0;
}

/* What a layer adds to what came in; infinite where it made NaN or infinities. */
struct own {
    double error;
    bool stands_out; /* more than an honest layer makes of what came in */
};

static struct own own_error(const struct layer_facts *facts, const double *before, double once)
{
    double level = facts->in.count > 0 ? facts->in.rel : 0;

    if (facts->out.mismatches > 0 && facts->in.mismatches == 0)
        return (struct own){HUGE_VAL, true};
    if (facts->replay.done && facts->replay.trusted) {
        const double error = facts->replay.residual[1].rel;
        return (struct own){error, error > STANDS_OUT * once};
    }
    for (int k = 0; k < LOWERED_BEFORE && facts->in.count == 0; k++)
        level = fmax(level, before[k]);
    return (struct own){beyond(facts->out.rel, level),
                        facts->out.rel > STANDS_OUT * hypot(level, once)};
}

static int own_compare(const void *a, const void *b)
{
    const struct nd_lowered_layer *left = a, *right = b;

    if (left->times != right->times)
        return left->times > right->times ? -1 : 1;
    return left->layer < right->layer ? -1 : left->layer > right->layer;
}

/* Walks over the layers of each run: what the type explains up to each, and its own error. */
static void lowered_walk(const struct diagnosis_input *input, const struct layer_facts *facts,
                         const struct origin *origin, enum grid grid,
                         struct nd_lowered_layer *rows, struct nd_lowered *ret)
{
    const struct nd_result *result = input->result;
    const double least = 0.25 * nd_grid_roundoff(grid);
    double before[LOWERED_BEFORE] = {0}, sum = 0;
    size_t produced = 0;

    for (size_t i = 0; i < result->layer_count; i++) {
        const struct nd_layer *layer = &result->layers[i];
        const struct nd_slot *slot = lowered_slot(layer, &facts[i]);
        if (i > 0 && (layer->step != layer[-1].step || layer->rank != layer[-1].rank)) {
            memset(before, 0, sizeof before);
            sum = 0;
        }
        if (slot == NULL || side_grid(slot, &facts[i], 1) != grid)
            continue;
        const double once = rounding_of(nd_pair_of(input, i), slot->name, grid);
        const bool product = facts[i].op != NULL && facts[i].op->product;
        sum += once * once * (product ? 2 : 1); /* the weight was rounded too */
        ret->explains = fmax(ret->explains, sqrt(sum));
        const struct own own = own_error(&facts[i], before, fmax(once, least));
        if (own.stands_out || origin->first == i)
            rows[ret->ranked_count++] =
                (struct nd_lowered_layer){.layer = i,
                                          .own = own.error,
                                          .explained = sqrt(sum),
                                          .times = own.error / fmax(once, least)};
        before[produced++ % LOWERED_BEFORE] = facts[i].out.rel;
    }
}

enum nd_status nd_lowered_find(const struct diagnosis_input *input,
                               const struct layer_facts *facts, const struct origin *origin,
                               struct arena *arena, struct nd_lowered *ret,
                               struct nd_error *err)
{
    struct nd_lowered found = {.explains = 0};
    struct nd_lowered_layer *rows;

    *ret = (struct nd_lowered){.explains = (double)NAN};
    const enum grid grid = lowered_grid(input->result, facts, &found);
    if (grid == GRID_NONE)
        return ND_OK;
    rows = nd_arena_alloc(arena, input->result->layer_count + 1, sizeof *rows);
    if (rows == NULL)
        return nd_fail_memory(err);
    found.dtype[1] = nd_grid_name(grid);
    lowered_walk(input, facts, origin, grid, rows, &found);
    qsort(rows, found.ranked_count, sizeof *rows, own_compare);
    found.ranked = rows;
    *ret = found;
    return ND_OK;
}
