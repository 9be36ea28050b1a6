/*
 * PyTorch's form before 1.6: files of real PyTorch versions, and files cut, changed and
 * put together by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/format.h"
#include "formats/pt_build.h"
#include "formats/pt_expect.h"

#define FIXTURES DATA "/pt"

static const char *const fixtures[] = {
    "legacy_nested-1.11", "legacy_nested-1.13",  "legacy_views-1.13",
    "legacy_tiny-1.13",   "legacy_nested4-2.15", "legacy_types-2.15",
};
enum { FIXTURE_COUNT = sizeof fixtures / sizeof *fixtures };

static struct bytes fixture_bytes(size_t i)
{
    char name[64];

    snprintf(name, sizeof name, "%s.pt", fixtures[i]);
    return bytes_of_file(FIXTURES, name);
}

static void ptlegacy_reads_what_pytorch_wrote(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i++)
        expect_fixture(FIXTURES, fixtures[i], "ptlegacy");
}

/* Readable tensors; 0 where the file cannot be opened. */
static size_t readable(const struct bytes *bytes)
{
    struct dump *dump = NULL;
    unsigned char *block = NULL;
    size_t count = 0;

    if (open_exact(bytes->at, bytes->size, "x.pt", "ptlegacy", &dump, &block, NULL) ==
        ND_OK) {
        count = read_everything(dump);
        nd_dump_close(dump);
    }
    free(block);
    return count;
}

static void ptlegacy_cut_anywhere_loses_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i++) {
        struct bytes bytes = fixture_bytes(i);
        const size_t all = readable(&bytes);
        size_t before = 0;
        assert_true(all > 0);
        for (size_t size = 0; size < bytes.size; size++) {
            const struct bytes cut = {bytes.at, size, size};
            const size_t left = readable(&cut);
            /* The last storage may be an empty one: nothing but its count of 8 bytes. */
            assert_true(left >= before && (left < all || bytes.size - size <= 8));
            before = left;
        }
        bytes_free(&bytes);
    }
}

static void ptlegacy_survives_any_changed_byte(void **state)
{
    (void)state;
    for (size_t i = 1; i < FIXTURE_COUNT; i += 2) {
        struct bytes bytes = fixture_bytes(i);
        for (size_t at = 0; at < bytes.size; at++) {
            bytes.at[at] ^= (unsigned char)(1 + at % 255);
            use_exact(bytes.at, bytes.size, "x.pt", "ptlegacy");
            bytes.at[at] ^= (unsigned char)(1 + at % 255);
        }
        bytes_free(&bytes);
    }
}

/* --- by hand ----------------------------------------------------------------------- */

static void put_header(struct bytes *bytes)
{
    bytes_put(bytes,
              "\x80\x02\x8a\x0al\xfc\x9c"
              "F\xf9 j\xa8P\x19.",
              15);
    bytes_put(bytes, "\x80\x02M\xe9\x03.", 6);
    bytes_put(bytes, "\x80\x02}.", 4);
}

static void put_storage(struct bytes *bytes, unsigned first, unsigned count)
{
    bytes_le(bytes, count, 8);
    for (unsigned i = 0; i < count; i++) {
        const float value = (float)(first + i);
        bytes_put(bytes, &value, sizeof value);
    }
}

/* {"b": 2 floats of storage "b", "a": 2 of "a"}, with these keys and this many floats. */
static struct bytes two_tensors(const char *keys, unsigned first, unsigned second)
{
    struct bytes bytes = {0};

    put_header(&bytes);
    bytes_put(&bytes, "\x80\x02}(", 4);
    pkl_text(&bytes, "b");
    pkl_tensor_put(&bytes, &(struct pkl_tensor){"b", 2, 0, 1, {2}, {1}});
    pkl_text(&bytes, "a");
    pkl_tensor_put(&bytes, &(struct pkl_tensor){"a", 2, 0, 1, {2}, {1}});
    bytes_text(&bytes, "u.");
    bytes_put(&bytes, "\x80\x02](", 4);
    for (; *keys != '\0'; keys++) {
        const char key[] = {*keys, '\0'};
        pkl_text(&bytes, key);
    }
    bytes_text(&bytes, "e.");
    put_storage(&bytes, 10, first);
    put_storage(&bytes, 20, second);
    return bytes;
}

