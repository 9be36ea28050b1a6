/*
 * The pickle machine.  A pickle is a program for a stack machine; this one only ever
 * builds values.  What real files use was learned from CPython's Lib/pickletools.py and
 * from files of torch 1.11, 1.13 and 2.x:
 *
 *   1. 0x80 P: PROTO, the protocol (2 to 5); protocol 4 adds FRAME headers
 *   2. opcodes of one byte, some with an argument behind them (pickle_ops.c,
 * pickle_build.c)
 *   3. '.': STOP; the value on top of the stack is the result
 *
 * Everything is bounded by what was read: a text lies inside the file, a memo index is
 * below the bytes read so far (each PUT costs two), and stack, memo and tree together
 * stay below 64 MiB + 64 bytes a byte read, and below ND_PICKLE_MAX_MEMORY.
 */
#include "formats/pickle_machine.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES_PER_BYTE = 64 };
#define FREE_MEMORY ((uint64_t)64 << 20)

enum nd_status nd_pickle_fail(struct pickle_machine *machine, enum nd_status status,
                              const char *expected, const char *found)
{
    return nd_fail_at(machine->err, status, machine->op_at, expected,
                      "pickle opcode %s: %s", machine->op, found);
}

enum nd_status nd_pickle_short(struct pickle_machine *machine)
{
    return nd_pickle_fail(machine, ND_ERR_MALFORMED, "an argument inside the file",
                          "its argument runs past the end");
}

enum nd_status nd_pickle_number(struct pickle_machine *machine, unsigned size,
                                uint64_t *ret_value)
{
    return nd_cursor_le(machine->in, size, ret_value) ? ND_OK : nd_pickle_short(machine);
}

static enum nd_status pickle_charge(struct pickle_machine *machine, uint64_t bytes)
{
    const uint64_t read = machine->in->at - machine->start;

    machine->memory += bytes;
    if (machine->memory > ND_PICKLE_MAX_MEMORY ||
        machine->memory > FREE_MEMORY + BYTES_PER_BYTE * read)
        return nd_pickle_fail(machine, ND_ERR_LIMIT, "a pickle whose objects fit in 1 GiB",
                              "too many objects for its size");
    return ND_OK;
}

/* Doubles a heap array until it holds `want` elements. */
static enum nd_status pickle_reserve(struct pickle_machine *machine, void **array,
                                     size_t *capacity, size_t want, size_t element_size)
{
    size_t grown = *capacity == 0 ? 64 : *capacity;

    if (want <= *capacity)
        return ND_OK;
    while (grown < want)
        grown *= 2;
    ND_TRY(pickle_charge(machine, (grown - *capacity) * element_size));
    void *moved = realloc(*array, grown * element_size);
    if (moved == NULL)
        return nd_fail_memory(machine->err);
    *array = moved;
    *capacity = grown;
    return ND_OK;
}

static size_t pickle_fence(const struct pickle_machine *machine)
{
    return machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
}

enum nd_status nd_pickle_push(struct pickle_machine *machine, struct pickle value)
{
    void *stack = machine->stack;
    const enum nd_status status = pickle_reserve(machine, &stack, &machine->capacity,
                                                 machine->count + 1, sizeof value);
    machine->stack = stack;
    if (status == ND_OK)
        machine->stack[machine->count++] = value;
    return status;
}

struct pickle *nd_pickle_top(struct pickle_machine *machine)
{
    if (machine->count == pickle_fence(machine)) {
        nd_pickle_fail(machine, ND_ERR_MALFORMED, "a value on the stack",
                       "the stack is empty");
        return NULL;
    }
    return &machine->stack[machine->count - 1];
}

enum nd_status nd_pickle_pop(struct pickle_machine *machine, struct pickle *ret_value)
{
    const struct pickle *top = nd_pickle_top(machine);

    if (top == NULL)
        return ND_ERR_MALFORMED;
    *ret_value = *top;
    machine->count--;
    return ND_OK;
}

enum nd_status nd_pickle_mark(struct pickle_machine *machine)
{
    void *marks = machine->marks;
    const enum nd_status status =
        pickle_reserve(machine, &marks, &machine->mark_capacity, machine->mark_count + 1,
                       sizeof *machine->marks);
    machine->marks = marks;
    if (status == ND_OK)
        machine->marks[machine->mark_count++] = machine->count;
    return status;
}

enum nd_status nd_pickle_pop_mark(struct pickle_machine *machine,
                                  const struct pickle **ret_items, size_t *ret_count)
{
    if (machine->mark_count == 0)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "an earlier MARK",
                              "there is no MARK");
    const size_t at = machine->marks[--machine->mark_count];
    *ret_items = machine->stack == NULL ? NULL : machine->stack + at;
    *ret_count = machine->count - at;
    machine->count = at;
    return ND_OK;
}

enum nd_status nd_pickle_put(struct pickle_machine *machine, uint64_t index)
{
    const struct pickle *top = nd_pickle_top(machine);

