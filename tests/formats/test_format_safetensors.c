/*
 * Safetensors: files that the real package wrote, headers that must be refused (each breaks
 * one rule of the format), and files cut at every byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/format.h"
#include "formats/st_build.h"

#define FORMAT "safetensors"

static void assert_shape_of(const struct dump_slot *slot, const char *text)
{
    char buf[400];
    assert_string_equal(nd_shape_text(&slot->storage, buf, sizeof buf), text);
}

static void types_that_the_package_wrote_have_their_values(void **state)
{
    static const struct {
        const char *name, *dtype;
    } rows[] = {
        {"bool", "bool"     },
        {"u1",   "uint8"    },
        {"i1",   "int8"     },
        {"u2",   "uint16"   },
        {"i2",   "int16"    },
        {"u4",   "uint32"   },
        {"i4",   "int32"    },
        {"u8",   "uint64"   },
        {"i8",   "int64"    },
        {"f2",   "float16"  },
        {"f4",   "float32"  },
        {"f8",   "float64"  },
        {"c8",   "complex64"},
    };
    struct st_opened opened;
    struct dump *dump =
        st_open_sound(bytes_of_file(DATA "/st", "types.safetensors"), NULL, &opened);

    (void)state;
    assert_string_equal(dump->format->name, FORMAT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dump_slot *slot = find_slot(dump, rows[i].name, "output.0");
        const size_t step = strcmp(rows[i].name, "c8") == 0 ? 2 : 1;
        uint64_t count;
        assert_non_null(slot);
        assert_string_equal(nd_dtype_info(slot->dtype)->name, rows[i].dtype);
        assert_shape_of(slot, "[2, 2]");
        double *values = slot_values(dump, slot, &count);
        assert_int_equal(count, 4);
        for (size_t k = 0; k < 4; k++) /* 0 1 2 3; as bools 0 1 1 1 */
            assert_true(values[k * step] == (i == 0 && k > 1 ? 1.0 : (double)k));
        free(values);
    }
    uint64_t count;
    double *scalar = slot_values(dump, find_slot(dump, "scalar", "output.0"), &count);
    assert_true(count == 1 && scalar[0] == 2.5);
    free(scalar);
    assert_shape_of(find_slot(dump, "scalar", "output.0"), "[]");
    assert_shape_of(find_slot(dump, "empty", "output.0"), "[0, 3]");
    assert_int_equal(read_everything(dump), 15);
    st_close(&opened);
}

static void names_become_layers_and_slots_in_natural_order(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        st_open_sound(bytes_of_file(DATA "/st", "names.safetensors"), NULL, &opened);

    (void)state;
    assert_int_equal(dump->order, ND_ORDER_NAME);
    assert_int_equal(dump->layer_count, 4);
    assert_string_equal(dump->layers[0].name, "bn");
    assert_string_equal(dump->layers[0].slots[0].name, "state.running_var");
    assert_string_equal(dump->layers[0].slots[1].name, "param.weight");
    assert_string_equal(dump->layers[1].name, "caf\xc3\xa9 \"q\"");
    assert_string_equal(dump->layers[2].name, "layers.9.norm");
    assert_string_equal(dump->layers[2].slots[0].name, "input.0");
    assert_string_equal(dump->layers[3].name, "layers.10.norm");
    uint64_t count;
    double *values = slot_values(dump, &dump->layers[3].slots[0], &count);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(values[i] == (double)i / 4);
    free(values);
    st_close(&opened);
}

