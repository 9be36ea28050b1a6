/*
 * The index of a sharded checkpoint: shards that the real package wrote, an index given as
 * a file and as a folder, and indexes that reach for other files.
 */
#define _POSIX_C_SOURCE 200809L /* symlink */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/folder.h"
#include "formats/format.h"
#include "formats/st_build.h"

#define INDEX "model.safetensors.index.json"
#define ONE   "model-00001-of-00002.safetensors"
#define TWO   "model-00002-of-00002.safetensors"

static struct dump *opened_sound(const char *path)
{
    struct dump *dump = NULL;
    struct nd_error error = {0};

    if (nd_dump_open(path, NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: found %s", path, error.at, error.found);
    assert_string_equal(dump->format->name, "stindex");
    return dump;
}

static void assert_checkpoint(const struct dump *dump)
{
    uint64_t count;

    assert_int_equal(dump->order, ND_ORDER_NAME);
    assert_int_equal(dump->layer_count, 2);
    assert_string_equal(dump->layers[0].name, "fc");
    assert_string_equal(dump->layers[0].slots[0].name, "param.bias");
    assert_string_equal(dump->layers[0].slots[1].name, "param.weight");
    assert_string_equal(dump->layers[1].name, "head");
    double *values = slot_values(dump, &dump->layers[1].slots[0], &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(values[i] == (double)i / 4);
    free(values);
}

static bool ignores(const struct dump *dump, const char *text)
{
    for (size_t i = 0; i < dump->ignored_count; i++)
        if (strstr(dump->ignored[i], text) != NULL)
            return true;
    return false;
}

static void an_index_opens_the_shards_beside_it(void **state)
{
    struct dump *dump = opened_sound(DATA "/st/" INDEX);

    (void)state;
    assert_checkpoint(dump);
    assert_true(ignores(dump, "tensor \"left_over\" is not in the index"));
    nd_dump_close(dump);
}

/* Copies a fixture into the temporary folder. */
static void copy(const char *from, const char *to)
{
    struct bytes bytes = bytes_of_file(DATA "/st", from);

    folder_write(to, bytes.at, bytes.size);
    bytes_free(&bytes);
}

static void a_folder_with_an_index_is_read_through_it(void **state)
{
    const char *root = folder_new();

    (void)state;
    copy(INDEX, INDEX);
    copy(ONE, ONE);
    copy(TWO, TWO);
    folder_text("tokenizer.json", "{}");
    struct dump *dump = opened_sound(root);
    assert_checkpoint(dump);
    assert_true(ignores(dump, "tokenizer.json"));
    assert_false(ignores(dump, INDEX));
    nd_dump_close(dump);
    folder_free();
}

static void an_index_needs_no_folder_in_its_path(void **state)
{
    char was[4096];

    (void)state;
    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(chdir(DATA "/st"), 0);
    struct dump *dump = opened_sound(INDEX);
    assert_int_equal(chdir(was), 0); /* shards are opened below the folder that was found */
    assert_checkpoint(dump);
    nd_dump_close(dump);
}

static void a_shard_that_is_missing_or_broken_breaks_its_tensors_only(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        folder_new();
        copy(INDEX, INDEX);
        copy(TWO, TWO);
        if (cut)
            folder_write(ONE, "\x10\0\0\0\0\0\0\0{\"a", 11);
        struct dump *dump = opened_sound(folder_path(INDEX));
        const char *broken = find_slot(dump, "fc", "param.weight")->broken;
        assert_non_null(strstr(broken, ONE));
        assert_non_null(strstr(broken, cut ? "16 bytes in a file of 11" : "No such file"));
        assert_null(find_slot(dump, "head", "param.weight")->broken);
        assert_int_equal(read_everything(dump), 1);
        nd_dump_close(dump);
        folder_free();
    }
}

static void a_tensor_that_its_shard_does_not_hold_is_broken(void **state)
{
    (void)state;
    folder_new();
    copy(TWO, TWO);
    folder_text(INDEX,
                "{\"weight_map\":{\"head.weight\":\"" TWO "\",\"absent\":\"" TWO "\"}}");
    struct dump *dump = opened_sound(folder_path(INDEX));
    assert_string_equal(find_slot(dump, "absent", "output.0")->broken,
                        TWO " holds no such tensor");
    assert_int_equal(read_everything(dump), 1);
    nd_dump_close(dump);
    folder_free();
}

static void assert_index_refused(const char *text, enum nd_status status, const char *found)
{
    struct dump *dump = NULL;
    struct nd_error error = {0};

    folder_text("i.json", text);
    const enum nd_status got =
        nd_dump_open(folder_path("i.json"), "stindex", NULL, &dump, &error);
    if (got != status || strstr(error.found, found) == NULL)
        fail_msg("%s: status %d, found %s", text, got, error.found);
    assert_true(error.file[0] != '\0' && error.expected[0] != '\0');
}

static void names_that_are_no_plain_names_are_refused(void **state)
{
    static const char *const names[] = {
        "../up/plain.safetensors", "/etc/passwd", "..", ".", "",
        "a/b.safetensors",         "a\\\\b"};
    char text[200];

    (void)state;
    folder_new();
    folder_text("up/plain.safetensors", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        assert_index_refused(text, ND_ERR_MALFORMED, "tensor \"a\" in ");
    }
    folder_free();
}

static void a_symbolic_link_is_not_followed(void **state)
{
    (void)state;
    folder_new();
    copy(TWO, "real.bin");
    assert_int_equal(symlink("real.bin", folder_path("link.safetensors")), 0);
    assert_index_refused("{\"weight_map\":{\"head.weight\":\"link.safetensors\"}}",
                         ND_ERR_IO, "link");
    folder_free();
}

static void indexes_that_break_a_rule_are_refused(void **state)
{
    static const struct {
        const char *text, *found;
    } rows[] = {
        {"{}",                                         "nothing"                    },
        {"{\"weight_map\":[]}",                        "another value"              },
        {"{\"weight_map\":{\"a\":1}}",                 "tensor \"a\""               },
        {"{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}", "the key \"a\" a second time"},
        {"{\"weight_map\":{\"a\":\"x\"",               "the end of the JSON text"   },
        {"{\"weight_map\":{\"a\":NaN}}",               "a bare NaN"                 },
        {"",                                           "the end of the JSON text"   },
    };

    (void)state;
    folder_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_index_refused(rows[i].text, ND_ERR_MALFORMED, rows[i].found);
    folder_free();
}

static void an_index_cut_at_any_byte_is_refused(void **state)
{
    struct bytes whole = bytes_of_file(DATA "/st", INDEX);

    (void)state;
    folder_new();
    copy(ONE, ONE);
    copy(TWO, TWO);
    for (size_t size = 0; size + 2 < whole.size; size++) { /* "}\n" at the end */
        struct dump *dump;
        struct nd_error error;
        folder_write("cut.json", whole.at, size);
        assert_int_equal(
            nd_dump_open(folder_path("cut.json"), "stindex", NULL, &dump, &error),
            ND_ERR_MALFORMED);
    }
    bytes_free(&whole);
    folder_free();
}

static void standard_input_has_no_folder_of_shards(void **state)
{
    struct bytes bytes = bytes_of_file(DATA "/st", INDEX);
    struct st_opened opened = st_open(bytes, NULL);

    (void)state;
    assert_int_not_equal(opened.status, ND_OK);
    st_close(&opened);
}

static void other_json_is_no_index(void **state)
{
    static const char *const texts[] = {"{\"a\":{\"weight_map\":{}}}", "[\"weight_map\"]",
                                        "{\"weight_map\":1}", "\"weight_map\""};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bytes bytes = {0};
        bytes_text(&bytes, texts[i]);
        struct st_opened opened = st_open(bytes, NULL);
        assert_int_equal(opened.status, ND_ERR_UNKNOWN_FORMAT);
        st_close(&opened);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_opens_the_shards_beside_it),
        cmocka_unit_test(a_folder_with_an_index_is_read_through_it),
        cmocka_unit_test(an_index_needs_no_folder_in_its_path),
        cmocka_unit_test(a_shard_that_is_missing_or_broken_breaks_its_tensors_only),
        cmocka_unit_test(a_tensor_that_its_shard_does_not_hold_is_broken),
        cmocka_unit_test(names_that_are_no_plain_names_are_refused),
        cmocka_unit_test(a_symbolic_link_is_not_followed),
        cmocka_unit_test(indexes_that_break_a_rule_are_refused),
        cmocka_unit_test(an_index_cut_at_any_byte_is_refused),
        cmocka_unit_test(standard_input_has_no_folder_of_shards),
        cmocka_unit_test(other_json_is_no_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
