/*
 * The mean value of each side.
 */
#include "metrics/metric.h"

static bool mean_value(const struct nd_moments *moments, const struct nd_detail *detail,
                       double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = moments->sum_r / (double)moments->n / moments->scale;
    value[1] = moments->sum_c / (double)moments->n / moments->scale;
    return true;
}

const struct metric nd_metric_mean = {.key = "mean", .pair = true, .value = mean_value};