static void eight_bit_floats_and_bfloat16_are_decoded(void **state)
{
    /* Data bytes are 0, 1, 2 ...: bfloat16 0x0100 is 2^-125; e4m3 0x02 is 2 * 2^-9, 0x03 is
     * 3 * 2^-9; e5m2 0x04 is 2^-14, 0x05 is 1.25 * 2^-14. */
    struct st_opened opened;
    struct dump *dump = st_open_sound(
        st_file("{\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                "\"e\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[2,4]},"
                "\"f\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[4,6]}}",
                6),
        NULL, &opened);
    uint64_t count;
    double *b = slot_values(dump, find_slot(dump, "b", "output.0"), &count);
    double *e = slot_values(dump, find_slot(dump, "e", "output.0"), &count);
    double *f = slot_values(dump, find_slot(dump, "f", "output.0"), &count);

    (void)state;
    assert_true(b[0] == 0x1p-125);
    assert_true(e[0] == 0x1p-8 && e[1] == 0x1.8p-8);
    assert_true(f[0] == 0x1p-14 && f[1] == 0x1.4p-14);
    free(b);
    free(e);
    free(f);
    st_close(&opened);
}

/* A tensor "a" of this kind, and a sound one behind it. */
static void assert_broken(const char *dtype, const char *shape, unsigned size,
                          const char *reason)
{
    struct st_opened opened;
    char header[400];

    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%u]},"
             "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%u,%u]}}",
             dtype, shape, size, size, size + 2);
    struct dump *dump = st_open_sound(st_file(header, size + 2), NULL, &opened);
    assert_string_equal(find_slot(dump, "a", "output.0")->broken, reason);
    assert_int_equal(read_everything(dump), 1);
    st_close(&opened);
}

static void types_that_cannot_be_decoded_are_broken_tensors_named_so(void **state)
{
    (void)state;
    assert_broken("F4", "[4]", 2, "dtype F4 is not supported");
    assert_broken("F6_E2M3", "[4]", 3, "dtype F6_E2M3 is not supported");
    assert_broken("F6_E3M2", "[4]", 3, "dtype F6_E3M2 is not supported");
    assert_broken("F8_E8M0", "[4]", 4, "dtype F8_E8M0 is not supported");
    assert_broken("F8_E4M3FNUZ", "[4]", 4, "dtype F8_E4M3FNUZ is not supported");
    assert_broken("F8_E5M2FNUZ", "[4]", 4, "dtype F8_E5M2FNUZ is not supported");
    assert_broken("F12_NEW", "[4]", 6, "dtype F12_NEW is not known");
    assert_broken("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4]", 4,
                  "17 dimensions; at most 16 are supported");
}

#define A(offsets) "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"
#define B(offsets) "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"

static void refuse(const char *header, const char *at, const char *found)
{
    assert_refused(st_file(header, 24), FORMAT, ND_ERR_MALFORMED, at, found);
}

static void headers_that_break_a_rule_are_refused_by_offset(void **state)
{
    (void)state;
    refuse("{" A("[0,8]") "," B("[4,12]") "}", "byte 62", "tensor \"b\"");
    refuse("{" A("[0,8]") "," B("[0,8]") "}", "byte 62", "tensor \"b\"");
    refuse("{" A("[0,8]") "," B("[12,20]") "}", "byte 125",
           "4 bytes that belong to no tensor");
    refuse("{" A("[4,12]") "}", "byte 63", "4 bytes that belong to no tensor");
    refuse("{" A("[8,0]") "}", "byte 55", "tensor \"a\" at 8..0");
    refuse("{" A("[0,4]") "}", "byte 55", "in a range of 4 bytes");
    refuse("{" A("[0,8]") "," A("[8,16]") "}", "byte 62", "tensor \"a\" a second time");
    refuse(
        "{" A("[0,8]") ",\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,"
                       "16]}}",
        "byte 62", "tensor \"a\" a second time");
    refuse("{" A("[0,8.0]") "}", "byte 58", "'8'");
    refuse("{" A("[0,1e1]") "}", "byte 58", "'1'");
    refuse("{" A("[-0,8]") "}", "byte 56", "'-'");
    refuse("{" A("[0]") "}", "byte 57", "']'");
    refuse("{" A("[0,8,9]") "}", "byte 59", "','");
    refuse("{" A("[0,18446744073709551616]") "}", "byte 58", "larger");
    refuse("{" A("[0,18446744073709551615]") "}", "byte 55", "tensor \"a\"");
    refuse(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,"
        "0]}}",
        "byte 36", "[4294967296, 4294967296]");
    refuse(
        "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}"
        "}",
        "byte 73", "a range of 0 bytes"); /* 2^61 * 64 bits wrap to 0 */
    refuse("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", "byte 54",
           "a range of 1 bytes"); /* 12 bits are no whole bytes */
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "byte 13", "without data_offsets");
    refuse("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "byte 13",
           "without shape");
    refuse("{\"a\":{}}", "byte 13", "without dtype");
    refuse("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "byte 28", "a second time");
    refuse("{\"a\":[]}", "byte 13", "'['");
    refuse("{\"__metadata__\":{\"k\":1}}", "byte 29", "'1'");
    refuse("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", "byte 32", "a second time");
    refuse("{\"__metadata__\":{},\"__metadata__\":{}}", "byte 27", "a second time");
    refuse("{\"__metadata__\":[]}", "byte 24", "'['");
    refuse("{\"a\\u0000\":{}}", "byte 11", "a backslash");
    refuse("{} x", "byte 11", "'x'");
    refuse("{", "byte 9", "the end of the JSON text");
    refuse(" {}", "byte 8", "0x20");
    refuse("   ", "byte 8", "3 blanks");
    refuse("", "byte 8", "0 blanks");
    refuse("[]", "byte 8", "'['");
}

