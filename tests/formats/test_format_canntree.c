/*
 * Folders of CANN dumps: order, calls, steps and ranks, long names, overflows, and what is
 * broken or passed over.
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

static void write_float(const char *name, const char *op, float value)
{
    struct bytes file = {0};

    cann_build_float(&file, op, value);
    folder_write(name, file.at, file.size);
    bytes_free(&file);
}

static struct dump *open_folder(const char *name)
{
    struct dump *dump;
    struct nd_error error = {0};

    if (nd_dump_open(folder_path(name), NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: %s", error.file, error.at, error.found);
    assert_string_equal(dump->format->name, "canntree");
    return dump;
}

static void assert_value(const struct dump *dump, size_t i, const char *name, int64_t call,
                         double value)
{
    const struct dump_layer *const layer = &dump->layers[i];
    uint64_t count;

    assert_true(i < dump->layer_count);
    assert_string_equal(layer->name, name);
    assert_int_equal(layer->call, call);
    double *const values = slot_values(dump, &layer->slots[0], &count);
    assert_int_equal(count, 1);
    assert_true(values[0] == value);
    free(values);
}

static bool is_ignored(const struct dump *dump, const char *what)
{
    for (size_t i = 0; i < dump->ignored_count; i++)
        if (strstr(dump->ignored[i], what) != NULL)
            return true;
    return false;
}

static void the_order_is_that_of_the_times_and_runs_are_calls(void **state)
{
    (void)state;
    write_float("Relu.z_r.1.7.1700000000000001", "z/r", 1);
    write_float("Relu.z_r.1.7.1700000000000030", "z/r", 3);
    write_float("Add.a_b.2.7.1700000000000002", NULL, 2);
    write_float("Relu.z_r.1.7.1700000000000040", NULL, 4); /* the same, escaped */
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->order, ND_ORDER_TIMESTAMP);
    assert_int_equal(dump->layer_count, 4);
    assert_value(dump, 0, "z/r", 0, 1);
    assert_value(dump, 1, "a_b", 0, 2);
    assert_value(dump, 2, "z/r", 1, 3);
    assert_value(dump, 3, "z_r", 2, 4);
    assert_string_equal(dump->layers[0].type, "Relu");
    nd_dump_close(dump);
}

static void iterations_are_steps_and_devices_ranks(void **state)
{
    (void)state;
    write_float("20240102030405/0/net/1/0/Relu.r.1.7.1700000000000001", NULL, 1);
    write_float("20240102030405/0/net/1/1/Relu.r.1.7.1700000000000002", NULL, 2);
    write_float("20240102030405/1/net/1/0/Relu.r.1.7.1700000000000000", NULL, 3);
    struct dump *dump = open_folder("");
    assert_int_equal(dump->layer_count, 3);
    assert_value(dump, 0, "r", 0, 1);
    assert_value(dump, 1, "r", 0, 3);
    assert_value(dump, 2, "r", 0, 2);
    assert_int_equal(dump->layers[1].step, 0);
    assert_int_equal(dump->layers[1].rank, 1);
    assert_int_equal(dump->layers[2].step, 1);
    nd_dump_close(dump);
    /* One chip's number is nobody's rank. */
    dump = open_folder("20240102030405/1");
    assert_int_equal(dump->layers[0].rank, -1);
    nd_dump_close(dump);
}

static void runs_of_one_process_in_several_folders_go_on(void **state)
{
    (void)state;
    write_float("20240102030405/0/net/1/0/Relu.r.1.7.1700000000000001", NULL, 1);
    write_float("20240102030409/0/net/2/0/Relu.r.1.7.1700000000000009", NULL, 2);
    struct dump *const dump = open_folder("");
    assert_value(dump, 0, "r", 0, 1);
    assert_value(dump, 1, "r", 1, 2);
    nd_dump_close(dump);
}

