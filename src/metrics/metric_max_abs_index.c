/*
 * Where the largest absolute error is: its first place in logical order.
 */
#include "metrics/metric.h"

static bool max_abs_index_value(const struct nd_moments *moments,
                                const struct nd_detail *detail, double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = (double)moments->max_abs_at;
    return true;
}

const struct metric nd_metric_max_abs_index = {
    .key = "max_abs_index", .index = true, .value = max_abs_index_value};
