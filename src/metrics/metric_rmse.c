/*
 * The root of the mean squared error, sqrt(sum (c - r)^2 / n).
 */
#include <math.h>

#include "metrics/metric.h"

static bool rmse_value(const struct nd_moments *moments, const struct nd_detail *detail,
                       double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = sqrt(moments->sum_ee / (double)moments->n) / moments->scale;
    return true;
}

const struct metric nd_metric_rmse = {.key = "rmse", .value = rmse_value};
