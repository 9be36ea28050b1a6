/*
 * The normdiff dump: a record with everything that docs/formats/normdiff-dump.md names,
 * records that break its rules, and runs that died.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/format.h"
#include "formats/st_build.h"

#define FORMAT "normdiff"

static struct dump *open_tiny(struct st_opened *opened)
{
    struct dump *dump = st_open_sound(bytes_of_file(DATA "/st", "tiny.dump"), NULL, opened);

    assert_string_equal(dump->format->name, FORMAT);
    return dump;
}

static void a_run_is_described_as_it_was_recorded(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_tiny(&opened);

    (void)state;
    assert_string_equal(dump->device, "npu:0");
    assert_string_equal(dump->framework, "pytorch 2.1.0, torch_npu 2.1.0");
    assert_string_equal(dump->model, "tiny");
    assert_string_equal(dump->loss, "2.3145");
    assert_null(dump->autocast);
    assert_true(dump->seed == 1234);
    assert_int_equal(dump->deterministic, 1);
    assert_false(dump->partial);
    assert_true(dump->grouped);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    assert_int_equal(dump->ignored_count, 1);
    assert_non_null(strstr(dump->ignored[0], "\"unnamed\""));
    st_close(&opened);
}

static void layers_stand_in_the_order_of_the_record(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_tiny(&opened);

    (void)state;
    assert_int_equal(dump->layer_count, 4);
    const struct dump_layer *layer = dump->layers;
    assert_string_equal(layer[0].name, "z.norm");
    assert_string_equal(layer[0].type, "LayerNorm");
    assert_int_equal(layer[0].direction, DIRECTION_FORWARD);
    assert_int_equal(layer[0].step, 3);
    assert_int_equal(layer[0].rank, 1);
    assert_false(layer[0].container || layer[0].recompute);
    assert_true(layer[1].container);
    assert_string_equal(layer[1].name, "a.block");
    assert_int_equal(layer[2].call, 1);
    assert_true(layer[2].recompute);
    assert_int_equal(layer[2].micro_step, 2);
    assert_string_equal(layer[2].stack, "train.py:10\nmodel.py:20");
    assert_int_equal(layer[3].direction, DIRECTION_BACKWARD);
    assert_int_equal(layer[3].call, 0);
    assert_string_equal(layer[3].type, "");
    st_close(&opened);
}

static const struct attribute *attribute_of(const struct dump_layer *layer, const char *key)
{
    for (size_t i = 0; i < layer->attribute_count; i++)
        if (strcmp(layer->attributes[i].key, key) == 0)
            return &layer->attributes[i];
    fail_msg("no attribute %s", key);
    return NULL;
}

static void attributes_keep_their_kinds(void **state)
{
    struct st_opened opened;
    const struct dump_layer *layer = open_tiny(&opened)->layers;
    const struct attribute *attribute;

    (void)state;
    assert_int_equal(layer->attribute_count, 7);
    attribute = attribute_of(layer, "eps");
    assert_true(attribute->kind == ATTRIBUTE_NUMBER && attribute->number == 1e-05);
    attribute = attribute_of(layer, "normalized_shape");
    assert_true(attribute->kind == ATTRIBUTE_LIST && attribute->list_len == 1 &&
                attribute->list[0] == 3);
    assert_string_equal(attribute->text, "[3]");
    attribute = attribute_of(layer, "training");
    assert_true(attribute->kind == ATTRIBUTE_BOOL && attribute->number == 0);
    assert_int_equal(attribute_of(layer, "bias")->kind, ATTRIBUTE_NULL);
    attribute = attribute_of(layer, "mode");
    assert_int_equal(attribute->kind, ATTRIBUTE_TEXT);
    assert_string_equal(attribute->text, "same");
    attribute = attribute_of(layer, "limit");
    assert_true(attribute->kind == ATTRIBUTE_NUMBER && attribute->number == HUGE_VAL);
    attribute = attribute_of(layer, "mixed");
    assert_true(attribute->kind == ATTRIBUTE_LIST && attribute->list == NULL);
    assert_string_equal(attribute->text, "[a, 1, [true]]");
    st_close(&opened);
}

static void slots_carry_tensors_layouts_and_statistics(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_tiny(&opened);
    uint64_t count;

    (void)state;
    const struct dump_slot *slot = find_slot(dump, "z.norm", "output.0");
    assert_string_equal(slot->layout->name, "NC1HWC0");
    assert_string_equal(slot->device, "npu:0");
    /* Stored (1, 1, 2, 2, 16) in steps of 1/4: channel c of position hw is 16 hw + c. */
    double *values = slot_values(dump, slot, &count);
    assert_int_equal(count, 12);
    for (size_t i = 0; i < 12; i++)
        assert_true(values[i] == (16.0 * (double)(i % 4) + (double)(i / 4)) / 4);
    free(values);

    slot = find_slot(dump, "z.norm", "param.weight");
    assert_int_equal(slot->dtype, ND_DTYPE_f32);
    assert_int_equal(slot->real_dtype, ND_DTYPE_bf16);
    assert_int_equal(slot->evidence, ND_EVIDENCE_VALUES); /* the tensor counts */
    assert_true(slot->has_statistics && slot->statistics.value[STATISTIC_MAX] == 1.0);
    assert_true(isnan(slot->statistics.value[STATISTIC_MIN]));
    assert_false(slot->statistics.is_nan[STATISTIC_MIN]);

    slot = find_slot(dump, "z.norm", "output.1");
    assert_int_equal(slot->evidence, ND_EVIDENCE_STATISTICS);
    assert_int_equal(slot->dtype, ND_DTYPE_f32);
    assert_true(slot->has_shape && slot->storage.rank == 2 && slot->storage.dim[1] == 128);
    assert_true(slot->statistics.value[STATISTIC_MAX] == 1.5);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -2.0);
    assert_true(slot->statistics.value[STATISTIC_NORM] == 17.0);
    assert_true(slot->statistics.is_nan[STATISTIC_MEAN]);
    assert_true(slot->statistics.half_unit[STATISTIC_MAX] == 0);
    st_close(&opened);
}

