/*
 * PyTorch's zip form: files of real PyTorch versions (data/make_pt.py) held to what PyTorch
 * itself reads from them, and files that no PyTorch would write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/format.h"
#include "formats/pt_build.h"
#include "formats/pt_expect.h"

#define FIXTURES DATA "/pt"

/* --- files of real versions -------------------------------------------------------- */

/* clang-format off */
static const char *const fixtures[] = {
    "types-1.11",      "nested-1.11",     "types-1.13",   "views-1.13",   "nested-1.13",
    "nested4-1.13",    "npu-1.13",        "checkpoint-1.13", "module-1.13", "numpy2-1.13",
    "numpy4-1.13",     "deflated-1.13",   "types-2.15",   "views-2.15",   "nested-2.15",
    "npu-2.15",        "objects-2.15",    "unsupported-2.15", "numpy2-2.15", "numpy5-2.15",
    "list-2.15",       "lone-2.15",       "storage-2.15", "big-2.15",     "nocrc-2.15",
};
/* clang-format on */
enum { FIXTURE_COUNT = sizeof fixtures / sizeof *fixtures };

static void pt_reads_what_pytorch_wrote(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i++)
        expect_fixture(FIXTURES, fixtures[i], "pt");
}

static void pt_knows_the_device(void **state)
{
    struct dump *dump = NULL;

    (void)state;
    assert_int_equal(nd_dump_open(FIXTURES "/lone-2.15.pt", NULL, NULL, &dump, NULL),
                     ND_OK);
    assert_string_equal(dump->device, "cpu");
    nd_dump_close(dump);
}

static struct nd_error open_error(const struct bytes *bytes, enum nd_status status)
{
    struct nd_error error = {0};
    struct dump *dump = NULL;
    unsigned char *block = NULL;

    const enum nd_status got =
        open_exact(bytes->at, bytes->size, "x.pt", "pt", &dump, &block, &error);
    if (got == ND_OK)
        nd_dump_close(dump);
    free(block);
    if (got != status)
        fail_msg("status %d instead of %d: %s", (int)got, (int)status, error.found);
    return error;
}

static void pt_names_a_torchscript_program(void **state)
{
    struct bytes bytes = bytes_of_file(FIXTURES, "script-1.13.pt");
    const struct nd_error error = open_error(&bytes, ND_ERR_UNSUPPORTED);

    (void)state;
    assert_non_null(strstr(error.found, "TorchScript"));
    assert_non_null(strstr(error.hint, "state_dict"));
    bytes_free(&bytes);
}

static void pt_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i += 3) {
        char name[64];
        snprintf(name, sizeof name, "%s.pt", fixtures[i]);
        struct bytes bytes = bytes_of_file(FIXTURES, name);
        for (size_t size = 0; size < bytes.size; size++) {
            const struct bytes cut = {bytes.at, size, size};
            open_error(&cut, ND_ERR_MALFORMED);
        }
        bytes_free(&bytes);
    }
}

static void pt_survives_any_changed_byte(void **state)
{
    static const char *const names[] = {"nested4-1.13.pt", "npu-1.13.pt", "numpy2-1.13.pt"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes bytes = bytes_of_file(FIXTURES, names[i]);
        for (size_t at = 0; at < bytes.size; at++) {
            bytes.at[at] ^= (unsigned char)(1 + at % 255);
            use_exact(bytes.at, bytes.size, "x.pt", "pt");
            bytes.at[at] ^= (unsigned char)(1 + at % 255);
        }
        bytes_free(&bytes);
    }
}

/* --- tensors that cannot be ---------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char       *name;
    struct pkl_tensor tensor;
    const char       *why; /* NULL: it can */
} views[] = {
    {"the whole storage", {"0", 12, 0, 2, {3, 4}, {4, 1}}, NULL},
    {"its last element", {"0", 12, 11, 0, {0}, {0}}, NULL},
    {"one past its end", {"0", 12, 12, 0, {0}, {0}}, "reaches outside"},
    {"an offset into the rest", {"0", 12, 1, 2, {3, 4}, {4, 1}}, "reaches outside"},
    {"a stride beyond", {"0", 12, 0, 2, {3, 4}, {5, 1}}, "reaches outside"},
    {"a stride of 2^62", {"0", 12, 0, 2, {3, 4}, {1LL << 62, 1}}, "reaches outside"},
    {"an expanded axis", {"0", 12, 0, 2, {1000, 4}, {0, 1}}, NULL},
    {"expanded without end", {"0", 12, 0, 2, {1LL << 40, 4}, {0, 1}}, "limit: an expanded"},
    {"a shape that overflows", {"0", 12, 0, 3, {1LL << 31, 1LL << 31, 4}, {0, 0, 0}},
     "overflows"},
    {"no element beyond the end", {"0", 12, 500, 2, {0, 4}, {4, 1}}, NULL},
    {"a negative stride", {"0", 12, 11, 1, {4}, {-1}}, "its strides"},
    {"a negative dimension", {"0", 12, 0, 1, {-4}, {1}}, "dimension"},
    {"a negative offset", {"0", 12, -1, 1, {4}, {1}}, "offset"},
    {"17 dimensions", {"0", 12, 0, 17, {1}, {1}}, "16 dimensions"},
    {"a storage that is missing", {"7", 12, 0, 1, {4}, {1}}, "data/7 is not in the archive"},
    {"a storage that is too short", {"0", 13, 0, 1, {4}, {1}}, "48 bytes where 52"},
    {"a storage that is too long", {"0", 11, 0, 1, {4}, {1}}, "48 bytes where 44"},
    {"a storage of 2^62 elements", {"0", 1LL << 62, 0, 1, {4}, {1}}, "overflows"},
};
/* clang-format on */

