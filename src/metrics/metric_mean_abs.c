/*
 * The mean absolute error, sum |c - r| / n.
 */
#include "metrics/metric.h"

static bool mean_abs_value(const struct nd_moments *moments, const struct nd_detail *detail,
                           double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = moments->sum_abs / (double)moments->n / moments->scale;
    return true;
}

const struct metric nd_metric_mean_abs = {.key = "mean_abs", .value = mean_abs_value};
