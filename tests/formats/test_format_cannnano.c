/*
 * Nano dumps, made by the description of their records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/cann_build.h"
#include "formats/cann_expect.h"

static void records_count_types_as_ge_does(void **state)
{
    /* The output joins inputs (1, 5) and (1, 3) of float16, which GE calls 1. */
    static const double joined[] = {-2, -1.75, -1.5, -1.25, -1, -2, -1.75, -1.5};
    unsigned char *block;
    struct dump *const dump = expect_seed("cannnano", "concat", &block);
    uint64_t count;

    (void)state;
    expect_ramp(dump, expect_slot(dump, "concat", 0, "input.0"), "[1, 5]");
    expect_ramp(dump, expect_slot(dump, "concat", 0, "input.1"), "[1, 3]");
    const struct dump_slot *const slot = expect_slot(dump, "concat", 0, "output.0");
    assert_string_equal(nd_dtype_info(slot->dtype)->name, "float16");
    double *const values = slot_values(dump, slot, &count);
    assert_int_equal(count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(values[i] == joined[i]);
    free(values);
    assert_string_equal(expect_attribute(dump, "concat", "origin.0"), "concat");
    assert_string_equal(expect_attribute(dump, "concat", "origin_format.0"), "NHWC");
    nd_dump_close(dump);
    free(block);
}

static void name_and_time_are_those_of_the_file(void **state)
{
    struct bytes bytes = corpus_file("cannnano", "concat");
    struct nd_error error = {0};
    unsigned char *block;
    struct dump *dump;

    (void)state;
    assert_int_equal(open_exact(bytes.at, bytes.size,
                                "ConcatV2D.net_concatv2.1.2.1682067845380164", NULL, &dump,
                                &block, &error),
                     ND_OK);
    assert_string_equal(dump->layers[0].name, "net_concatv2");
    assert_string_equal(dump->layers[0].type, "ConcatV2D");
    assert_true(dump->layers[0].time == 1682067845380164.0);
    nd_dump_close(dump);
    free(block);
    bytes_free(&bytes);
}

static void counts_and_lengths_are_not_believed(void **state)
{
    struct bytes bytes = corpus_file("cannnano", "count");
    struct nd_error error = {0};
    unsigned char *block;
    struct dump *dump;

    (void)state;
    assert_int_equal(open_exact(bytes.at, bytes.size, "x", NULL, &dump, &block, &error),
                     ND_ERR_MALFORMED);
    assert_string_equal(error.at, "byte 28");
    bytes_free(&bytes);
    dump = expect_seed("cannnano", "short", &block);
    expect_broken(expect_slot(dump, "short", 0, "output.0"), "the file ends at");
    nd_dump_close(dump);
    free(block);
}

static void no_length_of_a_file_is_too_short_and_no_byte_too_much(void **state)
{
    struct bytes bytes = corpus_file("cannnano", "concat");

    (void)state;
    use_every_length(&bytes, "cannnano");
    for (size_t i = 0; i < bytes.size; i++) {
        const unsigned char was = bytes.at[i];
        bytes.at[i] = 0xff;
        use_exact(bytes.at, bytes.size, "x", "cannnano");
        bytes.at[i] = was;
    }
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_count_types_as_ge_does),
        cmocka_unit_test(name_and_time_are_those_of_the_file),
        cmocka_unit_test(counts_and_lengths_are_not_believed),
        cmocka_unit_test(no_length_of_a_file_is_too_short_and_no_byte_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
