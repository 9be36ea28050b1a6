/*
 * JSON reading: what is refused, where, and why; limits; and that nothing is read as
 * something else.  The grammar is RFC 8259's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/json_in.h"
#include "formats/json_scan.h"

/* Parses from a heap block of exactly the text's size. */
static enum nd_status parse(const char *text, size_t size, bool allow_nan, cJSON **ret_root,
                            struct nd_error *err)
{
    unsigned char *block = malloc(size > 0 ? size : 1);

    assert_non_null(block);
    memcpy(block, text, size);
    const enum nd_status status = nd_json_parse(block, size, allow_nan, ret_root, err);
    free(block);
    return status;
}

static cJSON *parsed(const char *text, bool allow_nan)
{
    struct nd_error error;
    cJSON *root = NULL;

    if (parse(text, strlen(text), allow_nan, &root, &error) != ND_OK)
        fail_msg("%s: %s: found %s, expected %s", text, error.at, error.found,
                 error.expected);
    return root;
}

static void assert_parse_fails(const char *text, enum nd_status status, const char *at)
{
    struct nd_error error;
    cJSON *root = NULL;

    if (parse(text, strlen(text), false, &root, &error) != status || root != NULL)
        fail_msg("%s is not refused as it should be", text);
    if (strcmp(error.at, at) != 0)
        fail_msg("%s: refused at %s, not at %s", text, error.at, at);
    assert_true(error.found[0] != '\0' && error.expected[0] != '\0');
}

