/*
 * Names of CANN's files and folders, worked by hand from their description.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/cann_name.h"
#include "formats/cann_tree.h"

static void assert_part(const char *at, size_t len, const char *expected)
{
    if (strlen(expected) != len || (len > 0 && memcmp(at, expected, len) != 0))
        fail_msg("'%.*s' is not '%s'", (int)len, len == 0 ? "" : at, expected);
}

static void names_of_every_age_are_split(void **state)
{
    static const struct {
        const char *name, *type, *op;
        uint64_t task, stream, time;
        const char *rest;
    } rows[] = {
        {"Conv2D.net_conv1.3.7.1700000000000000",     "Conv2D",         "net_conv1",    3,     7,
         1700000000000000,                                                                                              ""    },
        {"Conv2D.net_conv1.3.1700000000000000",       "Conv2D",         "net_conv1",    3,     65535,
         1700000000000000,                                                                                              ""    },
        {"Transpose.4.1682148295048447",              "Transpose",      "",             4,     65535, 1682148295048447, ""    },
        {"Add.8.5.1682067845380164",                  "Add",            "8",            5,     65535, 1682067845380164, ""    },
        {"exception_info.42.1.1726159207469285",      "exception_info", "",             1,     42,
         1726159207469285,                                                                                              ""    },
        {"Opdebug.Node_OpDebug.3.7.1700000000000009", "Opdebug",        "Node_OpDebug", 3,     7,
         1700000000000009,                                                                                              ""    },
        {"Add.a.3.7.1700000000000000.csv",            "Add",            "a",            3,     7,     1700000000000000, ".csv"},
        {"Add.a.65535.65535.1700000000000000",        "Add",            "a",            65535, 65535, 1700000000000000,
         ""                                                                                                                   },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cann_name name;
        if (!nd_cann_name_parse(rows[i].name, &name))
            fail_msg("%s is not split", rows[i].name);
        assert_part(name.type, name.type_len, rows[i].type);
        assert_part(name.op, name.op_len, rows[i].op);
        assert_int_equal(name.task, rows[i].task);
        assert_int_equal(name.stream, rows[i].stream);
        assert_int_equal(name.time, rows[i].time);
        assert_string_equal(name.rest, rows[i].rest);
        assert_false(name.is_ffts);
        assert_int_equal(nd_cann_name_is_dump(rows[i].name), 1);
    }
}

static void ffts_names_have_context_thread_and_device(void **state)
{
    struct cann_name name;

    (void)state;
    assert_true(
        nd_cann_name_parse("Conv2D.a_lxslice0.2.9.1670205071724946.4.487.1.3", &name));
    assert_true(name.is_ffts);
    assert_int_equal(name.stream, 9);
    assert_int_equal(name.context, 487);
    assert_int_equal(name.thread, 1);
    assert_int_equal(name.device, 3);
    assert_true(nd_cann_name_parse("Conv2D.a.2.9.1670205071724946.4.487.1", &name));
    assert_int_equal(name.thread, 1);
}

static void arrays_of_a_converter_tell_side_and_index(void **state)
{
    struct cann_name name;

    (void)state;
    assert_true(nd_cann_name_parse("Add.a.3.7.1700000000000000.output.2.1x2.npy", &name));
    assert_string_equal(name.direction, "output");
    assert_int_equal(name.index, 2);
    assert_string_equal(name.rest, ".1x2.npy");
    assert_int_equal(name.dump_len, strlen("Add.a.3.7.1700000000000000"));
    assert_true(nd_cann_name_is_array("Add.a.3.7.1700000000000000.input.0.npy"));
    assert_false(nd_cann_name_is_array("Add.a.3.7.1700000000000000.npy"));
}

static void other_names_are_nothing(void **state)
{
    static const char *const names[] = {"",
                                        ".",
                                        "conv1",
                                        "conv1.npy",
                                        "a.b",
                                        "a.b.c",
                                        "a.b.1",
                                        "a..1.2.1700000000000000",
                                        "a.b.99999999999999999999.1",
                                        "libc.so.6"};
    static const char *const no_dumps[] = {"model.v.1.2", "layer.conv.3.7.12345",
                                           "a.b.3.7.1700000000000000.txt", "1.2.3.4"};
    struct cann_name name;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (nd_cann_name_parse(names[i], &name))
            fail_msg("%s is split", names[i]);
    for (size_t i = 0; i < sizeof no_dumps / sizeof *no_dumps; i++)
        assert_false(nd_cann_name_is_dump(no_dumps[i]));
}

static void arrays_of_the_framework_have_name_index_and_time(void **state)
{
    struct golden_name name;

    (void)state;
    assert_true(nd_golden_name_parse("net.conv_1.2.1700000000000000.npy", &name));
    assert_int_equal(name.op_len, strlen("net.conv_1"));
    assert_int_equal(name.index, 2);
    assert_int_equal(name.time, 1700000000000000);
    assert_false(nd_golden_name_parse("conv.1700000000000000.npy", &name));
    assert_false(nd_golden_name_parse("conv.x.1700000000000000.npy", &name));
    assert_false(nd_golden_name_parse("conv.0.1700000000000000", &name));
    assert_false(nd_golden_name_parse(".0.1.npy", &name));
}

static void blanks_dots_and_slashes_are_escaped(void **state)
{
    char name[] = "a/b.c d\\e-f:g";

    (void)state;
    nd_cann_escape(name);
    assert_string_equal(name, "a_b_c_d_e-f:g");
}

static void folders_are_steps_ranks_and_models(void **state)
{
    static const struct {
        const char *path;
        int64_t step, rank;
        const char *model;
    } rows[] = {
        {"",                                                     -1, -1, ""        },
        {"20240102030405/3/resnet50/1/7",                        7,  3,  "resnet50"},
        {"20240102030405/3/resnet50/1",                          -1, 3,  "resnet50"},
        {"20240102030405/3/resnet50",                            -1, 3,  "resnet50"},
        {"20240102030405/3",                                     -1, 3,  ""        },
        {"step5/20240102030405/3",                               5,  3,  ""        },
        {"5/20240102030405/3/net/1/0",                           5,  3,  "net"     },
        {"rank_2/step5/20240102030405/0/net/1/0",                5,  2,  "net"     },
        {"worldsize8_global_rank6/20240102030405/0/graph_1/1/4", 4,  6,  "graph_1" },
        {"resnet50/1/7",                                         7,  -1, "resnet50"},
        {"0/resnet50/1/7",                                       7,  0,  "resnet50"},
        {"1/7",                                                  7,  -1, ""        },
    };
    struct arena *const arena = nd_arena_new();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tree_place place;
        assert_int_equal(nd_tree_place(arena, rows[i].path, &place, NULL), ND_OK);
        if (place.step != rows[i].step || place.rank != rows[i].rank ||
            strcmp(place.model, rows[i].model) != 0)
            fail_msg("%s: step %d, rank %d, model %s", rows[i].path, (int)place.step,
                     (int)place.rank, place.model);
    }
    nd_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_every_age_are_split),
        cmocka_unit_test(ffts_names_have_context_thread_and_device),
        cmocka_unit_test(arrays_of_a_converter_tell_side_and_index),
        cmocka_unit_test(other_names_are_nothing),
        cmocka_unit_test(arrays_of_the_framework_have_name_index_and_time),
        cmocka_unit_test(blanks_dots_and_slashes_are_escaped),
        cmocka_unit_test(folders_are_steps_ranks_and_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
