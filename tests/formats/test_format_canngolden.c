/*
 * The reference side of an offline comparison, and the root that holds both sides.
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
#include "formats/format.h"

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

static void names_tell_operator_output_and_order(void **state)
{
    (void)state;
    folder_array("relu.0.1700000000000002.npy", 1);
    folder_array("conv_1.1.1700000000000001.npy", 2);
    folder_array("conv_1.0.1700000000000001.npy", 3);
    folder_array("input_conv_1.0.1700000000000001.npy", 4);
    folder_array("input_ids.0.1700000000000000.npy", 5); /* an operator of that name */
    folder_text("17000000000000030.npy", "");
    struct dump *const dump = open_folder("");
    assert_string_equal(dump->format->name, "canngolden");
    assert_int_equal(dump->order, ND_ORDER_TIMESTAMP);
    assert_int_equal(dump->layer_count, 3);
    assert_string_equal(dump->layers[0].name, "input_ids");
    assert_string_equal(dump->layers[0].slots[0].name, "output.0");
    assert_string_equal(dump->layers[1].name, "conv_1");
    assert_int_equal(dump->layers[1].slot_count, 3);
    assert_string_equal(dump->layers[1].slots[0].name, "input.0");
    assert_string_equal(dump->layers[1].slots[1].name, "output.0");
    assert_string_equal(dump->layers[1].slots[2].name, "output.1");
    assert_string_equal(dump->layers[2].name, "relu");
    nd_dump_close(dump);
}

static void equal_times_are_no_order_and_a_bad_array_is_broken(void **state)
{
    (void)state;
    folder_array("b.0.1700000000000002.npy", 1);
    folder_text("a.0.1700000000000002.npy", "x");
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->order, ND_ORDER_NAME);
    assert_non_null(expect_slot(dump, "a", 0, "output.0")->broken);
    nd_dump_close(dump);
}

static void most_arrays_must_be_named_so(void **state)
{
    (void)state;
    folder_array("conv.0.1700000000000002.npy", 1);
    folder_array("x.npy", 1);
    struct dump *const dump = open_folder("");
    assert_string_equal(dump->format->name, "directory");
    nd_dump_close(dump);
}

/* --- the root ------------------------------------------------------------------------- */

static void write_sides(const char *root)
{
    char name[256];

    snprintf(name, sizeof name, "%s/dump_data/onnx/relu.0.1700000000000002.npy", root);
    folder_array(name, 1);
    snprintf(name, sizeof name,
             "%s/dump_data/npu/20240102030405/0/net/1/0/"
             "Relu.relu.1.7.1700000000000009",
             root);
    struct bytes file = {0};
    cann_build_float(&file, NULL, 1);
    folder_write(name, file.at, file.size);
    bytes_free(&file);
    snprintf(name, sizeof name, "%s/model/net.json", root);
    folder_text(name, "{\"graph\": []}");
}

static void assert_ends(const char *path, const char *end)
{
    const size_t a = path == NULL ? 0 : strlen(path), b = strlen(end);

    if (a < b || strcmp(path + a - b, end) != 0)
        fail_msg("%s does not end with %s", path == NULL ? "nothing" : path, end);
}

static void a_root_has_both_sides_and_a_model(void **state)
{
    struct arena *const arena = nd_arena_new();
    struct nd_error error = {0};
    struct dump_sides sides;

    (void)state;
    write_sides("out/20240102030405");
    static const char *const roots[] = {"out", "out/20240102030405", "out/20240102030405/"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nd_dump_find_sides(folder_path(roots[i]), arena, &sides, &error),
                         ND_OK);
        assert_ends(sides.reference, "out/20240102030405/dump_data/onnx");
        assert_ends(sides.candidate, "out/20240102030405/dump_data/npu");
        assert_ends(sides.fusion, "out/20240102030405/model/net.json");
    }
    struct dump *dump;
    assert_int_equal(nd_dump_open(sides.candidate, NULL, NULL, &dump, &error), ND_OK);
    assert_string_equal(dump->layers[0].name, "relu");
    nd_dump_close(dump);
    nd_arena_free(arena);
}

static void no_root_and_two_roots_are_refused(void **state)
{
    struct arena *const arena = nd_arena_new();
    struct nd_error error = {0};
    struct dump_sides sides;

    (void)state;
    folder_array("out/one/x.npy", 1);
    assert_int_equal(nd_dump_find_sides(folder_path("out"), arena, &sides, &error),
                     ND_ERR_USAGE);
    write_sides("out/a");
    write_sides("out/b");
    assert_int_equal(nd_dump_find_sides(folder_path("out"), arena, &sides, &error),
                     ND_ERR_USAGE);
    assert_string_equal(error.found, "2 of them");
    nd_arena_free(arena);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(names_tell_operator_output_and_order),
        IN_FOLDER(equal_times_are_no_order_and_a_bad_array_is_broken),
        IN_FOLDER(most_arrays_must_be_named_so),
        IN_FOLDER(a_root_has_both_sides_and_a_model),
        IN_FOLDER(no_root_and_two_roots_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