static void shards_valid_counts_and_undefined_content_are_kept(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_tiny(&opened);
    const struct dump_slot *slot = &dump->layers[2].slots[0];

    (void)state;
    assert_true(slot->undefined);
    assert_true(slot->sharded);
    assert_int_equal(slot->shard_axis, 1);
    assert_int_equal(slot->shard_index, 0);
    assert_int_equal(slot->shard_of, 2);
    assert_int_equal(slot->valid_count, 2);
    assert_int_equal(slot->valid[0], 3);
    assert_int_equal(slot->valid[1], 4);
    /* Two layers name t0: one range in the file. */
    assert_int_equal(slot->extent.offset, dump->layers[0].slots[0].extent.offset);
    st_close(&opened);
}

static void slots_that_cannot_be_read_are_broken_and_leave_the_others_alone(void **state)
{
    static const char *const reasons[] = {
        "tensor \"gone\" is not in the file",
        "format FRACTAL_QQ is not supported",
        "format NC1HWC0 needs a logical_shape",
        "the slot holds neither a tensor nor statistics",
    };
    struct st_opened opened;
    const struct dump_layer *layer = &open_tiny(&opened)->layers[3];

    (void)state;
    assert_int_equal(layer->slot_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(layer->slots[i].broken, reasons[i]);
    assert_string_equal(layer->slots[1].layout_text, "FRACTAL_QQ");
    assert_int_equal(read_everything(opened.dump), 5);
    st_close(&opened);
}

#define SLOT(text)                                                                         \
    "{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":{\"output.0\":" text "}}]}"

/* The slot is broken for this reason; NULL: it can be read. */
static void assert_slot_reason(const char *record, const char *reason)
{
    struct st_opened opened;
    struct dump *dump = st_open_sound(nd_file(record), NULL, &opened);
    const char *broken = dump->layers[0].slots[0].broken;

    if (reason == NULL && broken != NULL)
        fail_msg("%s: %s", record, broken);
    if (reason != NULL && (broken == NULL || strstr(broken, reason) == NULL))
        fail_msg("%s: %s", record, broken == NULL ? "readable" : broken);
    st_close(&opened);
}

static void odd_slots_say_why_they_cannot_be_read(void **state)
{
    (void)state;
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"format\":\"ND\"}"), NULL);
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"format\":\"NCHW\"}"), NULL);
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"format\":null,\"logical_shape\":null}"),
                       NULL);
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"logical_shape\":[2,2]}"), NULL);
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"logical_shape\":[2,3]}"),
                       "another number of elements");
    assert_slot_reason(
        SLOT("{\"tensor\":\"t1\",\"logical_shape\":[4294967296,4294967296]}"),
        "another number of elements");
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"logical_shape\":[1.5]}"),
                       "not a list of");
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"logical_shape\":[-4]}"), "not a list of");
    assert_slot_reason(SLOT("{\"tensor\":\"t1\",\"logical_shape\":\"x\"}"),
                       "not a list of");
    assert_slot_reason(
        SLOT("{\"tensor\":\"t1\",\"format\":\"NC1HWC0\",\"logical_shape\":[1,3,2,2]}"),
        "format NC1HWC0: ");
    assert_slot_reason(SLOT("{\"tensor\":7}"), "is not in the file");
    assert_slot_reason(SLOT("{\"statistics\":{}}"), "neither a tensor nor statistics");
    assert_slot_reason(SLOT("{\"statistics\":{\"max\":\"x\"}}"),
                       "neither a tensor nor statistics");
    assert_slot_reason(SLOT("{\"statistics\":{\"max\":1},\"shape\":[1,-1]}"),
                       "shape is not a list");
    assert_slot_reason(SLOT("{\"note\":\"a meta tensor\"}"), "no tensor: a meta tensor");
}

