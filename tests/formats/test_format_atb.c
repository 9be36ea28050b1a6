/*
 * Tensors that ATB saves.
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
#include "formats/folder.h"

static int setup(void **state)
{
    (void)state;
    return folder_new() == NULL;
}

static int teardown(void **state)
{
    (void)state;
    folder_free();
    return 0;
}

static struct dump *open_folder(const char *name)
{
    struct dump *dump;
    struct nd_error error = {0};

    if (nd_dump_open(folder_path(name), NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: %s", error.file, error.at, error.found);
    return dump;
}

static void a_head_of_lines_and_the_bytes_behind_it_are_read(void **state)
{
    unsigned char *block;
    struct dump *dump = expect_seed("atb", "plain", &block);

    (void)state;
    expect_ramp(dump, expect_slot(dump, "plain", 0, "output.0"), "[2, 3]");
    nd_dump_close(dump);
    free(block);
    dump = expect_seed("atb", "undefined_format", &block);
    assert_string_equal(
        nd_dtype_info(expect_slot(dump, "undefined_format", 0, "output.0")->dtype)->name,
        "int32");
    nd_dump_close(dump);
    free(block);
}

static void a_tensor_that_was_appended_is_a_later_call(void **state)
{
    unsigned char *block;
    struct dump *const dump = expect_seed("atb", "twice", &block);

    (void)state;
    assert_int_equal(dump->layer_count, 2);
    expect_ramp(dump, expect_slot(dump, "twice", 0, "output.0"), "[2]");
    expect_ramp(dump, expect_slot(dump, "twice", 1, "output.0"), "[2]");
    nd_dump_close(dump);
    free(block);
}

static void data_may_lie_in_another_file_of_the_folder(void **state)
{
    const float data[] = {-2, -1.75F};
    struct bytes head = corpus_file("atb", "elsewhere");

    (void)state;
    folder_write("one/a.bin", head.at, head.size);
    folder_write("one/other.bin", data, sizeof data);
    folder_text("out/a.bin", "$Version=1.0\n$Object.Length=4\ndtype=0\ndims=1\n"
                             "data=../one/other.bin\n$End=1\n");
    struct dump *dump = open_folder("one");
    expect_ramp(dump, expect_slot(dump, "a", 0, "output.0"), "[2]");
    nd_dump_close(dump);
    dump = open_folder("one/a.bin");
    expect_ramp(dump, expect_slot(dump, "a", 0, "output.0"), "[2]");
    nd_dump_close(dump);
    dump = open_folder("out");
    expect_broken(expect_slot(dump, "a", 0, "output.0"), "a file of the same folder");
    nd_dump_close(dump);
    bytes_free(&head);
}

static void a_tree_has_operations_with_inputs_and_outputs(void **state)
{
    struct bytes tensor = corpus_file("atb", "plain");

    (void)state;
    folder_write("0_Norm/before/inTensor0.bin", tensor.at, tensor.size);
    folder_write("0_Norm/before/intensor1.bin", tensor.at, tensor.size);
    folder_write("0_Norm/after/outTensor0.bin", tensor.at, tensor.size);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 1);
    expect_ramp(dump, expect_slot(dump, "0_Norm", 0, "input.0"), "[2, 3]");
    expect_ramp(dump, expect_slot(dump, "0_Norm", 0, "input.1"), "[2, 3]");
    expect_ramp(dump, expect_slot(dump, "0_Norm", 0, "output.0"), "[2, 3]");
    nd_dump_close(dump);
    bytes_free(&tensor);
}

static void lengths_are_not_believed(void **state)
{
    unsigned char *block;
    struct dump *dump = expect_seed("atb", "cut", &block);

    (void)state;
    expect_broken(expect_slot(dump, "cut", 0, "output.0"), "the file ends at");
    nd_dump_close(dump);
    free(block);
    dump = expect_seed("atb", "length", &block);
    expect_broken(expect_slot(dump, "length", 0, "output.0"), "the file ends at");
    nd_dump_close(dump);
    free(block);
    struct bytes bytes = corpus_file("atb", "twice");
    use_every_length(&bytes, "atb");
    bytes_free(&bytes);
}

static void a_value_that_its_name_forbids_is_refused(void **state)
{
    static const char *const texts[] = {
        "$Version=1.0\ndtype=x\n$End=1\n",
        "$Version=1.0\ndims=1;2\n$End=1\n",
        "$Version=1.0\n$Object.Length=99999999999999999999\n$End=1\n",
        "$Version=1.0\nno equals sign\n$End=1\n",
        "$Version=1.0\ndtype=0\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct nd_error error = {0};
        unsigned char *block;
        struct dump *dump;
        assert_int_equal(
            open_exact(texts[i], strlen(texts[i]), "x", NULL, &dump, &block, &error),
            ND_ERR_MALFORMED);
        assert_true(error.at[0] != '\0');
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_of_lines_and_the_bytes_behind_it_are_read),
        cmocka_unit_test(a_tensor_that_was_appended_is_a_later_call),
        IN_FOLDER(data_may_lie_in_another_file_of_the_folder),
        IN_FOLDER(a_tree_has_operations_with_inputs_and_outputs),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(a_value_that_its_name_forbids_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
