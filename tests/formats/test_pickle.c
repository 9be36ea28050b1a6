/*
 * Pickles as data: what CPython writes, opcode by opcode, and what nobody should.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/pickle_text.h"

#define BYTES(text) (text), sizeof(text) - 1

struct outcome {
    enum nd_status status;
    struct nd_error error;
    char text[512]; /* the tree */
    uint64_t at;    /* where reading stopped */
    uint32_t persistent;
};

/* From a heap block of exactly that size, so that a sanitizer sees a byte too far. */
static struct outcome read_pickle(const void *bytes, size_t size)
{
    struct outcome outcome = {0};
    struct arena *arena = nd_arena_new();
    unsigned char *block = malloc(size == 0 ? 1 : size);
    struct cursor in = {block, size, 0};
    struct pickle_list persistent = {0};
    struct pickle root;
    struct text out = {0};

    assert_non_null(arena);
    assert_non_null(block);
    if (size > 0)
        memcpy(block, bytes, size);
    outcome.status = nd_pickle_read(&in, arena, &root, &persistent, &outcome.error);
    outcome.at = in.at;
    outcome.persistent = persistent.count;
    if (outcome.status == ND_OK && size < 10000) {
        pickle_text(&out, &root);
        snprintf(outcome.text, sizeof outcome.text, "%s", out.bytes);
        nd_text_done(&out);
    }
    free(block);
    nd_arena_free(arena);
    return outcome;
}

/* --- sound pickles ----------------------------------------------------------------- */

struct sound {
    const char *name;
    const char *bytes;
    size_t size;
    const char *text;
};

/* clang-format off */
/* Written by CPython 3.11's pickle.dumps. */
static const struct sound from_python[] = {
    {"protocol 2",
     BYTES("\x80\x02}q\x00(X\x01\x00\x00\x00" "aq\x01]q\x02(K\x01J\xfe\xff"
           "\xff\xffM,\x01Jp\x11\x01\x00\x8a\x05\x00\x00\x00\x80\x00\x8a\x06"
           "\x00\x00\x00\x00\x00\xff" "eX\x01\x00\x00\x00" "bq\x03(G\x3f\xf8"
           "\x00\x00\x00\x00\x00\x00N\x88\x89tq\x04X\x01\x00\x00\x00" "cq"
           "\x05X\x03\x00\x00\x00h\xc3\xa9q\x06u."),
     "{'a': [1, -2, 300, 70000, 2147483648, -1099511627776], 'b': (1.5, "
     "None, True, False), 'c': 'h\\xc3\\xa9'}"},
    {"protocol 4",
     BYTES("\x80\x04\x95H\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01" "a\x94"
           "]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x05\x00\x00"
           "\x00\x80\x00\x8a\x06\x00\x00\x00\x00\x00\xff" "e\x8c\x01" "b\x94"
           "(G\x3f\xf8\x00\x00\x00\x00\x00\x00N\x88\x89t\x94\x8c\x01" "c\x94"
           "\x8c\x03h\xc3\xa9\x94u."),
     "{'a': [1, -2, 300, 70000, 2147483648, -1099511627776], 'b': (1.5, "
     "None, True, False), 'c': 'h\\xc3\\xa9'}"},
    {"protocol 5",
     BYTES("\x80\x05\x95H\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01" "a\x94"
           "]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x05\x00\x00"
           "\x00\x80\x00\x8a\x06\x00\x00\x00\x00\x00\xff" "e\x8c\x01" "b\x94"
           "(G\x3f\xf8\x00\x00\x00\x00\x00\x00N\x88\x89t\x94\x8c\x01" "c\x94"
           "\x8c\x03h\xc3\xa9\x94u."),
     "{'a': [1, -2, 300, 70000, 2147483648, -1099511627776], 'b': (1.5, "
     "None, True, False), 'c': 'h\\xc3\\xa9'}"},
    {"an OrderedDict",
     BYTES("\x80\x02" "ccollections\x0aOrderedDict\x0aq\x00)Rq\x01X\x01\x00"
           "\x00\x00xq\x02K\x01s."),
     "collections.OrderedDict(){'x': 1}"},
    {"an OrderedDict of protocol 4",
     BYTES("\x80\x04\x95)\x00\x00\x00\x00\x00\x00\x00\x8c\x0b" "collectio"
           "ns\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01x\x94K\x01"
           "s."),
     "collections.OrderedDict(){'x': 1}"},
    {"bytes",
     BYTES("\x80\x05\x95\x15\x00\x00\x00\x00\x00\x00\x00]\x94(C\x02\x00\xff"
           "\x94\x96\x01\x00\x00\x00\x00\x00\x00\x00z\x94" "e."),
     "[b'\\x00\\xff', b'z']"},
    {"bytes of protocol 2",
     BYTES("\x80\x02" "c_codecs\x0a" "encode\x0aq\x00X\x03\x00\x00\x00\x00"
           "\xc3\xbfq\x01X\x06\x00\x00\x00latin1q\x02\x86q\x03Rq\x04."),
     "_codecs.encode('\\x00\\xc3\\xbf', 'latin1')"},
    {"sets",
     BYTES("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]\x94(\x8f\x94(K\x07"
           "\x90(K\x08\x91\x94" "e."),
     "[{7}, {8}]"},
    {"a list in itself",
     BYTES("\x80\x02]q\x00h\x00" "a."),
     "[[...]]"},
    {"a large number",
     BYTES("\x80\x02\x8a\x0al\xfc\x9c" "F\xf9 j\xa8P\x19."),
     "L6cfc9c46f9206aa85019"},
    {"a call",
     BYTES("\x80\x02" "c__builtin__\x0a" "complex\x0aq\x00G\x3f\xf0\x00\x00"
           "\x00\x00\x00\x00G@\x00\x00\x00\x00\x00\x00\x00\x86q\x01Rq\x02"
           "."),
     "__builtin__.complex(1, 2)"},
    {"an object by its arguments",
     BYTES("\x80\x02" "cfractions\x0a" "Fraction\x0aq\x00K\x01K\x02\x86q\x01"
           "Rq\x02."),
     "fractions.Fraction(1, 2)"},
    {"a tuple of four",
     BYTES("\x80\x02(K\x01K\x02K\x03K\x04tq\x00."),
     "(1, 2, 3, 4)"},
};
/* clang-format on */

