/*
 * The largest relative error, max |c - r| / max(|r|, floor).
 */
#include "metrics/metric.h"

static bool max_rel_value(const struct nd_moments *moments, const struct nd_detail *detail,
                          double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->max_rel;
    return true;
}

const struct metric nd_metric_max_rel = {
    .key = "max_rel", .detail = true, .value = max_rel_value};
