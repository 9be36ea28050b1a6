/*
 * Directories: names, order, steps and ranks; what is broken and what is ignored.
 */
#define _GNU_SOURCE /* symlink, mkfifo */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/build.h"
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

static void assert_fails(const char *name, enum nd_status status, const char *found)
{
    struct dump *dump;
    struct nd_error error = {0};

    assert_int_equal(nd_dump_open(folder_path(name), NULL, NULL, &dump, &error), status);
    if (strstr(error.found, found) == NULL)
        fail_msg("'%s' does not say '%s'", error.found, found);
    assert_true(error.file[0] != '\0');
}

static void assert_value(const struct dump *dump, const char *layer, const char *slot,
                         double value)
{
    const struct dump_slot *const found = find_slot(dump, layer, slot);
    uint64_t count;

    if (found == NULL)
        fail_msg("no %s of %s", slot, layer);
    double *const values = slot_values(dump, found, &count);
    assert_int_equal(count, 1);
    assert_true(values[0] == value);
    free(values);
}

static void assert_broken(const struct dump *dump, const char *layer, const char *what)
{
    const struct dump_slot *const slot = find_slot(dump, layer, "output.0");

    if (slot == NULL || slot->broken == NULL)
        fail_msg("%s is not broken", layer);
    if (strstr(slot->broken, what) == NULL)
        fail_msg("'%s' does not say '%s'", slot->broken, what);
}

static bool is_ignored(const struct dump *dump, const char *what)
{
    for (size_t i = 0; i < dump->ignored_count; i++)
        if (strstr(dump->ignored[i], what) != NULL)
            return true;
    return false;
}

/* An archive with the arrays {"a": [1.0], "output.0": [2.0]}. */
static void write_archive(const char *name)
{
    struct zip_build zip = {0};
    static const unsigned char values[2][4] = {
        {0, 0, 0x80, 0x3f},
        {0, 0, 0,    0x40}
    };
    static const char *const names[2] = {"a.npy", "output.0.npy"};

    for (int i = 0; i < 2; i++) {
        struct bytes array = {0};
        npy_put_array(&array, "<f4", "(1,)", values[i], 4);
        zip_build_add(&zip, names[i], array.at, array.size, 0, LOCAL_PLAIN);
        bytes_free(&array);
    }
    zip_build_end(&zip);
    folder_write(name, zip.bytes.at, zip.bytes.size);
    bytes_free(&zip.bytes);
}

static void files_are_ordered_as_people_sort_names(void **state)
{
    static const char *const order[] = {"layer1", "layer2", "layer10", "layer10.norm"};

    (void)state;
    folder_array("layer10.npy", 10);
    folder_array("layer2.npy", 2);
    folder_array("layer10.norm.npy", 11);
    folder_array("layer1.npy", 1);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 4);
    assert_int_equal(dump->order, ND_ORDER_NAME);
    assert_string_equal(dump->format->name, "directory");
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(dump->layers[i].name, order[i]);
    assert_value(dump, "layer10", "output.0", 10);
    nd_dump_close(dump);
}

static void names_below_sub_folders_are_joined_and_read_by_the_slot_grammar(void **state)
{
    (void)state;
    folder_array("block1/conv.output.0.npy", 1);
    folder_array("block1/conv.input.0.npy", 2);
    folder_array("block1/conv.weight.npy", 3);
    folder_array("block1/deep/er/norm/output/0.npy", 4);
    folder_array("noextension", 5);
    folder_array("attn.out", 6); /* no extension of a dump: part of the name */
    struct dump *const dump = open_folder("");
    assert_value(dump, "block1/conv", "output.0", 1);
    assert_value(dump, "block1/conv", "input.0", 2);
    assert_value(dump, "block1/conv", "param.weight", 3);
    assert_value(dump, "block1/deep/er/norm", "output.0", 4);
    assert_value(dump, "noextension", "output.0", 5);
    assert_value(dump, "attn.out", "output.0", 6);
    assert_int_equal(dump->layer_count, 4);
    nd_dump_close(dump);
}

static void the_only_container_of_a_folder_is_read_like_that_file(void **state)
{
    (void)state;
    write_archive("run.npz");
    folder_text("README.md", "about this run\n");
    struct dump *dump = open_folder("");
    assert_value(dump, "a", "output.0", 1);
    assert_value(dump, "output.0", "output.0", 2);
    assert_int_equal(dump->order, ND_ORDER_CONTAINER);
    nd_dump_close(dump);

    folder_array("other.npy", 3); /* no longer the only one: names need its own in front */
    dump = open_folder("");
    assert_value(dump, "run/a", "output.0", 1);
    assert_value(dump, "run", "output.0", 2);
    assert_value(dump, "other", "output.0", 3);
    assert_int_equal(dump->order, ND_ORDER_NAME);
    nd_dump_close(dump);
}

