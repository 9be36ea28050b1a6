/*
 * The cosine of the angle between both tensors as vectors, r . c / (||r|| ||c||).  Two zero
 * vectors are alike (1); one zero vector has nothing in common with another (0).
 */
#include <math.h>

#include "metrics/metric.h"

static bool cosine_value(const struct nd_moments *moments, const struct nd_detail *detail,
                         double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    const double norms = sqrt(moments->sum_rr) * sqrt(moments->sum_cc);
    const double cosine = moments->sum_rc / norms;

    if (norms == 0.0)
        value[0] = moments->sum_rr == moments->sum_cc ? 1.0 : 0.0;
    else
        value[0] = cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine; /* rounding */
    return true;
}

const struct metric nd_metric_cosine = {.key = "cosine", .value = cosine_value};
