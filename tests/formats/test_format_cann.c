/*
 * CANN dump files of version 2: files that make_cann.py wrote with NumPy, files built here
 * field by field, and files that must be refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/cann_build.h"
#include "formats/format.h"

static struct dump *dump;
static unsigned char *block;
static struct nd_error error;

static enum nd_status try_open(struct bytes *bytes, const char *name)
{
    error = (struct nd_error){0};
    dump = NULL;
    const enum nd_status status =
        open_exact(bytes->at, bytes->size, name, NULL, &dump, &block, &error);
    bytes_free(bytes);
    return status;
}

static void open_seed(const char *seed)
{
    struct bytes bytes = corpus_file("cann", seed);

    if (try_open(&bytes, seed) != ND_OK)
        fail_msg("%s: %s: %s", seed, error.at, error.found);
    assert_string_equal(dump->format->name, "cann");
}

static void open_message(struct bytes *message, const void *data, size_t size)
{
    struct bytes file = {0};

    cann_build_file(&file, message, data, size);
    if (try_open(&file, "X.file_op.3.7.1700000000000123") != ND_OK)
        fail_msg("%s: %s", error.at, error.found);
}

static void done(void)
{
    nd_dump_close(dump);
    free(block);
}

static const struct dump_slot *slot_of(const char *name)
{
    const struct dump_slot *const slot = find_slot(dump, dump->layers[0].name, name);

    if (slot == NULL)
        fail_msg("no slot %s", name);
    return slot;
}

/* The view's shape, and that element i is (i - 8) / 4. */
static void assert_ramp(const char *name, const char *shape, size_t count)
{
    struct open_slot open;
    char text[400];

    if (slot_of(name)->broken != NULL)
        fail_msg("%s: %s", name, slot_of(name)->broken);
    assert_int_equal(nd_slot_open(dump, slot_of(name), &open, &error), ND_OK);
    assert_string_equal(nd_shape_text(&open.view.shape, text, sizeof text), shape);
    assert_int_equal(open.view.count, count);
    for (size_t i = 0; i < count; i++) {
        const double value = nd_view_at(&open.view, i);
        if (value != ((double)i - 8) / 4)
            fail_msg("%s[%zu] is %g", name, i, value);
    }
    assert_true(nd_slot_close(&open));
}

static void assert_broken(const char *name, const char *what)
{
    const struct dump_slot *const slot = slot_of(name);

    if (slot->broken == NULL || strstr(slot->broken, what) == NULL)
        fail_msg("'%s' does not say '%s'", slot->broken == NULL ? "" : slot->broken, what);
}

static const char *attribute(const char *key)
{
    for (size_t i = 0; i < dump->layers[0].attribute_count; i++)
        if (strcmp(dump->layers[0].attributes[i].key, key) == 0)
            return dump->layers[0].attributes[i].text;
    return NULL;
}

/* --- what is read --------------------------------------------------------------------- */

static void the_worked_example_of_the_description_is_read(void **state)
{
    (void)state;
    open_seed("example");
    assert_string_equal(dump->layers[0].name, "net/bn1");
    assert_ramp("output.0", "[1, 19, 1, 1]", 19);
    done();
}

static void inputs_come_first_and_blocks_lose_their_padding(void **state)
{
    (void)state;
    open_seed("blocked");
    assert_ramp("input.0", "[1, 19, 2, 3]", 114);
    assert_ramp("output.0", "[4]", 4);
    assert_string_equal(slot_of("input.0")->layout->name, "NC1HWC0");
    done();
}

static void original_op_counts_types_as_ge_does(void **state)
{
    (void)state;
    open_seed("blocked"); /* 0 is float32 there, and no type in data_type */
    assert_string_equal(attribute("origin.0"), "bn1");
    assert_string_equal(attribute("origin_dtype.0"), "FLOAT");
    assert_string_equal(attribute("origin_format.0"), "NCHW");
    done();
}

