/*
 * Raw numbers: descriptions and sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/folder.h"

static enum nd_status open_raw(const void *bytes, size_t size, const char *raw,
                               struct dump **ret_dump, struct nd_error *err)
{
    *err = (struct nd_error){0};
    return nd_dump_open_bytes(bytes, size, "x/weights.bin", "raw", raw, ret_dump, err);
}

static void assert_says(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        fail_msg("'%s' does not say '%s'", text, what);
}

static void a_description_gives_type_and_shape(void **state)
{
    static const struct {
        const char *raw, *dtype, *shape;
        double first;
    } cases[] = {
        {"float32:2",         "float32", "[2]",       1.5                   },
        {"float32",           "float32", "[2]",       1.5                   },
        {"torch.float32:1,2", "float32", "[1, 2]",    1.5                   },
        {"F32:2x1",           "float32", "[2, 1]",    1.5                   },
        {"<float32:2",        "float32", "[2]",       1.5                   },
        {">u16:4",            "uint16",  "[4]",       0                     },
        {"uint8:2,2,2",       "uint8",   "[2, 2, 2]", 0                     },
        {"int64:1",           "int64",   "[1]",       -4611686017357840384.0}, /* 0xc00000003fc00000 */
    };
    static const unsigned char bytes[8] = {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}; /* 1.5, -2 */

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump *dump;
        struct nd_error error;
        uint64_t count;
        char shape[400];
        if (open_raw(bytes, sizeof bytes, cases[i].raw, &dump, &error) != ND_OK)
            fail_msg("%s: %s", cases[i].raw, error.found);
        const struct dump_slot *const slot = find_slot(dump, "weights", "output.0");
        assert_non_null(slot);
        assert_string_equal(nd_dtype_info(slot->dtype)->name, cases[i].dtype);
        assert_string_equal(nd_shape_text(&slot->storage, shape, sizeof shape),
                            cases[i].shape);
        double *const values = slot_values(dump, slot, &count);
        assert_true(values[0] == cases[i].first);
        free(values);
        nd_dump_close(dump);
    }
}

static void big_endian_numbers_are_swapped(void **state)
{
    struct dump *dump;
    struct nd_error error;
    uint64_t count;

    (void)state;
    assert_int_equal(open_raw("\x3f\xc0\0\0", 4, ">float32", &dump, &error), ND_OK);
    double *const values = slot_values(dump, &dump->layers[0].slots[0], &count);
    assert_int_equal(count, 1);
    assert_true(values[0] == 1.5);
    free(values);
    nd_dump_close(dump);
}

static void wrong_descriptions_are_usage_errors(void **state)
{
    static const struct {
        const char *raw, *expected;
    } cases[] = {
        {NULL,                                        "--raw float32:4,128"},
        {"",                                          "an element type"    },
        {"int4:2",                                    "an element type"    },
        {"float32:",                                  "dimensions"         },
        {"float32:2,",                                "dimensions"         },
        {"float32:2;3",                               "dimensions"         },
        {"float32:-2",                                "dimensions"         },
        {"float32:99999999999999999999",              "below 2^63"         },
        {"float32:4294967296,4294967296",             "below 2^63"         },
        {"float32:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "at most 16"         },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump *dump;
        struct nd_error error;
        assert_int_equal(open_raw("12345678", 8, cases[i].raw, &dump, &error),
                         ND_ERR_USAGE);
        assert_string_equal(error.at, "--raw");
        assert_says(error.expected, cases[i].expected);
    }
}

static void a_size_that_does_not_fit_is_told_in_elements(void **state)
{
    struct dump *dump;
    struct nd_error error;

    (void)state;
    assert_int_equal(open_raw("12345678", 8, "float32:3", &dump, &error), ND_ERR_MALFORMED);
    assert_string_equal(error.found, "8 bytes: 2 elements of float32");
    assert_string_equal(error.expected, "12 bytes for shape [3]");
    assert_int_equal(open_raw("1234567", 7, "float32", &dump, &error), ND_ERR_MALFORMED);
}

static void raw_is_the_last_resort_and_only_for_files_that_look_like_it(void **state)
{
    struct dump *dump;
    struct nd_error error = {0};

    (void)state;
    folder_new();
    folder_array("a.npy", 1);
    folder_text("b.bin", "\1\2\3\4\5\6\7\x0e");
    folder_text("notes.txt", "words");
    assert_int_equal(nd_dump_open(folder_path("b.bin"), NULL, "float32:2", &dump, &error),
                     ND_OK);
    assert_int_equal(read_everything(dump), 1);
    nd_dump_close(dump);
    assert_int_equal(nd_dump_open(folder_path("a.npy"), NULL, "int8:7", &dump, &error),
                     ND_OK);
    assert_int_equal(dump->layers[0].slots[0].dtype, ND_DTYPE_f32);
    nd_dump_close(dump);
    assert_int_equal(nd_dump_open(folder_path(""), NULL, "float32:2", &dump, &error),
                     ND_OK);
    assert_int_equal(dump->layer_count, 2);
    assert_int_equal(read_everything(dump), 2);
    nd_dump_close(dump);
    folder_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_gives_type_and_shape),
        cmocka_unit_test(big_endian_numbers_are_swapped),
        cmocka_unit_test(wrong_descriptions_are_usage_errors),
        cmocka_unit_test(a_size_that_does_not_fit_is_told_in_elements),
        cmocka_unit_test(raw_is_the_last_resort_and_only_for_files_that_look_like_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
