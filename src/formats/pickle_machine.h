/*
 * The pickle machine: stack, marks, memo and the memory they may use.  Shared by
 * pickle.c (the machine), pickle_ops.c (the table of opcodes; numbers, texts, memo) and
 * pickle_build.c (containers, globals, calls).
 */
#ifndef ND_FORMATS_PICKLE_MACHINE_H
#define ND_FORMATS_PICKLE_MACHINE_H

#include "formats/pickle.h"

struct pickle_machine {
    struct cursor *in;
    struct arena *arena;
    struct nd_error *err;
    uint64_t start; /* of the pickle */
    uint64_t op_at; /* of the opcode that runs */
    const char *op; /* its name */
    struct pickle *stack;
    size_t count, capacity;
    size_t *marks; /* stack heights of the open MARKs */
    size_t mark_count, mark_capacity;
    struct pickle *memo; /* MARK: not set */
    size_t memo_size, memo_used;
    uint64_t memory;
    struct pickle_list *persistent;
    bool stopped;
};

/* One opcode: NULL run is "not an opcode". */
struct pickle_opcode {
    const char *name;
    enum nd_status (*run)(struct pickle_machine *machine, unsigned argument);
    unsigned argument;
};
extern const struct pickle_opcode nd_pickle_opcodes[256];

/* Fails at the running opcode: "REDUCE: <found>". */
enum nd_status nd_pickle_fail(struct pickle_machine *machine, enum nd_status status,
                              const char *expected, const char *found);
enum nd_status nd_pickle_short(struct pickle_machine *machine); /* argument past the end */
/* A little-endian argument of `size` bytes. */
enum nd_status nd_pickle_number(struct pickle_machine *machine, unsigned size,
                                uint64_t *ret_value);
enum nd_status nd_pickle_push(struct pickle_machine *machine, struct pickle value);
/* Takes the top value; fails if there is none above the last MARK. */
enum nd_status nd_pickle_pop(struct pickle_machine *machine, struct pickle *ret_value);
/* The top value, still on the stack; NULL after a failure. */
struct pickle *nd_pickle_top(struct pickle_machine *machine);
enum nd_status nd_pickle_mark(struct pickle_machine *machine);
/* Takes everything above the last MARK: *ret_items stays good until the next push. */
enum nd_status nd_pickle_pop_mark(struct pickle_machine *machine,
                                  const struct pickle **ret_items, size_t *ret_count);
enum nd_status nd_pickle_put(struct pickle_machine *machine, uint64_t index);
enum nd_status nd_pickle_get(struct pickle_machine *machine, uint64_t index);
/* A list holding copies of the items. */
enum nd_status nd_pickle_list_new(struct pickle_machine *machine,
                                  const struct pickle *items, size_t count,
                                  struct pickle_list **ret_list);
enum nd_status nd_pickle_list_add(struct pickle_machine *machine, struct pickle_list *list,
                                  const struct pickle *items, size_t count);

/* The opcodes of pickle_build.c; `argument` as in the table. */
enum nd_status nd_pickle_op_empty(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_tuple_of(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_gather(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_append(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_set_item(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_add_all(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_global(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_stack_global(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_extension(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_call(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_object(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_build(struct pickle_machine *machine, unsigned argument);
enum nd_status nd_pickle_op_persistent(struct pickle_machine *machine, unsigned argument);

#endif