static void every_type_is_read_or_named(void **state)
{
    static const struct {
        const char *dtype;
        double second;
    } read[] = {
        {"float32",       0.5},
        {"float16",       0.5},
        {"int8",          0  },
        {"uint8",         0  },
        {"int16",         0  },
        {"uint16",        0  },
        {"int32",         0  },
        {"int64",         0  },
        {"uint32",        0  },
        {"uint64",        0  },
        {"bool",          1  },
        {"float64",       0.5},
        {"complex64",     0.5},
        {"complex128",    0.5},
        {"bfloat16",      0.5},
        {"float8_e5m2",   0.5},
        {"float8_e4m3fn", 0.5},
    };
    static const char *const named[] = {
        "STRING",      "QINT8",       "INT4",        "COMPLEX32", "HIFLOAT8",
        "FLOAT8_E8M0", "FLOAT6_E3M2", "FLOAT4_E2M1", "HIFLOAT4",  "CANN type 99"};
    char name[32];

    (void)state;
    open_seed("types");
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        struct open_slot open;
        snprintf(name, sizeof name, "output.%zu", i);
        assert_string_equal(nd_dtype_info(slot_of(name)->dtype)->name, read[i].dtype);
        assert_int_equal(nd_slot_open(dump, slot_of(name), &open, &error), ND_OK);
        assert_true(nd_view_at(&open.view, 0) == 1);
        assert_true(nd_view_at(&open.view, 1) == read[i].second);
        nd_slot_close(&open);
    }
    assert_string_equal(nd_dtype_info(slot_of("output.17")->dtype)->name, "int8");
    assert_string_equal(slot_of("output.17")->note, "untyped_bytes");
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        snprintf(name, sizeof name, "output.%zu", 18 + i);
        assert_broken(name, named[i]);
    }
    done();
}

static void fields_of_inputs_are_numbered_otherwise_than_those_of_outputs(void **state)
{
    const float data[] = {-2, -1.75F, -2, -1.75F, -1.5F};
    struct bytes message = {0};

    (void)state;
    cann_build_tensor(&message, &(struct cann_build){
                                    .is_output = true,
                                    .dtype = 1,
                                    .format = 2,
                                    .rank = 1,
                                    .dims = {3 },
                                    .size = 12,
                                    .original_rank = 2,
                                    .original = { 3, 1},
                                    .group = 1,
                                    .origin = "o"
    });
    cann_build_tensor(&message, &(struct cann_build){
                                    .dtype = 1,
                                    .format = 2,
                                    .rank = 1,
                                    .dims = {2 },
                                    .size = 8,
                                    .original_rank = 2,
                                    .original = { 1, 2},
                                    .group = 1
    });
    open_message(&message, data, sizeof data);
    assert_ramp("input.0", "[1, 2]", 2);
    assert_ramp("output.0", "[3, 1]", 3);
    assert_string_equal(attribute("origin.0"), "o");
    done();
}

static void the_message_names_the_operator_and_the_file_its_type_and_time(void **state)
{
    struct bytes message = {0}, file = {0};

    (void)state;
    pb_number(&message, 2, 1600000000000000);
    cann_build_tensor(
        &message,
        &(struct cann_build){
            .is_output = true, .dtype = 4, .format = 2, .rank = 1, .dims = {1}, .size = 1});
    pb_text(&message, 6, "a/b.c");
    open_message(&message, "x", 1);
    assert_string_equal(dump->layers[0].name, "a/b.c");
    assert_string_equal(dump->layers[0].type, "X");
    assert_true(dump->layers[0].time == 1700000000000123.0);
    assert_int_equal(dump->order, ND_ORDER_TIMESTAMP);
    done();
    cann_build_float(&file, NULL, 1);
    assert_int_equal(try_open(&file, "Relu.net_r.65535.65535.1700000000000000"), ND_OK);
    assert_string_equal(dump->layers[0].name, "net_r");
    assert_string_equal(dump->layers[0].type, "Relu");
    done();
}

static void a_framework_of_another_order_keeps_its_order(void **state)
{
    /* NC1HWC0 of a (1, 2, 2, 3) NHWC tensor: logical element (h, w, c) is (h 2 + w) 3 + c.
     */
    float data[64] = {0};
    struct bytes message = {0};

    (void)state;
    for (unsigned hw = 0; hw < 4; hw++)
        for (unsigned c = 0; c < 3; c++)
            data[hw * 16 + c] = ((float)(hw * 3 + c) - 8) / 4;
    cann_build_tensor(&message, &(struct cann_build){
                                    .is_output = true,
                                    .dtype = 1,
                                    .format = 3,
                                    .rank = 5,
                                    .dims = {1, 1, 2, 2, 16},
                                    .size = sizeof data,
                                    .original_rank = 4,
                                    .original = {1, 2,  2,  3},
                                    .origin = "t",
                                    .origin_format = 1
    });
    open_message(&message, data, sizeof data);
    assert_ramp("output.0", "[1, 2, 2, 3]", 12);
    done();
}

