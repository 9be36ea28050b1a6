/*
 * Values at the largest finite size of the side's dtype on each side: how many.
 */
#include "metrics/metric.h"

static bool saturated_value(const struct nd_moments *moments,
                            const struct nd_detail *detail, double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = (double)detail->saturated[0];
    value[1] = (double)detail->saturated[1];
    return true;
}

const struct metric nd_metric_saturated = {
    .key = "saturated", .detail = true, .pair = true, .value = saturated_value};
