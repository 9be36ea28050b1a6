/*
 * MindSpore dumps: folders, names and tables as its documentation and the shipped samples
 * have them; headers of arrays in the dialect of its own writer.
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
#include "formats/folder.h"
#include "formats/format.h"

static struct nd_error error;

static struct dump *open_path(const char *path)
{
    struct dump *dump = NULL;

    if (nd_dump_open(path, NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: found %s", path, error.at, error.found);
    return dump;
}

static struct dump *open_table(const char *text)
{
    struct dump *dump = NULL;

    if (nd_dump_open_bytes(text, strlen(text), "statistic.csv", NULL, NULL, &dump, &error) !=
        ND_OK)
        fail_msg("%s: found %s", error.at, error.found);
    return dump;
}

/* npy_header.cc: no blank in the shape, always a comma, padded to 64. */
static void write_array(const char *name, const char *descr, const char *shape,
                        const void *data, size_t size)
{
    struct bytes bytes = {0};
    char head[256];
    const int len = snprintf(head, sizeof head,
                             "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                             shape);

    snprintf(head + len, sizeof head - (size_t)len, "%*s\n", 64 - (10 + len + 1) % 64, "");
    npy_put(&bytes, 1, head, data, size);
    folder_write(name, bytes.at, bytes.size);
    bytes_free(&bytes);
}

static void write_float(const char *name, float value)
{
    write_array(name, "<f4", "(1,)", &value, sizeof value);
}

static double value_of(const struct dump *dump, const struct dump_slot *slot)
{
    struct open_slot open;
    double value = (double)NAN;

    if (slot->broken != NULL)
        fail_msg("%s: %s", slot->name, slot->broken);
    assert_int_equal(nd_slot_open(dump, slot, &open, &error), ND_OK);
    nd_view_decode(&open.view, 0, 1, &value);
    assert_true(nd_slot_close(&open));
    return value;
}

/* --- folders --------------------------------------------------------------------------------- */

static void the_tree_of_a_rank_gives_rank_iteration_and_calls(void **state)
{
    const char *const root = folder_new();

    (void)state;
    /* Input and output of a call have stamps of their own; op0 runs twice. */
    write_float("rank_1/Net/0/7/Sub.Default_Sub-op0.0.0.1733905446819790.input.0.DefaultFormat."
                "float32.npy", 1);
    write_float("rank_1/Net/0/7/Sub.Default_Sub-op0.0.0.1733905446819795.output.0.DefaultFormat."
                "float32.npy", 2);
    write_float("rank_1/Net/0/7/Sub.Default_Sub-op0.0.0.1733905446819890.input.0.DefaultFormat."
                "float32.npy", 3);
    write_float("rank_1/Net/0/7/Sub.Default_Sub-op0.0.0.1733905446819895.output.0.DefaultFormat."
                "float32.npy", 4);
    write_float("rank_1/Net/0/7/ReLU.Default_net_ReLU-op2.0.0.1733905446819600.output.0."
                "DefaultFormat.npy", 5);
    write_float("rank_1/Net/0/constants/Parameter.fc1.weight.0.0.1733905446819500.output.0."
                "DefaultFormat.npy", 6);
    struct dump *const dump = open_path(root);
    assert_string_equal(dump->format->name, "mindspore");
    assert_int_equal(dump->order, ND_ORDER_TIMESTAMP);
    assert_int_equal(dump->layer_count, 4);
    assert_string_equal(dump->layers[0].name, "fc1");
    assert_string_equal(dump->layers[0].slots[0].name, "param.weight");
    assert_string_equal(dump->layers[1].name, "Default_net_ReLU-op2");
    assert_string_equal(dump->layers[1].type, "ReLU");
    for (int64_t call = 0; call < 2; call++) {
        const struct dump_layer *const layer = &dump->layers[2 + call];
        assert_string_equal(layer->name, "Default_Sub-op0");
        assert_int_equal(layer->call, call);
        assert_int_equal(layer->rank, 1);
        assert_int_equal(layer->step, 7);
        assert_int_equal(layer->slot_count, 2);
        assert_string_equal(layer->slots[0].name, "input.0");
        assert_true(value_of(dump, &layer->slots[0]) == (double)(1 + 2 * call));
        assert_true(value_of(dump, &layer->slots[1]) == (double)(2 + 2 * call));
    }
    nd_dump_close(dump);
    folder_free();
}

static void the_execution_order_wins_over_the_stamps(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_float("rank_0/Net/0/0/A.Default_net_A-op1.0.0.20.output.0.DefaultFormat.npy", 1);
    write_float("rank_0/Net/0/0/B.B-op2.0.0.10.output.0.DefaultFormat.npy", 1);
    folder_text("rank_0/execution_order/ms_execution_order_graph_0.csv",
                "Default/net/A-op1\nDefault/net/B-op2\n");
    struct dump *dump = open_path(root);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    assert_string_equal(dump->layers[0].name, "Default_net_A-op1");
    assert_string_equal(dump->layers[1].name, "B-op2"); /* its last part */
    nd_dump_close(dump);
    /* An operator that no table knows: the stamps are the better order. */
    write_float("rank_0/Net/0/0/C.C-op3.0.0.15.output.0.DefaultFormat.npy", 1);
    dump = open_path(root);
    assert_int_equal(dump->order, ND_ORDER_TIMESTAMP);
    assert_string_equal(dump->layers[0].name, "B-op2");
    assert_string_equal(dump->layers[1].name, "C-op3");
    nd_dump_close(dump);
    folder_free();
}

static void the_name_s_dtype_is_the_real_one(void **state)
{
    const char *const root = folder_new();
    const float value = 1.5f;
    const uint16_t bf16 = 0x3fc0; /* 1.5 */

    (void)state;
    write_float("0/A.A-op1.0.0.1.output.0.DefaultFormat.bfloat16.npy", value);
    write_array("0/A.A-op1.0.0.1.output.1.DefaultFormat.bfloat16.npy", "<T2", "()", &bf16, 2);
    write_float("0/A.A-op1.0.0.1.output.2.NC1HWC0.float32.npy", value);
    struct dump *const dump = open_path(root);
    const struct dump_slot *const slots = dump->layers[0].slots;
    assert_int_equal(dump->layers[0].slot_count, 3);
    assert_int_equal(slots[0].dtype, ND_DTYPE_f32);
    assert_int_equal(slots[0].real_dtype, ND_DTYPE_bf16);
    assert_int_equal(slots[1].dtype, ND_DTYPE_bf16);
    assert_int_equal(slots[1].real_dtype, ND_DTYPE_NONE);
    assert_true(value_of(dump, &slots[1]) == 1.5);
    assert_string_equal(slots[2].layout_text, "NC1HWC0");
    nd_dump_close(dump);
    folder_free();
}

static void a_file_and_a_row_of_one_tensor_are_one_slot(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_float("rank_0/Net/0/0/Sub.Default_Sub-op0.0.0.55.output.0.DefaultFormat.npy", 3);
    folder_text("rank_0/Net/0/0/statistic.csv",
                "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
                "Max Value,Min Value,L2Norm Value\n"
                "Sub,Default/Sub-op0,0,0,54,input,0,4,float32,\"()\",3,3,3,\n"
                "Sub,Default/Sub-op0,0,0,55,output,0,4,float32,\"(1)\",3,3,3,\n");
    struct dump *const dump = open_path(root);
    assert_int_equal(dump->layer_count, 1);
    const struct dump_layer *const layer = &dump->layers[0];
    assert_int_equal(layer->slot_count, 2);
    assert_int_equal(layer->slots[0].evidence, ND_EVIDENCE_STATISTICS);
    assert_int_equal(layer->slots[1].evidence, ND_EVIDENCE_VALUES);
    assert_true(layer->slots[1].statistics.value[STATISTIC_MAX] == 3);
    assert_true(value_of(dump, &layer->slots[1]) == 3);
    nd_dump_close(dump);
    folder_free();
}

static void the_trees_of_other_modes_are_placed(void **state)
{
    static const struct {
        const char *folder;
        int64_t step, rank;
    } rows[] = {
        {"3/20241211082406/5/Net/1/3", 3, 5}, /* O2 */
        {"20241211082406/5/Net/1/9", 9, 5},   /* GE */
        {"rank_2/Net/0/4", 4, 2},
        {"rank_2/Net/0/constants", -1, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const root = folder_new();
        char name[256];
        snprintf(name, sizeof name, "%s/A.A-op1.0.0.1.output.0.DefaultFormat.float32.npy",
                 rows[i].folder);
        write_float(name, 1);
        struct dump *const dump = open_path(root);
        assert_string_equal(dump->format->name, "mindspore");
        assert_int_equal(dump->layers[0].step, rows[i].step);
        assert_int_equal(dump->layers[0].rank, rows[i].rank);
        nd_dump_close(dump);
        folder_free();
    }
}

static void a_file_that_cannot_be_read_is_a_broken_tensor(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_float("0/A.A-op1.0.0.1.output.0.DefaultFormat.npy", 1);
    folder_text("0/A.A-op1.0.0.1.output.1.DefaultFormat.npy", "no array");
    struct dump *const dump = open_path(root);
    assert_null(dump->layers[0].slots[0].broken);
    assert_non_null(dump->layers[0].slots[1].broken);
    nd_dump_close(dump);
    folder_free();
}

/* --- tables ---------------------------------------------------------------------------------- */

/* The row is one of msprobe's own test data. */
static void a_row_of_the_shipped_sample_is_read(void **state)
{
    struct dump *const dump = open_table(
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
        "Max Value,Min Value,L2Norm Value\n"
        "Sub,Default_Sub-op0,0,0,1733905446819790,input,0,4,float32,\"()\",3,3,3,\n");
    const struct dump_slot *const slot = &dump->layers[0].slots[0];

    (void)state;
    assert_string_equal(dump->layers[0].name, "Default_Sub-op0");
    assert_string_equal(dump->layers[0].type, "Sub");
    assert_string_equal(slot->name, "input.0");
    assert_int_equal(slot->dtype, ND_DTYPE_f32);
    assert_true(slot->has_shape);
    assert_int_equal(slot->storage.rank, 0);
    assert_true(slot->statistics.value[STATISTIC_MAX] == 3);
    assert_true(slot->statistics.value[STATISTIC_NORM] == 3);
    assert_true(isnan(slot->statistics.value[STATISTIC_MEAN]));
    /* 3 is 3.00000 without its zeros: half of 1e-5. */
    assert_true(slot->statistics.half_unit[STATISTIC_MAX] == 5e-6);
    nd_dump_close(dump);
}

static void every_header_is_found_by_its_titles(void **state)
{
    struct dump *dump = open_table(
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,"
        "Format,Shape,Max Value,Min Value,Avg Value,Count,Negative Zero Count,NaN Count,"
        "Negative Inf Count,Positive Inf Count\r\n"
        "Conv2D,Default/Conv2D-op12,1,2,3,output,1,64,FLOAT16,NC1HWC0,\"(2,1,2,2,16)\",1.25,-2,"
        "0.125,128,3,2,0,1\r\n");
    const struct dump_slot *slot = &dump->layers[0].slots[0];

    (void)state;
    assert_string_equal(dump->layers[0].name, "Default_Conv2D-op12");
    assert_string_equal(slot->name, "output.1");
    assert_int_equal(slot->dtype, ND_DTYPE_f16);
    assert_string_equal(slot->layout_text, "NC1HWC0");
    assert_int_equal(slot->storage.rank, 5);
    assert_int_equal(slot->storage.dim[4], 16);
    assert_int_equal(slot->statistics.nan_count, 2);
    assert_true(slot->statistics.value[STATISTIC_MAX] == (double)INFINITY);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -2);
    assert_true(slot->statistics.value[STATISTIC_MEAN] == 0.125);
    nd_dump_close(dump);

    dump = open_table("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,"
                      "Shape,Max Value,Min Value,Avg Value,Count,Zero Count,L2 Value,MD5\n"
                      "Add,A-op1,0,0,1,input,0,4,int32,\"(2,3)\",7,7,null,6,0,17.1464,0011aa\n");
    slot = &dump->layers[0].slots[0];
    assert_int_equal(slot->evidence, ND_EVIDENCE_CHECKSUM);
    assert_string_equal(slot->checksum, "md5:0011aa");
    assert_true(slot->statistics.half_unit[STATISTIC_MAX] == 0); /* a whole number */
    assert_true(slot->statistics.value[STATISTIC_NORM] == 17.1464);
    assert_true(isnan(slot->statistics.value[STATISTIC_MEAN]));
    nd_dump_close(dump);
}

static void rows_that_are_none_are_passed_over(void **state)
{
    struct dump *const dump = open_table("Op Type,Op Name,Timestamp,IO,Slot,Max Value\n"
                                         "\n"
                                         "A,A-op1,1,input\n"
                                         "A,A-op1,1,sideways,0,1\n"
                                         "A,A-op1,1,input,-1,1\n"
                                         "A,A-op1,1,input,0,1");

    (void)state;
    assert_int_equal(dump->layer_count, 1);
    assert_int_equal(dump->layers[0].slot_count, 1);
    nd_dump_close(dump);
}

static void a_header_without_slots_is_refused(void **state)
{
    static const char text[] = "Op Type,Op Name,Timestamp,Max Value\nA,A-op1,1,2\n";
    struct dump *dump = NULL;

    (void)state;
    assert_int_equal(
        nd_dump_open_bytes(text, strlen(text), "x.csv", NULL, NULL, &dump, &error),
        ND_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_of_a_rank_gives_rank_iteration_and_calls),
        cmocka_unit_test(the_execution_order_wins_over_the_stamps),
        cmocka_unit_test(the_name_s_dtype_is_the_real_one),
        cmocka_unit_test(a_file_and_a_row_of_one_tensor_are_one_slot),
        cmocka_unit_test(the_trees_of_other_modes_are_placed),
        cmocka_unit_test(a_file_that_cannot_be_read_is_a_broken_tensor),
        cmocka_unit_test(a_row_of_the_shipped_sample_is_read),
        cmocka_unit_test(every_header_is_found_by_its_titles),
        cmocka_unit_test(rows_that_are_none_are_passed_over),
        cmocka_unit_test(a_header_without_slots_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
