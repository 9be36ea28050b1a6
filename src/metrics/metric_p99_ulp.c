/*
 * The 99 % quantile of the error in units of the last place (see max_ulp): nearest rank,
 * upper edge of its bin.
 */
#include "metrics/metric.h"

static bool p99_ulp_value(const struct nd_moments *moments, const struct nd_detail *detail,
                          double *value)
{
    (void)moments;
    if (detail->n == 0 || !detail->has_ulp)
        return false;
    value[0] = detail->p99_ulp;
    return true;
}

const struct metric nd_metric_p99_ulp = {
    .key = "p99_ulp", .detail = true, .value = p99_ulp_value};
