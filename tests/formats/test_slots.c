/*
 * What formats put into a dump: names, extents, shapes, strides, layouts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"

static void assert_says(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        fail_msg("'%s' does not say '%s'", text, what);
}

static struct bytes one_array(void)
{
    struct bytes array = {0};

    npy_put_array(&array, "<f4", "(2,)", "\0\0\x80\x3f\0\0\0\x40", 8);
    return array;
}

/* --- names ------------------------------------------------------------------------- */

/* A dump without a format to add things to: an opened array, emptied. */
static struct dump *blank_dump(const struct bytes *bytes)
{
    struct dump *dump;
    struct nd_error error;

    assert_int_equal(
        nd_dump_open_bytes(bytes->at, bytes->size, "x.npy", "npy", NULL, &dump, &error),
        ND_OK);
    return dump;
}

static void names_are_split_by_the_slot_grammar(void **state)
{
    static const struct {
        const char *name, *layer, *slot;
    } cases[] = {
        {"conv1",                       "conv1",             "output.0"                 },
        {"a.b.conv1.output.0",          "a.b.conv1",         "output.0"                 },
        {"a/b/conv1/output/0",          "a/b/conv1",         "output.0"                 },
        {"conv1.output.1.2",            "conv1",             "output.1.2"               },
        {"conv1/output.1/2",            "conv1",             "output.1.2"               },
        {"lstm.output[1][0]",           "lstm",              "output.1.0"               },
        {"conv1.input.12",              "conv1",             "input.12"                 },
        {"fc.weight",                   "fc",                "param.weight"             },
        {"fc/bias",                     "fc",                "param.bias"               },
        {"norm.gamma",                  "norm",              "param.gamma"              },
        {"norm.beta",                   "norm",              "param.beta"               },
        {"bn.running_mean",             "bn",                "state.running_mean"       },
        {"bn.running_var",              "bn",                "state.running_var"        },
        {"bn.num_batches_tracked",      "bn",                "state.num_batches_tracked"},
        {"fc.param.scale",              "fc",                "param.scale"              },
        {"fc.grad.weight",              "fc",                "grad.weight"              },
        {"fc.state.cache",              "fc",                "state.cache"              },
        {"fc.state_after.running_mean", "fc",                "state_after.running_mean" },
        {"0.output.0",                  "0",                 "output.0"                 },
        {"layers.0",                    "layers.0",          "output.0"                 },
        {"bert.output",                 "bert.output",       "output.0"                 },
        {"bert.output.dense",           "bert.output.dense", "output.0"                 },
        {"conv1.outputs.0",             "conv1.outputs.0",   "output.0"                 },
        {"input.0",                     "input.0",           "input.0"                  },
        {"weight",                      "weight",            "param.weight"             },
        {"x.output.",                   "x.output.",         "output.0"                 },
        {"x.param.",                    "x.param.",          "output.0"                 },
        {"",                            "",                  "output.0"                 },
    };
    struct bytes array = one_array();
    struct dump *const dump = blank_dump(&array);
    struct nd_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump_slot slot = nd_dump_slot_init();
        slot.evidence = ND_EVIDENCE_STATISTICS;
        dump->step = (int64_t)i; /* so that each makes a layer of its own */
        assert_int_equal(nd_dump_add_tensor(dump, cases[i].name, &slot, &error), ND_OK);
        const struct dump_layer *const layer = &dump->layers[dump->layer_count - 1];
        assert_string_equal(layer->name, cases[i].layer);
        assert_string_equal(layer->slots[0].name, cases[i].slot);
        assert_int_equal(layer->step, i);
    }
    nd_dump_close(dump);
    bytes_free(&array);
}

static void slots_of_one_layer_are_gathered_wherever_they_come(void **state)
{
    struct bytes array = one_array();
    struct dump *const dump = blank_dump(&array);
    static const char *const names[] = {"a.input.0", "b.input.0", "a.output.0",
                                        "b.output.0", "a.weight"};
    struct nd_error error;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct dump_slot slot = nd_dump_slot_init();
        slot.evidence = ND_EVIDENCE_STATISTICS;
        assert_int_equal(nd_dump_add_tensor(dump, names[i], &slot, &error), ND_OK);
    }
    assert_int_equal(dump->layer_count, 3); /* the array's own, a, b */
    assert_string_equal(dump->layers[1].name, "a");
    assert_int_equal(dump->layers[1].slot_count, 3);
    assert_int_equal(dump->layers[2].slot_count, 2);
    char name[4098];
    memset(name, 'n', 4097);
    name[4097] = '\0';
    struct dump_slot slot = nd_dump_slot_init();
    assert_int_equal(nd_dump_add_tensor(dump, name, &slot, &error), ND_ERR_LIMIT);
    assert_says(error.expected, "4096");
    nd_dump_close(dump);
    bytes_free(&array);
}