static void records_that_break_a_rule_are_refused_by_place(void **state)
{
    (void)state;
    assert_refused(nd_file("{\"version\":2,\"layers\":[]}"), NULL, ND_ERR_UNSUPPORTED,
                   "version", "version 2");
    assert_refused(nd_file("{\"version\":1.5,\"layers\":[]}"), NULL, ND_ERR_UNSUPPORTED,
                   "version", "version 1.5");
    assert_refused(nd_file("{\"version\":\"1\",\"layers\":[]}"), NULL, ND_ERR_MALFORMED,
                   "version", "another value");
    assert_refused(nd_file("{\"layers\":[]}"), NULL, ND_ERR_MALFORMED, "version",
                   "nothing");
    assert_refused(nd_file("{\"version\":1}"), NULL, ND_ERR_MALFORMED, "layers", "nothing");
    assert_refused(nd_file("{\"version\":1,\"layers\":{}}"), NULL, ND_ERR_MALFORMED,
                   "layers", "another value");
    assert_refused(nd_file("[]"), NULL, ND_ERR_MALFORMED, "__metadata__.normdiff",
                   "another value");
    assert_refused(nd_file("{\"version\":1,\"layers\":[7]}"), NULL, ND_ERR_MALFORMED,
                   "layers[0].name", "a layer without one");
    assert_refused(
        nd_file(
            "{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":{}},{\"slots\":{}}]}"),
        NULL, ND_ERR_MALFORMED, "layers[1].name", "a layer without one");
    assert_refused(nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\"}]}"), NULL,
                   ND_ERR_MALFORMED, "layers[0].slots", "nothing");
    assert_refused(nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":[]}]}"),
                   NULL, ND_ERR_MALFORMED, "layers[0].slots", "another value");
    assert_refused(
        nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":{\"output.0\":1}}]}"),
        NULL, ND_ERR_MALFORMED, "layers[0].slots", "another value");
    assert_refused(nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"direction\":"
                           "\"up\",\"slots\":{}}]}"),
                   NULL, ND_ERR_MALFORMED, "layers[0].direction", "another value");
    assert_refused(
        nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"call\":-1,\"slots\":{}}]}"),
        NULL, ND_ERR_MALFORMED, "layers[0].call", "another value");
    assert_refused(nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"call\":"
                           "9007199254740993,\"slots\":{}"
                           "}]}"),
                   NULL, ND_ERR_MALFORMED, "layers[0].call", "another value");
    assert_refused(
        nd_file(
            "{\"version\":1,\"layers\":[{\"name\":\"a\",\"attributes\":[],\"slots\":{}}]}"),
        NULL, ND_ERR_MALFORMED, "layers[0].attributes", "another value");
    assert_refused(
        nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":{}},"
                "{\"name\":\"a\",\"call\":0,\"direction\":\"forward\",\"slots\":{}}]}"),
        NULL, ND_ERR_MALFORMED, "layers", "layer \"a\", forward, call 0, a second time");
    assert_refused(nd_file("{\"version\":1,\"loss\":NaN,\"layers\":[]}"), NULL,
                   ND_ERR_MALFORMED, "__metadata__.normdiff, byte 20", "a bare NaN");
    assert_refused(nd_file("{\"version\":1,\"version\":1,\"layers\":[]}"), NULL,
                   ND_ERR_MALFORMED, "__metadata__.normdiff, byte 13", "a second time");
    assert_refused(nd_file("{\"version\":1,"), NULL, ND_ERR_MALFORMED,
                   "__metadata__.normdiff, byte 13", "the end");
    assert_refused(nd_file(""), NULL, ND_ERR_MALFORMED, "__metadata__.normdiff, byte 0",
                   "the end");
}

