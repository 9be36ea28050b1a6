/*
 * The largest absolute error, max |c - r|.
 */
#include "metrics/metric.h"

static bool max_abs_value(const struct nd_moments *moments, const struct nd_detail *detail,
                          double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = moments->max_abs / moments->scale;
    return true;
}

const struct metric nd_metric_max_abs = {.key = "max_abs", .value = max_abs_value};