/* clang-format off */
/* Written by hand after pickletools' descriptions. */
static const struct sound by_hand[] = {
    {"no PROTO", BYTES("K\x07."), "7"},
    {"BININT1", BYTES("K\xff."), "255"},
    {"BININT2", BYTES("M\xff\xff."), "65535"},
    {"BININT", BYTES("J\xff\xff\xff\xff."), "-1"},
    {"LONG1 of nothing", BYTES("\x8a\x00."), "0"},
    {"LONG1 negative", BYTES("\x8a\x01\x80."), "-128"},
    {"LONG1 of 8 bytes", BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff."), "-1"},
    {"LONG4", BYTES("\x8b\x02\x00\x00\x00\x00\x80."), "-32768"},
    {"BINFLOAT", BYTES("G\xc0\x04\x00\x00\x00\x00\x00\x00."), "-2.5"},
    {"SHORT_BINSTRING", BYTES("U\x02hi."), "b'hi'"},
    {"BINSTRING", BYTES("T\x02\x00\x00\x00hi."), "b'hi'"},
    {"BINBYTES", BYTES("B\x02\x00\x00\x00hi."), "b'hi'"},
    {"BINBYTES8", BYTES("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi."), "b'hi'"},
    {"BINUNICODE8", BYTES("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."), "'hi'"},
    {"LIST of protocol 1", BYTES("(K\x01K\x02l."), "[1, 2]"},
    {"DICT of protocol 1", BYTES("(K\x01K\x02" "d."), "{1: 2}"},
    {"SETITEM", BYTES("}K\x01K\x02s."), "{1: 2}"},
    {"APPEND", BYTES("]K\x01" "aK\x02" "a."), "[1, 2]"},
    {"APPENDS of nothing", BYTES("](e."), "[]"},
    {"ADDITEMS", BYTES("\x8f(K\x01K\x02\x90."), "{1, 2}"},
    {"POP", BYTES("K\x01K\x02" "0."), "1"},
    {"POP of a MARK", BYTES("K\x01(0."), "1"},
    {"POP_MARK", BYTES("K\x01(K\x02K\x03" "1."), "1"},
    {"DUP", BYTES("K\x01" "2\x86."), "(1, 1)"},
    {"LONG_BINPUT and LONG_BINGET", BYTES("K\x05r\x02\x00\x00\x00j\x02\x00\x00\x00\x86."),
     "(5, 5)"},
    {"MEMOIZE counts up", BYTES("K\x05\x94K\x06\x94h\x01h\x00\x87."), "(6, 6, 5)"},
    {"GLOBAL", BYTES("cos\nsystem\n."), "os.system"},
    {"EXT2", BYTES("\x83\x01\x02."), "copyreg.extension"},
    {"NEWOBJ and BUILD", BYTES("cm\nC\n)\x81}K\x01K\x02sb."), "m.C() with {1: 2}"},
    {"NEWOBJ_EX", BYTES("cm\nC\nK\x09\x85}K\x01K\x02s\x92."), "m.C(9){1: 2}"},
    {"OBJ", BYTES("(cm\nC\nK\x03K\x04o."), "m.C(3, 4)"},
    {"elements of an object", BYTES("cm\nC\n)R(K\x01K\x02" "eK\x03" "a."), "m.C()[1, 2, 3]"},
    {"BINPERSID", BYTES("K\x01K\x02\x86Q."), "<(1, 2)>"},
    {"FRAME", BYTES("\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00K\x01."), "1"},
};
/* clang-format on */

static void expect_sound(const struct sound *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct outcome outcome = read_pickle(rows[i].bytes, rows[i].size);
        if (outcome.status != ND_OK)
            fail_msg("%s: %s", rows[i].name, outcome.error.found);
        if (strcmp(outcome.text, rows[i].text) != 0)
            fail_msg("%s: read as %s", rows[i].name, outcome.text);
        assert_int_equal(outcome.at, rows[i].size);
    }
}

