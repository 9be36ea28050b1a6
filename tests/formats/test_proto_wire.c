/*
 * Fields of protocol buffers; bytes from the encoding page of protobuf.dev, or by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/proto_wire.h"

static struct cursor text(const char *bytes, size_t size)
{
    return (struct cursor){.bytes = (const unsigned char *)bytes, .size = size};
}

#define TEXT(bytes) text(bytes, sizeof bytes - 1)

static void fields_of_every_type_are_read(void **state)
{
    struct cursor in = TEXT("\x08\x96\x01"
                            "\x12\x07testing"
                            "\x19\x01\0\0\0\0\0\0\x80"
                            "\x25\x02\0\0\0");
    struct proto_field field;

    (void)state;
    assert_int_equal(nd_proto_next(&in, &field), PROTO_FIELD);
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 150);
    assert_int_equal(nd_proto_next(&in, &field), PROTO_FIELD);
    assert_int_equal(field.number, 2);
    assert_int_equal(field.bytes.size, 7);
    assert_memory_equal(field.bytes.bytes, "testing", 7);
    assert_int_equal(nd_proto_next(&in, &field), PROTO_FIELD);
    assert_true(field.value == UINT64_C(0x8000000000000001));
    assert_int_equal(nd_proto_next(&in, &field), PROTO_FIELD);
    assert_int_equal(field.number, 4);
    assert_int_equal(field.value, 2);
    assert_int_equal(nd_proto_next(&in, &field), PROTO_END);
}

static void a_varint_has_at_most_ten_bytes_and_sixty_four_bits(void **state)
{
    struct cursor most = TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    struct cursor bits = TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    struct cursor eleven = TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    struct cursor padded = TEXT("\x80\x80\x00");
    struct cursor cut = TEXT("\xff\xff");
    uint64_t value;

    (void)state;
    assert_true(nd_proto_varint(&most, &value));
    assert_true(value == UINT64_MAX);
    assert_false(nd_proto_varint(&bits, &value));
    assert_false(nd_proto_varint(&eleven, &value));
    assert_int_equal(eleven.at, 0);
    assert_true(nd_proto_varint(&padded, &value));
    assert_int_equal(value, 0);
    assert_false(nd_proto_varint(&cut, &value));
}

static void what_is_no_field_is_refused_where_it_stands(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\x00\x01",                                     2 }, /* field 0 */
        {"\x0b",                                         1 }, /* a group */
        {"\x0c",                                         1 },
        {"\x0e\x01",                                     2 }, /* types that are none */
        {"\x0f\x01",                                     2 },
        {"\x12\x05"
         "abc",                                 5 }, /* longer than the rest */
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
         "abc",                                 14},
        {"\x09\x01\x02",                                 3 },
        {"\x08",                                         1 },
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 11}, /* a number over 2^29 */
    };
    struct proto_field field;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cursor in = text(rows[i].bytes, rows[i].size);
        assert_int_equal(nd_proto_next(&in, &field), PROTO_BAD);
        assert_int_equal(in.at, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_every_type_are_read),
        cmocka_unit_test(a_varint_has_at_most_ten_bytes_and_sixty_four_bits),
        cmocka_unit_test(what_is_no_field_is_refused_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