static void two_models_keep_their_operators_apart(void **state)
{
    (void)state;
    write_float("20240102030405/0/one/1/0/Relu.r.1.7.1700000000000001", NULL, 1);
    write_float("20240102030405/0/two/2/0/Relu.r.1.7.1700000000000002", NULL, 2);
    write_float("20240102030405/0/two/2/0/Relu.s.1.7.1700000000000003", NULL, 3);
    struct dump *const dump = open_folder("");
    assert_value(dump, 0, "one/r", 0, 1);
    assert_value(dump, 1, "two/r", 0, 2);
    assert_value(dump, 2, "s", 0, 3);
    nd_dump_close(dump);
}

static void threads_of_an_ffts_task_are_layers_of_their_own(void **state)
{
    (void)state;
    write_float("Conv2D.c.2.9.1700000000000002.4.487.0.0", NULL, 1);
    write_float("Conv2D.c.2.9.1700000000000001.4.487.1.0", NULL, 2);
    write_float("Conv2D.d.2.9.1700000000000003.4.488.0.0", NULL, 3);
    struct dump *const dump = open_folder("");
    assert_value(dump, 0, "c.thread1", 0, 2);
    assert_value(dump, 1, "c.thread0", 0, 1);
    assert_value(dump, 2, "d", 0, 3);
    nd_dump_close(dump);
}

static void long_names_are_put_back_by_mapping_csv(void **state)
{
    (void)state;
    write_float("sub/12345678901234567890", NULL, 1);
    write_float("sub/0123456789abcdef0123456789abcdef", NULL, 2);
    write_float("sub/7", NULL, 3);
    write_float("sub/8", NULL, 4);
    write_float("sub/Relu.r.1.7.1700000000000000", NULL, 0);
    folder_text(
        "sub/mapping.csv",
        "12345678901234567890,Relu.long_one.1.7.1700000000000001\r\n"
        "0123456789abcdef0123456789abcdef,/dump/0/Relu.long_two.1.7.1700000000000002\n"
        "7,8\n8,7\nno comma\n,\n9,\n");
    struct dump *const dump = open_folder("");
    assert_value(dump, 1, "long_one", 0, 1);
    assert_value(dump, 2, "long_two", 0, 2);
    /* A row that leads to another is followed once. */
    assert_int_equal(dump->layer_count, 5);
    assert_value(dump, 3, "7", 0, 4);
    assert_value(dump, 4, "8", 0, 3);
    nd_dump_close(dump);
}

static void arrays_of_a_converter_join_their_execution(void **state)
{
    (void)state;
    folder_array("Relu.r.1.7.1700000000000001.input.0.npy", 1);
    folder_array("Relu.r.1.7.1700000000000001.output.0.NCHW.npy", 2);
    folder_array("Relu.r.1.7.1700000000000009.output.0.npy", 3);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 2);
    assert_value(dump, 0, "r", 0, 1);
    assert_string_equal(dump->layers[0].type, "Relu");
    assert_int_equal(dump->layers[0].slot_count, 2);
    assert_value(dump, 1, "r", 1, 3);
    nd_dump_close(dump);
}

static void an_array_stands_back_where_its_dump_is_there(void **state)
{
    (void)state;
    write_float("Relu.n_r.1.7.1700000000000001", "n/r", 1);
    folder_array("Relu.n_r.1.7.1700000000000001.output.0.npy", 2);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 1);
    assert_value(dump, 0, "n/r", 0, 1);
    nd_dump_close(dump);
}

static void a_folder_of_long_names_alone_is_known_by_its_table(void **state)
{
    (void)state;
    write_float("0/net/1/0/12345678901234567890", NULL, 1);
    folder_text("0/net/1/0/mapping.csv",
                "12345678901234567890,Relu.long_one.1.7.1700000000000001\n");
    struct dump *const dump = open_folder("");
    assert_value(dump, 0, "long_one", 0, 1);
    nd_dump_close(dump);
}

static void statistics_stand_back_where_the_tensor_is_there(void **state)
{
    static const char table[] =
        "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value\n"
        "Output,0,4,FLOAT,ND,1,5\n";

    (void)state;
    write_float("Relu.n_r.1.7.1700000000000001", "n/r", 1);
    folder_text("Relu.n_r.1.7.1700000000000001.csv", table);
    folder_text("Relu.s.1.7.1700000000000002.csv", table);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 2);
    assert_int_equal(dump->tensor_count, 2);
    assert_value(dump, 0, "n/r", 0, 1);
    assert_string_equal(dump->layers[1].name, "s");
    assert_true(dump->layers[1].slots[0].statistics.value[STATISTIC_MAX] == 5);
    nd_dump_close(dump);
}

