/*
 * Opening dumps: paths, pipes, and files that are no dumps.
 */
#define _GNU_SOURCE /* mkfifo, symlink, truncate */
#include <fcntl.h>
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

static struct nd_error open_fails(const char *path, const char *format,
                                  enum nd_status status)
{
    struct dump *dump = NULL;
    struct nd_error error = {0};

    assert_int_equal(nd_dump_open(path, format, NULL, &dump, &error), status);
    assert_null(dump);
    return error;
}

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

static void assert_one_two(const char *path)
{
    struct dump *dump;
    struct nd_error error = {0};
    uint64_t count;

    if (nd_dump_open(path, NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s", error.at, error.found);
    double *const values = slot_values(dump, &dump->layers[0].slots[0], &count);
    assert_int_equal(count, 2);
    assert_true(values[0] == 1 && values[1] == 2);
    free(values);
    nd_dump_close(dump);
}

/* --- paths ------------------------------------------------------------------------- */

static void what_is_no_file_is_refused_with_a_hint(void **state)
{
    (void)state;
    struct nd_error error = open_fails(folder_path("absent"), NULL, ND_ERR_IO);
    assert_says(error.found, "No such file");
    assert_says(error.file, "absent");
    assert_int_equal(mkfifo(folder_path("pipe"), 0600), 0);
    error = open_fails(folder_path("pipe"), NULL, ND_ERR_IO);
    assert_string_equal(error.found, "a pipe");
    assert_says(error.hint, "'-'");
    error = open_fails("/dev/null", NULL, ND_ERR_IO);
    assert_string_equal(error.found, "a device");
}

static void an_unknown_format_word_lists_the_known_ones(void **state)
{
    struct nd_error error = open_fails("whatever", "nump", ND_ERR_USAGE);

    (void)state;
    assert_string_equal(error.at, "--input-format");
    assert_says(error.found, "'nump'");
    assert_says(error.expected, "npy, npz");
    folder_array("a.npy", 1);
    error = open_fails(folder_path("a.npy"), "directory", ND_ERR_USAGE);
    assert_says(error.found, "a format of folders");
}

static void a_format_that_was_asked_for_is_used_whatever_the_content(void **state)
{
    (void)state;
    folder_text("a.npz", "no archive at all");
    struct nd_error error = open_fails(folder_path("a.npz"), "npz", ND_ERR_MALFORMED);
    assert_says(error.expected, "central directory");
    folder_array("b.npy", 1);
    struct dump *dump;
    assert_int_equal(nd_dump_open(folder_path("b.npy"), "NPY", NULL, &dump, &error), ND_OK);
    nd_dump_close(dump);
}

static void a_lone_file_is_named_by_its_stem_and_nothing_is_read_into_it(void **state)
{
    static const struct {
        const char *file, *layer;
    } cases[] = {
        {"layer1.conv.npy",   "layer1.conv"  },
        {"conv.weight.npy",   "conv.weight"  },
        {"conv.output.0.npy", "conv.output.0"},
        {"a.npy.gz",          "a"            },
        {"b.whatever",        "b"            },
        {"conv.output.0",     "conv.output.0"},
        {"plain",             "plain"        },
        {".npy",              ".npy"         },
    };
    struct bytes array = one_array();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump *dump;
        struct nd_error error;
        folder_write(cases[i].file, array.at, array.size);
        assert_int_equal(
            nd_dump_open(folder_path(cases[i].file), NULL, NULL, &dump, &error), ND_OK);
        assert_string_equal(dump->layers[0].name, cases[i].layer);
        assert_string_equal(dump->layers[0].slots[0].name, "output.0");
        nd_dump_close(dump);
    }
    bytes_free(&array);
}

/* Standard input is `fd` while the dump is opened. */
static void assert_input_is_read(int fd)
{
    const int kept = dup(STDIN_FILENO);

    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_one_two("-");
    if (kept >= 0) {
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
        close(kept);
    }
}

static void standard_input_may_be_a_pipe_or_a_file(void **state)
{
    struct bytes array = one_array();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], array.at, array.size), (int)array.size);
    close(ends[1]);
    assert_input_is_read(ends[0]);
    close(ends[0]);
    folder_write("array", array.at, array.size);
    const int fd = open(folder_path("array"), O_RDONLY);
    assert_true(fd >= 0);
    assert_input_is_read(fd);
    close(fd);
    bytes_free(&array);
}

