/*
 * The drift: ||c - r|| / ||r||, Euclidean norms.  Against a reference of zeros it is 0 if
 * the candidate is zero too, else infinite.
 */
#include <math.h>

#include "metrics/metric.h"

static bool rel_l2_value(const struct nd_moments *moments, const struct nd_detail *detail,
                         double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    if (moments->sum_rr == 0.0)
        value[0] = moments->sum_ee == 0.0 ? 0.0 : HUGE_VAL;
    else
        value[0] = sqrt(moments->sum_ee) / sqrt(moments->sum_rr);
    return true;
}

const struct metric nd_metric_rel_l2 = {.key = "rel_l2", .value = rel_l2_value};