static void assert_sound(const char *header, size_t data, size_t tensors)
{
    struct st_opened opened;
    struct dump *dump = st_open_sound(st_file(header, data), NULL, &opened);

    assert_string_equal(dump->format->name, FORMAT);
    assert_int_equal(dump->tensor_count, tensors);
    assert_int_equal(read_everything(dump), tensors);
    st_close(&opened);
}

static void forms_that_the_format_allows_are_read(void **state)
{
    (void)state;
    assert_sound("{}", 0, 0);
    assert_sound("{\"__metadata__\":{}}      ", 0, 0);
    assert_sound("{\"__metadata__\":null}", 0, 0);
    assert_sound(
        "{ \"__metadata__\" : { \"k\" : \"v\" , \"l\" : \"\" } , " A("[0,8]") " } ", 8, 1);
    assert_sound("{" B("[8,16]") "," A("[0,8]") "}", 16, 2);
    assert_sound(
        "{\"a\":{\"data_offsets\":[0,0],\"x\":[1,{}],\"shape\":[0,9],\"dtype\":\"F32\"}"
        "," B("[0,8]") "}",
        8, 2);
    assert_sound(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":["
        "0,0]}}",
        0, 1);
    assert_sound("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1);
}

static void bytes_after_the_last_tensor_are_noted(void **state)
{
    struct st_opened opened;
    struct dump *dump = st_open_sound(st_file("{" A("[0,8]") "}", 20), NULL, &opened);

    (void)state;
    assert_int_equal(read_everything(dump), 1);
    assert_int_equal(dump->ignored_count, 1);
    assert_non_null(strstr(dump->ignored[0], "12 bytes after the last tensor"));
    st_close(&opened);
}

static void header_lengths_beyond_the_limit_or_the_file_are_refused(void **state)
{
    struct bytes bytes = {0};

    (void)state;
    bytes_le(&bytes, 100000001, 8);
    bytes_text(&bytes, "{\"a\":1}");
    assert_refused(bytes, NULL, ND_ERR_LIMIT, "byte 0", "a header of 100000001 bytes");
    bytes = (struct bytes){0};
    bytes_le(&bytes, UINT64_MAX, 8);
    bytes_text(&bytes, "{\"a\":1}");
    assert_refused(bytes, NULL, ND_ERR_LIMIT, "byte 0", "18446744073709551615");
    bytes = (struct bytes){0};
    bytes_le(&bytes, 8, 8);
    bytes_text(&bytes, "{\"a\":1}");
    assert_refused(bytes, NULL, ND_ERR_MALFORMED, "byte 0", "8 bytes in a file of 15");
}

static void
a_file_cut_in_its_header_is_refused_and_cut_in_its_data_keeps_what_is_whole(void **state)
{
    struct bytes whole = bytes_of_file(DATA "/st", "types.safetensors");
    const size_t data_at = 8 + (size_t)nd_load_le(whole.at, 8);

    (void)state;
    for (size_t size = 0; size < whole.size; size++) {
        struct bytes cut = {0};
        bytes_put(&cut, whole.at, size);
        struct st_opened opened = st_open(cut, FORMAT);
        if (size < data_at) {
            assert_int_not_equal(opened.status, ND_OK);
            assert_true(opened.error.found[0] != '\0');
            st_close(&opened);
            continue;
        }
        assert_int_equal(opened.status, ND_OK);
        size_t within = 0;
        for (size_t i = 0; i < opened.dump->layer_count; i++) {
            const struct dump_slot *slot = &opened.dump->layers[i].slots[0];
            const bool fits = slot->extent.offset + slot->extent.size <= size;
            assert_int_equal(slot->broken == NULL, fits);
            within += fits;
        }
        assert_int_equal(opened.dump->tensor_count, 15);
        assert_int_equal(read_everything(opened.dump), within);
        st_close(&opened);
    }
    bytes_free(&whole);
}

static void no_change_of_one_byte_makes_it_crash(void **state)
{
    static const unsigned char changes[] = {0,   0xff, '"',  '{', '}',
                                            '[', ']',  '\\', '9', ','};
    struct bytes whole = bytes_of_file(DATA "/st", "names.safetensors");

    (void)state;
    for (size_t at = 0; at < whole.size; at++) {
        const unsigned char was = whole.at[at];
        for (size_t i = 0; i < sizeof changes; i++) {
            whole.at[at] = changes[i];
            use_exact(whole.at, whole.size, "x", FORMAT);
        }
        whole.at[at] = was;
    }
    bytes_free(&whole);
}

static void twenty_thousand_tensors_are_listed_once_each_in_order(void **state)
{
    enum { COUNT = 20000 };
    struct bytes header = {0};
    char text[128];
    struct st_opened opened;

    (void)state;
    for (int i = 0; i < COUNT; i++) { /* written last to first */
        const int k = COUNT - 1 - i;
        snprintf(text, sizeof text,
                 "%c\"l.%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                 i == 0 ? '{' : ',', k, i, i + 1);
        bytes_text(&header, text);
    }
    bytes_put(&header, "}", 2);
    struct dump *dump =
        st_open_sound(st_file((const char *)header.at, COUNT), NULL, &opened);
    bytes_free(&header);
    assert_int_equal(dump->layer_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "l.%d", i);
        assert_string_equal(dump->layers[i].name, text);
    }
    st_close(&opened);
}

static void text_with_a_brace_in_its_ninth_place_is_no_safetensors(void **state)
{
    struct bytes bytes = {0};

    (void)state;
    bytes_text(&bytes, "int f() {\"a\"}\n");
    struct st_opened opened = st_open(bytes, NULL);
    assert_int_equal(opened.status, ND_ERR_UNKNOWN_FORMAT);
    st_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_that_the_package_wrote_have_their_values),
        cmocka_unit_test(names_become_layers_and_slots_in_natural_order),
        cmocka_unit_test(eight_bit_floats_and_bfloat16_are_decoded),
        cmocka_unit_test(types_that_cannot_be_decoded_are_broken_tensors_named_so),
        cmocka_unit_test(headers_that_break_a_rule_are_refused_by_offset),
        cmocka_unit_test(forms_that_the_format_allows_are_read),
        cmocka_unit_test(bytes_after_the_last_tensor_are_noted),
        cmocka_unit_test(header_lengths_beyond_the_limit_or_the_file_are_refused),
        cmocka_unit_test(
            a_file_cut_in_its_header_is_refused_and_cut_in_its_data_keeps_what_is_whole),
        cmocka_unit_test(no_change_of_one_byte_makes_it_crash),
        cmocka_unit_test(twenty_thousand_tensors_are_listed_once_each_in_order),
        cmocka_unit_test(text_with_a_brace_in_its_ninth_place_is_no_safetensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
