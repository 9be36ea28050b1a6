/*
 * The median of the layers' parameter errors.
 */
#include "checks/weights.h"

#include <math.h>
#include <stdlib.h>

#include "base/ascending.h"

/* After a training step all weights differ a little: over 8 times the median stands out. */
static const double STANDS_OUT = 8;

/* An optimizer that divides by the gradient's size turns noise into steps where gradients
 * are small, so that some layers part further than most: a tenth of them is no outlier. */
static const double USUAL_SHARE = 0.9;

/*
 * Where a third of the layers differ, the median is that of the differing ones, so that
 * equal norms beside rounded matrices do not set it to zero.  One layer alone has none to
 * stand out from.
 */
static double weights_median(const double *sorted, size_t count, size_t differ)
{
    const size_t equal = count - differ;

    if (count == 0)
        return 0;
    if (differ > 1 && differ * 3 >= count)
        return sorted[equal + (differ - 1) / 2];
    return count == 1 ? 0 : sorted[(count - 1) / 2];
}

/* What most layers stay below, where most of them differ; else the median. */
static double weights_usual(const double *sorted, size_t count, size_t differ,
                            double median)
{
    const size_t equal = count - differ;

    if (differ < 3 || differ * 2 < count)
        return median;
    return sorted[equal + (size_t)(USUAL_SHARE * (double)(differ - 1))];
}

/* The layers of the step that `layer` is in: how many, and *ret_first of them. */
static size_t step_layers(const struct nd_result *result, size_t layer, size_t *ret_first)
{
    size_t first = layer, end = layer;

    while (first > 0 && result->layers[first - 1].step == result->layers[layer].step)
        first--;
    while (end < result->layer_count && result->layers[end].step == result->layers[layer].step)
        end++;
    *ret_first = first;
    return end - first;
}

bool nd_weights_weigh(const struct diagnosis_input *input, const struct layer_facts *facts,
                      size_t layer, struct weights *ret_weights)
{
    size_t first;
    const size_t layers = step_layers(input->result, layer, &first);
    double *rel = calloc(layers + 1, sizeof *rel);
    double floor = 0;
    size_t count = 0, differ = 0;

    if (rel == NULL)
        return false;
    for (size_t i = first; i < first + layers; i++) {
        const struct slot_group *params = &facts[i].params;
        if (params->count == 0 || facts[i].container)
            continue;
        const struct nd_slot *slot = &input->result->layers[i].slots[params->worst];
        rel[count++] = params->rel;
        differ += params->rel > 0;
        floor = fmax(floor, nd_floor(nd_slot_roundoff(slot)));
    }
    qsort(rel, count, sizeof *rel, ascending);
    *ret_weights = (struct weights){.median = weights_median(rel, count, differ),
                                    .has_parted = differ > 1 && differ * 2 >= count};
    /* One side's weights rounded to its type have not parted. */
    if (!(ret_weights->median > 2 * floor))
        ret_weights->has_parted = false;
    ret_weights->limit =
        STANDS_OUT * fmax(weights_usual(rel, count, differ, ret_weights->median), floor);
    free(rel);
    return true;
}
