/*
 * Subnormal values of the side's dtype on each side: how many.
 */
#include "metrics/metric.h"

static bool subnormals_value(const struct nd_moments *moments,
                             const struct nd_detail *detail, double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = (double)detail->subnormals[0];
    value[1] = (double)detail->subnormals[1];
    return true;
}

const struct metric nd_metric_subnormals = {
    .key = "subnormals", .detail = true, .pair = true, .value = subnormals_value};
