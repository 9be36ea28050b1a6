/*
 * An input that differs although its producer agrees: was it rounded on the way?  A cast
 * that nobody dumped leaves the producer's values on a narrower grid.
 */
#include "checks/flat.h"

#include <math.h>
#include <stdlib.h>

enum { INPUT_BUDGET = 1 << 22, INPUT_LEAST = 16 };

static const struct tensor_view *input_tensor(const struct subject *subject, int side,
                                              const char *name)
{
    const struct slot_view *slot = subject->pair->side[side] == NULL
                                       ? NULL
                                       : nd_layer_slot(subject->pair->side[side], name);

    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? &slot->tensor
               : NULL;
}

/* The grid that one side's values lie on and the other's do not. */
static enum grid input_grid(const struct tensor_view *const views[2], int side)
{
    enum grid grid[2];

    for (int k = 0; k < 2; k++) {
        struct grid_shares shares;
        nd_grid_shares(views[k], INPUT_BUDGET, &shares);
        grid[k] = nd_grid_of(&shares, views[k]->dtype);
    }
    return grid[side] < grid[!side] ? grid[side] : GRID_NONE;
}

/* What is left of the difference when the other side's values are rounded too, as a share
 * of it. */
static double input_left(const struct tensor_view *const views[2], int side, enum grid grid)
{
    const uint64_t n = views[0]->count < INPUT_BUDGET ? views[0]->count : INPUT_BUDGET;
    double *values = malloc(2 * n * sizeof *values), before, left = (double)NAN;

    if (values == NULL)
        return left;
    nd_view_decode(views[side], 0, n, values);
    nd_view_decode(views[!side], 0, n, values + n);
    before = nd_flat_distance(values, values + n, NULL, n);
    for (uint64_t i = 0; i < n; i++)
        values[n + i] = nd_grid_round(grid, values[n + i]);
    if (before > 0)
        left = nd_flat_distance(values, values + n, NULL, n) / before;
    free(values);
    return left;
}

static void input_try(struct subject *subject, const char *name)
{
    const struct tensor_view *const views[2] = {input_tensor(subject, 0, name),
                                                input_tensor(subject, 1, name)};

    if (views[0] == NULL || views[1] == NULL ||
        !nd_shape_equal(&views[0]->shape, &views[1]->shape) ||
        views[0]->count < INPUT_LEAST)
        return;
    for (int side = 0; side < 2; side++) {
        const enum grid grid = input_grid(views, side);
        const double left = grid == GRID_NONE ? (double)NAN : input_left(views, side, grid);
        if (!(left < 0.5))
            continue;
        /* Values near the middle between two neighbours go the other way: 8 u32 / u of
         * them, each off by a spacing. */
        const double u = nd_grid_roundoff(grid), most = 2 * sqrt(8 * 0x1p-24 / u);
        const struct hypothesis cast = {
            .id = "dtype_effective",
            .residual = left * subject->unexplained,
            .floor = most * subject->unexplained,
            .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
            .summary = ND_PHRASE(subject->arena, "summary.dtype_effective.input",
                                 ND_WORD("slot", name),
                                 ND_WORD("dtype", nd_grid_name(grid)),
                                 ND_NUMBER("left", left),
                                 ND_NUMBER("is_candidate", side))};
        ND_PROPOSE(subject, cast, ND_WORD("dtype", nd_grid_name(grid)),
                   ND_WORD("slot", name));
    }
}

static void input_rounded_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    if (subject->kind != ORIGIN_GAP || !(subject->unexplained > 0))
        return;
    for (size_t i = 0; i < subject->layer->slot_count; i++) {
        const struct nd_slot *slot = &subject->layer->slots[i];
        if (nd_slot_is(slot, "input") && nd_slot_rel(slot) > 0)
            input_try(subject, slot->name);
    }
}

const struct check nd_check_input_rounded = {.id = "input_rounded",
                                             .run = input_rounded_run};