static void pickle_reads_what_python_writes(void **state)
{
    (void)state;
    expect_sound(from_python, sizeof from_python / sizeof *from_python);
}

static void pickle_reads_every_opcode(void **state)
{
    (void)state;
    expect_sound(by_hand, sizeof by_hand / sizeof *by_hand);
}

static void pickle_stops_at_stop(void **state)
{
    const struct outcome outcome = read_pickle(BYTES("K\x01.K\x02."));

    (void)state;
    assert_int_equal(outcome.status, ND_OK);
    assert_int_equal(outcome.at, 3);
}

static void pickle_collects_persistent_ids(void **state)
{
    const struct outcome outcome = read_pickle(BYTES("K\x01QK\x02Q\x86."));

    (void)state;
    assert_string_equal(outcome.text, "(<1>, <2>)");
    assert_int_equal(outcome.persistent, 2);
}

/* --- unsound pickles --------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char    *name;
    const char    *bytes;
    size_t         size;
    enum nd_status status;
    const char    *at, *found; /* found: a part of it */
} unsound[] = {
    {"nothing", BYTES(""), ND_ERR_MALFORMED, "byte 0", "without STOP"},
    {"no STOP", BYTES("K\x01"), ND_ERR_MALFORMED, "byte 2", "without STOP"},
    {"no value", BYTES("."), ND_ERR_MALFORMED, "byte 0", "STOP: the stack is empty"},
    {"a byte that is no opcode", BYTES("K\x01\xff."), ND_ERR_MALFORMED, "byte 2", "0xff"},
    {"protocol 6", BYTES("\x80\x06K\x01."), ND_ERR_UNSUPPORTED, "byte 0", "PROTO"},
    {"a short number", BYTES("J\x01\x02"), ND_ERR_MALFORMED, "byte 0", "BININT"},
    {"a short float", BYTES("G\x01\x02"), ND_ERR_MALFORMED, "byte 0", "BINFLOAT"},
    {"a text past the end", BYTES("X\xff\xff\xff\xff" "a."), ND_ERR_MALFORMED, "byte 0",
     "BINUNICODE"},
    {"a text of 2^63 bytes", BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff" "a."),
     ND_ERR_MALFORMED, "byte 0", "BINUNICODE8"},
    {"a frame past the end", BYTES("\x95\x03\x00\x00\x00\x00\x00\x00\x00K."),
     ND_ERR_MALFORMED, "byte 0", "FRAME"},
    {"a tuple of too few", BYTES("K\x01\x86."), ND_ERR_MALFORMED, "byte 2", "TUPLE2"},
    {"a tuple across a MARK", BYTES("K\x01(K\x02\x86."), ND_ERR_MALFORMED, "byte 5", "TUPLE2"},
    {"a MARK that is missing", BYTES("K\x01t."), ND_ERR_MALFORMED, "byte 2", "TUPLE"},
    {"an odd dict", BYTES("}(K\x01u."), ND_ERR_MALFORMED, "byte 4", "SETITEMS"},
    {"an item for a number", BYTES("K\x01K\x02" "a."), ND_ERR_MALFORMED, "byte 4", "APPEND"},
    {"a key for a list", BYTES("]K\x01K\x02s."), ND_ERR_MALFORMED, "byte 5", "SETITEM"},
    {"an element for a tuple", BYTES(")K\x02" "a."), ND_ERR_MALFORMED, "byte 3", "APPEND"},
    {"a call of a number", BYTES("K\x01)R."), ND_ERR_MALFORMED, "byte 3", "REDUCE"},
    {"arguments that are no tuple", BYTES("cos\nsystem\nK\x01R."), ND_ERR_MALFORMED,
     "byte 13", "REDUCE"},
    {"keywords that are no dict", BYTES("cm\nC\n)K\x01\x92."), ND_ERR_MALFORMED, "byte 8",
     "NEWOBJ_EX"},
    {"a state for a dict", BYTES("}K\x01" "b."), ND_ERR_MALFORMED, "byte 3", "BUILD"},
    {"a global of numbers", BYTES("K\x01K\x02\x93."), ND_ERR_MALFORMED, "byte 4",
     "STACK_GLOBAL"},
    {"a global without an end", BYTES("cos\nsystem"), ND_ERR_MALFORMED, "byte 0", "GLOBAL"},
    {"a memo entry that is missing", BYTES("h\x01."), ND_ERR_MALFORMED, "byte 0", "BINGET"},
    {"a memo index of 2^32", BYTES("K\x01r\xff\xff\xff\xff."), ND_ERR_MALFORMED, "byte 2",
     "LONG_BINPUT"},
    {"a put of nothing", BYTES("q\x01."), ND_ERR_MALFORMED, "byte 0", "BINPUT"},
    {"an OBJ of nothing", BYTES("(o."), ND_ERR_MALFORMED, "byte 1", "OBJ"},
    {"INT of protocol 0", BYTES("I5\n."), ND_ERR_UNSUPPORTED, "byte 0", "INT"},
    {"FLOAT of protocol 0", BYTES("F5\n."), ND_ERR_UNSUPPORTED, "byte 0", "FLOAT"},
    {"STRING of protocol 0", BYTES("S'a'\n."), ND_ERR_UNSUPPORTED, "byte 0", "STRING"},
    {"INST of protocol 0", BYTES("(ios\nsystem\n."), ND_ERR_UNSUPPORTED, "byte 1", "INST"},
    {"PERSID of protocol 0", BYTES("Px\n."), ND_ERR_UNSUPPORTED, "byte 0", "PERSID"},
    {"a buffer elsewhere", BYTES("\x97."), ND_ERR_UNSUPPORTED, "byte 0", "NEXT_BUFFER"},
};
/* clang-format on */

