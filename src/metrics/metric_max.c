/*
 * The largest value of each side.
 */
#include "metrics/metric.h"

static bool max_value(const struct nd_moments *moments, const struct nd_detail *detail,
                      double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = moments->max[0];
    value[1] = moments->max[1];
    return true;
}

const struct metric nd_metric_max = {.key = "max", .pair = true, .value = max_value};