/* --- what is no dump --------------------------------------------------------------- */

static void what_is_no_dump_is_named(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *found, *hint;
    } cases[] = {
        {"",                                                                          0,  "an empty file",           ""            },
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", 70,
         "a Git LFS pointer",                                                                                        "git lfs pull"},
        {"<!DOCTYPE html>\n<html>",                                                   22, "an HTML page",            "download"    },
        {"  \n<HTML>",                                                                9,  "an HTML page",            "download"    },
        {"\xef\xbb\xbf<?xml version",                                                 16, "an XML document",         ""            },
        {"\x89HDF\r\n\x1a\n        ",                                                 16, "an HDF5 file",            "npz"         },
        {"GGUF\3\0\0\0",                                                              8,  "a GGUF model",            ""            },
        {"\x89PNG\r\n\x1a\n",                                                         8,  "a PNG image",             ""            },
        {"%PDF-1.7",                                                                  8,  "a PDF",                   ""            },
        {"\x28\xb5\x2f\xfd\x00\x00",                                                  6,  "a zstd archive",          "unpack"      },
        {"\x7f"
         "ELF\2\1\1",                                                        7,  "a program",               ""            },
        {"\0\0\0\0\0\0\0\0\0\0\0\0",                                                  12, "zero bytes only",         "copy"        },
        {"\x12\x34\x56\x78\x9a\xbc\xde\xf0",                                          8,  "12 34 56 78 9a bc de f0", "--raw"       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dump *dump;
        unsigned char *block;
        struct nd_error error = {0};
        const enum nd_status status =
            open_exact(cases[i].bytes, cases[i].size, "x.npy", NULL, &dump, &block, &error);
        assert_int_equal(status, ND_ERR_UNKNOWN_FORMAT);
        assert_says(error.found, cases[i].found);
        assert_says(error.hint, cases[i].hint);
        assert_string_equal(error.file, "x.npy");
    }
}

