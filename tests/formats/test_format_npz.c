/*
 * NumPy archives: what numpy.savez wrote, and members that are wrong in one way each.
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

struct opened {
    struct dump *dump;
    unsigned char *block;
    struct nd_error error;
    enum nd_status status;
};

static struct opened open_bytes(const struct bytes *bytes)
{
    struct opened opened = {0};

    opened.status = open_exact(bytes->at, bytes->size, "run.npz", NULL, &opened.dump,
                               &opened.block, &opened.error);
    return opened;
}

static struct opened open_sound(const struct bytes *bytes)
{
    struct opened opened = open_bytes(bytes);

    if (opened.status != ND_OK)
        fail_msg("%s: %s", opened.error.at, opened.error.found);
    return opened;
}

static void done(struct opened *opened, struct bytes *bytes)
{
    nd_dump_close(opened->dump);
    free(opened->block);
    bytes_free(bytes);
}

/* An array of four floats 1 2 3 4 as a member. */
static const unsigned char four[16] = {0, 0, 0x80, 0x3f, 0, 0, 0,    0x40,
                                       0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40};

static struct zip_build_member *add_array(struct zip_build *zip, const char *name,
                                          const char *descr, const char *shape,
                                          unsigned method)
{
    struct bytes array = {0};

    npy_put_array(&array, descr, shape, four, sizeof four);
    struct zip_build_member *const member =
        zip_build_add(zip, name, array.at, array.size, method, LOCAL_PLAIN);
    bytes_free(&array);
    return member;
}

static void assert_reads(const struct opened *opened, const char *layer, const char *slot)
{
    const struct dump_slot *const found = find_slot(opened->dump, layer, slot);
    uint64_t count;

    assert_non_null(found);
    double *const values = slot_values(opened->dump, found, &count);
    assert_int_equal(count, 4);
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3 && values[3] == 4);
    free(values);
}

/* The tensor of `layer` cannot be read, with a reason that says `what`; "good" can. */
static void assert_one_is_broken(struct zip_build *zip, const char *layer, const char *what)
{
    zip_build_end(zip);
    struct opened opened = open_sound(&zip->bytes);
    const struct dump_slot *const slot = find_slot(opened.dump, layer, "output.0");
    struct open_slot open;
    struct nd_error error = {0};

    assert_reads(&opened, "good", "output.0");
    assert_non_null(slot);
    for (int again = 0; again < 2; again++) { /* the second time from memory */
        assert_int_not_equal(nd_slot_open(opened.dump, slot, &open, &error), ND_OK);
        if (strstr(error.found, what) == NULL)
            fail_msg("'%s' does not say '%s'", error.found, what);
        assert_string_equal(error.file, "run.npz");
    }
    done(&opened, &zip->bytes);
}

