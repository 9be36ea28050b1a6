/*
 * With at most 19 digits and a power of ten from -27 to 27, the digits and the power of
 * five are whole numbers of 64 bits.  So their product, or their quotient and whether
 * anything is left over, is exact in 128 bits and rounds once, to even as IEEE 754 does;
 * the power of two only moves the point.
 */
#include "base/decimal.h"

#include <string.h>

enum {
    MAX_DIGITS = 19, /* 10^19 < 2^64 */
    MAX_POWER = 27,  /* 5^27 < 2^63 */
    SIGNIFICANT = 53 /* bits of a double */
};

__extension__ typedef unsigned __int128 wide;

static const uint64_t fives[MAX_POWER + 1] = {
    1u,
    5u,
    25u,
    125u,
    625u,
    3125u,
    15625u,
    78125u,
    390625u,
    1953125u,
    9765625u,
    48828125u,
    244140625u,
    1220703125u,
    6103515625u,
    30517578125u,
    152587890625u,
    762939453125u,
    3814697265625u,
    19073486328125u,
    95367431640625u,
    476837158203125u,
    2384185791015625u,
    11920928955078125u,
    59604644775390625u,
    298023223876953125u,
    1490116119384765625u,
    7450580596923828125u,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bits before the highest one that is set; value is not 0. */
static int leading_zeros(uint64_t value)
{
    return __builtin_clzll((unsigned long long)value);
}

/* 2^power, which is a normal double. */
static double power_of_two(int power)
{
    const uint64_t bits = (uint64_t)(1023 + power) << 52;
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* whole * 2^power, and a little more where something is left over. */
static double round_once(uint64_t whole, bool has_rest, int power)
{
    const int drop = 64 - leading_zeros(whole) - SIGNIFICANT;

    if (drop > 0) {
        const uint64_t half = (uint64_t)1 << (drop - 1);
        const uint64_t low = whole & (2 * half - 1);
        whole >>= drop;
        whole += low > half || (low == half && (has_rest || (whole & 1) != 0));
        power += drop;
    }
    return (double)whole * power_of_two(power);
}

static double multiplied(uint64_t digits, int power)
{
    const wide product = (wide)digits * fives[power];
    const uint64_t high = (uint64_t)(product >> 64);

    if (high == 0)
        return round_once((uint64_t)product, false, power);
    const int drop = 64 - leading_zeros(high);
    const wide rest = product & (((wide)1 << drop) - 1);
    return round_once((uint64_t)(product >> drop), rest != 0, power + drop);
}

/* Both are moved up to their highest bit, so that the quotient has 63 bits or 64. */
static double divided(uint64_t digits, int power)
{
    const int up = leading_zeros(digits), down = leading_zeros(fives[power]);
    const wide dividend = (wide)(digits << up) << 63;
    const uint64_t divisor = fives[power] << down;
    const uint64_t quotient = (uint64_t)(dividend / divisor);
    const bool has_rest = (wide)quotient * divisor != dividend;

    return round_once(quotient, has_rest, down - up - 63 - power);
}

/* [sign]digits behind the "e"; more than three digits are beyond every double. */
static bool read_exponent(const char *at, const char *end, int *ret_exponent)
{
    const bool negative = at < end && *at == '-';
    int exponent = 0;

    at += at < end && (*at == '-' || *at == '+');
    if (end - at > 3)
        return false;
    for (; at < end; at++)
        exponent = exponent * 10 + (*at - '0');
    *ret_exponent = negative ? -exponent : exponent;
    return true;
}

bool nd_decimal_of(uint64_t digits, int exponent, double *ret_value)
{
    if (digits == 0)
        *ret_value = 0;
    else if (exponent < -MAX_POWER || exponent > MAX_POWER)
        return false;
    else
        *ret_value = exponent < 0 ? divided(digits, -exponent) : multiplied(digits, exponent);
    return true;
}

bool nd_decimal_read(const char *at, size_t len, double *ret_value)
{
    const char *const end = at + len;
    uint64_t digits = 0;
    int count = 0, exponent = 0, shift = 0;
    bool is_fraction = false;

    for (; at < end && (is_digit(*at) || (*at == '.' && !is_fraction)); at++) {
        if (*at == '.') {
            is_fraction = true;
            continue;
        }
        if (count == MAX_DIGITS)
            return false;
        count += count > 0 || *at != '0'; /* zeros before the first digit say nothing */
        digits = digits * 10 + (uint64_t)(*at - '0');
        shift -= is_fraction;
    }
    if (at < end && !read_exponent(at + 1, end, &exponent))
        return false;
    return nd_decimal_of(digits, exponent + shift, ret_value);
}

size_t nd_decimal_write(uint64_t number, char *ret_digits)
{
    char digits[ND_DECIMAL_ROOM];
    size_t at = sizeof digits;

    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(ret_digits, digits + at, sizeof digits - at);
    return sizeof digits - at - 1;
}
