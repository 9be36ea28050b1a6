/*
 * The Euclidean norm of each side, sqrt(sum x^2).
 */
#include <math.h>

#include "metrics/metric.h"

static bool norm_value(const struct nd_moments *moments, const struct nd_detail *detail,
                       double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    value[0] = sqrt(moments->sum_rr) / moments->scale;
    value[1] = sqrt(moments->sum_cc) / moments->scale;
    return true;
}

const struct metric nd_metric_norm = {.key = "norm", .pair = true, .value = norm_value};