static void folders_of_steps_and_ranks_become_numbers(void **state)
{
    (void)state;
    folder_array("step10/rank0/conv.npy", 100);
    folder_array("step2/rank1/conv.npy", 21);
    folder_array("step2/rank0/conv.npy", 20);
    folder_array("steps/conv.npy", 7);
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 4);
    assert_string_equal(dump->layers[0].name, "steps/conv");
    assert_int_equal(dump->layers[0].step, -1);
    for (size_t i = 1; i < 4; i++) {
        assert_string_equal(dump->layers[i].name, "conv");
        assert_int_equal(dump->layers[i].call, 0);
    }
    assert_int_equal(dump->layers[1].step, 2);
    assert_int_equal(dump->layers[1].rank, 0);
    assert_int_equal(dump->layers[2].step, 2);
    assert_int_equal(dump->layers[2].rank, 1);
    assert_int_equal(dump->layers[3].step, 10);
    nd_dump_close(dump);
}

static void one_container_per_step_and_rank_keeps_its_own_order(void **state)
{
    (void)state;
    write_archive("step0/rank0.dump");
    write_archive("step0/rank1.dump");
    write_archive("step1/rank0.dump");
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 6);
    assert_int_equal(dump->order, ND_ORDER_CONTAINER);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(dump->layers[i].name, i % 2 == 0 ? "a" : "output.0");
        assert_int_equal(dump->layers[i].step, i / 4);
        assert_int_equal(dump->layers[i].rank, i / 2 % 2);
    }
    nd_dump_close(dump);
}

/* A normdiff dump with one layer "conv" whose output.0 is [1.0]. */
static void write_normdiff(const char *name)
{
    static const char header[] =
        "{\"__metadata__\":{\"normdiff\":\"{\\\"version\\\":1,\\\"layers\\\":[{"
        "\\\"name\\\":"
        "\\\"conv\\\",\\\"slots\\\":{\\\"output.0\\\":{\\\"tensor\\\":\\\"t\\\"}}}]}\"},"
        "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    struct bytes bytes = {0};

    bytes_le(&bytes, sizeof header - 1, 8);
    bytes_text(&bytes, header);
    bytes_put(&bytes, "\0\0\x80\x3f", 4);
    folder_write(name, bytes.at, bytes.size);
    bytes_free(&bytes);
}

static void the_tree_of_a_distributed_run_is_recorded_order(void **state)
{
    (void)state;
    write_normdiff("step5/rank1.dump");
    write_normdiff("step5/rank0.dump");
    write_normdiff("step10/rank0.dump");
    struct dump *const dump = open_folder("");
    static const int64_t places[3][2] = {
        {5,  0},
        {5,  1},
        {10, 0}
    };
    assert_int_equal(dump->layer_count, 3);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(dump->layers[i].name, "conv");
        assert_int_equal(dump->layers[i].step, places[i][0]);
        assert_int_equal(dump->layers[i].rank, places[i][1]);
    }
    assert_int_equal(read_everything(dump), 3);
    nd_dump_close(dump);
}

