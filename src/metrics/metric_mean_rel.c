/*
 * The mean relative error, mean of |c - r| / max(|r|, floor).
 */
#include "metrics/metric.h"

static bool mean_rel_value(const struct nd_moments *moments, const struct nd_detail *detail,
                           double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->sum_rel / (double)detail->n;
    return true;
}

const struct metric nd_metric_mean_rel = {
    .key = "mean_rel", .detail = true, .value = mean_rel_value};
