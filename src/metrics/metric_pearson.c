/*
 * The correlation of both sides, from moments about a pivot (the first pair that counts),
 * which keeps digits where values are large beside their spread.  Absent for data that is
 * constant but for rounding: there the correlation is noise.
 */
#include <float.h>
#include <math.h>

#include "metrics/metric.h"

/* Is the variance times n no more than what rounding of the largest value makes? */
static bool pearson_is_constant(const struct nd_moments *moments, int side, double variance)
{
    const double low = fabs(moments->min[side]), high = fabs(moments->max[side]);
    const double peak = (low > high ? low : high) * moments->scale;
    const double noise = 4.0 * DBL_EPSILON * peak;

    return !(variance > noise * noise * (double)moments->n);
}

static bool pearson_value(const struct nd_moments *moments, const struct nd_detail *detail,
                          double *value)
{
    (void)detail;
    if (moments->n == 0)
        return false;
    const double n = (double)moments->n;
    const double var_r = moments->sum_prr - moments->sum_pr * (moments->sum_pr / n);
    const double var_c = moments->sum_pcc - moments->sum_pc * (moments->sum_pc / n);
    const double shared = moments->sum_prc - moments->sum_pr * (moments->sum_pc / n);

    if (pearson_is_constant(moments, 0, var_r) || pearson_is_constant(moments, 1, var_c))
        return false;
    /* The product of two roots need not be the number they are roots of. */
    const double sizes = var_r == var_c ? var_r : sqrt(var_r) * sqrt(var_c);
    const double pearson = shared / sizes;
    value[0] = pearson > 1.0 ? 1.0 : pearson < -1.0 ? -1.0 : pearson; /* rounding */
    return true;
}

const struct metric nd_metric_pearson = {.key = "pearson", .value = pearson_value};