static void calls_and_directions_tell_layers_of_one_name_apart(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        st_open_sound(nd_file("{\"version\":1,\"layers\":[{\"name\":\"a\",\"slots\":{}},"
                              "{\"name\":\"a\",\"call\":1,\"slots\":{}},"
                              "{\"name\":\"a\",\"direction\":\"backward\",\"slots\":{}}]}"),
                      NULL, &opened);

    (void)state;
    assert_int_equal(dump->layer_count, 3);
    assert_int_equal(dump->step, -1);
    assert_int_equal(dump->layers[0].rank, -1);
    assert_int_equal(dump->deterministic, -1);
    assert_true(isnan(dump->seed));
    st_close(&opened);
}

/* A dump whose header says "complete" as it is told, with a hole, and cut to `size`. */
static struct st_opened open_unfinished(const char *complete, const char *second,
                                        size_t data)
{
    char header[600];

    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"normdiff\":\"{\\\"version\\\":1%s,\\\"layers\\\":[{"
             "\\\"name\\\":"
             "\\\"a\\\",\\\"slots\\\":{\\\"output.0\\\":{\\\"tensor\\\":\\\"a\\\"},"
             "\\\"output.1\\\":{\\\"tensor\\\":\\\"b\\\"}}}]}\"},"
             "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
             "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":%s}}   ",
             complete, second);
    return st_open(st_file(header, data), NULL);
}

static void a_run_that_died_leaves_a_partial_dump(void **state)
{
    static const char no[] = ",\\\"complete\\\":false", yes[] = ",\\\"complete\\\":true";
    static const struct {
        const char *complete, *second;
        size_t data, readable;
        bool partial;
    } rows[] = {
        {no,  "[8,16]",  16, 2, true },
        {no,  "[8,16]",  24, 2, true }, /* data that no tensor claims yet */
        {no,  "[12,20]", 20, 2, true }, /* a hole */
        {no,  "[8,16]",  12, 1, true }, /* a tensor announced and not written */
        {no,  "[8,16]",  0,  0, true },
        {"",  "[8,16]",  12, 1, true }, /* nothing said, and cut */
        {"",  "[8,16]",  16, 2, false},
        {yes, "[8,16]",  16, 2, false},
        {yes, "[8,16]",  12, 1, false}, /* the run ended; a copy of it was cut */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct st_opened opened =
            open_unfinished(rows[i].complete, rows[i].second, rows[i].data);
        if (opened.status != ND_OK)
            fail_msg("row %zu: %s", i, opened.error.found);
        assert_int_equal(opened.dump->partial, rows[i].partial);
        assert_int_equal(opened.dump->tensor_count, 2);
        assert_int_equal(read_everything(opened.dump), rows[i].readable);
        st_close(&opened);
    }
    struct st_opened opened = open_unfinished(yes, "[12,20]", 20);
    assert_int_equal(opened.status, ND_ERR_MALFORMED);
    st_close(&opened);
}

