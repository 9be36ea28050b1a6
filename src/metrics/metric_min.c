/*
 * The smallest value of each side.
 */
#include "metrics/metric.h"

static bool min_value(const struct nd_moments *moments, const struct nd_detail *detail,
                      double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = moments->min[0];
    value[1] = moments->min[1];
    return true;
}

const struct metric nd_metric_min = {.key = "min", .pair = true, .value = min_value};
