/*
 * The median of the absolute error: nearest rank, upper edge of its bin.
 */
#include "metrics/metric.h"

static bool p50_value(const struct nd_moments *moments, const struct nd_detail *detail,
                      double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->p50;
    return true;
}

const struct metric nd_metric_p50 = {.key = "p50", .detail = true, .value = p50_value};