static void archives_of_other_things_are_named_by_what_is_in_them(void **state)
{
    static const struct {
        const char *member, *found;
    } cases[] = {
        {"xl/workbook.xml",         "an Excel workbook"                 },
        {"word/document.xml",       "a Microsoft Office document"       },
        {"model/code/__torch__.py", "a TorchScript program"             },
        {"photo.jpg",               "a ZIP archive without .npy members"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zip_build zip = {0};
        struct dump *dump;
        unsigned char *block;
        struct nd_error error = {0};
        zip_build_add(&zip, cases[i].member, "x", 1, 0, LOCAL_PLAIN);
        zip_build_end(&zip);
        assert_int_equal(
            open_exact(zip.bytes.at, zip.bytes.size, "x.npz", NULL, &dump, &block, &error),
            ND_ERR_UNKNOWN_FORMAT);
        assert_says(error.found, cases[i].found);
        bytes_free(&zip.bytes);
    }
    struct zip_build prefixed = {.prefix = 100};
    struct bytes array = one_array();
    struct dump *dump;
    struct nd_error error = {0};
    zip_build_add(&prefixed, "a.npy", array.at, array.size, 0, LOCAL_PLAIN);
    zip_build_end(&prefixed);
    folder_write("sfx", prefixed.bytes.at, prefixed.bytes.size);
    error = open_fails(folder_path("sfx"), NULL, ND_ERR_UNKNOWN_FORMAT);
    assert_says(error.hint, "--input-format npz");
    assert_int_equal(nd_dump_open(folder_path("sfx"), "npz", NULL, &dump, &error), ND_OK);
    assert_int_equal(read_everything(dump), 1);
    nd_dump_close(dump);
    bytes_free(&array);
    bytes_free(&prefixed.bytes);
}

static void a_tar_archive_is_named(void **state)
{
    static unsigned char tar[1024];

    (void)state;
    memcpy(tar, "folder/", 7);
    memcpy(tar + 257, "ustar", 5);
    folder_write("x.pt", tar, sizeof tar);
    struct nd_error error = open_fails(folder_path("x.pt"), NULL, ND_ERR_UNKNOWN_FORMAT);
    assert_string_equal(error.found, "a tar archive");
}

static void a_file_that_shrinks_while_it_is_read_is_told(void **state)
{
    enum { COUNT = 100000 };
    static float zeros[COUNT];
    struct bytes bytes = {0};
    struct dump *dump;
    struct open_slot open;
    struct nd_error error;
    double value;

    (void)state;
    npy_put_array(&bytes, "<f4", "(100000,)", zeros, sizeof zeros);
    folder_write("shrinks.npy", bytes.at, bytes.size);
    nd_map_guard();
    assert_int_equal(nd_dump_open(folder_path("shrinks.npy"), NULL, NULL, &dump, &error),
                     ND_OK);
    assert_int_equal(nd_slot_open(dump, &dump->layers[0].slots[0], &open, &error), ND_OK);
    assert_int_equal(truncate(folder_path("shrinks.npy"), 1000), 0);
    nd_view_decode(&open.view, COUNT - 1, 1, &value);
    assert_false(nd_slot_close(&open));
    nd_dump_close(dump);
    bytes_free(&bytes);
}

static void files_are_opened_again_when_their_tensors_are_read(void **state)
{
    char name[64];

    (void)state;
    for (int i = 0; i < 32800; i++) { /* more than are kept mapped */
        snprintf(name, sizeof name, "t%d.npy", i);
        folder_array(name, i);
    }
    struct dump *dump;
    struct nd_error error = {0};
    uint64_t count;
    assert_int_equal(nd_dump_open(folder_path(""), NULL, NULL, &dump, &error), ND_OK);
    assert_int_equal(dump->layer_count, 32800);
    assert_false(dump->files[32799].is_mapped);
    double *const last = slot_values(dump, find_slot(dump, "t32799", "output.0"), &count);
    assert_true(last[0] == 32799);
    free(last);

    struct open_slot open;
    assert_int_equal(truncate(folder_path("t32798.npy"), 10), 0);
    assert_int_equal(
        nd_slot_open(dump, find_slot(dump, "t32798", "output.0"), &open, &error),
        ND_ERR_CHANGED);
    assert_non_null(strstr(error.file, "t32798.npy"));
    assert_int_equal(unlink(folder_path("t32797.npy")), 0);
    assert_int_equal(
        nd_slot_open(dump, find_slot(dump, "t32797", "output.0"), &open, &error), ND_ERR_IO);
    assert_int_equal(symlink("t1.npy", folder_path("t32797.npy")), 0);
    assert_int_equal(
        nd_slot_open(dump, find_slot(dump, "t32797", "output.0"), &open, &error), ND_ERR_IO);
    assert_non_null(strstr(error.found, "symbolic link"));
    nd_dump_close(dump);
}

static void formats_are_found_by_word_and_each_has_a_title(void **state)
{
    size_t i = 0;

    (void)state;
    for (; nd_format_at(i) != NULL; i++) {
        const struct dump_format *const format = nd_format_at(i);
        assert_ptr_equal(nd_format_by_name(format->name), format);
        assert_true(format->title[0] != '\0');
        assert_non_null(format->index);
        assert_true(format->probe != NULL || format->probe_directory != NULL);
    }
    assert_true(i >= 3);
    assert_null(nd_format_by_name(""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_file_is_refused_with_a_hint),
        TEST(an_unknown_format_word_lists_the_known_ones),
        TEST(a_format_that_was_asked_for_is_used_whatever_the_content),
        TEST(a_lone_file_is_named_by_its_stem_and_nothing_is_read_into_it),
        TEST(standard_input_may_be_a_pipe_or_a_file),
        TEST(what_is_no_dump_is_named),
        TEST(archives_of_other_things_are_named_by_what_is_in_them),
        TEST(a_tar_archive_is_named),
        TEST(a_file_that_shrinks_while_it_is_read_is_told),
        TEST(files_are_opened_again_when_their_tensors_are_read),
        TEST(formats_are_found_by_word_and_each_has_a_title),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
