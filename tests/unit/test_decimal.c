/*
 * Decimal numbers to doubles.  Bits are Python's float() and struct.pack('<d'); where many
 * numbers are drawn, the C library's strtod tells them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/decimal.h"
#include "base/mix.h"
#include "base/text.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void numbers_between_two_doubles_go_to_the_nearest_or_the_even_one(void **state)
{
    static const struct {
        const char *text;
        uint64_t bits;
    } rows[] = {
        {"0",                           0x0000000000000000u},
        {"0.000e5",                     0x0000000000000000u},
        {"1",                           0x3ff0000000000000u},
        {"0.1",                         0x3fb999999999999au},
        {"0.3",                         0x3fd3333333333333u},
        {"123456789012345678",          0x437b69b4ba630f35u},
        {"9007199254740993",            0x4340000000000000u}, /* 2^53 + 1: halfway, to even */
        {"9007199254740995",            0x4340000000000002u}, /* 2^53 + 3: halfway, to even */
        {"4503599627370496.5",          0x4330000000000000u}, /* halfway, to even */
        {"4503599627370497.5",          0x4330000000000002u}, /* halfway, to even */
        {"4503599627370496.501",        0x4330000000000001u}, /* a little more than halfway */
        {"9.007199254740993e+15",       0x4340000000000000u},
        {"1.0000000000000002",          0x3ff0000000000001u},
        {"1.00000000000000011",         0x3ff0000000000000u},
        {"1.00000000000000012",         0x3ff0000000000001u},
        {"9999999999999999999",         0x43e158e460913d00u}, /* 19 digits */
        {"1e27",                        0x4589d971e4fe8402u},
        {"9999999999999999999e-27",     0x3e45798ee2308c3au},
        {"1234567890123456789e27",      0x494bae1279c66306u},
        {"6.0221407e23",                0x44dfe185c5038720u},
        {"1.380649e-20",                0x3bd04cc16c5e2e21u},
        {"0000000000000000000000001.5", 0x3ff8000000000000u},
        {"3.25E-05",                    0x3f010a137f38c543u},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1;
        if (!nd_decimal_read(rows[i].text, strlen(rows[i].text), &value) ||
            bits_of(value) != rows[i].bits)
            fail_msg("%s: %016llx", rows[i].text, (unsigned long long)bits_of(value));
    }
}

static void what_is_beyond_its_reach_is_left_alone(void **state)
{
    static const char *const rows[] = {"12345678901234567890",
                                       "1.2345678901234567890",
                                       "1e28",
                                       "1e-28",
                                       "0.1e-27",
                                       "1e1000",
                                       "1e-0001"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1;
        assert_false(nd_decimal_read(rows[i], strlen(rows[i]), &value));
        assert_true(bits_of(value) == bits_of(-1));
    }
}

/* 17 digits: half of all the numbers that Python prints lie so close to a tie. */
static void drawn_numbers_are_those_of_the_c_library(void **state)
{
    unsigned read = 0;

    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        char text[64];
        const uint64_t digits = mix64(i) >> (mix64(i ^ 0xabcd) % 60);
        const int exponent = (int)(mix64(i + 7) % 60) - 30;
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        double value;
        if (!nd_decimal_read(text, strlen(text), &value))
            continue;
        read++;
        if (bits_of(value) != bits_of(strtod(text, NULL)))
            fail_msg("%s: %.17g", text, value);
    }
    assert_true(read > 150000);
}

static void printed_doubles_read_back_as_themselves(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t bits = (mix64(i) & 0x800fffffffffffffu) |
                              (uint64_t)(1023 - 60 + (int)(mix64(i + 1) % 120)) << 52;
        double value, read;
        char text[32];
        memcpy(&value, &bits, sizeof value);
        snprintf(text, sizeof text, "%.17g", value);
        assert_non_null(nd_number_read(text, text + strlen(text), &read));
        assert_true(bits_of(read) == bits);
    }
}

static void whole_numbers_are_written_in_all_their_digits(void **state)
{
    char text[ND_DECIMAL_ROOM];

    (void)state;
    assert_int_equal(nd_decimal_write(0, text), 1);
    assert_string_equal(text, "0");
    assert_int_equal(nd_decimal_write(1203, text), 4);
    assert_string_equal(text, "1203");
    assert_int_equal(nd_decimal_write(UINT64_MAX, text), 20);
    assert_string_equal(text, "18446744073709551615");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_between_two_doubles_go_to_the_nearest_or_the_even_one),
        cmocka_unit_test(what_is_beyond_its_reach_is_left_alone),
        cmocka_unit_test(drawn_numbers_are_those_of_the_c_library),
        cmocka_unit_test(printed_doubles_read_back_as_themselves),
        cmocka_unit_test(whole_numbers_are_written_in_all_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
