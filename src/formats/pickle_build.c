/*
 * The pickle opcodes that build containers, globals and calls; names and arguments as in
 * CPython's Lib/pickletools.py.
 */
#include "formats/pickle_machine.h"

static enum nd_status op_push_list(struct pickle_machine *machine, enum pickle_kind kind,
                                   const struct pickle *items, size_t count)
{
    struct pickle value = {.kind = kind};

    ND_TRY(nd_pickle_list_new(machine, items, count, &value.as.list));
    return nd_pickle_push(machine, value);
}

static enum nd_status op_push_call(struct pickle_machine *machine, struct pickle callable,
                                   struct pickle arguments, struct pickle entries)
{
    const struct pickle parts[CALL_PARTS] = {
        [CALL_CALLABLE] = callable,
        [CALL_ARGUMENTS] = arguments,
        [CALL_ENTRIES] = entries,
    };

    if (callable.kind != PICKLE_GLOBAL && callable.kind != PICKLE_CALL &&
        callable.kind != PICKLE_PERSISTENT)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a global to call",
                              "the value to call is none");
    if (arguments.kind != PICKLE_TUPLE)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a tuple of arguments",
                              "the arguments are no tuple");
    if (entries.kind != PICKLE_NONE && entries.kind != PICKLE_DICT)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a dict of keyword arguments",
                              "the keyword arguments are no dict");
    return op_push_list(machine, PICKLE_CALL, parts, CALL_PARTS);
}

/* --- containers -------------------------------------------------------------------- */

enum nd_status nd_pickle_op_empty(struct pickle_machine *machine, unsigned kind)
{
    return op_push_list(machine, (enum pickle_kind)kind, NULL, 0);
}

enum nd_status nd_pickle_op_tuple_of(struct pickle_machine *machine, unsigned count)
{
    struct pickle items[3];

    for (unsigned i = count; i-- > 0;)
        ND_TRY(nd_pickle_pop(machine, &items[i]));
    return op_push_list(machine, PICKLE_TUPLE, items, count);
}

enum nd_status nd_pickle_op_gather(struct pickle_machine *machine, unsigned kind)
{
    const struct pickle *items;
    size_t count;

    ND_TRY(nd_pickle_pop_mark(machine, &items, &count));
    if (kind == PICKLE_DICT && count % 2 != 0)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "keys and values in pairs",
                              "a key without a value");
    return op_push_list(machine, (enum pickle_kind)kind, items, count);
}

/* The list that `kind` of addition goes to: the target itself, or a part of a call. */
static enum nd_status op_target(struct pickle_machine *machine, enum pickle_kind kind,
                                struct pickle_list **ret_list)
{
    const struct pickle *target = nd_pickle_top(machine);

    if (target == NULL)
        return ND_ERR_MALFORMED;
    if (target->kind == kind) {
        *ret_list = target->as.list;
        return ND_OK;
    }
    if (target->kind != PICKLE_CALL)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a container that can take items",
                              "the value below is no such container");
    struct pickle *part =
        &target->as.list->items[kind == PICKLE_DICT ? CALL_ENTRIES : CALL_ELEMENTS];
    if (part->kind == PICKLE_NONE) {
        ND_TRY(nd_pickle_list_new(machine, NULL, 0, &part->as.list));
        part->kind = kind == PICKLE_DICT ? PICKLE_DICT : PICKLE_LIST;
    }
    *ret_list = part->as.list;
    return ND_OK;
}

static enum nd_status op_add(struct pickle_machine *machine, enum pickle_kind kind,
                             const struct pickle *items, size_t count)
{
    struct pickle_list *list = NULL;

    ND_TRY(op_target(machine, kind, &list));
    return nd_pickle_list_add(machine, list, items, count);
}

enum nd_status nd_pickle_op_append(struct pickle_machine *machine, unsigned kind)
{
    struct pickle item;

    ND_TRY(nd_pickle_pop(machine, &item));
    return op_add(machine, (enum pickle_kind)kind, &item, 1);
}

enum nd_status nd_pickle_op_set_item(struct pickle_machine *machine, unsigned unused)
{
    struct pickle pair[2];

    (void)unused;
    ND_TRY(nd_pickle_pop(machine, &pair[1]));
    ND_TRY(nd_pickle_pop(machine, &pair[0]));
    return op_add(machine, PICKLE_DICT, pair, 2);
}

enum nd_status nd_pickle_op_add_all(struct pickle_machine *machine, unsigned kind)
{
    const struct pickle *items;
    size_t count;

    ND_TRY(nd_pickle_pop_mark(machine, &items, &count));
    if (kind == PICKLE_DICT && count % 2 != 0)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "keys and values in pairs",
                              "a key without a value");
    return op_add(machine, (enum pickle_kind)kind, items, count);
}

