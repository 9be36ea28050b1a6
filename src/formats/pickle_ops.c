/*
 * The pickle opcodes, one row each; names and arguments as in CPython's
 * Lib/pickletools.py.  A row's argument is the size of the number that follows the
 * opcode, or how many values it takes.
 */
#include "formats/pickle_machine.h"

enum { PROTOCOL_MAX = 5 };

/* A length of `size` bytes, then as many bytes, in place. */
static enum nd_status op_slice(struct pickle_machine *machine, unsigned size,
                               struct pickle *ret_value)
{
    const unsigned char *bytes;
    uint64_t len;

    ND_TRY(nd_pickle_number(machine, size, &len));
    if (!nd_cursor_take(machine->in, len, &bytes))
        return nd_pickle_short(machine);
    if (len > UINT32_MAX)
        return nd_pickle_fail(machine, ND_ERR_LIMIT, "fewer than 4 GiB", "a longer text");
    ret_value->len = (uint32_t)len;
    ret_value->as.text = (const char *)bytes;
    return ND_OK;
}

/* --- constants and numbers --------------------------------------------------------- */

static enum nd_status op_none(struct pickle_machine *machine, unsigned unused)
{
    (void)unused;
    return nd_pickle_push(machine, (struct pickle){.kind = PICKLE_NONE});
}

static enum nd_status op_bool(struct pickle_machine *machine, unsigned value)
{
    return nd_pickle_push(machine,
                          (struct pickle){.kind = PICKLE_BOOL, .as.integer = value});
}

static enum nd_status op_int(struct pickle_machine *machine, unsigned size)
{
    uint64_t value;

    ND_TRY(nd_pickle_number(machine, size, &value));
    const int64_t integer = size == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
    return nd_pickle_push(machine,
                          (struct pickle){.kind = PICKLE_INT, .as.integer = integer});
}

static enum nd_status op_long(struct pickle_machine *machine, unsigned size)
{
    struct pickle value = {.kind = PICKLE_LONG};

    ND_TRY(op_slice(machine, size, &value));
    if (value.len <= 8) {
        const unsigned char *bytes = (const unsigned char *)value.as.text;
        uint64_t bits = nd_load_le(bytes, value.len);
        if (value.len > 0 && value.len < 8 && (bytes[value.len - 1] & 0x80) != 0)
            bits |= UINT64_MAX << (8 * value.len);
        value = (struct pickle){.kind = PICKLE_INT, .as.integer = (int64_t)bits};
    }
    return nd_pickle_push(machine, value);
}

static enum nd_status op_float(struct pickle_machine *machine, unsigned size)
{
    const unsigned char *bytes;
    struct pickle value = {.kind = PICKLE_FLOAT};
    uint64_t bits = 0;

    if (!nd_cursor_take(machine->in, size, &bytes))
        return nd_pickle_short(machine);
    for (unsigned i = 0; i < size; i++) /* the one big-endian argument of pickle */
        bits = bits << 8 | bytes[i];
    memcpy(&value.as.number, &bits, sizeof bits);
    return nd_pickle_push(machine, value);
}

static enum nd_status op_text(struct pickle_machine *machine, unsigned size)
{
    struct pickle value = {.kind = PICKLE_TEXT};

    ND_TRY(op_slice(machine, size, &value));
    return nd_pickle_push(machine, value);
}

static enum nd_status op_bytes(struct pickle_machine *machine, unsigned size)
{
    struct pickle value = {.kind = PICKLE_BYTES};

    ND_TRY(op_slice(machine, size, &value));
    return nd_pickle_push(machine, value);
}

/* --- memo, stack, framing ---------------------------------------------------------- */

static enum nd_status op_put(struct pickle_machine *machine, unsigned size)
{
    uint64_t index;

    ND_TRY(nd_pickle_number(machine, size, &index));
    return nd_pickle_put(machine, index);
}

static enum nd_status op_get(struct pickle_machine *machine, unsigned size)
{
    uint64_t index;

    ND_TRY(nd_pickle_number(machine, size, &index));
    return nd_pickle_get(machine, index);
}

