/*
 * NumPy arrays: files that NumPy 1.24 wrote, element types worked by hand, and headers
 * that must be refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/npy.h"

struct opened {
    struct dump *dump;
    unsigned char *block;
    struct nd_error error;
    enum nd_status status;
};

static struct opened open_bytes(const struct bytes *bytes)
{
    struct opened opened = {0};

    opened.status = open_exact(bytes->at, bytes->size, "dir.d/some.layer.npy", NULL,
                               &opened.dump, &opened.block, &opened.error);
    return opened;
}

static void done(struct opened *opened, struct bytes *bytes)
{
    nd_dump_close(opened->dump);
    free(opened->block);
    bytes_free(bytes);
}

static const struct dump_slot *only_slot(const struct opened *opened)
{
    if (opened->status != ND_OK)
        fail_msg("%s: found %s", opened->error.at, opened->error.found);
    assert_int_equal(opened->dump->layer_count, 1);
    assert_int_equal(opened->dump->layers[0].slot_count, 1);
    assert_string_equal(opened->dump->layers[0].name, "some.layer");
    assert_string_equal(opened->dump->layers[0].slots[0].name, "output.0");
    return &opened->dump->layers[0].slots[0];
}

static void assert_shape(const struct nd_shape *shape, const char *text)
{
    char buf[400];
    assert_string_equal(nd_shape_text(shape, buf, sizeof buf), text);
}

/* The sample array is ((0 .. 23) - 12) / 8 in shape (2, 3, 4). */
static void assert_sample(const char *name, const char *dtype)
{
    struct bytes bytes = bytes_of_file(DATA, name);
    struct opened opened = open_bytes(&bytes);
    const struct dump_slot *const slot = only_slot(&opened);
    uint64_t count;
    double *const values = slot_values(opened.dump, slot, &count);

    assert_string_equal(nd_dtype_info(slot->dtype)->name, dtype);
    assert_shape(&slot->storage, "[2, 3, 4]");
    assert_int_equal(count, 24);
    for (int i = 0; i < 24; i++)
        assert_true(values[i] == (i - 12) / 8.0);
    free(values);
    done(&opened, &bytes);
}

static void arrays_that_numpy_wrote_have_their_values(void **state)
{
    (void)state;
    assert_sample("f4.npy", "float32");
    assert_sample("v2.npy", "float32");
    assert_sample("v3.npy", "float32");
    assert_sample("f8_big_endian.npy", "float64");
}

static void fortran_order_changes_the_strides_and_not_the_shape(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "fortran.npy");
    struct opened opened = open_bytes(&bytes);

    (void)state;
    assert_true(only_slot(&opened)->strided);
    assert_int_equal(only_slot(&opened)->stride[0], 1);
    assert_int_equal(only_slot(&opened)->stride[1], 2);
    assert_int_equal(only_slot(&opened)->stride[2], 6);
    done(&opened, &bytes);
    assert_sample("fortran.npy", "float32");
}

static void assert_small(const char *name, const char *dtype, const char *shape, size_t n,
                         const double *expected)
{
    struct bytes bytes = bytes_of_file(DATA, name);
    struct opened opened = open_bytes(&bytes);
    const struct dump_slot *const slot = only_slot(&opened);
    uint64_t count;
    double *const values = slot_values(opened.dump, slot, &count);

    assert_string_equal(nd_dtype_info(slot->dtype)->name, dtype);
    assert_shape(&slot->storage, shape);
    for (size_t i = 0; i < n; i++)
        assert_true(values[i] == expected[i]);
    free(values);
    done(&opened, &bytes);
}

