/*
 * Top-1 agreement of the model's own output: in how many rows (along the last axis) the
 * largest element is at the same place on both sides.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/slot_pair.h"
#include "compare/top1.h"

enum { MAX_ROW = 1 << 20, /* a vocabulary has a few hundred thousand entries */
       TOGETHER = 1 << 18, /* elements of rows that follow each other: layouts are read so */
       ROWS = 4096,
       LANES = 16,
       GROUPS = 64 };

/* Of larger outputs evenly spaced rows are looked at, this many elements and rows in all: the
 * share is as good, and comparing does not take twice as long. */
static const uint64_t MAX_ELEMENTS = 1 << 24, MAX_ROWS = 1 << 17;

struct top1 {
    const struct tensor_view *view; /* two */
    uint64_t                  n;    /* of a row */
    uint64_t                  rows, step; /* rows to look at, every step-th one */
    atomic_uint_least64_t     same;
    atomic_bool               failed;
};

/* Where the first of the largest elements stands; NaN is never the largest. */
static uint64_t largest_of_floats(const float *row, uint64_t n)
{
    float    lane[LANES], most = -INFINITY;
    uint64_t i = 0;

    for (unsigned k = 0; k < LANES; k++)
        lane[k] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (unsigned k = 0; k < LANES; k++)
            lane[k] = row[i + k] > lane[k] ? row[i + k] : lane[k];
    for (; i < n; i++)
        lane[0] = row[i] > lane[0] ? row[i] : lane[0];
    for (unsigned k = 0; k < LANES; k++)
        most = lane[k] > most ? lane[k] : most;
    for (i = 0; i < n && !(row[i] == most); i++)
        ;
    return i < n ? i : n - 1; /* all of them are NaN */
}

static uint64_t largest_of_doubles(const double *row, uint64_t n)
{
    uint64_t best = 0;

    for (uint64_t i = 1; i < n; i++)
        if (row[i] > row[best] || isnan(row[best]))
            best = i;
    return best;
}

/* Of `count` rows that follow each other. */
static void largest_of_rows(const struct tensor_view *view, uint64_t row, uint64_t count,
                            uint64_t n, double *room, uint32_t *ret_places)
{
    const bool   are_floats = view->dtype == ND_DTYPE_f32;
    const float *floats = (const void *)room;

    if (are_floats)
        nd_view_gather(view, row * n, count * n, room);
    else
        nd_view_decode(view, row * n, count * n, room);
    for (uint64_t i = 0; i < count; i++)
        ret_places[i] = (uint32_t)(are_floats ? largest_of_floats(floats + i * n, n)
                                              : largest_of_doubles(room + i * n, n));
}

static void count_group(void *user, size_t group, unsigned worker)
{
    struct top1   *top1 = user;
    const uint64_t first = top1->rows * group / GROUPS, end = top1->rows * (group + 1) / GROUPS;
    const bool     in_order = top1->view[0].contiguous && top1->view[1].contiguous;
    const uint64_t fit =
        in_order || top1->step > 1 || top1->n > TOGETHER ? 1 : TOGETHER / top1->n;
    const uint64_t together = fit < ROWS ? fit : ROWS;
    double        *room = malloc((size_t)(together * top1->n) * sizeof *room);
    uint32_t       place[2][ROWS];
    uint64_t       same = 0;

    (void)worker;
    if (room == NULL) {
        atomic_store(&top1->failed, true);
        return;
    }
    for (uint64_t i = first, count; i < end; i += count) {
        count = end - i < together ? end - i : together;
        for (unsigned side = 0; side < 2; side++)
            largest_of_rows(&top1->view[side], i * top1->step, count, top1->n, room,
                            place[side]);
        for (uint64_t k = 0; k < count; k++)
            same += place[0][k] == place[1][k];
    }
    free(room);
    atomic_fetch_add(&top1->same, same);
}

static uint64_t row_length(const struct nd_shape *shape)
{
    return shape->rank == 0 ? 0 : shape->dim[shape->rank - 1];
}

bool nd_top1_applies(const struct slot_pair *slot)
{
    const uint64_t n = row_length(&slot->result->shape);

    if (!slot->measured || slot->moments->total == 0 || n < 2 || n > MAX_ROW)
        return false;
    for (unsigned side = 0; side < 2; side++)
        if (slot->side[side] != NULL &&
            nd_dtype_info(slot->side[side]->dtype)->kind != ND_KIND_FLOAT)
            return false;
    return true;
}

void nd_top1_equal(const struct slot_pair *slot, struct nd_outcome *ret)
{
    ret->top1_rows = slot->moments->total / row_length(&slot->result->shape);
    ret->top1_agreement = 1;
}

void nd_top1_count(unsigned jobs, const struct pair_views *views, struct nd_outcome *ret)
{
    const uint64_t n = row_length(&views->view[0].shape);
    const uint64_t rows = n == 0 ? 0 : views->view[0].count / n;
    const uint64_t by_size = MAX_ELEMENTS / (n == 0 ? 1 : n) + 1;
    const uint64_t most = by_size <= MAX_ROWS ? by_size : MAX_ROWS + 1;
    struct top1    top1 = {.view = views->view, .n = n, .step = rows / most + 1};

    if (n < 2 || rows == 0)
        return;
    top1.rows = (rows + top1.step - 1) / top1.step;
    nd_pool_run(jobs, GROUPS, count_group, NULL, &top1);
    if (atomic_load(&top1.failed))
        return;
    ret->top1_rows = top1.rows;
    ret->top1_agreement = (double)atomic_load(&top1.same) / (double)top1.rows;
}