static enum nd_status op_memoize(struct pickle_machine *machine, unsigned unused)
{
    (void)unused;
    return nd_pickle_put(machine, machine->memo_used);
}

static enum nd_status op_mark(struct pickle_machine *machine, unsigned unused)
{
    (void)unused;
    return nd_pickle_mark(machine);
}

static enum nd_status op_pop(struct pickle_machine *machine, unsigned unused)
{
    const size_t fence =
        machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
    struct pickle value;

    (void)unused;
    if (machine->mark_count > 0 && machine->count == fence) { /* CPython: POP of a MARK */
        machine->mark_count--;
        return ND_OK;
    }
    return nd_pickle_pop(machine, &value);
}

static enum nd_status op_pop_mark(struct pickle_machine *machine, unsigned unused)
{
    const struct pickle *items;
    size_t count;

    (void)unused;
    return nd_pickle_pop_mark(machine, &items, &count);
}

static enum nd_status op_dup(struct pickle_machine *machine, unsigned unused)
{
    const struct pickle *top = nd_pickle_top(machine);

    (void)unused;
    return top == NULL ? ND_ERR_MALFORMED : nd_pickle_push(machine, *top);
}

static enum nd_status op_protocol(struct pickle_machine *machine, unsigned size)
{
    uint64_t version;

    ND_TRY(nd_pickle_number(machine, size, &version));
    if (version > PROTOCOL_MAX)
        return nd_pickle_fail(machine, ND_ERR_UNSUPPORTED, "pickle protocol 2 to 5",
                              "a newer protocol");
    return ND_OK;
}

static enum nd_status op_frame(struct pickle_machine *machine, unsigned size)
{
    uint64_t len;

    ND_TRY(nd_pickle_number(machine, size, &len));
    return len <= nd_cursor_left(machine->in) ? ND_OK : nd_pickle_short(machine);
}

static enum nd_status op_stop(struct pickle_machine *machine, unsigned unused)
{
    struct pickle root;

    (void)unused;
    ND_TRY(nd_pickle_pop(machine, &root));
    machine->stopped = true;
    return ND_OK;
}

/* --- refused ----------------------------------------------------------------------- */

static enum nd_status op_protocol_0(struct pickle_machine *machine, unsigned unused)
{
    (void)unused;
    return nd_pickle_fail(machine, ND_ERR_UNSUPPORTED, "pickle protocol 2 to 5",
                          "a text opcode of protocol 0, which torch.save never writes");
}

static enum nd_status op_buffer(struct pickle_machine *machine, unsigned unused)
{
    (void)unused;
    return nd_pickle_fail(machine, ND_ERR_UNSUPPORTED,
                          "a pickle that holds all of its data",
                          "a buffer that lies outside the file");
}