static void scalars_bools_complex_and_empty_arrays_are_read(void **state)
{
    const double scalar[] = {-2.5};
    const double bools[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const double complexes[] = {1, -2, 3.5, 0.25};
    const double integers[] = {0, 1, 18446744073709551616.0};

    (void)state;
    assert_small("f2_scalar.npy", "float16", "[]", 1, scalar);
    assert_small("bool.npy", "bool", "[3, 4]", 12, bools); /* -1.5 .. -0.125 > 0 */
    assert_small("c8.npy", "complex64", "[2]", 4, complexes);
    assert_small("u64.npy", "uint64", "[3]", 3, integers);
    assert_small("empty.npy", "int64", "[3, 0, 2]", 0, NULL);
}

static void every_spelling_of_a_type_is_its_type(void **state)
{
    /* One or two elements: 1 and, where there is room for it, a second value. */
    static const struct {
        const char *descr, *dtype;
        const char *data;
        size_t size;
        double value;
    } cases[] = {
        {"<f8",           "float64",       "\0\0\0\0\0\0\xf8\x3f",                 8,  1.5         },
        {">f8",           "float64",       "\x3f\xf8\0\0\0\0\0\0",                 8,  1.5         },
        {"=f4",           "float32",       "\0\0\xc0\x3f",                         4,  1.5         },
        {"float32",       "float32",       "\0\0\xc0\x3f",                         4,  1.5         },
        {">f4",           "float32",       "\x3f\xc0\0\0",                         4,  1.5         },
        {"<f2",           "float16",       "\x00\x3e",                             2,  1.5         },
        {">f2",           "float16",       "\x3e\x00",                             2,  1.5         },
        {"<V2",           "bfloat16",      "\xc0\x3f",                             2,  1.5         },
        {"|V2",           "bfloat16",      "\xc0\x3f",                             2,  1.5         },
        {"<T2",           "bfloat16",      "\xc0\x3f",                             2,  1.5         },
        {"<g2",           "bfloat16",      "\xc0\x3f",                             2,  1.5         },
        {"bfloat16",      "bfloat16",      "\xc0\x3f",                             2,  1.5         },
        {"float8_e4m3fn", "float8_e4m3fn", "\x3c",                                 1,  1.5         }, /* 0 0111 100 */
        {"float8_e5m2",   "float8_e5m2",   "\x3e",                                 1,  1.5         }, /* 0 01111 10 */
        {"<i8",           "int64",         "\xfe\xff\xff\xff\xff\xff\xff\xff",     8,  -2          },
        {">i4",           "int32",         "\xff\xff\xff\xfe",                     4,  -2          },
        {"<i2",           "int16",         "\xfe\xff",                             2,  -2          },
        {"|i1",           "int8",          "\xfe",                                 1,  -2          },
        {"<u4",           "uint32",        "\xff\xff\xff\xff",                     4,  4294967295.0},
        {">u2",           "uint16",        "\x01\x02",                             2,  258         },
        {"|u1",           "uint8",         "\xfe",                                 1,  254         },
        {"|b1",           "bool",          "\x01",                                 1,  1           },
        {"?",             "bool",          "\x01",                                 1,  1           },
        {">c8",           "complex64",     "\x3f\xc0\0\0\0\0\0\0",                 8,  1.5         },
        {"<c16",          "complex128",    "\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\0", 16, 1.5         },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = {0};
        npy_put_array(&bytes, cases[i].descr, "(1,)", cases[i].data, cases[i].size);
        struct opened opened = open_bytes(&bytes);
        const struct dump_slot *const slot = only_slot(&opened);
        uint64_t count;
        double *const values = slot_values(opened.dump, slot, &count);
        assert_string_equal(nd_dtype_info(slot->dtype)->name, cases[i].dtype);
        assert_int_equal(count, 1);
        if (values[0] != cases[i].value)
            fail_msg("%s: %g is not %g", cases[i].descr, values[0], cases[i].value);
        free(values);
        done(&opened, &bytes);
    }
}

static void types_without_a_meaning_here_are_refused_by_name(void **state)
{
    static const struct {
        const char *file, *found;
    } cases[] = {
        {"object.npy",     "Python objects are never loaded"},
        {"structured.npy", "a structured array"             },
        {"unicode.npy",    "texts are not compared"         },
        {"datetime.npy",   "dates and times"                },
        {"longdouble.npy", "differs between machines"       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = bytes_of_file(DATA, cases[i].file);
        struct opened opened = open_bytes(&bytes);
        assert_int_equal(opened.status, ND_ERR_UNSUPPORTED);
        if (strstr(opened.error.found, cases[i].found) == NULL)
            fail_msg("%s: '%s'", cases[i].file, opened.error.found);
        bytes_free(&bytes);
    }
    static const char *const ambiguous[] = {"|V1", "<V1", "<f1"};
    for (size_t i = 0; i < 3; i++) {
        struct bytes bytes = {0};
        npy_put_array(&bytes, ambiguous[i], "(1,)", "x", 1);
        struct opened opened = open_bytes(&bytes);
        assert_int_equal(opened.status, ND_ERR_UNSUPPORTED);
        assert_non_null(strstr(opened.error.found, "which FP8 format"));
        bytes_free(&bytes);
    }
}

static void headers_as_any_writer_spaces_them_are_read(void **state)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "{ 'shape' : ( 2 , ) , 'descr' : '<f4' , 'fortran_order' : False }   \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }\n", /* Python 2 */
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }\n",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2, 1,)}\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct bytes bytes = {0};
        npy_put(&bytes, 1, headers[i], "\0\0\xc0\x3f\0\0\0\xc0", 8);
        struct opened opened = open_bytes(&bytes);
        uint64_t count;
        double *const values = slot_values(opened.dump, only_slot(&opened), &count);
        assert_int_equal(count, 2);
        assert_true(values[0] == 1.5 && values[1] == -2);
        free(values);
        done(&opened, &bytes);
    }
}

