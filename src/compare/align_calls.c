/*
 * Calls of functions, "Functional.linear.3.forward": the number counts the calls of one
 * function in the whole run, so it names a place only where both runs made the same calls.
 * One more addition on one side (a norm written out beside a fused one) moves every number
 * behind it; such calls wait for the sequence (align_sequence.c), which looks at shapes,
 * values and neighbours.
 */
#include <string.h>

#include "compare/align.h"

/* What msprobe puts before the functions that it patches. */
static const char *const prefixes[] = {
    "Functional", "Tensor",         "Torch",           "NPU",       "Aten",
    "VF",         "Distributed",    "MindSpeed",       "Primitive", "Triton",
    "Mint",       "MintFunctional", "MintDistributed", "Jit"};

/* What lies above steps and ranks stands before a name, with a slash. */
static bool has_prefix(const char *name)
{
    const char *slash = strrchr(name, '/'), *from = slash == NULL ? name : slash + 1;
    const size_t len = strcspn(from, ".");

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strlen(prefixes[i]) == len && memcmp(prefixes[i], from, len) == 0)
            return true;
    return false;
}

bool nd_call_base(const char *name, size_t *ret_len)
{
    static const char *const ends[] = {".forward", ".backward"};
    const size_t len = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        size_t at = len - end;
        if (len <= end || strcmp(name + at, ends[i]) != 0)
            continue;
        while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
            at--;
        if (at == len - end || at < 2 || name[at - 1] != '.' || !has_prefix(name))
            return false;
        *ret_len = at - 1;
        return true;
    }
    return false;
}

const struct dump_slot *nd_first_slot(const struct dump_layer *layer, const char *kind)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strncmp(layer->slots[i].name, kind, strlen(kind)) == 0)
            return &layer->slots[i];
    return NULL;
}

struct nd_shape nd_slot_squeezed(const struct dump_slot *slot)
{
    return nd_shape_squeezed(slot->logical != NULL ? slot->logical : &slot->storage);
}

static const char *call_key(struct arena *arena, const void *user,
                            const struct dump_layer *layer, unsigned side)
{
    size_t len;

    (void)user;
    (void)side;
    return nd_call_base(layer->name, &len) ? nd_arena_copy(arena, layer->name, len) : NULL;
}

/* What is not dumped contradicts nothing. */
static bool shapes_fit(const struct dump_layer *a, const struct dump_layer *b)
{
    const struct dump_slot *x = nd_first_slot(a, "output."),
                           *y = nd_first_slot(b, "output.");

    if (x == NULL || y == NULL)
        return true;
    const struct nd_shape p = nd_slot_squeezed(x), q = nd_slot_squeezed(y);
    return nd_shape_equal(&p, &q);
}

/* Calls that were left out of a dump leave a hole; calls that were not made do not. */
static bool has_hole(const struct keyed *list, size_t count)
{
    return (uint64_t)(list[count - 1].call - list[0].call) + 1 != count;
}

static bool is_trusted(const struct side_layers *sides, const struct keyed *a, size_t na,
                       const struct keyed *b, size_t nb)
{
    bool same = na == nb;

    for (size_t i = 0, k = 0; i < na && k < nb;) {
        if (a[i].call == b[k].call &&
            !shapes_fit(sides[0].layers[a[i].index], sides[1].layers[b[k].index]))
            return false;
        same = same && a[i].call == b[k].call;
        const bool step_a = a[i].call <= b[k].call, step_b = b[k].call <= a[i].call;
        i += step_a;
        k += step_b;
    }
    return same || has_hole(a, na) || has_hole(b, nb) || a[0].call != b[0].call;
}

/* All calls of one function. */
static void pair_calls(struct side_layers *sides, const struct keyed *a, size_t na,
                       const struct keyed *b, size_t nb, enum nd_match match)
{
    const bool trusted = is_trusted(sides, a, na, b, nb);

    for (size_t i = 0, k = 0; trusted && i < na && k < nb;) {
        const bool step_a = a[i].call <= b[k].call, step_b = b[k].call <= a[i].call;
        if (step_a && step_b)
            nd_align_pair(sides, a[i].index, b[k].index, match);
        i += step_a;
        k += step_b;
    }
    for (size_t i = 0; i < na; i++)
        sides[0].held[a[i].index] = !trusted;
    for (size_t k = 0; k < nb; k++)
        sides[1].held[b[k].index] = !trusted;
}

enum nd_status nd_align_calls(struct arena *arena, struct side_layers *sides,
                              struct nd_error *err)
{
    for (unsigned side = 0; side < 2; side++) {
        sides[side].held = nd_arena_alloc(arena, sides[side].count + 1, sizeof(bool));
        if (sides[side].held == NULL)
            return nd_fail_memory(err);
    }
    return nd_align_runs(sides, call_key, NULL, ND_MATCH_EXACT, pair_calls, err);
}

/* What the sequence left: as many calls on both sides are those of the same numbers, and
 * what their shapes say against it is what the user wants to know. */
static void pair_rest(struct side_layers *sides, const struct keyed *a, size_t na,
                      const struct keyed *b, size_t nb, enum nd_match match)
{
    bool same = na == nb;

    for (size_t i = 0; same && i < na; i++)
        same = a[i].call == b[i].call;
    for (size_t i = 0; same && i < na; i++)
        nd_align_pair(sides, a[i].index, b[i].index, match);
}

enum nd_status nd_align_calls_rest(struct side_layers *sides, struct nd_error *err)
{
    sides[0].held = sides[1].held = NULL;
    return nd_align_runs(sides, call_key, NULL, ND_MATCH_EXACT, pair_rest, err);
}