    if (top == NULL)
        return ND_ERR_MALFORMED;
    /* Hand-made pickles may number freely within one byte. */
    if (index > UINT8_MAX && index > machine->in->at - machine->start)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED,
                              "memo indexes that count up from 0",
                              "the memo index is too large");
    const size_t before = machine->memo_size;
    void *memo = machine->memo;
    const enum nd_status status = pickle_reserve(machine, &memo, &machine->memo_size,
                                                 (size_t)index + 1, sizeof *machine->memo);
    machine->memo = memo;
    ND_TRY(status);
    for (size_t i = before; i < machine->memo_size; i++)
        machine->memo[i].kind = PICKLE_MARK;
    if (machine->memo[index].kind == PICKLE_MARK)
        machine->memo_used++;
    machine->memo[index] = *top;
    return ND_OK;
}

enum nd_status nd_pickle_get(struct pickle_machine *machine, uint64_t index)
{
    if (index >= machine->memo_size || machine->memo[index].kind == PICKLE_MARK)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a memo entry that was put before",
                              "the memo has no such entry");
    return nd_pickle_push(machine, machine->memo[index]);
}

enum nd_status nd_pickle_list_new(struct pickle_machine *machine,
                                  const struct pickle *items, size_t count,
                                  struct pickle_list **ret_list)
{
    /* The head and its first items are one allocation: most tuples never grow. */
    const size_t head = (sizeof(struct pickle_list) + sizeof *items - 1) / sizeof *items;

    if (count > UINT32_MAX)
        return nd_pickle_fail(machine, ND_ERR_LIMIT, "fewer than 2^32 items",
                              "a longer list");
    ND_TRY(pickle_charge(machine, (head + count) * sizeof *items));
    struct pickle *block = nd_arena_alloc(machine->arena, head + count, sizeof *items);
    if (block == NULL)
        return nd_fail_memory(machine->err);
    struct pickle_list *list = (void *)block;
    list->items = block + head;
    list->count = list->capacity = (uint32_t)count;
    if (items != NULL && count > 0)
        memcpy(list->items, items, count * sizeof *items);
    *ret_list = list;
    return ND_OK;
}

enum nd_status nd_pickle_list_add(struct pickle_machine *machine, struct pickle_list *list,
                                  const struct pickle *items, size_t count)
{
    if (count == 0)
        return ND_OK;
    if (count > UINT32_MAX - list->count)
        return nd_pickle_fail(machine, ND_ERR_LIMIT, "fewer than 2^32 items",
                              "a longer list");
    const size_t want = list->count + count;
    if (want > list->capacity) {
        /* Exact at first (a batch is often all there is), then doubling. */
        size_t room = list->count == 0 ? want : (size_t)list->capacity * 2;
        if (room < want)
            room = want;
        if (room > UINT32_MAX)
            room = UINT32_MAX;
        ND_TRY(pickle_charge(machine, room * sizeof *items));
        struct pickle *moved = nd_arena_alloc(machine->arena, room, sizeof *items);
        if (moved == NULL)
            return nd_fail_memory(machine->err);
        if (list->count > 0)
            memcpy(moved, list->items, list->count * sizeof *items);
        list->items = moved;
        list->capacity = (uint32_t)room;
    }
    memcpy(list->items + list->count, items, count * sizeof *items);
    list->count = (uint32_t)want;
    return ND_OK;
}

static enum nd_status pickle_step(struct pickle_machine *machine)
{
    uint64_t code;

    machine->op_at = machine->in->at;
    if (!nd_cursor_le(machine->in, 1, &code))
        return nd_fail_at(machine->err, ND_ERR_MALFORMED, machine->op_at,
                          "a pickle that ends with STOP", "the pickle ends without STOP");
    const struct pickle_opcode *opcode = &nd_pickle_opcodes[code];
    if (opcode->run == NULL)
        return nd_fail_at(machine->err, ND_ERR_MALFORMED, machine->op_at, "a pickle opcode",
                          "byte 0x%02x is no pickle opcode", (unsigned)code);
    machine->op = opcode->name;
    return opcode->run(machine, opcode->argument);
}

enum nd_status nd_pickle_read(struct cursor *in, struct arena *arena,
                              struct pickle *ret_root, struct pickle_list *ret_persistent,
                              struct nd_error *err)
{
    struct pickle_list persistent = {0};
    struct pickle_machine machine = {
        .in = in,
        .arena = arena,
        .err = err,
        .start = in->at,
        .persistent = ret_persistent == NULL ? NULL : &persistent,
    };
    enum nd_status status = ND_OK;

    while (status == ND_OK && !machine.stopped)
        status = pickle_step(&machine);
    if (status == ND_OK) {
        *ret_root = machine.stack[machine.count];
        if (ret_persistent != NULL)
            *ret_persistent = persistent;
    }
    free(machine.stack);
    free(machine.marks);
    free(machine.memo);
    return status;
}