static void a_plain_safetensors_file_is_no_normdiff_dump(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}}";
    struct st_opened opened = st_open(st_file(header, 0), NULL);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_string_equal(opened.dump->format->name, "safetensors");
    st_close(&opened);
    assert_refused(st_file(header, 0), FORMAT, ND_ERR_MALFORMED, "byte 8", "without one");
}

static void a_normdiff_dump_reads_as_plain_safetensors_on_request(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        st_open_sound(bytes_of_file(DATA "/st", "tiny.dump"), "safetensors", &opened);

    (void)state;
    assert_int_equal(dump->layer_count, 4); /* p0, t0, t1, unnamed */
    assert_int_equal(dump->order, ND_ORDER_NAME);
    st_close(&opened);
}

static void the_metadata_may_stand_behind_the_tensors(void **state)
{
    struct st_opened opened = st_open(
        st_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"__"
                "metadata__\":"
                "{\"k\":\"v\",\"normdiff\":\"{\\\"version\\\":1,\\\"layers\\\":[]}\"}}",
                1),
        NULL);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_string_equal(opened.dump->format->name, FORMAT);
    st_close(&opened);
}

static void a_file_cut_at_any_byte_is_refused_or_read_as_far_as_it_goes(void **state)
{
    struct bytes whole = bytes_of_file(DATA "/st", "tiny.dump");
    const size_t data_at = 8 + (size_t)nd_load_le(whole.at, 8);
    size_t readable = 0;

    (void)state;
    for (size_t size = 0; size < whole.size; size++) {
        struct bytes cut = {0};
        bytes_put(&cut, whole.at, size);
        struct st_opened opened = st_open(cut, FORMAT);
        assert_int_equal(opened.status == ND_OK, size >= data_at);
        if (opened.status == ND_OK) {
            const size_t now = read_everything(opened.dump);
            assert_true(now >= readable);
            readable = now;
        }
        st_close(&opened);
    }
    assert_int_equal(readable, 5);
    bytes_free(&whole);
}

static void no_change_of_one_byte_makes_it_crash(void **state)
{
    static const unsigned char changes[] = {0, 0xff, '"', '{', ']', '\\', '9'};
    struct bytes whole = bytes_of_file(DATA "/st", "tiny.dump");
    const size_t data_at = 8 + (size_t)nd_load_le(whole.at, 8);

    (void)state;
    for (size_t at = 0; at < data_at; at++) {
        const unsigned char was = whole.at[at];
        for (size_t i = 0; i < sizeof changes; i++) {
            whole.at[at] = changes[i];
            use_exact(whole.at, whole.size, "x", FORMAT);
        }
        whole.at[at] = was;
    }
    bytes_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_described_as_it_was_recorded),
        cmocka_unit_test(layers_stand_in_the_order_of_the_record),
        cmocka_unit_test(attributes_keep_their_kinds),
        cmocka_unit_test(slots_carry_tensors_layouts_and_statistics),
        cmocka_unit_test(shards_valid_counts_and_undefined_content_are_kept),
        cmocka_unit_test(slots_that_cannot_be_read_are_broken_and_leave_the_others_alone),
        cmocka_unit_test(odd_slots_say_why_they_cannot_be_read),
        cmocka_unit_test(records_that_break_a_rule_are_refused_by_place),
        cmocka_unit_test(calls_and_directions_tell_layers_of_one_name_apart),
        cmocka_unit_test(a_run_that_died_leaves_a_partial_dump),
        cmocka_unit_test(a_plain_safetensors_file_is_no_normdiff_dump),
        cmocka_unit_test(a_normdiff_dump_reads_as_plain_safetensors_on_request),
        cmocka_unit_test(the_metadata_may_stand_behind_the_tensors),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused_or_read_as_far_as_it_goes),
        cmocka_unit_test(no_change_of_one_byte_makes_it_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