/* Layers whose lists grow, are cut to fit, and grow again out of what others left. */
static void a_layer_that_was_cut_to_fit_takes_further_slots(void **state)
{
    struct bytes array = one_array();
    struct dump *const dump = blank_dump(&array);
    struct nd_error error;
    char name[16];

    (void)state;
    for (size_t n = 0; n < 24; n++) {
        assert_non_null(nd_dump_add_layer(dump, "layer", ""));
        struct dump_layer *const layer = &dump->layers[dump->layer_count - 1];
        for (size_t i = 0; i < n; i++) {
            struct dump_slot slot = nd_dump_slot_init();
            slot.evidence = ND_EVIDENCE_STATISTICS;
            slot.statistics.value[STATISTIC_MAX] = (double)(100 * n + i);
            snprintf(name, sizeof name, "output.%zu", i);
            slot.name = name;
            assert_int_equal(nd_dump_add_slot(dump, layer, &slot, &error), ND_OK);
            if (i % 5 == 2)
                assert_int_equal(nd_dump_trim_layer(dump, layer, &error), ND_OK);
        }
        assert_int_equal(nd_dump_trim_layer(dump, layer, &error), ND_OK);
    }
    for (size_t n = 0; n < 24; n++) {
        const struct dump_layer *const layer = &dump->layers[1 + n];
        assert_int_equal(layer->slot_count, n);
        assert_true(layer->slot_capacity == n);
        for (size_t i = 0; i < n; i++) {
            snprintf(name, sizeof name, "output.%zu", i);
            assert_string_equal(layer->slots[i].name, name);
            assert_true(layer->slots[i].statistics.value[STATISTIC_MAX] ==
                        (double)(100 * n + i));
        }
    }
    nd_dump_close(dump);
    bytes_free(&array);
}

/* --- extents ----------------------------------------------------------------------- */

static struct dump_slot float_slot(uint64_t offset, uint64_t size, uint32_t rank,
                                   const uint64_t *dims)
{
    struct dump_slot slot = nd_dump_slot_init();

    slot.name = "output.0";
    slot.dtype = ND_DTYPE_f32;
    slot.has_shape = true;
    slot.storage.rank = rank;
    for (uint32_t k = 0; k < rank && k < ND_MAX_RANK; k++)
        slot.storage.dim[k] = dims[k];
    slot.extent = (struct extent){.offset = offset, .size = size, .raw_size = size};
    return slot;
}

static const struct dump_slot *add_slot(struct dump *dump, const struct dump_slot *slot)
{
    struct nd_error error;
    struct dump_layer *const layer = nd_dump_add_layer(dump, "l", "");

    assert_non_null(layer);
    assert_int_equal(nd_dump_add_slot(dump, layer, slot, &error), ND_OK);
    return &layer->slots[0];
}

