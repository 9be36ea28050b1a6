/*
 * Zeros on each side: how many.
 */
#include "metrics/metric.h"

static bool zeros_value(const struct nd_moments *moments, const struct nd_detail *detail,
                        double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = (double)detail->zeros[0];
    value[1] = (double)detail->zeros[1];
    return true;
}

const struct metric nd_metric_zeros = {
    .key = "zeros", .detail = true, .pair = true, .value = zeros_value};
