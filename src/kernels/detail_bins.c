/*
 * The bins of the detail pass, and the quantiles read off them.
 */
#include <math.h>
#include <string.h>

#include "kernels/moments.h"

static uint64_t detail_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

unsigned nd_detail_bin(double value)
{
    const uint64_t bits = detail_bits(value);
    const int field = (int)(bits >> 52) - 1023 + 127;

    if (value == 0.0)
        return 0;
    if (field >= 255)
        return DETAIL_BINS + 1;
    if (field >= 1)
        return 1U + (unsigned)field * 16U + (unsigned)(bits >> 48 & 15U);
    return 1U + (unsigned)(value * 0x1p130); /* sixteenths of 2^-126 */
}

static double detail_edge(unsigned k)
{
    const unsigned field = k / 16, sixteenths = k % 16;

    if (field >= 255)
        return HUGE_VAL; /* as the bits of a float32 say */
    return field == 0 ? ldexp(sixteenths, -126 - 4)
                      : ldexp(16 + sixteenths, (int)field - 127 - 4);
}

double nd_detail_quantile(const uint64_t *bins, uint64_t n, double q)
{
    /* Integers: 0.9 * n as a double may lie just above a whole number. */
    const uint64_t thousandths = (uint64_t)(q * 1000.0 + 0.5);
    const uint64_t rank = n / 1000 * thousandths + (n % 1000 * thousandths + 999) / 1000;
    uint64_t seen = bins[0];

    if (seen >= rank)
        return 0.0;
    for (unsigned k = 0; k < DETAIL_BINS; k++) {
        seen += bins[1 + k];
        if (seen >= rank)
            return detail_edge(k + 1);
    }
    return HUGE_VAL;
}

void nd_detail_settle(struct nd_detail_sums *sums)
{
    struct nd_detail *const detail = &sums->detail;

    detail->p50 = nd_detail_quantile(sums->abs_bins, detail->n, 0.5);
    detail->p90 = nd_detail_quantile(sums->abs_bins, detail->n, 0.9);
    detail->p99 = nd_detail_quantile(sums->abs_bins, detail->n, 0.99);
    detail->p999 = nd_detail_quantile(sums->abs_bins, detail->n, 0.999);
    detail->p99_ulp =
        detail->has_ulp ? nd_detail_quantile(sums->ulp_bins, detail->n, 0.99) : 0.0;
}
