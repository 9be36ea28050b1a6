/*
 * The share of elements whose relative error is under 5e-3.
 */
#include "metrics/metric.h"

static bool within_5e3_value(const struct nd_moments *moments,
                             const struct nd_detail *detail, double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = (double)detail->within_5e3 / (double)detail->n;
    return true;
}

const struct metric nd_metric_within_5e3 = {
    .key = "within_5e3", .detail = true, .value = within_5e3_value};
