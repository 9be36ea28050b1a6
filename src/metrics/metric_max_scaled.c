/*
 * The largest scaled error, max |c - r| / (|r| + rms(r)).
 */
#include "metrics/metric.h"

static bool max_scaled_value(const struct nd_moments *moments,
                             const struct nd_detail *detail, double *value)
{
    (void)moments;
    if (detail->n == 0)
        return false;
    value[0] = detail->max_scaled;
    return true;
}

const struct metric nd_metric_max_scaled = {
    .key = "max_scaled", .detail = true, .value = max_scaled_value};
