/*
 * The reports for spreadsheets, test systems, streams and wikis: what their readers would
 * trip over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "normdiff/normdiff.h"
#include "report/canned.h"
#include "report/capture.h"

static char *report_of(const struct nd_result *result, const char *format)
{
    FILE *stream = capture_begin();

    assert_int_equal(nd_report_write(result, format, NULL, stream, NULL), ND_OK);
    return capture_end(stream);
}

/* One layer that fails, with the given name. */
static const struct nd_result *result_named(const char *name)
{
    static struct nd_result result;
    static struct nd_layer layer;

    result = *nd_canned_drift();
    layer = result.layers[17];
    layer.name = layer.candidate_name = name;
    result.layers = &layer;
    result.layer_count = 1;
    result.first.layer = ND_NO_INDEX;
    return &result;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        count++;
    return count;
}

/* Fields of the row at *at by RFC 4180; moves *at to the next row. */
static size_t row_fields(const char **at)
{
    size_t fields = 1;
    bool quoted = false;

    for (; **at != '\0'; (*at)++) {
        if (**at == '"')
            quoted = !quoted;
        else if (**at == ',' && !quoted)
            fields++;
        else if (strncmp(*at, "\r\n", 2) == 0 && !quoted)
            break;
    }
    assert_memory_equal(*at, "\r\n", 2);
    *at += 2;
    return fields;
}

static void csv_rows_all_have_the_fields_of_the_head(void **state)
{
    const struct nd_result *const results[] = {nd_canned_drift(), nd_canned_incomplete()};
    const size_t rows[] = {1 + 32, 1 + 2};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *text = report_of(results[i], "csv");
        const char *at = text;
        const size_t fields = row_fields(&at);
        size_t count = 1;
        for (; *at != '\0'; count++)
            assert_int_equal(row_fields(&at), fields);
        assert_int_equal(count, rows[i]);
        free(text);
    }
}

static void csv_quotes_what_a_spreadsheet_would_run_or_split(void **state)
{
    char *formula = report_of(result_named("=HYPERLINK(1)"), "csv");
    char *quotes = report_of(result_named("a\"b,c\nd"), "csv");

    (void)state;
    assert_non_null(strstr(formula, ",\"'=HYPERLINK(1)\","));
    assert_non_null(strstr(quotes, ",\"a\"\"b,c\\x0ad\","));
    free(formula);
    free(quotes);
}

static void junit_counts_agree_with_the_cases(void **state)
{
    char *text = report_of(nd_canned_drift(), "junit");

    (void)state;
    assert_non_null(
        strstr(text, " tests=\"32\" failures=\"4\" errors=\"0\" skipped=\"0\""));
    assert_int_equal(occurrences(text, "<testcase "), 32);
    assert_int_equal(occurrences(text, "<failure "), 4);
    assert_int_equal(occurrences(text, "</failure></testcase>"), 4);
    free(text);
}

static void junit_escapes_names_for_xml(void **state)
{
    char *text = report_of(result_named("a<b>&\"\x1b\xff"), "junit");

    (void)state;
    assert_non_null(strstr(text, " name=\"a&lt;b&gt;&amp;&quot;\\x1b\\xff\">"));
    free(text);
}

static void junit_of_trouble_is_one_suite_with_one_error(void **state)
{
    const struct nd_error error = {
        .status = ND_ERR_MALFORMED, .file = "a<b.npy", .found = "nothing & nobody"};
    FILE *stream = capture_begin();

    (void)state;
    assert_int_equal(nd_report_error(&error, "junit", stream), ND_OK);
    char *text = capture_end(stream);
    assert_non_null(strstr(text, " tests=\"1\" failures=\"0\" errors=\"1\""));
    assert_non_null(strstr(text, "<error message=\"nothing &amp; nobody\""));
    assert_non_null(strstr(text, "file: a&lt;b.npy</error>"));
    free(text);
}

static void every_line_of_jsonl_is_an_object_that_says_what_it_is(void **state)
{
    char *text = report_of(nd_canned_drift(), "jsonl");
    size_t layers = 0, lines = 0;

    (void)state;
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n"), lines++) {
        cJSON *document = cJSON_ParseWithOpts(line, NULL, 1);
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(document, "type");
        assert_true(cJSON_IsString(type));
        layers += strcmp(type->valuestring, "layer") == 0;
        if (lines == 0)
            assert_string_equal(type->valuestring, "report");
        cJSON_Delete(document);
    }
    assert_int_equal(layers, 32);
    assert_int_equal(lines, 1 + 4 + 1 + 2 + 32 + 1);
    free(text);
}

static void markdown_shows_signs_of_a_name_as_they_are(void **state)
{
    char *text = report_of(result_named("a|b_c<img>*@x"), "markdown");

    (void)state;
    assert_non_null(strstr(text, "| a\\|b\\_c&lt;img>\\*\\@x |"));
    free(text);
}

static char *listing_of(const char *format)
{
    FILE *stream = capture_begin();

    assert_int_equal(nd_report_listing(nd_canned_listing(), format, NULL, stream, NULL),
                     ND_OK);
    return capture_end(stream);
}

static void every_format_lists_a_dump(void **state)
{
    char *csv = listing_of("csv");
    char *junit = listing_of("junit");
    char *markdown = listing_of("markdown");
    const char *at = csv;

    (void)state;
    const size_t fields = row_fields(&at);
    assert_int_equal(row_fields(&at), fields);
    assert_int_equal(row_fields(&at), fields);
    assert_string_equal(at, "");
    assert_non_null(
        strstr(csv, ",\"[4, 2, 7, 7, 16]\",NC1HWC0,3724,-2.5,3.25,0.001,123.456,"));
    assert_non_null(strstr(junit, " tests=\"1\" failures=\"0\" errors=\"1\""));
    assert_non_null(strstr(junit, "<error message=\"bad CRC\" type=\"unreadable\"/>"));
    assert_non_null(strstr(markdown, "| 0 | conv1 | Conv2d | input.0 | float32 | "
                                     "\\[4, 19, 7, 7\\] |"));
    free(csv);
    free(junit);
    free(markdown);
}

static void formats_for_people_are_told_from_those_for_programs(void **state)
{
    (void)state;
    assert_true(nd_report_for_people("text"));
    assert_true(nd_report_for_people("markdown"));
    assert_false(nd_report_for_people("json"));
    assert_false(nd_report_for_people("csv"));
    assert_false(nd_report_for_people("no such format"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_rows_all_have_the_fields_of_the_head),
        cmocka_unit_test(csv_quotes_what_a_spreadsheet_would_run_or_split),
        cmocka_unit_test(junit_counts_agree_with_the_cases),
        cmocka_unit_test(junit_escapes_names_for_xml),
        cmocka_unit_test(junit_of_trouble_is_one_suite_with_one_error),
        cmocka_unit_test(every_line_of_jsonl_is_an_object_that_says_what_it_is),
        cmocka_unit_test(markdown_shows_signs_of_a_name_as_they_are),
        cmocka_unit_test(every_format_lists_a_dump),
        cmocka_unit_test(formats_for_people_are_told_from_those_for_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
