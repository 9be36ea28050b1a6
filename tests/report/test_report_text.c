/*
 * The text report: what it looks like (golden/, read by people; UPDATE=1 rewrites) and what
 * holds at any width, with and without colour and UTF-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "normdiff/normdiff.h"
#include "report/canned.h"
#include "report/capture.h"

static char *report_of(const struct nd_result *result,
                       const struct nd_report_options *options)
{
    FILE *stream = capture_begin();

    assert_int_equal(nd_report_write(result, "text", options, stream, NULL), ND_OK);
    return capture_end(stream);
}

static char *file_text(const char *path)
{
    FILE *stream = fopen(path, "r");

    if (stream == NULL)
        return NULL;
    fseek(stream, 0, SEEK_END);
    return capture_end(stream);
}

static void assert_golden(const char *name, char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s.txt", GOLDEN_FOLDER, name);
    if (getenv("UPDATE") != NULL) {
        FILE *stream = fopen(path, "w");
        assert_non_null(stream);
        fputs(text, stream);
        fclose(stream);
    }
    char *golden = file_text(path);
    if (golden == NULL)
        fail_msg("%s is missing; UPDATE=1 writes it", path);
    assert_string_equal(text, golden);
    free(golden);
    free(text);
}

static void drift_at_80_columns_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true};

    (void)state;
    assert_golden("drift_80", report_of(nd_canned_drift(), &options));
}

static void drift_at_120_columns_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true, .width = 120, .all = true};

    (void)state;
    assert_golden("drift_120_all", report_of(nd_canned_drift(), &options));
}

static void drift_in_colour_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true, .color = true};

    (void)state;
    assert_golden("drift_color", report_of(nd_canned_drift(), &options));
}

static void drift_in_chinese_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true, .lang = "zh"};

    (void)state;
    assert_golden("drift_zh", report_of(nd_canned_drift(), &options));
}

static void drift_in_ascii_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.verbose = true};

    (void)state;
    assert_golden("drift_ascii", report_of(nd_canned_drift(), &options));
}

static void a_clean_pair_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true};

    (void)state;
    assert_golden("clean_80", report_of(nd_canned_clean(), &options));
}

static void an_incomplete_pair_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true, .all = true};

    (void)state;
    assert_golden("incomplete_80", report_of(nd_canned_incomplete(), &options));
}

static void a_listing_looks_like_its_golden_page(void **state)
{
    const struct nd_report_options options = {.utf8 = true};
    FILE *stream = capture_begin();

    (void)state;
    assert_int_equal(nd_report_listing(nd_canned_listing(), "text", &options, stream, NULL),
                     ND_OK);
    assert_golden("listing_80", capture_end(stream));
}

/* Columns of a line of this suite's texts: every character of theirs beyond U+2E80 is wide.
 */
static unsigned columns_of(const char *line, size_t len)
{
    unsigned columns = 0;

    for (size_t i = 0; i < len; i++) {
        const unsigned char byte = (unsigned char)line[i];
        if ((byte & 0xc0) == 0x80)
            continue;
        columns += byte >= 0xe3 ? 2 : 1;
        if (byte == 0xef)
            assert_true((unsigned char)line[i + 1] >= 0xbc); /* fullwidth punctuation */
    }
    return columns;
}

static void assert_fits(const char *text, unsigned width)
{
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        assert_non_null(end); /* every line ends */
        const size_t len = (size_t)(end - text);
        if (columns_of(text, len) > width)
            fail_msg("more than %u columns: %.*s", width, (int)len, text);
        if (len > 0 && text[len - 1] == ' ')
            fail_msg("a blank at the end of: %.*s", (int)len, text);
        text = end + 1;
    }
}

