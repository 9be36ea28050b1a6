/*
 * Tables of statistics that the device computed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "formats/cann_build.h"
#include "formats/cann_expect.h"

static void rows_are_statistics_of_inputs_and_outputs(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannstats", "table", &block);
    const struct dump_slot *slot = expect_slot(dump, "table", 0, "input.0");
    char text[400];

    (void)state;
    assert_int_equal(slot->evidence, ND_EVIDENCE_STATISTICS);
    assert_true(slot->statistics.value[STATISTIC_MAX] == 1.25);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -0.5);
    assert_true(slot->statistics.value[STATISTIC_MEAN] == 0.375);
    assert_true(isnan(slot->statistics.value[STATISTIC_NORM]));
    /* six digits, trailing zeros dropped */
    assert_true(fabs(slot->statistics.half_unit[STATISTIC_MAX] - 5e-6) < 1e-15);
    assert_string_equal(nd_shape_text(&slot->storage, text, sizeof text), "[2, 3]");
    assert_string_equal(nd_dtype_info(slot->dtype)->name, "float32");
    slot = expect_slot(dump, "table", 0, "output.1");
    assert_true(slot->statistics.is_nan[STATISTIC_MAX]);
    assert_true(isinf(slot->statistics.value[STATISTIC_MIN]));
    nd_dump_close(dump);
    free(block);
}

static void a_padded_format_has_no_shape_of_the_framework(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannstats", "table", &block);
    const struct dump_slot *const slot = expect_slot(dump, "table", 0, "output.0");

    (void)state;
    assert_false(slot->has_shape);
    assert_string_equal(slot->layout_text, "NC1HWC0");
    assert_int_equal(slot->statistics.nan_count, 1);
    nd_dump_close(dump);
    free(block);
}

static void a_type_that_the_device_cannot_sum_is_named(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannstats", "table", &block);

    (void)state;
    expect_broken(expect_slot(dump, "table", 0, "input.1"), "BF16");
    nd_dump_close(dump);
    free(block);
}

static void norms_and_sums_of_newer_kernels_are_read(void **state)
{
    static const char text[] =
        "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,"
        "Count,l2norm,MD5 Value\r\n"
        "Output,0,24,FLOAT,ND,2x3,1,-1,0.5,6,2.25,abcdef\r\n"
        "Output,1,24,BF16,ND,2x3,,,,,,012345\r\n"
        "Output,0,24,FLOAT,ND,2x3,3,-1,0.5,6,2.5,abcdee\r\n";
    struct nd_error error = {0};
    unsigned char *block;
    struct dump *dump;

    (void)state;
    assert_int_equal(open_exact(text, sizeof text - 1, "Add.a.1.2.1700000000000000.csv",
                                NULL, &dump, &block, &error),
                     ND_OK);
    assert_string_equal(dump->layers[0].type, "Add");
    const struct dump_slot *slot = &dump->layers[0].slots[0];
    assert_true(slot->statistics.value[STATISTIC_NORM] == 2.25);
    assert_string_equal(slot->checksum, "md5:abcdef");
    assert_int_equal(dump->layers[0].slots[1].evidence, ND_EVIDENCE_CHECKSUM);
    /* A row that begins anew is another run. */
    assert_int_equal(dump->layer_count, 2);
    assert_true(dump->layers[1].slots[0].statistics.value[STATISTIC_MAX] == 3);
    nd_dump_close(dump);
    free(block);
}

static void no_length_of_a_file_is_too_short(void **state)
{
    struct bytes bytes = corpus_file("cannstats", "table");

    (void)state;
    use_every_length(&bytes, "cannstats");
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_statistics_of_inputs_and_outputs),
        cmocka_unit_test(a_padded_format_has_no_shape_of_the_framework),
        cmocka_unit_test(a_type_that_the_device_cannot_sum_is_named),
        cmocka_unit_test(norms_and_sums_of_newer_kernels_are_read),
        cmocka_unit_test(no_length_of_a_file_is_too_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