static void malformed_headers_are_refused_with_what_was_expected(void **state)
{
    static const struct {
        const char *header, *expected;
    } cases[] = {
        {"",                                                                            "'{'"                  },
        {"[]",                                                                          "'{'"                  },
        {"{}",                                                                          "all of descr"         },
        {"{'descr': '<f4', 'fortran_order': False}",                                    "all of descr"         },
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}",                             "once"                 },
        {"{'descr': '<f4', 'color': 3}",                                                "each of descr"        },
        {"{'descr' '<f4'}",                                                             "':'"                  },
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",                      "a quoted key"         },
        {"{'descr': '<f4",                                                              "a type"               },
        {"{'descr': __import__('os').system('true')}",                                  "a type"               },
        {"{'descr': [('a', '<f4')}",                                                    "brackets that match"  },
        {"{'descr': [('a', '<f4'",                                                      "the end of the type"  },
        {"{'fortran_order': 1, 'shape': (2,), 'descr': '<f4'}",                         "True or False"        },
        {"{'shape': 2}",                                                                "a shape in brackets"  },
        {"{'shape': [2]}",                                                              "a shape in brackets"  },
        {"{'shape': (2,,)}",                                                            "a dimension"          },
        {"{'shape': (2 3)}",                                                            "a dimension"          },
        {"{'shape': (-2,)}",                                                            "a dimension"          },
        {"{'shape': (2.0,)}",                                                           "a dimension"          },
        {"{'shape': (2",                                                                "a dimension"          },
        {"{'shape': (9223372036854775808,)}",                                           "below 2^63"           },
        {"{'shape': (99999999999999999999999,)}",                                       "below 2^63"           },
        {"{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",                              "at most 16 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",                   "blanks after"         },
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         "a shape below 2^63 bytes"                                                                            },
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (2305843009213693952,)}",
         "a shape below 2^63 bytes"                                                                            },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = {0};
        npy_put(&bytes, 1, cases[i].header, "\0\0\0\0\0\0\0\0", 8);
        struct opened opened = open_bytes(&bytes);
        if (opened.status != ND_ERR_MALFORMED ||
            strstr(opened.error.expected, cases[i].expected) == NULL)
            fail_msg("%s: expected '%s'", cases[i].header, opened.error.expected);
        assert_non_null(strstr(opened.error.at, "byte "));
        assert_string_equal(opened.error.file, "dir.d/some.layer.npy");
        bytes_free(&bytes);
    }
    struct bytes python2 = {0};
    npy_put(&python2, 3, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }", "",
            0);
    struct opened opened = open_bytes(&python2);
    assert_int_equal(opened.status, ND_ERR_MALFORMED); /* version 3 came after Python 2 */
    bytes_free(&python2);
}