static void texts_that_are_no_json_are_refused_where_they_go_wrong(void **state)
{
    static const struct {
        const char *text, *at;
    } rows[] = {
        {"",            "byte 0"},
        {"  ",          "byte 2"},
        {"nul",         "byte 0"},
        {"01",          "byte 0"},
        {"-",           "byte 0"},
        {"1.",          "byte 0"},
        {".5",          "byte 0"},
        {"+1",          "byte 0"},
        {"1e",          "byte 0"},
        {"0x10",        "byte 1"},
        {"[1,]",        "byte 3"},
        {"[1 2]",       "byte 3"},
        {"[1",          "byte 2"},
        {"{\"a\"}",     "byte 4"},
        {"{\"a\":1,}",  "byte 7"},
        {"{a:1}",       "byte 1"},
        {"{\"a\":1]",   "byte 6"},
        {"[1}",         "byte 2"},
        {"\"a",         "byte 0"},
        {"\"\\x\"",     "byte 1"},
        {"\"\\u12g4\"", "byte 1"},
        {"\"\t\"",      "byte 1"},
        {"1 2",         "byte 2"},
        {"[] x",        "byte 3"},
        {"'a'",         "byte 0"},
        {"[1,//\n2]",   "byte 3"},
        {"{\"a\":}",    "byte 5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_parse_fails(rows[i].text, ND_ERR_MALFORMED, rows[i].at);
}

static void text_that_a_c_string_cannot_hold_or_that_is_no_utf8_is_refused(void **state)
{
    static const char *const rows[] = {
        "\"\\u0000\"", /* NUL */
        "\"\\ud800\"", /* lone high surrogate */
        "\"\\udc00\"", /* lone low surrogate */
        "\"\\ud800\\u0041\"",
        "\"\xff\"",             /* no lead byte */
        "\"\xc0\x80\"",         /* overlong NUL */
        "\"\xe0\x80\xaf\"",     /* overlong slash */
        "\"\xed\xa0\x80\"",     /* surrogate */
        "\"\xf4\x90\x80\x80\"", /* beyond U+10FFFF */
        "\"\xc3\"",             /* cut */
        "\"\xe2\x82\"",         /* cut */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_parse_fails(rows[i], ND_ERR_MALFORMED, "byte 1");
}

/* A string of n letters with one byte, or one pair of them, at each of its places. */
static void each_byte_of_a_string_is_looked_at_wherever_it_stands(void **state)
{
    char text[64];

    (void)state;
    for (int n = 2; n <= 20; n++)
        for (int k = 0; k + 1 < n; k++) {
            char at[16];
            snprintf(text, sizeof text, "\"%.*s\"", n, "abcdefghijklmnopqrstuvwxyz");
            snprintf(at, sizeof at, "byte %d", k + 1);
            text[k + 1] = '\x1f';
            assert_parse_fails(text, ND_ERR_MALFORMED, at);
            text[k + 1] = '\xff';
            assert_parse_fails(text, ND_ERR_MALFORMED, at);
            memcpy(text + k + 1, "\xc3\xa9", 2);
            cJSON *root = parsed(text, false);
            assert_int_equal(strlen(root->valuestring), n);
            cJSON_Delete(root);
            memcpy(text + k + 1, "\\\"", 2);
            root = parsed(text, false);
            assert_int_equal(strlen(root->valuestring), n - 1);
            assert_int_equal(root->valuestring[k], '"');
            cJSON_Delete(root);
            text[k + 1] = '"'; /* ends here, and what follows is no JSON */
            snprintf(at, sizeof at, "byte %d", k + 2);
            assert_parse_fails(text, ND_ERR_MALFORMED, at);
        }
}

static void escapes_are_decoded(void **state)
{
    cJSON *root =
        parsed("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20ac\\ud83d\\ude00\"]", false);

    (void)state;
    assert_string_equal(cJSON_GetArrayItem(root, 0)->valuestring, "\"\\/\b\f\n\r\t");
    assert_string_equal(cJSON_GetArrayItem(root, 1)->valuestring,
                        "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    cJSON_Delete(root);
}

static void scanned_text_decodes_and_compares_by_its_meaning(void **state)
{
    static const char raw[] =
        "\"a\\u0062\\ud83d\\ude00\\n\" \"ab\xf0\x9f\x98\x80\\u000a\" \"ab\"";
    struct cursor in = {.bytes = (const unsigned char *)raw, .size = sizeof raw - 1};
    struct json_text a, b, c;
    char decoded[64];

    (void)state;
    assert_int_equal(nd_json_scan_text(&in, &a, NULL), ND_OK);
    assert_int_equal(nd_json_scan_text(&in, &b, NULL), ND_OK);
    assert_int_equal(nd_json_scan_text(&in, &c, NULL), ND_OK);
    assert_int_equal(nd_json_text_decode(&a, decoded), 7);
    assert_string_equal(decoded, "ab\xf0\x9f\x98\x80\n");
    assert_int_equal(nd_json_text_compare(&a, &b), 0);
    assert_true(nd_json_text_compare(&a, &c) > 0);
    assert_true(nd_json_text_compare(&c, &b) < 0);
    assert_true(nd_json_text_is(&c, "ab"));
    assert_false(nd_json_text_is(&c, "abc"));
}

static void keys_that_repeat_are_refused_where_the_second_stands(void **state)
{
    (void)state;
    assert_parse_fails("{\"a\":1,\"a\":2}", ND_ERR_MALFORMED, "byte 7");
    assert_parse_fails("{\"a\":1,\"b\":{},\"\\u0061\":2}", ND_ERR_MALFORMED, "byte 14");
    assert_parse_fails("[{\"x\":{\"k\":1,\"k\":1}}]", ND_ERR_MALFORMED, "byte 13");
    /* The same key in different objects, and keys that differ only in case, are fine. */
    cJSON_Delete(parsed("{\"a\":{\"a\":1},\"A\":[{\"a\":1},{\"a\":2}]}", false));
}

static void objects_of_very_many_keys_take_no_quadratic_time(void **state)
{
    struct bytes text = {0};
    char key[32];
    struct nd_error error;
    cJSON *root;

    (void)state;
    /* 200,000 keys: compared pairwise they would take minutes. */
    bytes_text(&text, "{");
    for (int i = 0; i < 200000; i++) {
        snprintf(key, sizeof key, "%s\"k%d\":0", i == 0 ? "" : ",", i);
        bytes_text(&text, key);
    }
    bytes_text(&text, "}");
    assert_int_equal(nd_json_parse(text.at, text.size, false, &root, &error), ND_OK);
    cJSON_Delete(root);
    memcpy(text.at + 1, "\"k9\"", 4); /* in the place of "k0" */
    assert_int_equal(nd_json_parse(text.at, text.size, false, &root, &error),
                     ND_ERR_MALFORMED);
    bytes_free(&text);
}

static void nesting_ends_at_64_levels(void **state)
{
    char text[256] = {0};

    (void)state;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    cJSON_Delete(parsed(text, false));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_parse_fails(text, ND_ERR_LIMIT, "byte 64");
    memcpy(text + 63, "{\"\":[", 5); /* objects count too */
    assert_parse_fails(text, ND_ERR_LIMIT, "byte 67");
}

static void a_million_brackets_are_refused_without_a_million_frames(void **state)
{
    const size_t size = 1000000;
    char *text = malloc(size);
    struct nd_error error;
    cJSON *root;

    (void)state;
    assert_non_null(text);
    memset(text, '[', size);
    assert_int_equal(nd_json_parse((unsigned char *)text, size, false, &root, &error),
                     ND_ERR_LIMIT);
    free(text);
}

static void bare_nan_and_infinity_are_accepted_on_request_only(void **state)
{
    double number;

    (void)state;
    assert_parse_fails("[1, NaN]", ND_ERR_MALFORMED, "byte 4");
    assert_parse_fails("{\"a\":-Infinity}", ND_ERR_MALFORMED, "byte 5");
    assert_parse_fails("[nan]", ND_ERR_MALFORMED, "byte 1");

    cJSON *root =
        parsed("{\"a\":NaN,\"b\":[Infinity,-Infinity],\"NaN\":\"Infinity \\\" NaN\","
               "\"c\":-1}",
               true);
    assert_true(nd_json_number(root, "a", &number) && isnan(number));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "b");
    assert_true(nd_json_number_of(cJSON_GetArrayItem(list, 0), &number) &&
                number == HUGE_VAL);
    assert_true(nd_json_number_of(cJSON_GetArrayItem(list, 1), &number) &&
                number == -HUGE_VAL);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(root, "NaN")->valuestring,
                        "Infinity \" NaN");
    assert_true(nd_json_number(root, "c", &number) && number == -1);
    cJSON_Delete(root);
}

static void sizes_are_whole_and_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } rows[] = {
        {"[0]",                    true,  0                },
        {"[1e3]",                  true,  1000             },
        {"[4096]",                 true,  4096             },
        {"[9007199254740991]",     true,  9007199254740991u}, /* 2^53 - 1 */
        {"[9007199254740992]",     false, 0                }, /* 2^53 + 1 reads like it */
        {"[9007199254740993]",     false, 0                },
        {"[18446744073709551616]", false, 0                },
        {"[-1]",                   false, 0                },
        {"[1.5]",                  false, 0                },
        {"[1e400]",                false, 0                },
        {"[\"7\"]",                false, 0                },
        {"[true]",                 false, 0                },
        {"[null]",                 false, 0                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *root = parsed(rows[i].text, false);
        uint64_t value = 77;
        assert_int_equal(nd_json_size(cJSON_GetArrayItem(root, 0), &value), rows[i].good);
        assert_true(value == (rows[i].good ? rows[i].value : 77));
        cJSON_Delete(root);
    }
}

static void scanned_sizes_are_exact_to_64_bits(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } rows[] = {
        {"18446744073709551615", true,  UINT64_MAX       },
        {"9007199254740993,",    true,  9007199254740993u},
        {" 0]",                  true,  0                },
        {"18446744073709551616", false, 0                },
        {"00",                   false, 0                },
        {"1.0",                  false, 0                },
        {"1e3",                  false, 0                },
        {"-1",                   false, 0                },
        {"",                     false, 0                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cursor in = {.bytes = (const unsigned char *)rows[i].text,
                            .size = strlen(rows[i].text)};
        uint64_t value = 77;
        assert_int_equal(nd_json_scan_size(&in, &value, NULL) == ND_OK, rows[i].good);
        assert_true(value == (rows[i].good ? rows[i].value : 77));
    }
}

static void members_are_typed(void **state)
{
    cJSON *root =
        parsed("{\"t\":\"x\",\"n\":1.5,\"i\":\"-inf\",\"b\":true,\"z\":null}", false);
    const char *text = "kept";
    double number = 7;
    bool value = false;

    (void)state;
    assert_true(nd_json_text(root, "t", &text));
    assert_string_equal(text, "x");
    assert_false(nd_json_text(root, "n", &text));
    assert_false(nd_json_text(root, "absent", &text));
    assert_string_equal(text, "x");
    assert_true(nd_json_number(root, "n", &number) && number == 1.5);
    assert_true(nd_json_number(root, "i", &number) && number == -HUGE_VAL);
    assert_false(nd_json_number(root, "t", &number));
    assert_false(nd_json_number(root, "z", &number));
    assert_true(nd_json_bool(root, "b", &value) && value);
    assert_false(nd_json_bool(root, "n", &value));
    cJSON_Delete(root);
}

static void a_text_cut_at_any_byte_is_refused(void **state)
{
    static const char text[] =
        "\xef\xbb\xbf {\"a\\u00e9\": [1.5e-3, true, null, \"\xe2\x82\xac\"], "
        "\"b\": {\"c\": false}} ";
    const size_t whole = sizeof text - 2; /* the last blank is not needed */

    (void)state;
    cJSON_Delete(parsed(text, false));
    for (size_t size = 0; size < whole; size++) {
        struct nd_error error;
        cJSON *root;
        assert_int_equal(parse(text, size, false, &root, &error), ND_ERR_MALFORMED);
    }
}

static void numbers_beyond_63_characters_are_refused_and_not_cut(void **state)
{
    char text[80];

    (void)state;
    memset(text, '1', sizeof text);
    text[63] = '\0';
    cJSON_Delete(parsed(text, false));
    text[63] = '1';
    text[64] = '\0';
    assert_parse_fails(text, ND_ERR_LIMIT, "byte 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_are_no_json_are_refused_where_they_go_wrong),
        cmocka_unit_test(text_that_a_c_string_cannot_hold_or_that_is_no_utf8_is_refused),
        cmocka_unit_test(each_byte_of_a_string_is_looked_at_wherever_it_stands),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(scanned_text_decodes_and_compares_by_its_meaning),
        cmocka_unit_test(keys_that_repeat_are_refused_where_the_second_stands),
        cmocka_unit_test(objects_of_very_many_keys_take_no_quadratic_time),
        cmocka_unit_test(nesting_ends_at_64_levels),
        cmocka_unit_test(a_million_brackets_are_refused_without_a_million_frames),
        cmocka_unit_test(bare_nan_and_infinity_are_accepted_on_request_only),
        cmocka_unit_test(sizes_are_whole_and_exact_or_refused),
        cmocka_unit_test(scanned_sizes_are_exact_to_64_bits),
        cmocka_unit_test(members_are_typed),
        cmocka_unit_test(a_text_cut_at_any_byte_is_refused),
        cmocka_unit_test(numbers_beyond_63_characters_are_refused_and_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
