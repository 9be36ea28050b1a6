/*
 * Rounding doubles to fewer significant bits, to nearest and ties to even, on their bits:
 * millions of values are rounded to find the type that a layer was computed in.
 */
#ifndef ND_TENSOR_ROUND_H
#define ND_TENSOR_ROUND_H

#include <stdint.h>
#include <string.h>

enum { ROUND_FRACTION = 52, ROUND_BIAS = 1023 };

static inline double nd_round_from_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^exponent, which must be that of a normal double. */
static inline double nd_round_power(int exponent)
{
    return nd_round_from_bits((uint64_t)(exponent + ROUND_BIAS) << ROUND_FRACTION);
}

/* A normal double, to `digits` < 53 significant bits, the leading one included; beyond the
 * largest double it becomes infinite. */
static inline double nd_round_digits(double value, int digits)
{
    const unsigned drop = (unsigned)(ROUND_FRACTION + 1 - digits);
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    /* Just under half a unit of what stays, and a whole half where that is odd. */
    bits += (UINT64_C(1) << (drop - 1)) - 1 + (bits >> drop & 1);
    return nd_round_from_bits(bits >> drop << drop);
}

/* |value| < 2^51 * unit, a power of two: to the nearest multiple of it. */
static inline double nd_round_to_unit(double value, double unit)
{
    const double shift = 0x1.8p52 * unit; /* doubles are `unit` apart here */
    const double rounded = (value + shift) - shift;

    return rounded == 0 && value < 0 ? -0.0 : rounded;
}

#endif