static void stored_axes_in_another_order_are_put_back(void **state)
{
    /* NHWC bytes of an NCHW tensor (1, 2, 1, 3): element (c, w) lies at w 2 + c. */
    float data[6];
    struct bytes message = {0};

    (void)state;
    for (unsigned c = 0; c < 2; c++)
        for (unsigned w = 0; w < 3; w++)
            data[w * 2 + c] = ((float)(c * 3 + w) - 8) / 4;
    cann_build_tensor(&message, &(struct cann_build){
                                    .dtype = 1,
                                    .format = 1,
                                    .rank = 4,
                                    .dims = {1, 1, 3, 2},
                                    .size = 24,
                                    .original_rank = 4,
                                    .original = {1, 2, 1, 3}
    });
    open_message(&message, data, sizeof data);
    assert_ramp("input.0", "[1, 2, 1, 3]", 6);
    done();
    /* The same bytes of a framework that has NHWC itself stay as they are. */
    for (unsigned i = 0; i < 6; i++)
        data[i] = ((float)i - 8) / 4;
    message = (struct bytes){0};
    cann_build_tensor(&message, &(struct cann_build){
                                    .dtype = 1,
                                    .format = 1,
                                    .rank = 4,
                                    .dims = {1, 1, 3, 2},
                                    .size = 24,
                                    .original_rank = 4,
                                    .original = {1, 1, 3, 2}
    });
    open_message(&message, data, sizeof data);
    assert_ramp("input.0", "[1, 1, 3, 2]", 6);
    done();
}

static void shapes_may_be_unpacked_missing_or_dynamic(void **state)
{
    const float data[] = {-2, -1.75F};
    struct bytes message = {0};

    (void)state;
    open_seed("unpacked");
    char text[400];
    assert_string_equal(nd_shape_text(slot_of("output.0")->logical, text, sizeof text),
                        "[1, 2]");
    done();
    cann_build_tensor(
        &message, &(struct cann_build){.dtype = 1, .format = 2, .size = 4}); /* scalar */
    cann_build_tensor(
        &message,
        &(struct cann_build){
            .dtype = 1, .format = 2, .rank = 2, .dims = {UINT64_MAX, 1},
                       .size = 4
    });
    open_message(&message, data, sizeof data);
    assert_ramp("input.0", "[]", 1);
    assert_string_equal(slot_of("input.1")->note, "shape_missing");
    done();
}

static void high_bits_of_the_format_are_not_its_number(void **state)
{
    const float data[] = {-2};
    struct bytes message = {0};

    (void)state;
    cann_build_tensor(&message, &(struct cann_build){.is_output = true,
                                                     .dtype = 1,
                                                     .format = 5U << 24 | 7U << 8 | 2,
                                                     .rank = 1,
                                                     .dims = {1},
                                                     .size = 4});
    open_message(&message, data, sizeof data);
    assert_ramp("output.0", "[1]", 1);
    done();
}

static void a_size_may_exceed_its_shape_and_bytes_may_follow(void **state)
{
    const float data[] = {-2, 99, -2, 98};
    struct bytes message = {0};

    (void)state;
    cann_build_tensor(
        &message,
        &(struct cann_build){.dtype = 1, .format = 2, .rank = 1, .dims = {1}, .size = 8});
    cann_build_tensor(
        &message,
        &(struct cann_build){
            .is_output = true, .dtype = 1, .format = 2, .rank = 1, .dims = {1}, .size = 4});
    open_message(&message, data, sizeof data);
    assert_ramp("input.0", "[1]", 1);
    assert_ramp("output.0", "[1]", 1);
    assert_string_equal(slot_of("output.0")->note, "trailing_bytes");
    done();
    open_seed("buffers");
    assert_int_equal(dump->ignored_count, 1);
    assert_null(slot_of("output.0")->note);
    done();
}

/* --- what is broken or refused -------------------------------------------------------- */

