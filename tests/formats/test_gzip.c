/*
 * Dumps that arrive as gzip.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/folder.h"

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

static struct bytes gzipped(const void *bytes, size_t size)
{
    struct bytes out = {0};
    z_stream stream = {0};

    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    out.capacity = deflateBound(&stream, (uLong)size) + 64;
    out.at = malloc(out.capacity);
    assert_non_null(out.at);
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = out.at;
    stream.avail_out = (uInt)out.capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.size = stream.total_out;
    deflateEnd(&stream);
    return out;
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

static void gzip_of_one_or_more_members_is_read_through(void **state)
{
    struct bytes array = one_array();
    struct bytes whole = gzipped(array.at, array.size);
    struct bytes first = gzipped(array.at, 50),
                 second = gzipped(array.at + 50, array.size - 50);

    (void)state;
    folder_write("whole", whole.at, whole.size);
    assert_one_two(folder_path("whole"));
    bytes_put(&first, second.at, second.size);
    folder_write("two", first.at, first.size);
    assert_one_two(folder_path("two"));
    bytes_put(&first, "\0\0\0\0", 4); /* tape padding */
    folder_write("padded", first.at, first.size);
    assert_one_two(folder_path("padded"));
    folder_write("folder/inner.npy.gz", whole.at, whole.size);
    assert_one_two(folder_path("folder"));
    bytes_put(&first, "x", 1);
    folder_write("more", first.at, first.size);
    struct nd_error error = open_fails(folder_path("more"), NULL, ND_ERR_MALFORMED);
    assert_says(error.expected, "the end of the gzip stream");
    bytes_free(&array);
    bytes_free(&whole);
    bytes_free(&first);
    bytes_free(&second);
}

static void gzip_cut_at_any_byte_is_refused(void **state)
{
    struct bytes array = one_array();
    struct bytes whole = gzipped(array.at, array.size);

    (void)state;
    for (size_t size = 0; size < whole.size; size++) {
        struct dump *dump;
        unsigned char *block;
        struct nd_error error = {0};
        assert_int_not_equal(open_exact(whole.at, size, "x", NULL, &dump, &block, &error),
                             ND_OK);
        if (size >= 3)
            assert_says(error.expected, "the rest of the gzip stream");
    }
    whole.at[whole.size - 5] ^= 1; /* the CRC */
    folder_write("crc", whole.at, whole.size);
    struct nd_error error = open_fails(folder_path("crc"), NULL, ND_ERR_MALFORMED);
    assert_says(error.found, "incorrect data check");
    bytes_free(&array);
    bytes_free(&whole);
}

static void gzip_inside_gzip_is_said(void **state)
{
    struct bytes array = one_array();
    struct bytes once = gzipped(array.at, array.size), twice = gzipped(once.at, once.size);

    (void)state;
    folder_write("twice", twice.at, twice.size);
    struct nd_error error = open_fails(folder_path("twice"), NULL, ND_ERR_UNKNOWN_FORMAT);
    assert_string_equal(error.found, "gzip inside gzip");
    bytes_free(&array);
    bytes_free(&once);
    bytes_free(&twice);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gzip_of_one_or_more_members_is_read_through),
        TEST(gzip_cut_at_any_byte_is_refused),
        TEST(gzip_inside_gzip_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