static void no_line_is_longer_than_the_width_nor_ends_in_a_blank(void **state)
{
    const struct nd_result *const results[] = {nd_canned_drift(), nd_canned_clean(),
                                               nd_canned_incomplete()};

    (void)state;
    for (unsigned width = 60; width <= 200; width++)
        for (unsigned i = 0; i < 3 * 8; i++) {
            const struct nd_report_options options = {.width = width,
                                                      .utf8 = (i / 3) % 2 == 0,
                                                      .lang =
                                                          (i / 6) % 2 == 0 ? "en" : "zh",
                                                      .all = (i / 12) % 2 == 0};
            (void)nd_canned_drift();
            char *text = report_of(results[i % 3], &options);
            assert_fits(text, width);
            free(text);
        }
}

static void colour_only_adds_escape_sequences(void **state)
{
    const struct nd_report_options plain = {.utf8 = true};
    const struct nd_report_options color = {.utf8 = true, .color = true};
    char *expected = report_of(nd_canned_drift(), &plain);
    char *text = report_of(nd_canned_drift(), &color);
    char *to = text;

    (void)state;
    assert_non_null(strstr(text, "\x1b[1m"));
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\x1b') {
            at = strchr(at, 'm');
            assert_non_null(at);
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    assert_string_equal(text, expected);
    free(expected);
    free(text);
}

static void without_utf8_every_byte_is_ascii(void **state)
{
    const struct nd_report_options options = {.lang = "zh", .all = true, .verbose = true};
    char *text = report_of(nd_canned_drift(), &options);

    (void)state;
    for (const char *at = text; *at != '\0'; at++)
        assert_in_range((unsigned char)*at, '\n', 0x7e);
    free(text);
}

static void a_terminal_escape_in_a_name_is_shown_and_not_sent(void **state)
{
    const struct nd_report_options options = {.utf8 = true, .all = true, .width = 120};
    char *text = report_of(nd_canned_incomplete(), &options);

    (void)state;
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "decoder.\\x1b[31mred\\x1b[0m"));
    free(text);
}

static void the_three_firsts_are_given_even_where_there_are_none(void **state)
{
    char *text = report_of(nd_canned_clean(), NULL);

    (void)state;
    assert_non_null(strstr(text, "elevated (over 1e-3)   none\n"));
    assert_non_null(strstr(text, "fault (at least 1e-1)  none\n"));
    assert_non_null(strstr(text, "origin                 none\n"));
    free(text);
}

static void the_last_line_says_why_the_exit_status_is_not_0(void **state)
{
    char *text = report_of(nd_canned_drift(), NULL);

    (void)state;
    const char *end = "\nexit 1: 15 layers reach 1e-1\n";
    assert_string_equal(text + strlen(text) - strlen(end), end);
    free(text);
}

static void an_unknown_format_is_refused_with_the_names_there_are(void **state)
{
    struct nd_error err;

    (void)state;
    assert_int_equal(nd_report_write(nd_canned_clean(), "xml", NULL, stdout, &err),
                     ND_ERR_USAGE);
    assert_non_null(strstr(err.found, "xml"));
    assert_non_null(strstr(err.expected, "text, json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_at_80_columns_looks_like_its_golden_page),
        cmocka_unit_test(drift_at_120_columns_looks_like_its_golden_page),
        cmocka_unit_test(drift_in_colour_looks_like_its_golden_page),
        cmocka_unit_test(drift_in_chinese_looks_like_its_golden_page),
        cmocka_unit_test(drift_in_ascii_looks_like_its_golden_page),
        cmocka_unit_test(a_clean_pair_looks_like_its_golden_page),
        cmocka_unit_test(an_incomplete_pair_looks_like_its_golden_page),
        cmocka_unit_test(a_listing_looks_like_its_golden_page),
        cmocka_unit_test(no_line_is_longer_than_the_width_nor_ends_in_a_blank),
        cmocka_unit_test(colour_only_adds_escape_sequences),
        cmocka_unit_test(without_utf8_every_byte_is_ascii),
        cmocka_unit_test(a_terminal_escape_in_a_name_is_shown_and_not_sent),
        cmocka_unit_test(the_three_firsts_are_given_even_where_there_are_none),
        cmocka_unit_test(the_last_line_says_why_the_exit_status_is_not_0),
        cmocka_unit_test(an_unknown_format_is_refused_with_the_names_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
