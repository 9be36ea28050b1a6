/*
 * Op debug dumps: what the chip said of an overflow.
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
#include "formats/cann_overflow.h"

static void assert_account(const char *seed, const char *unit, const char *status)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannoverflow", seed, &block);

    assert_string_equal(expect_attribute(dump, "Node_OpDebug", "overflow.unit"), unit);
    assert_string_equal(expect_attribute(dump, "Node_OpDebug", "overflow.task_id"), "3");
    assert_string_equal(expect_attribute(dump, "Node_OpDebug", "overflow.stream_id"), "7");
    assert_string_equal(expect_attribute(dump, "Node_OpDebug", "overflow.status"), status);
    assert_true(expect_slot(dump, "Node_OpDebug", 0, "output.0")->undefined);
    nd_dump_close(dump);
    free(block);
}

static void both_layouts_name_unit_task_and_status(void **state)
{
    (void)state;
    assert_account("new", "AIC", "0x20");
    assert_account("old", "AICore", "0x800");
}

static void units_have_fields_of_their_own(void **state)
{
    struct bytes account = {0};
    struct cann_overflow overflow;

    (void)state;
    static const uint64_t head[] = {0x5A5A5A5A, 1, 1, 3, 0, 80};
    for (size_t i = 0; i < 6; i++)
        bytes_le(&account, head[i], 4);
    for (uint64_t i = 1; i <= 10; i++)
        bytes_le(&account, i, 8);
    assert_true(nd_cann_overflow_read(
        (struct cursor){.bytes = account.at, .size = account.size}, &overflow));
    assert_string_equal(overflow.unit, "SDMA");
    assert_int_equal(nd_cann_overflow_field(&overflow, "src_addr"), 7);
    assert_int_equal(nd_cann_overflow_field(&overflow, "channel_id"), 9);
    assert_int_equal(nd_cann_overflow_field(&overflow, "status"), 10);
    assert_int_equal(nd_cann_overflow_field(&overflow, "pc_start"), 65535);
    bytes_free(&account);
}

static void an_account_that_is_cut_or_empty_says_nothing(void **state)
{
    static const unsigned char zeros[2048] = {0};
    struct cann_overflow overflow;
    unsigned char *block;

    (void)state;
    assert_false(nd_cann_overflow_read(
        (struct cursor){.bytes = zeros, .size = sizeof zeros}, &overflow));
    struct dump *const dump = expect_seed("cannoverflow", "short", &block);
    assert_null(expect_attribute(dump, "Node_OpDebug", "overflow.unit"));
    nd_dump_close(dump);
    free(block);
    struct bytes bytes = corpus_file("cannoverflow", "new");
    for (size_t n = 0; n < 300; n++)
        use_exact(bytes.at, n, "x", "cannoverflow");
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_layouts_name_unit_task_and_status),
        cmocka_unit_test(units_have_fields_of_their_own),
        cmocka_unit_test(an_account_that_is_cut_or_empty_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
