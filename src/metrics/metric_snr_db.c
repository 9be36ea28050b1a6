/*
 * The signal to noise ratio in decibels, 10 log10(sum r^2 / sum (c - r)^2).  The logarithm
 * is our own, of + - * / alone: libm's differ in their last bits.
 */
#include <math.h>

#include "metrics/metric.h"

/*
 * log10(a / b) for finite a, b > 0.  a / b = m * 2^k with m in [sqrt(1/2), sqrt(2)], and
 * log(m) = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1)/(m + 1), |s| < 0.172;
 * the terms up to s^21 leave less than 2^-57 of the sum.
 */
static double snr_log10_ratio(double a, double b)
{
    /* log10(2) in two parts, the first short enough that its product with k is exact. */
    static const double log10_2_high = 0x1.34413509f4p-2,
                        log10_2_low = 0x1.cff7988f8959bp-41;
    static const double log10_e = 0x1.bcb7b1526e50ep-2;
    int exponent_a, exponent_b;
    double m = frexp(a, &exponent_a) / frexp(b, &exponent_b);
    int k = exponent_a - exponent_b;

    if (m > 0x1.6a09e667f3bcdp0) { /* sqrt(2) */
        m *= 0.5;
        k++;
    } else if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2.0;
        k--;
    }
    const double s = (m - 1.0) / (m + 1.0), square = s * s;
    double series = 0.0;
    for (int i = 21; i >= 3; i -= 2)
        series = (series + 1.0 / i) * square;
    return k * log10_2_high + (k * log10_2_low + 2.0 * log10_e * (s + s * series));
}

static bool snr_db_value(const struct nd_moments *moments, const struct nd_detail *detail,
                         double *value)
{
    if (detail->n == 0)
        return false;
    if (moments->sum_rr == 0.0 && moments->sum_ee == 0.0)
        return false;
    if (moments->sum_ee == 0.0)
        value[0] = HUGE_VAL;
    else if (moments->sum_rr == 0.0)
        value[0] = -HUGE_VAL;
    else
        value[0] = 10.0 * snr_log10_ratio(moments->sum_rr, moments->sum_ee);
    return true;
}

const struct metric nd_metric_snr_db = {
    .key = "snr_db", .detail = true, .value = snr_db_value};
