/*
 * Numbers, globs, natural order and the JSON writer.  Shortest texts are Python's repr().
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/out.h"

static void numbers_are_the_shortest_that_read_back(void **state)
{
    static const struct {
        double      value;
        const char *text; /* Python: repr(value), in %g's spelling of exponents */
    } cases[] = {
        {0.1, "0.1"},         {1e-5, "1e-05"},        {1.0, "1"},
        {1e22, "1e+22"},      {5e-324, "5e-324"},     {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},              {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {-0.0, "-0"},         {123456789, "123456789"}, {9007199254740993.0, "9007199254740992"},
        {(double)INFINITY, "inf"}, {-(double)INFINITY, "-inf"}, {(double)NAN, "nan"},
        {3.4028234663852886e38, "3.4028234663852886e+38"}, {1e-320, "1e-320"},
    };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(nd_number_text(cases[i].value, buf), cases[i].text);
}

static void numbers_are_read_without_a_locale(void **state)
{
    static const struct {
        const char *text;
        double      value;
        size_t      len;
    } cases[] = {
        {"1.5", 1.5, 3},      {"-2.5e-3x", -2.5e-3, 7}, {"1.500E-05 ", 1.5e-5, 9}, {"3", 3, 1},
        {"1.", 1, 2},         {".5", 0.5, 2},           {"1e", 1, 1},              {"+7", 7, 2},
        {"Inf", (double)INFINITY, 3}, {"-infinity", -(double)INFINITY, 9},
    };
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *end = nd_number_read(cases[i].text, cases[i].text + strlen(cases[i].text), &value);
        assert_non_null(end);
        assert_true(value == cases[i].value);
        assert_int_equal(end - cases[i].text, cases[i].len);
    }
    const char *const nan_text = "-nan";
    assert_non_null(nd_number_read(nan_text, nan_text + strlen(nan_text), &value));
    assert_true(isnan(value));
    static const char *const none[] = {"e5", "-", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(nd_number_read(none[i], none[i] + strlen(none[i]), &value));
}

static void globs_match_as_a_shell_does_across_dots(void **state)
{
    (void)state;
    assert_true(nd_glob_match("*.norm", "layers.3.norm"));
    assert_true(nd_glob_match("layers.?.norm*", "layers.3.norm1"));
    assert_true(nd_glob_match("layers.[0-3].x", "layers.2.x"));
    assert_false(nd_glob_match("layers.[!0-3].x", "layers.2.x"));
    assert_true(nd_glob_match("a\\*b", "a*b"));
    assert_false(nd_glob_match("a\\*b", "axb"));
    assert_false(nd_glob_match("", "x"));
    assert_true(nd_glob_match("**", ""));
    assert_true(nd_glob_match("a[", "a["));
    assert_false(nd_glob_match("*a*b*c", "xxaxxbxx"));
}

static void names_sort_as_people_sort_them(void **state)
{
    (void)state;
    assert_true(nd_natural_compare("layer2", "layer10") < 0);
    assert_true(nd_natural_compare("layer10.b", "layer10.a") > 0);
    assert_true(nd_natural_compare("a", "a1") < 0);
    assert_true(nd_natural_compare("a01", "a1") != 0);
    assert_true(nd_natural_compare("x99999999999999999999", "x100000000000000000000") < 0);
    assert_int_equal(nd_natural_compare("same", "same"), 0);
}

static void json_strings_cannot_break_out_or_hide_bytes(void **state)
{
    struct out out = {0};

    (void)state;
    nd_json_open(&out, '{');
    nd_json_key(&out, "a\"b");
    nd_json_string(&out, "\x1b[31m\n\\ \xff \xc3\xa9");
    nd_json_key(&out, "n");
    nd_json_open(&out, '[');
    nd_json_double(&out, (double)NAN);
    nd_json_double(&out, 0.25);
    nd_json_uint(&out, UINT64_MAX);
    nd_json_null(&out);
    nd_json_close(&out);
    nd_json_close(&out);
    assert_string_equal(out.text.bytes, "{\"a\\\"b\":\"\\u001b[31m\\u000a\\\\ \\\\xff \xc3\xa9\","
                                        "\"n\":[\"nan\",0.25,18446744073709551615,null]}");
    nd_out_done(&out);
}

static void a_terminal_escape_in_a_name_is_shown_not_sent(void **state)
{
    struct out out = {0};

    (void)state;
    nd_out_safe(&out, "a\x1b]0;x\x07\xc2\x9b\xe2\x80\xae.\xe5\xb1\x82");
    assert_string_equal(out.text.bytes,
                        "a\\x1b]0;x\\x07\\xc2\\x9b\\xe2\\x80\\xae.\xe5\xb1\x82");
    nd_out_done(&out);
}

/* U+2028 ends a line for JavaScript and str.splitlines; U+FEFF has no width at all. */
static void unicode_line_ends_and_marks_without_width_are_shown_escaped(void **state)
{
    struct out out = {0};

    (void)state;
    nd_out_safe(&out, "a\xe2\x80\xa8" "b\xef\xbb\xbf.\xe2\x80\xa6");
    assert_string_equal(out.text.bytes, "a\\xe2\\x80\\xa8" "b\\xef\\xbb\\xbf.\xe2\x80\xa6");
    nd_out_done(&out);
}

/* XML 1.0, 3.3.3: a bare tab or line end in an attribute is read as a space. */
static void tabs_and_line_ends_survive_in_xml(void **state)
{
    struct out out = {0};

    (void)state;
    nd_out_xml(&out, "a\tb\n<");
    assert_string_equal(out.text.bytes, "a&#9;b&#10;&lt;");
    nd_out_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_shortest_that_read_back),
        cmocka_unit_test(numbers_are_read_without_a_locale),
        cmocka_unit_test(globs_match_as_a_shell_does_across_dots),
        cmocka_unit_test(names_sort_as_people_sort_them),
        cmocka_unit_test(json_strings_cannot_break_out_or_hide_bytes),
        cmocka_unit_test(a_terminal_escape_in_a_name_is_shown_not_sent),
        cmocka_unit_test(unicode_line_ends_and_marks_without_width_are_shown_escaped),
        cmocka_unit_test(tabs_and_line_ends_survive_in_xml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