static void pt_breaks_tensors_that_cannot_be_rebuilt_and_keeps_the_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct bytes bytes = pt_with_tensor(&views[i].tensor, 12);
        struct nd_error error = {0};
        struct dump *dump = NULL;
        unsigned char *block = NULL;
        if (open_exact(bytes.at, bytes.size, "x.pt", NULL, &dump, &block, &error) != ND_OK)
            fail_msg("%s: %s", views[i].name, error.found);
        const struct dump_slot *slot = find_slot(dump, "t", "output.0");
        assert_non_null(slot);
        if (views[i].why == NULL && slot->broken != NULL)
            fail_msg("%s: %s", views[i].name, slot->broken);
        if (views[i].why != NULL &&
            (slot->broken == NULL || strstr(slot->broken, views[i].why) == NULL))
            fail_msg("%s: %s", views[i].name, slot->broken == NULL ? "fine" : slot->broken);
        assert_null(find_slot(dump, "good", "output.0")->broken);
        assert_int_equal(read_everything(dump), views[i].why == NULL ? 2 : 1);
        nd_dump_close(dump);
        free(block);
        bytes_free(&bytes);
    }
}

static void pt_reads_strides_from_the_offset_on(void **state)
{
    static const struct pkl_tensor tensor = {
        "0", 12, 2, 2, {2, 3},
            {1, 3}
    };
    static const double want[] = {2, 5, 8, 3, 6, 9}; /* 2 + i + 3k */
    struct bytes bytes = pt_with_tensor(&tensor, 12);
    struct dump *dump = NULL;
    unsigned char *block = NULL;
    uint64_t count;

    (void)state;
    assert_int_equal(open_exact(bytes.at, bytes.size, "x.pt", NULL, &dump, &block, NULL),
                     ND_OK);
    double *got = slot_values(dump, find_slot(dump, "t", "output.0"), &count);
    assert_int_equal(count, 6);
    assert_memory_equal(got, want, sizeof want);
    free(got);
    nd_dump_close(dump);
    free(block);
    bytes_free(&bytes);
}

/* --- pickles that mean harm -------------------------------------------------------- */

static struct dump *open_pickle(const struct bytes *pickle, unsigned char **ret_block)
{
    struct bytes bytes = pt_archive(pickle, NULL, 0);
    struct nd_error error = {0};
    struct dump *dump = NULL;

    if (open_exact(bytes.at, bytes.size, "x.pt", NULL, &dump, ret_block, &error) != ND_OK)
        fail_msg("%s: %s", error.at, error.found);
    bytes_free(&bytes);
    return dump;
}

static void pt_never_runs_what_a_pickle_calls(void **state)
{
    const char *canary = "normdiff-test-canary";
    struct bytes pickle = {0};
    unsigned char *block = NULL;

    (void)state;
    bytes_put(&pickle, "\x80\x02}", 3);
    pkl_text(&pickle, "payload");
    pkl_global(&pickle, "posix", "system");
    pkl_text(&pickle, "touch normdiff-test-canary");
    bytes_put(&pickle, "\x85Rs.", 4);
    struct dump *dump = open_pickle(&pickle, &block);
    assert_int_equal(access(canary, F_OK), -1);
    assert_int_equal(dump->tensor_count, 0);
    assert_int_equal(dump->ignored_count, 1);
    assert_string_equal(dump->ignored[0], "payload (posix.system)");
    nd_dump_close(dump);
    free(block);
    bytes_free(&pickle);
}

static void pt_stops_at_lists_shared_over_and_over(void **state)
{
    struct bytes pickle = {0};

    (void)state;
    bytes_put(&pickle, "\x80\x02]q\x00", 5);
    for (unsigned char level = 1; level < 20; level++) {
        const unsigned char twice[] = {']',   'q',
                                       level, '(',
                                       'h',   (unsigned char)(level - 1),
                                       'h',   (unsigned char)(level - 1),
                                       'h',   (unsigned char)(level - 1),
                                       'e'};
        bytes_put(&pickle, twice, sizeof twice);
    }
    bytes_text(&pickle, ".");
    struct bytes bytes = pt_archive(&pickle, NULL, 0);
    const struct nd_error error = open_error(&bytes, ND_ERR_LIMIT);
    assert_non_null(strstr(error.found, "shared"));
    bytes_free(&bytes);
    bytes_free(&pickle);
}

