/*
 * The share of elements whose relative error is under 1e-3.
 */
#include "metrics/metric.h"

static bool within_1e3_value(const struct nd_moments *moments,
                             const struct nd_detail *detail, double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = (double)detail->within_1e3 / (double)detail->n;
    return true;
}

const struct metric nd_metric_within_1e3 = {
    .key = "within_1e3", .detail = true, .value = within_1e3_value};