const struct pickle_opcode nd_pickle_opcodes[256] = {
    ['N'] = {"NONE",             op_none,                   0           },
    [0x88] = {"NEWTRUE",          op_bool,                   1           },
    [0x89] = {"NEWFALSE",         op_bool,                   0           },
    ['K'] = {"BININT1",          op_int,                    1           },
    ['M'] = {"BININT2",          op_int,                    2           },
    ['J'] = {"BININT",           op_int,                    4           },
    [0x8a] = {"LONG1",            op_long,                   1           },
    [0x8b] = {"LONG4",            op_long,                   4           },
    ['G'] = {"BINFLOAT",         op_float,                  8           },
    [0x8c] = {"SHORT_BINUNICODE", op_text,                   1           },
    ['X'] = {"BINUNICODE",       op_text,                   4           },
    [0x8d] = {"BINUNICODE8",      op_text,                   8           },
    ['U'] = {"SHORT_BINSTRING",  op_bytes,                  1           },
    ['T'] = {"BINSTRING",        op_bytes,                  4           },
    ['C'] = {"SHORT_BINBYTES",   op_bytes,                  1           },
    ['B'] = {"BINBYTES",         op_bytes,                  4           },
    [0x8e] = {"BINBYTES8",        op_bytes,                  8           },
    [0x96] = {"BYTEARRAY8",       op_bytes,                  8           },
    [')'] = {"EMPTY_TUPLE",      nd_pickle_op_tuple_of,     0           },
    [0x85] = {"TUPLE1",           nd_pickle_op_tuple_of,     1           },
    [0x86] = {"TUPLE2",           nd_pickle_op_tuple_of,     2           },
    [0x87] = {"TUPLE3",           nd_pickle_op_tuple_of,     3           },
    ['t'] = {"TUPLE",            nd_pickle_op_gather,       PICKLE_TUPLE},
    [']'] = {"EMPTY_LIST",       nd_pickle_op_empty,        PICKLE_LIST },
    ['l'] = {"LIST",             nd_pickle_op_gather,       PICKLE_LIST },
    ['a'] = {"APPEND",           nd_pickle_op_append,       PICKLE_LIST },
    ['e'] = {"APPENDS",          nd_pickle_op_add_all,      PICKLE_LIST },
    ['}'] = {"EMPTY_DICT",       nd_pickle_op_empty,        PICKLE_DICT },
    ['d'] = {"DICT",             nd_pickle_op_gather,       PICKLE_DICT },
    ['s'] = {"SETITEM",          nd_pickle_op_set_item,     0           },
    ['u'] = {"SETITEMS",         nd_pickle_op_add_all,      PICKLE_DICT },
    [0x8f] = {"EMPTY_SET",        nd_pickle_op_empty,        PICKLE_SET  },
    [0x90] = {"ADDITEMS",         nd_pickle_op_add_all,      PICKLE_SET  },
    [0x91] = {"FROZENSET",        nd_pickle_op_gather,       PICKLE_SET  },
    ['c'] = {"GLOBAL",           nd_pickle_op_global,       0           },
    [0x93] = {"STACK_GLOBAL",     nd_pickle_op_stack_global, 0           },
    [0x82] = {"EXT1",             nd_pickle_op_extension,    1           },
    [0x83] = {"EXT2",             nd_pickle_op_extension,    2           },
    [0x84] = {"EXT4",             nd_pickle_op_extension,    4           },
    ['R'] = {"REDUCE",           nd_pickle_op_call,         0           },
    [0x81] = {"NEWOBJ",           nd_pickle_op_call,         0           },
    [0x92] = {"NEWOBJ_EX",        nd_pickle_op_call,         1           },
    ['o'] = {"OBJ",              nd_pickle_op_object,       0           },
    ['b'] = {"BUILD",            nd_pickle_op_build,        0           },
    ['Q'] = {"BINPERSID",        nd_pickle_op_persistent,   0           },
    ['q'] = {"BINPUT",           op_put,                    1           },
    ['r'] = {"LONG_BINPUT",      op_put,                    4           },
    ['h'] = {"BINGET",           op_get,                    1           },
    ['j'] = {"LONG_BINGET",      op_get,                    4           },
    [0x94] = {"MEMOIZE",          op_memoize,                0           },
    ['('] = {"MARK",             op_mark,                   0           },
    ['0'] = {"POP",              op_pop,                    0           },
    ['1'] = {"POP_MARK",         op_pop_mark,               0           },
    ['2'] = {"DUP",              op_dup,                    0           },
    [0x80] = {"PROTO",            op_protocol,               1           },
    [0x95] = {"FRAME",            op_frame,                  8           },
    ['.'] = {"STOP",             op_stop,                   0           },
    ['I'] = {"INT",              op_protocol_0,             0           },
    ['L'] = {"LONG",             op_protocol_0,             0           },
    ['F'] = {"FLOAT",            op_protocol_0,             0           },
    ['S'] = {"STRING",           op_protocol_0,             0           },
    ['V'] = {"UNICODE",          op_protocol_0,             0           },
    ['P'] = {"PERSID",           op_protocol_0,             0           },
    ['i'] = {"INST",             op_protocol_0,             0           },
    ['p'] = {"PUT",              op_protocol_0,             0           },
    ['g'] = {"GET",              op_protocol_0,             0           },
    [0x97] = {"NEXT_BUFFER",      op_buffer,                 0           },
    [0x98] = {"READONLY_BUFFER",  op_buffer,                 0           },
};
