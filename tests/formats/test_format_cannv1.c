/*
 * CANN dump files of version 1, as make_cann.py wrote them.
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

static void tensors_lie_inside_the_message(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannv1", "pair", &block);

    (void)state;
    assert_string_equal(dump->layers[0].name, "net/relu");
    expect_ramp(dump, expect_slot(dump, "net/relu", 0, "input.0"), "[3]");
    expect_ramp(dump, expect_slot(dump, "net/relu", 0, "output.0"), "[2, 2]");
    nd_dump_close(dump);
    free(block);
}

static void a_shape_for_more_than_the_data_is_broken(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("cannv1", "nested", &block);

    (void)state;
    expect_broken(expect_slot(dump, "n", 0, "output.0"), "takes 300 bytes");
    nd_dump_close(dump);
    free(block);
}

static void no_length_of_a_file_is_too_short(void **state)
{
    struct bytes bytes = corpus_file("cannv1", "pair");

    (void)state;
    use_every_length(&bytes, "cannv1");
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_lie_inside_the_message),
        cmocka_unit_test(a_shape_for_more_than_the_data_is_broken),
        cmocka_unit_test(no_length_of_a_file_is_too_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
