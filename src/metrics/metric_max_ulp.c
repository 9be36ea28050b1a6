/*
 * The largest error in units of the last place of the coarser dtype at max(|r|, rms(r) /
 * 1024).
 */
#include "metrics/metric.h"

static bool max_ulp_value(const struct nd_moments *moments, const struct nd_detail *detail,
                          double *value)
{
    (void)moments;
    if (detail->n == 0 || !detail->has_ulp)
        return false;
    value[0] = detail->max_ulp;
    return true;
}

const struct metric nd_metric_max_ulp = {
    .key = "max_ulp", .detail = true, .value = max_ulp_value};