static void assert_sample(const char *name)
{
    struct bytes bytes = bytes_of_file(DATA, name);
    struct opened opened = open_sound(&bytes);
    uint64_t count;

    static const struct {
        const char *layer, *slot, *dtype;
        double second, last;
        uint64_t count;
    } rows[] = {
        {"conv1",   "output.0",           "float32", -1.375, 1.375,  24},
        {"conv1",   "input.0",            "float32", -2.75,  2.75,   24},
        {"bn",      "param.weight",       "float32", -1.375, -1.125, 4 },
        {"bn",      "state.running_mean", "float32", -0.875, -0.625, 4 },
        {"layer10", "output.0",           "float16", 0.125,  1.375,  12},
        {"layer2",  "output.0",           "int64",   1,      4,      5 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct dump_slot *const slot =
            find_slot(opened.dump, rows[i].layer, rows[i].slot);
        assert_non_null(slot);
        double *const values = slot_values(opened.dump, slot, &count);
        assert_string_equal(nd_dtype_info(slot->dtype)->name, rows[i].dtype);
        assert_int_equal(count, rows[i].count);
        assert_true(values[1] == rows[i].second && values[count - 1] == rows[i].last);
        free(values);
    }
    assert_int_equal(opened.dump->order, ND_ORDER_CONTAINER);
    assert_string_equal(opened.dump->layers[0].name, "conv1");
    assert_string_equal(opened.dump->layers[2].name, "layer10"); /* as savez was called */
    assert_string_equal(opened.dump->layers[3].name, "layer2");
    done(&opened, &bytes);
}

static void stored_and_deflated_archives_of_numpy_hold_the_same(void **state)
{
    (void)state;
    assert_sample("stored.npz");
    assert_sample("deflated.npz");
}

static void a_large_deflated_array_is_whole(void **state)
{
    struct bytes bytes = bytes_of_file(DATA, "deflated.npz");
    struct opened opened = open_sound(&bytes);
    uint64_t count;
    double *const values =
        slot_values(opened.dump, find_slot(opened.dump, "big", "output.0"), &count);

    (void)state;
    assert_int_equal(count, 70000); /* numpy.tile(arange(1000), 70) */
    for (uint64_t i = 0; i < count; i++)
        assert_true(values[i] == (double)(i % 1000));
    free(values);
    done(&opened, &bytes);
}

static void archives_of_unusual_writers_are_read(void **state)
{
    struct bytes piped = bytes_of_file(DATA, "piped.npz");
    struct opened opened = open_sound(&piped);

    (void)state;
    assert_int_equal(read_everything(opened.dump), 1);
    done(&opened, &piped);

    struct bytes none = bytes_of_file(DATA, "none.npz");
    opened = open_sound(&none);
    assert_int_equal(opened.dump->layer_count, 0);
    assert_string_equal(opened.dump->format->name, "npz");
    done(&opened, &none);

    struct bytes positional = bytes_of_file(DATA, "positional.npz");
    opened = open_sound(&positional);
    assert_string_equal(opened.dump->layers[0].name, "arr_0");
    assert_string_equal(opened.dump->layers[1].name, "arr_1");
    assert_int_equal(read_everything(opened.dump), 2);
    done(&opened, &positional);
}

static void other_members_are_ignored_and_listed(void **state)
{
    struct zip_build zip = {0};

    (void)state;
    zip_build_add(&zip, "README.txt", "text", 4, 0, LOCAL_PLAIN);
    add_array(&zip, "good.npy", "<f4", "(4,)", 8);
    zip_build_add(&zip, "folder/", "", 0, 0, LOCAL_PLAIN);
    zip_build_end(&zip);
    struct opened opened = open_sound(&zip.bytes);
    assert_string_equal(opened.dump->format->name,
                        "npz"); /* though the first member is none */
    assert_int_equal(opened.dump->ignored_count, 2);
    assert_string_equal(opened.dump->ignored[0], "README.txt");
    assert_reads(&opened, "good", "output.0");
    done(&opened, &zip.bytes);
}

static void a_wrong_checksum_breaks_that_tensor_only(void **state)
{
    (void)state;
    for (unsigned method = 0; method <= 8; method += 8) {
        struct zip_build zip = {0};
        add_array(&zip, "good.npy", "<f4", "(4,)", method);
        add_array(&zip, "bad.npy", "<f4", "(4,)", method)->crc ^= 1;
        assert_one_is_broken(&zip, "bad", "CRC-32");
    }
}

static void a_member_that_inflates_to_another_size_is_broken(void **state)
{
    struct zip_build more = {0}, less = {0}, large = {0};
    struct bytes array = {0};
    static unsigned char zeros[600000];

    (void)state;
    add_array(&more, "good.npy", "<f4", "(4,)", 8);
    add_array(&more, "bad.npy", "<f4", "(3,)", 8)->size -= 1;
    assert_one_is_broken(&more, "bad", "goes on");
    add_array(&less, "good.npy", "<f4", "(4,)", 8);
    add_array(&less, "bad.npy", "<f4", "(4,)", 8)->size += 100;
    assert_one_is_broken(&less, "bad", "ends after");

    /* A bomb: far more behind it than it declares; it stops at what was declared. */
    npy_put_array(&array, "<f4", "(100000,)", zeros, sizeof zeros);
    add_array(&large, "good.npy", "<f4", "(4,)", 8);
    zip_build_add(&large, "bad.npy", array.at, array.size, 8, LOCAL_PLAIN)->size = 400200;
    assert_one_is_broken(&large, "bad", "goes on after 400200 of 400200");
    bytes_free(&array);
}

static void damaged_deflated_data_is_broken(void **state)
{
    struct zip_build zip = {0};

    (void)state;
    add_array(&zip, "good.npy", "<f4", "(4,)", 8);
    const size_t begin = zip.bytes.size;
    add_array(&zip, "bad.npy", "<f4", "(4,)", 8);
    zip.bytes.at[begin + 30 + strlen("bad.npy")] = 0xff; /* block type 3: there is none */
    assert_one_is_broken(&zip, "bad", "flate");

    struct zip_build none = {0};
    add_array(&none, "good.npy", "<f4", "(4,)", 8);
    struct zip_build_member *const member = add_array(&none, "bad.npy", "<f4", "(4,)", 8);
    member->stored_size = 2;
    assert_one_is_broken(&none, "bad", "flate");
}

static void a_member_of_a_wrong_header_or_type_is_broken(void **state)
{
    static const struct {
        const char *descr, *shape, *what;
    } cases[] = {
        {"|O",  "(4,)",                        "Python objects"                   },
        {"|V1", "(16,)",                       "FP8"                              },
        {"<f4", "(5,)",                        "4 of 20 bytes of data are missing"},
        {"<f4", "(4",                          "a dimension"                      },
        {"<f4", "(4294967296, 4294967296, 4)", "below 2^63"                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned method = 0; method <= 8; method += 8) {
            struct zip_build zip = {0};
            add_array(&zip, "good.npy", "<f4", "(4,)", method);
            add_array(&zip, "bad.npy", cases[i].descr, cases[i].shape, method);
            assert_one_is_broken(&zip, "bad", cases[i].what);
        }
    struct zip_build other = {0};
    add_array(&other, "good.npy", "<f4", "(4,)", 0);
    zip_build_add(&other, "bad.npy", "no array", 8, 0, LOCAL_PLAIN);
    assert_one_is_broken(&other, "bad", "other bytes");
    struct zip_build empty = {0};
    add_array(&empty, "good.npy", "<f4", "(4,)", 0);
    zip_build_add(&empty, "bad.npy", "", 0, 0, LOCAL_PLAIN);
    assert_one_is_broken(&empty, "bad", "nothing");
    struct zip_build locked = {0};
    add_array(&locked, "good.npy", "<f4", "(4,)", 0);
    add_array(&locked, "bad.npy", "<f4", "(4,)", 0)->flags = 1;
    assert_one_is_broken(&locked, "bad", "encrypted");
}

static void a_header_longer_than_usual_is_inflated_whole(void **state)
{
    struct zip_build zip = {0};
    struct bytes array = {0};
    char header[3000] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";

    (void)state;
    memset(header + strlen(header), ' ', sizeof header - 1 - strlen(header));
    npy_put(&array, 1, header, four, sizeof four);
    zip_build_add(&zip, "good.npy", array.at, array.size, 8, LOCAL_PLAIN);
    bytes_free(&array);
    zip_build_end(&zip);
    struct opened opened = open_sound(&zip.bytes);
    assert_reads(&opened, "good", "output.0");
    done(&opened, &zip.bytes);
}

static void bytes_after_an_array_are_noted(void **state)
{
    (void)state;
    for (unsigned method = 0; method <= 8; method += 8) {
        struct zip_build zip = {0};
        add_array(&zip, "short.npy", "<f4", "(3,)", method);
        zip_build_end(&zip);
        struct opened opened = open_sound(&zip.bytes);
        const struct dump_slot *const slot = find_slot(opened.dump, "short", "output.0");
        assert_string_equal(slot->note, "trailing_bytes");
        assert_int_equal(read_everything(opened.dump), 1);
        done(&opened, &zip.bytes);
    }
}

static void two_members_that_are_one_slot_become_two_calls(void **state)
{
    struct zip_build zip = {0};

    (void)state;
    add_array(&zip, "conv.output.0.npy", "<f4", "(4,)", 0);
    add_array(&zip, "conv/output/0.npy", "<f4", "(4,)", 0);
    add_array(&zip, "conv.npy", "<f4", "(4,)", 0);
    zip_build_end(&zip);
    struct opened opened = open_sound(&zip.bytes);
    assert_int_equal(opened.dump->layer_count, 3);
    for (int call = 0; call < 3; call++) {
        assert_string_equal(opened.dump->layers[call].name, "conv");
        assert_int_equal(opened.dump->layers[call].call, call);
    }
    done(&opened, &zip.bytes);
}

static void an_archive_cut_at_any_byte_is_refused(void **state)
{
    static const char *const names[] = {"stored.npz", "piped.npz", "none.npz"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes whole = bytes_of_file(DATA, names[i]);
        for (size_t size = 0; size < whole.size; size++) {
            struct bytes cut = {0};
            bytes_put(&cut, whole.at, size);
            struct opened opened = open_bytes(&cut);
            assert_int_not_equal(opened.status, ND_OK);
            assert_true(opened.error.found[0] != '\0');
            bytes_free(&cut);
        }
        bytes_free(&whole);
    }
}

static void no_change_of_one_byte_makes_it_crash(void **state)
{
    static const char *const names[] = {"stored.npz", "piped.npz"};
    struct zip_build zip = {0};

    (void)state;
    add_array(&zip, "a.npy", "<f4", "(2, 2)", 8);
    add_array(&zip, "b.npy", ">f4", "(2, 2)", 8)->use_extra64 = true;
    zip.use_end64 = true;
    zip_build_end(&zip);
    struct bytes all[3] = {zip.bytes, bytes_of_file(DATA, names[0]),
                           bytes_of_file(DATA, names[1])};
    for (size_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < all[i].size; at++)
            for (unsigned change = 1; change < 256; change += 85) {
                all[i].at[at] = (unsigned char)(all[i].at[at] ^ change);
                use_exact(all[i].at, all[i].size, "x.npz", "npz");
                all[i].at[at] = (unsigned char)(all[i].at[at] ^ change);
            }
        bytes_free(&all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_and_deflated_archives_of_numpy_hold_the_same),
        cmocka_unit_test(a_large_deflated_array_is_whole),
        cmocka_unit_test(archives_of_unusual_writers_are_read),
        cmocka_unit_test(other_members_are_ignored_and_listed),
        cmocka_unit_test(a_wrong_checksum_breaks_that_tensor_only),
        cmocka_unit_test(a_member_that_inflates_to_another_size_is_broken),
        cmocka_unit_test(damaged_deflated_data_is_broken),
        cmocka_unit_test(a_member_of_a_wrong_header_or_type_is_broken),
        cmocka_unit_test(a_header_longer_than_usual_is_inflated_whole),
        cmocka_unit_test(bytes_after_an_array_are_noted),
        cmocka_unit_test(two_members_that_are_one_slot_become_two_calls),
        cmocka_unit_test(an_archive_cut_at_any_byte_is_refused),
        cmocka_unit_test(no_change_of_one_byte_makes_it_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