static void one_bad_tensor_is_broken_alone(void **state)
{
    static const struct {
        const char *seed, *what;
    } cases[] = {
        {"short",      "the file ends at"                },
        {"huge_dims",  "a shape below 2^63 bytes"        },
        {"huge_sizes", "the file ends at"                },
        {"format38",   "FRACTAL_ZN_LSTM (CANN format 38)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_seed(cases[i].seed);
        assert_broken("output.0", cases[i].what);
        done();
    }
    open_seed("contradiction");
    struct open_slot open;
    assert_int_equal(nd_slot_open(dump, slot_of("output.0"), &open, &error),
                     ND_ERR_MALFORMED);
    assert_non_null(strstr(error.found, "NC1HWC0"));
    done();
}

static void seventeen_dimensions_are_refused_by_name(void **state)
{
    struct cann_build tensor = {
        .is_output = true, .dtype = 4, .format = 2, .rank = 17, .size = 1};
    struct bytes message = {0};

    (void)state;
    for (size_t i = 0; i < tensor.rank; i++)
        tensor.dims[i] = 1;
    cann_build_tensor(&message, &tensor);
    open_message(&message, "x", 1);
    assert_broken("output.0", "more than 16 dimensions");
    done();
}

static void damaged_messages_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *seed, *at;
    } cases[] = {
        {"varint11", "byte 13"},
        {"group",    "byte 13"},
        {"length",   "byte 0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = corpus_file("cann", cases[i].seed);
        assert_int_equal(try_open(&bytes, cases[i].seed), ND_ERR_MALFORMED);
        assert_string_equal(error.at, cases[i].at);
    }
}

static void other_files_with_a_length_in_front_are_not_claimed(void **state)
{
    static const char safetensors[] =
        "\x1d\0\0\0\0\0\0\0{\"__metadata__\":{\"a\":\"bcde\"}}";
    static const char onnx[] = "\x08\x07\x12\x07pytorch\x1a\x05"
                               "1.13.";
    const struct dump_head heads[] = {
        {(const unsigned char *)safetensors, sizeof safetensors - 1, "x"},
        {(const unsigned char *)onnx,        sizeof onnx - 1,        "x"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct dump_format *const format = nd_format_recognise(&heads[i]);
        assert_true(format == NULL || strncmp(format->name, "cann", 4) != 0);
    }
}

static void no_length_of_a_file_is_too_short(void **state)
{
    static const char *const seeds[] = {"simple", "blocked",  "types",   "buffers",
                                        "group",  "unpacked", "varint11"};

    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        struct bytes bytes = corpus_file("cann", seeds[i]);
        use_every_length(&bytes, "cann");
        bytes_free(&bytes);
    }
}

static void no_changed_byte_is_too_much(void **state)
{
    struct bytes bytes = corpus_file("cann", "blocked");

    (void)state;
    for (size_t i = 0; i < 110; i++) {
        const unsigned char was = bytes.at[i];
        static const unsigned char others[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t k = 0; k < sizeof others; k++) {
            bytes.at[i] = others[k];
            use_exact(bytes.at, bytes.size, "x", "cann");
        }
        bytes.at[i] = was;
    }
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_example_of_the_description_is_read),
        cmocka_unit_test(inputs_come_first_and_blocks_lose_their_padding),
        cmocka_unit_test(original_op_counts_types_as_ge_does),
        cmocka_unit_test(every_type_is_read_or_named),
        cmocka_unit_test(fields_of_inputs_are_numbered_otherwise_than_those_of_outputs),
        cmocka_unit_test(the_message_names_the_operator_and_the_file_its_type_and_time),
        cmocka_unit_test(a_framework_of_another_order_keeps_its_order),
        cmocka_unit_test(stored_axes_in_another_order_are_put_back),
        cmocka_unit_test(shapes_may_be_unpacked_missing_or_dynamic),
        cmocka_unit_test(high_bits_of_the_format_are_not_its_number),
        cmocka_unit_test(a_size_may_exceed_its_shape_and_bytes_may_follow),
        cmocka_unit_test(one_bad_tensor_is_broken_alone),
        cmocka_unit_test(seventeen_dimensions_are_refused_by_name),
        cmocka_unit_test(damaged_messages_are_refused_with_their_place),
        cmocka_unit_test(other_files_with_a_length_in_front_are_not_claimed),
        cmocka_unit_test(no_length_of_a_file_is_too_short),
        cmocka_unit_test(no_changed_byte_is_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