static struct dump *open_legacy(const struct bytes *bytes, unsigned char **ret_block)
{
    struct nd_error error = {0};
    struct dump *dump = NULL;

    if (open_exact(bytes->at, bytes->size, "x.pt", NULL, &dump, ret_block, &error) != ND_OK)
        fail_msg("%s: %s", error.at, error.found);
    return dump;
}

static void ptlegacy_finds_storages_in_the_order_of_the_key_list(void **state)
{
    struct bytes bytes = two_tensors("ab", 2, 2);
    unsigned char *block = NULL;
    struct dump *dump = open_legacy(&bytes, &block);
    uint64_t count;

    (void)state;
    double *a = slot_values(dump, find_slot(dump, "a", "output.0"), &count);
    double *b = slot_values(dump, find_slot(dump, "b", "output.0"), &count);
    assert_true(a[0] == 10 && a[1] == 11 && b[0] == 20 && b[1] == 21);
    assert_string_equal(dump->layers[0].name, "b"); /* insertion order all the same */
    free(a);
    free(b);
    nd_dump_close(dump);
    free(block);
    bytes_free(&bytes);
}

static const struct {
    const char *keys;
    unsigned first, second;
    const char *a, *b; /* why it is broken; NULL: it is not */
} odd[] = {
    {"ab",  2, 2, NULL,                   NULL                  },
    {"ab",  2, 1, NULL,                   "4 bytes where 8"     },
    {"ab",  3, 2, "12 bytes where 8",     NULL                  },
    {"ab",  2, 0, NULL,                   "0 bytes where 8"     },
    {"a",   2, 2, NULL,                   "not in the file"     },
    {"zab", 2, 2, "unknown element size", "unknown element size"},
};

static void expect_why(const struct dump *dump, const char *layer, const char *why)
{
    const char *broken = find_slot(dump, layer, "output.0")->broken;

    if ((why == NULL) != (broken == NULL) || (why != NULL && strstr(broken, why) == NULL))
        fail_msg("%s: '%s' instead of '%s'", layer, broken == NULL ? "" : broken,
                 why == NULL ? "" : why);
}

static void ptlegacy_breaks_tensors_whose_storage_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct bytes bytes = two_tensors(odd[i].keys, odd[i].first, odd[i].second);
        unsigned char *block = NULL;
        struct dump *dump = open_legacy(&bytes, &block);
        expect_why(dump, "a", odd[i].a);
        expect_why(dump, "b", odd[i].b);
        nd_dump_close(dump);
        free(block);
        bytes_free(&bytes);
    }
}

/* A storage that is a part of another, as PyTorch 0.x wrote them. */
static void ptlegacy_reads_views_of_storages(void **state)
{
    struct bytes bytes = {0};
    unsigned char *block = NULL;
    uint64_t count;
    const int64_t two[] = {2}, one[] = {1};

    (void)state;
    put_header(&bytes);
    bytes_put(&bytes, "\x80\x02", 2);
    pkl_global(&bytes, "torch._utils", "_rebuild_tensor");
    bytes_text(&bytes, "((");
    pkl_text(&bytes, "storage");
    pkl_global(&bytes, "torch", "FloatStorage");
    pkl_text(&bytes, "root");
    pkl_text(&bytes, "cuda:0");
    pkl_int(&bytes, 8);
    bytes_text(&bytes, "(");
    pkl_text(&bytes, "view");
    pkl_int(&bytes, 3);
    pkl_int(&bytes, 4);
    bytes_text(&bytes, "ttQ");
    pkl_int(&bytes, 1);
    pkl_tuple(&bytes, two, 1);
    pkl_tuple(&bytes, one, 1);
    bytes_text(&bytes, "tR.");
    bytes_put(&bytes, "\x80\x02](", 4);
    pkl_text(&bytes, "root");
    bytes_text(&bytes, "e.");
    put_storage(&bytes, 0, 8);
    struct dump *dump = open_legacy(&bytes, &block);
    double *got = slot_values(dump, &dump->layers[0].slots[0], &count);
    assert_int_equal(count, 2);
    assert_true(got[0] == 4 && got[1] == 5); /* 3 of the view, 1 of the tensor */
    assert_string_equal(dump->device, "cuda:0");
    free(got);
    nd_dump_close(dump);
    free(block);
    bytes_free(&bytes);
}

