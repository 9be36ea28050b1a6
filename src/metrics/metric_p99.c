/*
 * The 99 % quantile of the absolute error: nearest rank, upper edge of its bin.
 */
#include "metrics/metric.h"

static bool p99_value(const struct nd_moments *moments, const struct nd_detail *detail,
                      double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->p99;
    return true;
}

const struct metric nd_metric_p99 = {.key = "p99", .detail = true, .value = p99_value};
