/*
 * Decimal numbers as the nearest double, for the numbers that dumps print; the rest is left
 * to strtod.
 */
#ifndef ND_BASE_DECIMAL_H
#define ND_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads digits[.digits][e[sign]digits], which is all of at[0..len), and rounds as strtod
 * does.  False, and nothing read: more than 19 digits, or a power of ten beyond 27 once the
 * digits are a whole number.
 */
bool nd_decimal_read(const char *at, size_t len, double *ret_value);

/* digits * 10^exponent, rounded alike; false: beyond the powers above. */
bool nd_decimal_of(uint64_t digits, int exponent, double *ret_value);

enum { ND_DECIMAL_ROOM = 24 /* of the digits of any whole number, and a NUL */ };

/* The digits of a whole number and a NUL; their count. */
size_t nd_decimal_write(uint64_t number, char *ret_digits);

#endif
