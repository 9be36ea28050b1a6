/*
 * The ZIP directory: everything that must be refused, and how much of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

static void assert_refused(struct zip_build *build, enum nd_status status,
                           const char *found)
{
    struct opened opened = open_build(build);

    assert_int_equal(opened.status, status);
    if (strstr(opened.error.found, found) == NULL)
        fail_msg("'%s' does not say '%s'", opened.error.found, found);
    done(&opened, &build->bytes);
}

static void assert_trouble(struct zip_build *build, const char *what)
{
    struct opened opened = open_build(build);

    assert_int_equal(opened.status, ND_OK);
    assert_int_equal(opened.zip.count, 2);
    assert_null(opened.zip.members[0].trouble);
    assert_non_null(opened.zip.members[1].trouble);
    if (strstr(opened.zip.members[1].trouble, what) == NULL)
        fail_msg("'%s' does not say '%s'", opened.zip.members[1].trouble, what);
    done(&opened, &build->bytes);
}

static struct zip_build two_members(enum zip_local local)
{
    struct zip_build build = {0};

    zip_build_add(&build, "first", "one", 3, 0, local);
    zip_build_add(&build, "second", "two two two two two", 19, 8, local);
    return build;
}

static void an_archive_cut_at_any_byte_is_refused(void **state)
{
    struct zip_build build = two_members(LOCAL_PLAIN);

    (void)state;
    build.use_end64 = true;
    build.members[1].use_extra64 = true;
    zip_build_end(&build);
    for (size_t size = 0; size < build.bytes.size; size++) {
        struct bytes cut = {0};
        bytes_put(&cut, build.bytes.at, size);
        struct opened opened = open_bytes(&cut);
        assert_int_not_equal(opened.status, ND_OK);
        assert_true(opened.error.found[0] != '\0' && opened.error.expected[0] != '\0');
        done(&opened, &cut);
    }
    bytes_free(&build.bytes);
}

static void no_change_of_one_byte_makes_it_read_outside(void **state)
{
    struct zip_build build = two_members(LOCAL_TORCH);

    (void)state;
    build.use_end64 = true;
    build.members[1].use_extra64 = true;
    zip_build_end(&build);
    for (size_t at = 0; at < build.bytes.size; at++)
        for (unsigned change = 1; change < 256; change += 51) {
            struct bytes changed = {0};
            bytes_put(&changed, build.bytes.at, build.bytes.size);
            changed.at[at] = (unsigned char)(changed.at[at] ^ change);
            struct opened opened = open_bytes(&changed);
            for (size_t i = 0; opened.status == ND_OK && i < opened.zip.count; i++)
                if (opened.zip.members[i].trouble == NULL)
                    assert_true(opened.zip.members[i].offset +
                                    opened.zip.members[i].stored_size <=
                                changed.size);
            done(&opened, &changed);
        }
    bytes_free(&build.bytes);
}

static void two_members_of_one_name_are_refused(void **state)
{
    struct zip_build build = {0};

    (void)state;
    zip_build_add(&build, "same", "one", 3, 0, LOCAL_PLAIN);
    zip_build_add(&build, "other", "two", 3, 0, LOCAL_PLAIN);
    zip_build_add(&build, "same", "one", 3, 0, LOCAL_PLAIN);
    assert_refused(&build, ND_ERR_MALFORMED, "two members named 'same'");
}

static void overlapping_members_are_refused(void **state)
{
    struct zip_build one_place = two_members(LOCAL_PLAIN),
                     nested = two_members(LOCAL_PLAIN);

    (void)state;
    one_place.members[1] = one_place.members[0];
    one_place.members[1].name = "again";
    assert_refused(&one_place, ND_ERR_MALFORMED, "inside");
    nested.members[0].stored_size = nested.members[0].size = 20; /* into the next header */
    assert_refused(&nested, ND_ERR_MALFORMED, "member 'second' inside 'first'");
}

static void a_false_directory_is_refused(void **state)
{
    static const struct {
        int entries_more;
        uint64_t size_more, offset_more;
        unsigned disk;
        enum nd_status status;
        const char *found;
    } cases[] = {
        {1,     0,      0,      0, ND_ERR_MALFORMED,   "3 entries in a directory of 103 bytes"},
        {-1,    0,      0,      0, ND_ERR_MALFORMED,   "bytes more than its 1 entries take"   },
        {30000, 0,      0,      0, ND_ERR_MALFORMED,   "30002 entries in a directory of"      },
        {0,     100000, 0,      0, ND_ERR_MALFORMED,   "one of 1"                             },
        {0,     0,      100000, 0, ND_ERR_MALFORMED,   "at 1"                                 },
        {0,     0,      0,      1, ND_ERR_UNSUPPORTED, "of several"                           },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zip_build build = two_members(LOCAL_PLAIN);
        build.entries_more = cases[i].entries_more;
        build.size_more = cases[i].size_more;
        build.offset_more = cases[i].offset_more;
        build.disk = cases[i].disk;
        assert_refused(&build, cases[i].status, cases[i].found);
    }
}