static void a_descr_of_many_brackets_is_refused_without_recursion(void **state)
{
    struct bytes bytes = {0};
    char header[20000] = "{'descr': ";

    (void)state;
    memset(header + 10, '[', sizeof header - 11);
    npy_put(&bytes, 1, header, "", 0);
    struct opened opened = open_bytes(&bytes);
    assert_int_equal(opened.status, ND_ERR_MALFORMED);
    assert_non_null(strstr(opened.error.expected, "32 nested brackets"));
    bytes_free(&bytes);
}

static void versions_and_header_lengths_are_limited(void **state)
{
    struct bytes version = {0}, minor = {0}, length = {0};

    (void)state;
    bytes_put(&version, "\x93NUMPY\x04\x00\x00\x00\x00\x00", 12);
    bytes_put(&minor, "\x93NUMPY\x01\x01\x00\x00", 10);
    bytes_put(&length, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    struct opened a = open_bytes(&version), b = open_bytes(&minor), c = open_bytes(&length);
    assert_int_equal(a.status, ND_ERR_UNSUPPORTED);
    assert_string_equal(a.error.found, "version 4.0");
    assert_int_equal(b.status, ND_ERR_UNSUPPORTED);
    assert_int_equal(c.status, ND_ERR_LIMIT);
    assert_string_equal(c.error.found, "a header of 4294967295 bytes");
    bytes_free(&version), bytes_free(&minor), bytes_free(&length);
}

static void a_file_cut_at_any_byte_is_refused_and_says_how_much_is_missing(void **state)
{
    static const char *const names[] = {"f4.npy", "v2.npy", "fortran.npy",
                                        "f8_big_endian.npy"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes whole = bytes_of_file(DATA, names[i]);
        for (size_t size = 0; size < whole.size; size++) {
            struct bytes cut = {0};
            bytes_put(&cut, whole.at, size);
            struct opened opened = open_bytes(&cut);
            assert_int_not_equal(opened.status, ND_OK);
            assert_true(opened.error.found[0] != '\0');
            if (size >= 128) { /* the header is whole */
                char missing[64];
                snprintf(missing, sizeof missing, "%zu of %zu bytes are missing",
                         whole.size - size, whole.size - 128);
                assert_non_null(strstr(opened.error.found, missing));
            }
            bytes_free(&cut);
        }
        bytes_free(&whole);
    }
}

static void bytes_after_the_array_are_noted(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "twice.npy"); /* np.save twice to one handle */
    struct opened opened = open_bytes(&bytes);

    (void)state;
    assert_string_equal(only_slot(&opened)->note, "trailing_bytes");
    assert_int_equal(only_slot(&opened)->extent.size, 96);
    done(&opened, &bytes);
}

static void no_change_of_one_byte_makes_it_crash(void **state)
{
    static const char *const names[] = {"f4.npy", "fortran.npy", "structured.npy",
                                        "c8.npy"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes bytes = bytes_of_file(DATA, names[i]);
        for (size_t at = 0; at < bytes.size; at++)
            for (unsigned change = 1; change < 256; change += 27) {
                bytes.at[at] = (unsigned char)(bytes.at[at] ^ change);
                use_exact(bytes.at, bytes.size, "x.npy", "npy");
                bytes.at[at] = (unsigned char)(bytes.at[at] ^ change);
            }
        bytes_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_that_numpy_wrote_have_their_values),
        cmocka_unit_test(fortran_order_changes_the_strides_and_not_the_shape),
        cmocka_unit_test(scalars_bools_complex_and_empty_arrays_are_read),
        cmocka_unit_test(every_spelling_of_a_type_is_its_type),
        cmocka_unit_test(types_without_a_meaning_here_are_refused_by_name),
        cmocka_unit_test(headers_as_any_writer_spaces_them_are_read),
        cmocka_unit_test(malformed_headers_are_refused_with_what_was_expected),
        cmocka_unit_test(a_descr_of_many_brackets_is_refused_without_recursion),
        cmocka_unit_test(versions_and_header_lengths_are_limited),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused_and_says_how_much_is_missing),
        cmocka_unit_test(bytes_after_the_array_are_noted),
        cmocka_unit_test(no_change_of_one_byte_makes_it_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