static void pickle_says_what_is_wrong_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unsound / sizeof *unsound; i++) {
        const struct outcome outcome = read_pickle(unsound[i].bytes, unsound[i].size);
        if (outcome.status != unsound[i].status)
            fail_msg("%s: status %d, tree %s", unsound[i].name, (int)outcome.status,
                     outcome.text);
        if (strcmp(outcome.error.at, unsound[i].at) != 0 ||
            strstr(outcome.error.found, unsound[i].found) == NULL)
            fail_msg("%s: %s: %s", unsound[i].name, outcome.error.at, outcome.error.found);
    }
}

static void pickle_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof from_python / sizeof *from_python; i++)
        for (size_t size = 0; size < from_python[i].size; size++)
            assert_int_equal(read_pickle(from_python[i].bytes, size).status,
                             ND_ERR_MALFORMED);
}

static void pickle_survives_any_changed_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof from_python / sizeof *from_python; i++)
        for (size_t at = 0; at < from_python[i].size; at++)
            for (unsigned change = 1; change < 256; change += 7) {
                char copy[512];
                assert_true(from_python[i].size <= sizeof copy);
                memcpy(copy, from_python[i].bytes, from_python[i].size);
                copy[at] = (char)((unsigned char)copy[at] ^ change);
                (void)read_pickle(copy, from_python[i].size);
            }
}

/* --- cost -------------------------------------------------------------------------- */

static void pickle_nests_without_recursion(void **state)
{
    enum { DEPTH = 1000000 };
    struct bytes bytes = {0};

    (void)state;
    bytes_text(&bytes, ")");
    for (int i = 0; i < DEPTH; i++)
        bytes_text(&bytes, "\x85");
    bytes_text(&bytes, ".");
    assert_int_equal(read_pickle(bytes.at, bytes.size).status, ND_OK);
    bytes_free(&bytes);
}

static void pickle_memory_stays_in_proportion(void **state)
{
    enum { GLOBALS = 200000, NAME = 60000 };
    struct bytes bytes = {0};
    char *name = malloc(NAME);

    (void)state;
    assert_non_null(name);
    memset(name, 'x', NAME);
    bytes_text(&bytes, "X");
    bytes_le(&bytes, NAME, 4);
    bytes_put(&bytes, name, NAME);
    bytes_put(&bytes, "q\x00(", 3);
    for (int i = 0; i < GLOBALS; i++) /* copies of the name would take 24 GB */
        bytes_put(&bytes, "h\x00h\x00\x93", 5);
    bytes_text(&bytes, "t.");
    assert_int_equal(read_pickle(bytes.at, bytes.size).status, ND_OK);
    bytes_free(&bytes);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pickle_reads_what_python_writes),
        cmocka_unit_test(pickle_reads_every_opcode),
        cmocka_unit_test(pickle_stops_at_stop),
        cmocka_unit_test(pickle_collects_persistent_ids),
        cmocka_unit_test(pickle_says_what_is_wrong_and_where),
        cmocka_unit_test(pickle_cut_anywhere_is_an_error),
        cmocka_unit_test(pickle_survives_any_changed_byte),
        cmocka_unit_test(pickle_nests_without_recursion),
        cmocka_unit_test(pickle_memory_stays_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