static void an_overflow_marks_its_operator(void **state)
{
    struct bytes account = corpus_file("cannoverflow", "new"); /* task 3, stream 7 */

    (void)state;
    write_float("20240102030405/0/net/1/0/Relu.r.3.7.1700000000000001", NULL, 1);
    write_float("20240102030405/0/net/1/0/Relu.s.3.8.1700000000000002", NULL, 1);
    write_float("20240102030405/0/net/1/1/Relu.r.3.7.1700000000000003", NULL, 1);
    folder_write("20240102030405/0/net/1/0/Opdebug.Node_OpDebug.3.7.1700000000000009",
                 account.at, account.size);
    struct dump *dump = open_folder("");
    assert_int_equal(dump->layer_count, 3);
    assert_string_equal(dump->layers[0].slots[0].note, "overflow");
    assert_string_equal(expect_attribute(dump, "r", "overflow.unit"), "AIC");
    assert_null(dump->layers[1].slots[0].note);
    assert_null(dump->layers[2].slots[0].note);
    nd_dump_close(dump);
    folder_write("20240102030405/0/net/1/2/Opdebug.Node_OpDebug.3.7.1700000000000009",
                 account.at, account.size);
    dump = open_folder("");
    assert_true(is_ignored(dump, "AIC overflow in task 3 of stream 7"));
    nd_dump_close(dump);
    bytes_free(&account);
}

static void a_dump_that_cannot_be_read_is_a_broken_layer(void **state)
{
    struct nd_error error = {0};
    struct dump *dump;

    (void)state;
    folder_text("bad/Relu.n_r.1.7.1700000000000001", "not a dump");
    folder_text("bad/Relu.n_s.1.7.1700000000000002", "");
    assert_int_equal(nd_dump_open(folder_path("bad"), NULL, NULL, &dump, &error),
                     ND_ERR_UNKNOWN_FORMAT);
    write_float("bad/Relu.n_t.1.7.1700000000000003", NULL, 1);
    folder_text("bad/notes.txt", "what we did");
    folder_array("bad/weights.npy", 1);
    dump = open_folder("bad");
    assert_int_equal(dump->layer_count, 3);
    expect_broken(expect_slot(dump, "n_r", 0, "output.0"), "");
    expect_broken(expect_slot(dump, "n_s", 0, "output.0"), "empty file");
    assert_true(is_ignored(dump, "notes.txt"));
    assert_true(is_ignored(dump, "weights.npy"));
    nd_dump_close(dump);
}

static void other_folders_are_not_claimed(void **state)
{
    struct nd_error error = {0};
    struct dump *dump;

    (void)state;
    folder_array("plain/layer1.npy", 1);
    folder_array("plain/layer.conv.1.2.npy", 1);
    assert_int_equal(nd_dump_open(folder_path("plain"), NULL, NULL, &dump, &error), ND_OK);
    assert_string_equal(dump->format->name, "directory");
    nd_dump_close(dump);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_order_is_that_of_the_times_and_runs_are_calls),
        IN_FOLDER(iterations_are_steps_and_devices_ranks),
        IN_FOLDER(runs_of_one_process_in_several_folders_go_on),
        IN_FOLDER(two_models_keep_their_operators_apart),
        IN_FOLDER(threads_of_an_ffts_task_are_layers_of_their_own),
        IN_FOLDER(long_names_are_put_back_by_mapping_csv),
        IN_FOLDER(arrays_of_a_converter_join_their_execution),
        IN_FOLDER(an_array_stands_back_where_its_dump_is_there),
        IN_FOLDER(a_folder_of_long_names_alone_is_known_by_its_table),
        IN_FOLDER(statistics_stand_back_where_the_tensor_is_there),
        IN_FOLDER(an_overflow_marks_its_operator),
        IN_FOLDER(a_dump_that_cannot_be_read_is_a_broken_layer),
        IN_FOLDER(other_folders_are_not_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
