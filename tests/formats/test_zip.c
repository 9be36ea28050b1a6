/*
 * The ZIP directory: what real writers produce.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/zip.h"

struct opened {
    struct arena *arena;
    struct zip zip;
    struct nd_error error;
    enum nd_status status;
};

static struct opened open_bytes(const struct bytes *bytes)
{
    struct opened opened = {.arena = nd_arena_new()};

    assert_non_null(opened.arena);
    opened.status = nd_zip_read((struct cursor){bytes->at, bytes->size, 0}, opened.arena,
                                &opened.zip, &opened.error);
    return opened;
}

static struct opened open_build(struct zip_build *build)
{
    zip_build_end(build);
    return open_bytes(&build->bytes);
}

static void done(struct opened *opened, struct bytes *bytes)
{
    nd_arena_free(opened->arena);
    bytes_free(bytes);
}

static struct zip_build two_members(enum zip_local local)
{
    struct zip_build build = {0};

    zip_build_add(&build, "first", "one", 3, 0, local);
    zip_build_add(&build, "second", "two two two two two", 19, 8, local);
    return build;
}

static void members_of_a_numpy_archive_come_in_the_order_of_its_directory(void **state)
{
    static const char *const names[] = {"conv1.output.0.npy", "conv1/input/0.npy",
                                        "bn.weight.npy",      "bn.running_mean.npy",
                                        "layer10.npy",        "layer2.npy"};
    struct bytes bytes = bytes_of_file(DATA, "stored.npz");
    struct opened opened = open_bytes(&bytes);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct zip_member *member = &opened.zip.members[i];
        assert_string_equal(member->name, names[i]);
        assert_null(member->trouble);
        assert_memory_equal(bytes.at + member->offset, "\x93NUMPY", 6);
    }
    done(&opened, &bytes);
}

static void an_archive_written_to_a_pipe_is_read_by_its_directory(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "piped.npz");
    struct opened opened = open_bytes(&bytes);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 1);
    assert_int_equal(opened.zip.members[0].size, 224); /* 128 of header, 24 x 4 of data */
    assert_memory_equal(bytes.at + opened.zip.members[0].offset, "\x93NUMPY", 6);
    done(&opened, &bytes);
}

static void local_headers_give_nothing_but_the_place_of_the_data(void **state)
{
    struct zip_build build = two_members(LOCAL_TORCH);
    struct opened opened = open_build(&build);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.members[0].size, 3);
    assert_memory_equal(build.bytes.at + opened.zip.members[0].offset, "one", 3);
    assert_int_equal(opened.zip.members[1].size, 19);
    done(&opened, &build.bytes);
}

static void zip64_fields_are_read_only_where_the_slot_is_all_ones(void **state)
{
    struct zip_build build = two_members(LOCAL_PLAIN);

    (void)state;
    build.members[0].use_extra64 = true;
    build.use_end64 = true;
    struct opened opened = open_build(&build);
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 2);
    assert_int_equal(opened.zip.members[0].size, 3);
    assert_memory_equal(build.bytes.at + opened.zip.members[0].offset, "one", 3);
    assert_null(opened.zip.members[1].trouble);
    done(&opened, &build.bytes);
}

static void bytes_in_front_of_the_archive_shift_every_offset(void **state)
{
    (void)state;
    for (int use_end64 = 0; use_end64 < 2; use_end64++) {
        struct zip_build build = {.prefix = 1000, .use_end64 = use_end64 == 1};
        zip_build_add(&build, "first", "one", 3, 0, LOCAL_PLAIN);
        zip_build_add(&build, "second", "two", 3, 0, LOCAL_PLAIN);
        struct opened opened = open_build(&build);
        assert_int_equal(opened.status, ND_OK);
        assert_memory_equal(build.bytes.at + opened.zip.members[1].offset, "two", 3);
        assert_false(nd_zip_probe(build.bytes.at, build.bytes.size));
        assert_true(nd_zip_ends(build.bytes.at, build.bytes.size));
        done(&opened, &build.bytes);
    }
}

static void a_comment_after_the_end_record_may_look_like_one(void **state)
{
    struct zip_build build = two_members(LOCAL_PLAIN);

    (void)state;
    zip_build_end(&build);
    build.bytes.at[build.bytes.size - 2] = 10; /* the comment's length */
    bytes_put(&build.bytes, "PK\5\6......", 10);
    struct opened opened = open_bytes(&build.bytes);
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 2);
    done(&opened, &build.bytes);
}

static void an_empty_archive_has_no_members(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "none.npz");
    struct opened opened = open_bytes(&bytes);

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 0);
    assert_null(nd_zip_find(&opened.zip, "x"));
    done(&opened, &bytes);
}

static void members_are_found_by_their_whole_name(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "stored.npz");
    struct opened opened = open_bytes(&bytes);

    (void)state;
    for (size_t i = 0; i < opened.zip.count; i++)
        assert_ptr_equal(nd_zip_find(&opened.zip, opened.zip.members[i].name),
                         &opened.zip.members[i]);
    assert_null(nd_zip_find(&opened.zip, "layer2"));
    assert_null(nd_zip_find(&opened.zip, ""));
    assert_null(nd_zip_find(&opened.zip, "layer2.npyy"));
    done(&opened, &bytes);
}

static void a_head_is_inflated_without_the_rest(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "deflated.npz");
    struct opened opened = open_bytes(&bytes);
    unsigned char head[10];
    size_t got;

    (void)state;
    assert_int_equal(opened.status, ND_OK);
    const struct zip_member *member = &opened.zip.members[0];
    assert_int_equal(member->method, 8);
    assert_true(nd_zip_inflate_head(bytes.at + member->offset, member->stored_size, head,
                                    sizeof head, &got));
    assert_int_equal(got, sizeof head);
    assert_memory_equal(head, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 = 128 - 10 */
    assert_false(
        nd_zip_inflate_head(bytes.at + member->offset, 3, head, sizeof head, &got));
    assert_false(
        nd_zip_inflate_head((const unsigned char *)"\xff\xff\xff", 3, head, 10, &got));
    done(&opened, &bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_a_numpy_archive_come_in_the_order_of_its_directory),
        cmocka_unit_test(an_archive_written_to_a_pipe_is_read_by_its_directory),
        cmocka_unit_test(local_headers_give_nothing_but_the_place_of_the_data),
        cmocka_unit_test(zip64_fields_are_read_only_where_the_slot_is_all_ones),
        cmocka_unit_test(bytes_in_front_of_the_archive_shift_every_offset),
        cmocka_unit_test(a_comment_after_the_end_record_may_look_like_one),
        cmocka_unit_test(an_empty_archive_has_no_members),
        cmocka_unit_test(members_are_found_by_their_whole_name),
        cmocka_unit_test(a_head_is_inflated_without_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