static void more_than_a_million_members_are_refused_by_number(void **state)
{
    struct zip_build build = two_members(LOCAL_PLAIN);

    (void)state;
    build.use_end64 = true;
    build.entries_more = 999999;
    assert_refused(&build, ND_ERR_LIMIT, "1000001 members");
}

static void bad_names_are_refused(void **state)
{
    static char long_name[4098];
    struct zip_build zero = two_members(LOCAL_PLAIN), large = two_members(LOCAL_PLAIN);

    (void)state;
    zero.members[0].name = "a\0b";
    zero.members[0].name_len = 3;
    assert_refused(&zero, ND_ERR_MALFORMED, "zero byte");
    memset(long_name, 'n', 4097);
    large.members[0].name = long_name;
    assert_refused(&large, ND_ERR_LIMIT, "4097 bytes");
}

static void trouble_with_one_member_leaves_the_others(void **state)
{
    struct zip_build encrypted = two_members(LOCAL_PLAIN),
                     method = two_members(LOCAL_PLAIN);
    struct zip_build place = two_members(LOCAL_PLAIN), size = two_members(LOCAL_PLAIN);
    struct zip_build bomb = two_members(LOCAL_PLAIN), extra = two_members(LOCAL_PLAIN);
    struct zip_build disk = two_members(LOCAL_PLAIN), stored = two_members(LOCAL_PLAIN);

    (void)state;
    encrypted.members[1].flags = 1;
    assert_trouble(&encrypted, "encrypted");
    method.members[1].method = 12;
    assert_trouble(&method, "method 12 (bzip2)");
    place.members[1].header_at += 1;
    assert_trouble(&place, "no local header");
    size.members[1].stored_size = 100000;
    assert_trouble(&size, "run into the directory");
    bomb.members[1].size = 1000000;
    assert_trouble(&bomb, "cannot hold 1000000");
    extra.members[1].no_extra64 = true;
    assert_trouble(&extra, "ZIP64 extra");
    disk.members[1].disk = 1;
    assert_trouble(&disk, "split archive");
    stored.members[1].method = 0;
    assert_trouble(&stored, "stored in");
}

/* One local header and data, referred to by 60,000 entries: every pair overlaps. */
static void checking_many_members_takes_no_quadratic_time(void **state)
{
    enum { MANY = 60000 };
    struct bytes out = {0};
    const clock_t begin = clock();
    char name[32];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "member%05d", i);
        bytes_put(&out, "PK\3\4", 4);
        bytes_le(&out, 0, 22);
        bytes_le(&out, strlen(name), 2);
        bytes_le(&out, 0, 2);
        bytes_text(&out, name);
    }
    const size_t offset = out.size;
    for (int i = MANY; i-- > 0;) { /* backwards: nothing comes sorted */
        snprintf(name, sizeof name, "member%05d", i);
        bytes_put(&out, "PK\1\2", 4);
        bytes_le(&out, 0, 24);
        bytes_le(&out, strlen(name), 2);
        bytes_le(&out, 0, 12);
        bytes_le(&out, (uint64_t)i * 41, 4);
        bytes_text(&out, name);
    }
    const size_t size = out.size - offset;
    bytes_put(&out, "PK\5\6", 4);
    bytes_le(&out, 0, 4);
    bytes_le(&out, MANY, 2);
    bytes_le(&out, MANY, 2);
    bytes_le(&out, size, 4);
    bytes_le(&out, offset, 4);
    bytes_le(&out, 0, 2);
    struct opened opened = open_bytes(&out);
    if (opened.status != ND_OK)
        fail_msg("%s: %s", opened.error.at, opened.error.found);
    assert_int_equal(opened.zip.count, MANY);
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 5);
    done(&opened, &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive_cut_at_any_byte_is_refused),
        cmocka_unit_test(no_change_of_one_byte_makes_it_read_outside),
        cmocka_unit_test(two_members_of_one_name_are_refused),
        cmocka_unit_test(overlapping_members_are_refused),
        cmocka_unit_test(a_false_directory_is_refused),
        cmocka_unit_test(more_than_a_million_members_are_refused_by_number),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(trouble_with_one_member_leaves_the_others),
        cmocka_unit_test(checking_many_members_takes_no_quadratic_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