static void extents_and_shapes_that_do_not_fit_break_the_slot(void **state)
{
    struct bytes bytes = {0};
    const uint64_t two[] = {2}, three[] = {3}, huge[] = {UINT64_C(1) << 62, 4};
    const uint64_t ones[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

    (void)state;
    npy_put_array(&bytes, "<f4", "(2,)", "\0\0\x80\x3f\0\0\0\x40", 8);
    struct dump *const dump = blank_dump(&bytes);
    const uint64_t at = bytes.size - 8;
    struct dump_slot slots[8] = {
        float_slot(at, 9, 1, two),         float_slot(at + 1, 8, 1, two),
        float_slot(UINT64_MAX, 8, 1, two), float_slot(at, UINT64_MAX - 4, 1, two),
        float_slot(at, 8, 1, three),       float_slot(at, 8, 2, huge),
        float_slot(at, 8, 17, ones),       float_slot(at, 8, 1, two),
    };
    slots[7].dtype = ND_DTYPE_NONE;
    slots[7].dtype_text = "int4";
    static const char *const reasons[8] = {
        "the file ends at",
        "the file ends at",
        "the file ends at",
        "the file ends at",
        "takes 12 bytes, there are 8",
        "shape [4611686018427387904, 4] of float32",
        "17 dimensions",
        "'int4'",
    };
    for (size_t i = 0; i < 8; i++) {
        const struct dump_slot *const slot = add_slot(dump, &slots[i]);
        struct open_slot open;
        if (slot->broken == NULL)
            fail_msg("slot %zu is not broken", i);
        assert_says(slot->broken, reasons[i]);
        assert_int_not_equal(nd_slot_open(dump, slot, &open, NULL), ND_OK);
    }
    const struct dump_slot good = float_slot(at, 8, 1, two);
    assert_null(add_slot(dump, &good)->broken);
    nd_dump_close(dump);
    bytes_free(&bytes);
}

static void strides_are_checked_against_the_storage(void **state)
{
    static const struct {
        int64_t stride[2];
        uint64_t base;
        bool fits;
    } cases[] = {
        {{3, 1},         0, true },
        {{1, 2},         0, true },
        {{0, 0},         5, true },
        {{-3, 1},        3, true },
        {{4, 1},         0, false},
        {{3, 1},         1, false},
        {{-3, 1},        2, false},
        {{0, 0},         6, false},
        {{INT64_MAX, 1}, 0, false},
        {{INT64_MIN, 1}, 0, false},
    };
    struct bytes bytes = {0};
    const uint64_t dims[] = {2, 3};
    const unsigned char data[24] = {0};

    (void)state;
    npy_put_array(&bytes, "<f4", "(6,)", data, sizeof data);
    struct dump *const dump = blank_dump(&bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump_slot slot = float_slot(bytes.size - 24, 24, 2, dims);
        slot.strided = true;
        slot.base = cases[i].base;
        slot.stride = cases[i].stride;
        assert_int_equal(add_slot(dump, &slot)->broken == NULL, cases[i].fits);
    }
    nd_dump_close(dump);
    bytes_free(&bytes);
}

/* NC1HWC0 with C0 2 of logical [1, 3, 1, 2]: blocks of channels (0, 1) and (2, padding). */
static void device_layouts_are_seen_in_logical_order(void **state)
{
    static const float stored[8] = {0, 10, 1, 11, 20, -1, 21, -1}; /* value 10 c + w */
    const uint64_t dims[] = {1, 2, 1, 2, 2};
    struct bytes bytes = {0};
    uint64_t count;

    (void)state;
    npy_put_array(&bytes, "<f4", "(8,)", stored, sizeof stored);
    struct dump *const dump = blank_dump(&bytes);
    struct dump_slot slot = float_slot(bytes.size - sizeof stored, sizeof stored, 5, dims);
    slot.layout = nd_layout_by_name("NC1HWC0");
    struct nd_shape logical_shape = {
        4, {1, 3, 1, 2}
    };
    slot.logical = &logical_shape;
    double *values = slot_values(dump, add_slot(dump, &slot), &count);
    static const double logical[6] = {0, 1, 10, 11, 20, 21};
    assert_int_equal(count, 6);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == logical[i]);
    free(values);

    struct open_slot open;
    struct nd_error error;
    logical_shape.dim[1] = 5; /* needs three blocks */
    assert_int_not_equal(nd_slot_open(dump, add_slot(dump, &slot), &open, &error), ND_OK);
    assert_says(error.found, "layout NC1HWC0");

    slot.layout = NULL; /* another shape of the same elements, and of others */
    logical_shape = (struct nd_shape){
        2, {2, 4}
    };
    values = slot_values(dump, add_slot(dump, &slot), &count);
    assert_int_equal(count, 8);
    assert_true(values[1] == 10);
    free(values);
    logical_shape.dim[1] = 3;
    assert_int_not_equal(nd_slot_open(dump, add_slot(dump, &slot), &open, &error), ND_OK);
    nd_dump_close(dump);
    bytes_free(&bytes);
}

static void texts_given_by_a_format_are_copied(void **state)
{
    struct bytes bytes = one_array();
    struct dump *const dump = blank_dump(&bytes);
    char text[] = "text";
    double number = 3;
    struct nd_error error;
    struct dump_layer *layer = nd_dump_add_layer(dump, text, text);
    struct attribute attribute = {
        .key = text, .kind = ATTRIBUTE_LIST, .text = text, .list = &number, .list_len = 1};
    struct dump_slot slot = nd_dump_slot_init();

    (void)state;
    slot.evidence = ND_EVIDENCE_CHECKSUM;
    slot.name = slot.checksum = slot.note = slot.device = text;
    assert_int_equal(nd_dump_add_attribute(dump, layer, &attribute, &error), ND_OK);
    assert_int_equal(nd_dump_add_slot(dump, layer, &slot, &error), ND_OK);
    assert_int_equal(nd_dump_ignore(dump, text, &error), ND_OK);
    memset(text, 'X', 4);
    number = 0;
    assert_string_equal(layer->name, "text");
    assert_string_equal(layer->type, "text");
    assert_string_equal(layer->attributes[0].key, "text");
    assert_string_equal(layer->attributes[0].text, "text");
    assert_true(layer->attributes[0].list[0] == 3);
    assert_string_equal(layer->slots[0].name, "text");
    assert_string_equal(layer->slots[0].checksum, "text");
    assert_string_equal(layer->slots[0].device, "text");
    assert_string_equal(dump->ignored[0], "text");
    nd_dump_close(dump);
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_split_by_the_slot_grammar),
        cmocka_unit_test(slots_of_one_layer_are_gathered_wherever_they_come),
        cmocka_unit_test(a_layer_that_was_cut_to_fit_takes_further_slots),
        cmocka_unit_test(extents_and_shapes_that_do_not_fit_break_the_slot),
        cmocka_unit_test(strides_are_checked_against_the_storage),
        cmocka_unit_test(device_layouts_are_seen_in_logical_order),
        cmocka_unit_test(texts_given_by_a_format_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