static void pt_stops_at_one_tensor_named_without_end(void **state)
{
    static const struct pkl_tensor tensor = {"0", 1, 0, 1, {1}, {1}};
    const float zero = 0;
    const struct pt_member member = {"data/0", &zero, sizeof zero};
    struct bytes pickle = {0};

    (void)state;
    bytes_put(&pickle, "\x80\x02]", 3);
    pkl_tensor_put(&pickle, &tensor);
    bytes_put(&pickle,
              "q\x00"
              "0(",
              4);
    for (int i = 0; i < 100000; i++)
        bytes_put(&pickle, "h\x00", 2);
    bytes_text(&pickle, "e.");
    struct bytes bytes = pt_archive(&pickle, &member, 1);
    open_error(&bytes, ND_ERR_LIMIT);
    bytes_free(&bytes);
    bytes_free(&pickle);
}

static void pt_stops_at_a_depth(void **state)
{
    struct bytes pickle = {0};

    (void)state;
    bytes_put(&pickle, "\x80\x02)", 3);
    for (int i = 0; i < 200; i++)
        bytes_text(&pickle, "\x85");
    bytes_text(&pickle, ".");
    struct bytes bytes = pt_archive(&pickle, NULL, 0);
    const struct nd_error error = open_error(&bytes, ND_ERR_LIMIT);
    assert_non_null(strstr(error.expected, "100 levels"));
    bytes_free(&bytes);
    bytes_free(&pickle);
}

static void pt_walks_a_cycle_once(void **state)
{
    struct bytes pickle = {0};
    unsigned char *block = NULL;

    (void)state;
    bytes_put(&pickle,
              "\x80\x02]q\x00h\x00"
              "aK\x05"
              "a.",
              12);
    struct dump *dump = open_pickle(&pickle, &block);
    assert_int_equal(dump->ignored_count, 1);
    assert_string_equal(dump->ignored[0], "1 (int)");
    nd_dump_close(dump);
    free(block);
    bytes_free(&pickle);
}

/* --- archives ---------------------------------------------------------------------- */

static void pt_refuses_an_unknown_byte_order(void **state)
{
    const struct pt_member member = {"byteorder", "middle", 6};
    const struct bytes pickle = {(unsigned char *)"\x80\x02}.", 4, 4};
    struct bytes bytes = pt_archive(&pickle, &member, 1);
    const struct nd_error error = open_error(&bytes, ND_ERR_MALFORMED);

    (void)state;
    assert_non_null(strstr(error.expected, "little or big"));
    bytes_free(&bytes);
}

static void pt_refuses_overlapping_members(void **state)
{
    static const struct pkl_tensor tensor = {"0", 12, 0, 1, {12}, {1}};
    struct zip_build zip = {0};
    struct bytes pickle = {0};
    float storage[12] = {0};

    (void)state;
    bytes_put(&pickle, "\x80\x02", 2);
    pkl_tensor_put(&pickle, &tensor);
    bytes_text(&pickle, ".");
    zip_build_add(&zip, "x/data.pkl", pickle.at, pickle.size, 0, LOCAL_TORCH);
    const struct zip_build_member one =
        *zip_build_add(&zip, "x/data/0", storage, sizeof storage, 0, LOCAL_TORCH);
    zip_build_add(&zip, "x/data/1", storage, sizeof storage, 0, LOCAL_TORCH)->header_at =
        one.header_at;
    zip_build_end(&zip);
    const struct nd_error error = open_error(&zip.bytes, ND_ERR_MALFORMED);
    assert_non_null(strstr(error.expected, "overlap"));
    bytes_free(&zip.bytes);
    bytes_free(&pickle);
}

static void pt_refuses_an_archive_without_a_pickle(void **state)
{
    struct zip_build zip = {0};

    (void)state;
    zip_build_add(&zip, "x/version", "3\n", 2, 0, LOCAL_TORCH);
    zip_build_end(&zip);
    const struct nd_error error = open_error(&zip.bytes, ND_ERR_MALFORMED);
    assert_non_null(strstr(error.expected, "data.pkl"));
    bytes_free(&zip.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pt_reads_what_pytorch_wrote),
        cmocka_unit_test(pt_knows_the_device),
        cmocka_unit_test(pt_names_a_torchscript_program),
        cmocka_unit_test(pt_cut_anywhere_is_an_error),
        cmocka_unit_test(pt_survives_any_changed_byte),
        cmocka_unit_test(pt_breaks_tensors_that_cannot_be_rebuilt_and_keeps_the_rest),
        cmocka_unit_test(pt_reads_strides_from_the_offset_on),
        cmocka_unit_test(pt_never_runs_what_a_pickle_calls),
        cmocka_unit_test(pt_stops_at_lists_shared_over_and_over),
        cmocka_unit_test(pt_stops_at_one_tensor_named_without_end),
        cmocka_unit_test(pt_stops_at_a_depth),
        cmocka_unit_test(pt_walks_a_cycle_once),
        cmocka_unit_test(pt_refuses_an_unknown_byte_order),
        cmocka_unit_test(pt_refuses_overlapping_members),
        cmocka_unit_test(pt_refuses_an_archive_without_a_pickle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
