/*
 * Steps follow each other in a result; within one, a rank is looked up.
 */
#include "checks/runs.h"

#include <stdlib.h>

struct lane {
    int64_t rank;
    size_t last, run; /* of the step it was last seen in */
    size_t began;     /* that step's first layer */
};

static int rank_compare(const void *a, const void *b)
{
    const struct lane *left = a, *right = b;

    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* The distinct ranks, in ascending order; *ret_count of them. NULL without memory. */
static struct lane *lanes_make(const struct nd_result *result, size_t *ret_count)
{
    struct lane *lanes = calloc(result->layer_count + 1, sizeof *lanes);
    size_t count = 0, kept = 0;

    for (size_t i = 0; lanes != NULL && i < result->layer_count; i++)
        if (i == 0 || result->layers[i].rank != result->layers[i - 1].rank)
            lanes[count++] = (struct lane){.rank = result->layers[i].rank,
                                           .began = ND_NO_INDEX};
    if (count > 1)
        qsort(lanes, count, sizeof *lanes, rank_compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || lanes[kept - 1].rank != lanes[i].rank)
            lanes[kept++] = lanes[i];
    *ret_count = kept;
    return lanes;
}

bool nd_runs_index(const struct nd_result *result, struct run_index *ret_runs)
{
    const size_t layers = result->layer_count;
    size_t ranks = 0, began = 0;
    struct lane *const lanes = lanes_make(result, &ranks), *lane = NULL;
    struct run_index runs = {.run = calloc(layers + 1, sizeof *runs.run),
                             .before = calloc(layers + 1, sizeof *runs.before)};

    if (lanes == NULL || runs.run == NULL || runs.before == NULL) {
        free(lanes);
        nd_runs_done(&runs);
        return false;
    }
    for (size_t i = 0; i < layers; i++) {
        const struct lane key = {.rank = result->layers[i].rank};
        if (i > 0 && result->layers[i].step != result->layers[i - 1].step)
            began = i;
        if (lane == NULL || lane->rank != key.rank)
            lane = bsearch(&key, lanes, ranks, sizeof *lanes, rank_compare);
        const bool is_new = lane->began != began;
        runs.before[i] = is_new ? ND_NO_INDEX : lane->last;
        if (is_new)
            lane->run = runs.count++;
        lane->began = began;
        lane->last = i;
        runs.run[i] = lane->run;
    }
    free(lanes);
    *ret_runs = runs;
    return true;
}

void nd_runs_done(struct run_index *runs)
{
    free(runs->run);
    free(runs->before);
    *runs = (struct run_index){.count = 0};
}