/* --- globals, calls, persistent ids ------------------------------------------------ */

static enum nd_status op_line(struct pickle_machine *machine, struct pickle *ret_text)
{
    const struct cursor *in = machine->in;
    const char *from = (const char *)in->bytes + in->at;
    const uint64_t left = nd_cursor_left(in);
    const char *end = left == 0 ? NULL : memchr(from, '\n', (size_t)left);

    if (end == NULL || end - from > UINT16_MAX)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a name that ends with a newline",
                              "its name does not end");
    ret_text->kind = PICKLE_TEXT;
    ret_text->len = (uint32_t)(end - from);
    ret_text->as.text = from;
    machine->in->at += (uint64_t)(end - from) + 1;
    return ND_OK;
}

enum nd_status nd_pickle_op_global(struct pickle_machine *machine, unsigned unused)
{
    struct pickle names[2];

    (void)unused;
    ND_TRY(op_line(machine, &names[0]));
    ND_TRY(op_line(machine, &names[1]));
    return op_push_list(machine, PICKLE_GLOBAL, names, 2);
}

enum nd_status nd_pickle_op_stack_global(struct pickle_machine *machine, unsigned unused)
{
    struct pickle names[2];

    (void)unused;
    ND_TRY(nd_pickle_pop(machine, &names[1]));
    ND_TRY(nd_pickle_pop(machine, &names[0]));
    for (unsigned i = 0; i < 2; i++)
        if (names[i].kind != PICKLE_TEXT && names[i].kind != PICKLE_BYTES)
            return nd_pickle_fail(machine, ND_ERR_MALFORMED, "two texts",
                                  "a name is no text");
    return op_push_list(machine, PICKLE_GLOBAL, names, 2);
}

/* A class by its number in copyreg's registry, which is not in the file: opaque. */
enum nd_status nd_pickle_op_extension(struct pickle_machine *machine, unsigned size)
{
    static const char module[] = "copyreg", name[] = "extension";
    const struct pickle names[2] = {
        {.kind = PICKLE_TEXT, .len = sizeof module - 1, .as.text = module},
        {.kind = PICKLE_TEXT, .len = sizeof name - 1,   .as.text = name  },
    };
    uint64_t number;

    ND_TRY(nd_pickle_number(machine, size, &number));
    return op_push_list(machine, PICKLE_GLOBAL, names, 2);
}

/* REDUCE, NEWOBJ (argument 0) and NEWOBJ_EX (1: keyword arguments on top). */
enum nd_status nd_pickle_op_call(struct pickle_machine *machine, unsigned keywords)
{
    struct pickle callable, arguments, entries = {.kind = PICKLE_NONE};

    if (keywords)
        ND_TRY(nd_pickle_pop(machine, &entries));
    ND_TRY(nd_pickle_pop(machine, &arguments));
    ND_TRY(nd_pickle_pop(machine, &callable));
    return op_push_call(machine, callable, arguments, entries);
}

/* OBJ of protocol 1: MARK class argument ... */
enum nd_status nd_pickle_op_object(struct pickle_machine *machine, unsigned unused)
{
    const struct pickle *items;
    size_t count;
    struct pickle arguments = {.kind = PICKLE_TUPLE};

    (void)unused;
    ND_TRY(nd_pickle_pop_mark(machine, &items, &count));
    if (count == 0)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "a class",
                              "nothing above the MARK");
    ND_TRY(nd_pickle_list_new(machine, items + 1, count - 1, &arguments.as.list));
    return op_push_call(machine, items[0], arguments, (struct pickle){.kind = PICKLE_NONE});
}

enum nd_status nd_pickle_op_build(struct pickle_machine *machine, unsigned unused)
{
    struct pickle state;

    (void)unused;
    ND_TRY(nd_pickle_pop(machine, &state));
    const struct pickle *target = nd_pickle_top(machine);
    if (target == NULL)
        return ND_ERR_MALFORMED;
    if (target->kind != PICKLE_CALL)
        return nd_pickle_fail(machine, ND_ERR_MALFORMED, "an object to give a state to",
                              "the value below is no object");
    target->as.list->items[CALL_STATE] = state;
    return ND_OK;
}

enum nd_status nd_pickle_op_persistent(struct pickle_machine *machine, unsigned unused)
{
    struct pickle id;

    (void)unused;
    ND_TRY(nd_pickle_pop(machine, &id));
    if (machine->persistent != NULL)
        ND_TRY(nd_pickle_list_add(machine, machine->persistent, &id, 1));
    return op_push_list(machine, PICKLE_PERSISTENT, &id, 1);
}