static void a_bad_file_is_a_broken_tensor_and_the_rest_is_read(void **state)
{
    (void)state;
    folder_array("good.npy", 1);
    folder_text("empty.npy", "");
    folder_text("pointer.npy",
                "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    folder_text("page.pt", "<!DOCTYPE html><html></html>");
    folder_write("magic.npy", "\x93NUM", 4);
    folder_write("header.output.0.npy", "\x93NUMPY\x01\x00\x76\x00{'descr'", 18);
    folder_text("cut.npz", "PK\3\4 and then nothing but text, no directory");
    struct dump *const dump = open_folder("");
    assert_value(dump, "good", "output.0", 1);
    assert_broken(dump, "empty", "an empty file");
    assert_broken(dump, "pointer", "git lfs pull");
    assert_broken(dump, "page", "an HTML page");
    assert_broken(dump, "magic", "end of the file");
    assert_broken(dump, "header", "bytes of 128 missing");
    assert_broken(dump, "cut", "cut off");
    assert_int_equal(read_everything(dump), 1);
    nd_dump_close(dump);
}

static void what_is_no_dump_is_ignored_and_listed(void **state)
{
    (void)state;
    folder_array("good.npy", 1);
    folder_text("notes.txt", "nothing to see\n");
    folder_text(".hidden.npy", "");
    folder_text(".git/config", "[core]\n");
    folder_text("script.py", "import torch\n");
    struct dump *const dump = open_folder("");
    assert_int_equal(dump->layer_count, 1);
    assert_true(is_ignored(dump, "notes.txt: a text"));
    assert_true(is_ignored(dump, ".hidden.npy"));
    assert_true(is_ignored(dump, ".git"));
    assert_true(is_ignored(dump, "script.py"));
    nd_dump_close(dump);
}

static void a_log_counts_only_where_there_is_nothing_else(void **state)
{
    (void)state;
    folder_text("run/train.log", "conv1: max=0.123456, mean=0.012345\n");
    struct dump *dump = open_folder("run");
    assert_int_equal(dump->layer_count, 1);
    assert_string_equal(dump->layers[0].name, "conv1");
    assert_int_equal(dump->layers[0].slots[0].evidence, ND_EVIDENCE_STATISTICS);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    nd_dump_close(dump);
    folder_array("run/conv2.npy", 1);
    dump = open_folder("run");
    assert_int_equal(dump->layer_count, 1);
    assert_string_equal(dump->layers[0].name, "conv2");
    assert_true(is_ignored(dump, "train.log: a log beside tensors"));
    nd_dump_close(dump);
}

static void links_and_pipes_are_never_opened(void **state)
{
    (void)state;
    folder_array("elsewhere/secret.npy", 9);
    folder_array("run/good.npy", 1);
    assert_int_equal(symlink("../elsewhere/secret.npy", folder_path("run/link.npy")), 0);
    assert_int_equal(symlink("../elsewhere", folder_path("run/folder")), 0);
    assert_int_equal(symlink(".", folder_path("run/loop")), 0);
    assert_int_equal(mkfifo(folder_path("run/pipe.npy"), 0600), 0);
    struct dump *const dump = open_folder("run");
    assert_int_equal(dump->layer_count, 1);
    assert_true(is_ignored(dump, "link.npy"));
    assert_true(is_ignored(dump, "folder"));
    assert_true(is_ignored(dump, "loop"));
    assert_true(is_ignored(dump, "pipe.npy"));
    nd_dump_close(dump);

    size_t file;
    struct dump *const again = open_folder("run");
    assert_int_not_equal(nd_dump_file_add(again, "link.npy", &file, NULL), ND_OK);
    assert_int_not_equal(nd_dump_file_add(again, "folder/secret.npy", &file, NULL), ND_OK);
    assert_int_not_equal(nd_dump_file_add(again, "../elsewhere/secret.npy", &file, NULL),
                         ND_OK);
    assert_int_not_equal(nd_dump_file_add(again, "", &file, NULL), ND_OK);
    assert_int_not_equal(nd_dump_file_add(again, "/etc/hostname", &file, NULL), ND_OK);
    assert_int_not_equal(nd_dump_file_add(again, "pipe.npy", &file, NULL), ND_OK);
    assert_int_equal(nd_dump_file_add(again, "good.npy", &file, NULL), ND_OK);
    nd_dump_close(again);
}

static void folders_without_tensors_are_refused_with_a_reason(void **state)
{
    (void)state;
    assert_int_equal(mkdir(folder_path("empty"), 0755), 0);
    assert_fails("empty", ND_ERR_UNKNOWN_FORMAT, "an empty directory");
    folder_text("texts/a.txt", "words\n");
    assert_fails("texts", ND_ERR_UNKNOWN_FORMAT, "1 files, none of them a dump");
    assert_int_equal(mkdir(folder_path("links"), 0755), 0);
    assert_int_equal(symlink("../texts/a.txt", folder_path("links/a.npy")), 0);
    assert_fails("links", ND_ERR_UNKNOWN_FORMAT, "symbolic links");
    folder_text("broken/run.npz", "PK\3\4 cut");
    folder_text("broken/z.npy", "");
    assert_fails("broken", ND_ERR_MALFORMED, "cut off"); /* nothing of it can be compared */
}

static void folders_nest_to_a_limit(void **state)
{
    char name[200] = "deep";

    (void)state;
    for (int i = 0; i < 33; i++)
        strcat(name, "/d");
    strcat(name, "/x.npy");
    folder_array(name, 1);
    assert_fails("deep", ND_ERR_LIMIT, "more");
}

static void a_format_that_was_asked_for_is_that_of_the_files(void **state)
{
    struct dump *dump;
    struct nd_error error = {0};

    (void)state;
    folder_array("a.npy", 1);
    folder_text("b.txt", "no array");
    assert_int_equal(nd_dump_open(folder_path(""), "npy", NULL, &dump, &error), ND_OK);
    assert_value(dump, "a", "output.0", 1);
    assert_broken(dump, "b", "other bytes");
    nd_dump_close(dump);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_ordered_as_people_sort_names),
        TEST(names_below_sub_folders_are_joined_and_read_by_the_slot_grammar),
        TEST(the_only_container_of_a_folder_is_read_like_that_file),
        TEST(folders_of_steps_and_ranks_become_numbers),
        TEST(one_container_per_step_and_rank_keeps_its_own_order),
        TEST(the_tree_of_a_distributed_run_is_recorded_order),
        TEST(a_bad_file_is_a_broken_tensor_and_the_rest_is_read),
        TEST(what_is_no_dump_is_ignored_and_listed),
        TEST(a_log_counts_only_where_there_is_nothing_else),
        TEST(links_and_pipes_are_never_opened),
        TEST(folders_without_tensors_are_refused_with_a_reason),
        TEST(folders_nest_to_a_limit),
        TEST(a_format_that_was_asked_for_is_that_of_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