/* --- refused ----------------------------------------------------------------------- */

static void expect_refused(const struct bytes *bytes, const char *format,
                           enum nd_status status, const char *words)
{
    struct nd_error error = {0};
    struct dump *dump = NULL;
    unsigned char *block = NULL;

    assert_int_equal(
        open_exact(bytes->at, bytes->size, "x.pt", format, &dump, &block, &error), status);
    if (strstr(error.found, words) == NULL && strstr(error.expected, words) == NULL)
        fail_msg("%s (expected %s)", error.found, error.expected);
    free(block);
}

static void ptlegacy_names_the_tar_form(void **state)
{
    unsigned char header[1024] = "sys_info";

    (void)state;
    memcpy(header + 257, "ustar", 5);
    const struct bytes bytes = {header, sizeof header, sizeof header};
    expect_refused(&bytes, NULL, ND_ERR_UNSUPPORTED, "tar form");
}

static void ptlegacy_refuses_a_lone_tensor_that_is_short(void **state)
{
    struct bytes bytes = {0};

    (void)state;
    put_header(&bytes);
    bytes_put(&bytes, "\x80\x02", 2);
    pkl_tensor_put(&bytes, &(struct pkl_tensor){"a", 2, 0, 1, {2}, {1}});
    bytes_text(&bytes, ".");
    bytes_put(&bytes, "\x80\x02](", 4);
    pkl_text(&bytes, "a");
    bytes_text(&bytes, "e.");
    put_storage(&bytes, 0, 2);
    assert_int_equal(readable(&bytes), 1);
    bytes.size -= 1;
    expect_refused(&bytes, NULL, ND_ERR_MALFORMED, "cut off");
    bytes_free(&bytes);
}

static void ptlegacy_refuses_other_pickles_and_versions(void **state)
{
    const struct bytes number = {(unsigned char *)"\x80\x02K\x01.", 5, 5};
    struct bytes version = {0}, keys = {0}, twice = two_tensors("aa", 2, 2);

    (void)state;
    expect_refused(&number, "ptlegacy", ND_ERR_MALFORMED, "0x1950a86a20f9469cfc6c");
    bytes_put(&version,
              "\x80\x02\x8a\x0al\xfc\x9c"
              "F\xf9 j\xa8P\x19.",
              15);
    bytes_put(&version, "\x80\x02M\xea\x03.", 6);
    expect_refused(&version, NULL, ND_ERR_UNSUPPORTED, "1001");
    put_header(&keys);
    bytes_put(&keys, "\x80\x02}.\x80\x02}.", 8);
    expect_refused(&keys, NULL, ND_ERR_MALFORMED, "list of storage keys");
    expect_refused(&twice, NULL, ND_ERR_MALFORMED, "twice");
    bytes_free(&version);
    bytes_free(&keys);
    bytes_free(&twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptlegacy_reads_what_pytorch_wrote),
        cmocka_unit_test(ptlegacy_cut_anywhere_loses_tensors),
        cmocka_unit_test(ptlegacy_survives_any_changed_byte),
        cmocka_unit_test(ptlegacy_finds_storages_in_the_order_of_the_key_list),
        cmocka_unit_test(ptlegacy_breaks_tensors_whose_storage_does_not_fit),
        cmocka_unit_test(ptlegacy_reads_views_of_storages),
        cmocka_unit_test(ptlegacy_names_the_tar_form),
        cmocka_unit_test(ptlegacy_refuses_a_lone_tensor_that_is_short),
        cmocka_unit_test(ptlegacy_refuses_other_pickles_and_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
