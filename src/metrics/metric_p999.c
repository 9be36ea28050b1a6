/*
 * The 99.9 % quantile of the absolute error: nearest rank, upper edge of its bin.
 */
#include "metrics/metric.h"

static bool p999_value(const struct nd_moments *moments, const struct nd_detail *detail,
                       double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->p999;
    return true;
}

const struct metric nd_metric_p999 = {.key = "p999", .detail = true, .value = p999_value};
