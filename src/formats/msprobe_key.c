/*
 * Names of msprobe's records, as its get_save_file_path and hook manager write them and
 * older versions did:
 *
 *   1. Module.PATH.CLASS.forward.N, .backward.N; Cell. in MindSpore: the call comes last
 *   2. PREFIX.API.N.forward, .backward: before the direction; old modules too
 *   3. Module.PATH.CLASS.parameters_grad.N; old: without N, which is then 0
 *   4. NAME.N.debug, NAME_grad.N.debug: single tensors that the user saved
 *   5. anything else is a name without direction and call
 *
 * PATH and API may hold dots, so a name is read from its end.
 */
#include <inttypes.h>

#include "formats/msprobe.h"

/* The component that ends at `end`; its beginning. */
static size_t component_at(const char *text, size_t end)
{
    while (end > 0 && text[end - 1] != '.')
        end--;
    return end;
}

static bool component_is(const char *text, size_t from, size_t to, const char *word)
{
    return to - from == strlen(word) && memcmp(text + from, word, to - from) == 0;
}

/* A call number; more than 15 digits are no number of anything. */
static bool component_number(const char *text, size_t from, size_t to, int64_t *ret_number)
{
    int64_t number = 0;

    if (to == from || to - from > 15)
        return false;
    for (size_t i = from; i < to; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (text[i] - '0');
    }
    *ret_number = number;
    return true;
}

static bool component_direction(const char *text, size_t from, size_t to,
                                enum direction *ret_direction)
{
    const bool backward = component_is(text, from, to, "backward");

    if (!backward && !component_is(text, from, to, "forward"))
        return false;
    *ret_direction = backward ? DIRECTION_BACKWARD : DIRECTION_FORWARD;
    return true;
}

static size_t before(size_t component)
{
    return component == 0 ? 0 : component - 1;
}

/* Rules 1 and 3: a number at the end, and what the component before it says. */
static bool name_numbered(const char *text, size_t word, size_t last,
                          struct msprobe_name *name)
{
    const size_t word_end = before(last);

    if (component_direction(text, word, word_end, &name->direction)) {
        name->form = MSPROBE_CALL_LAST;
    } else if (component_is(text, word, word_end, "parameters_grad")) {
        name->form = MSPROBE_GRAD;
        name->direction = DIRECTION_BACKWARD;
    } else {
        return false;
    }
    name->base_len = before(word);
    return true;
}

/* Rules 2, 3 without a number, and 4: a word at the end. */
static bool name_worded(const char *text, size_t len, size_t word, size_t last,
                        struct msprobe_name *name)
{
    const bool has_call = component_number(text, word, before(last), &name->call);

    if (component_direction(text, last, len, &name->direction)) {
        name->form = has_call ? MSPROBE_CALL_FIRST : MSPROBE_NO_CALL;
        name->base_len = has_call ? before(word) : before(last);
    } else if (component_is(text, last, len, "parameters_grad")) {
        name->form = MSPROBE_GRAD;
        name->direction = DIRECTION_BACKWARD;
        name->base_len = before(last);
        name->call = 0;
    } else if (has_call && component_is(text, last, len, "debug")) {
        name->form = MSPROBE_DEBUG;
        name->base_len = before(word);
        if (name->base_len > 5 && memcmp(text + name->base_len - 5, "_grad", 5) == 0)
            name->direction = DIRECTION_BACKWARD;
    } else {
        return false;
    }
    return true;
}

/* The class of a module, the API of a call; of Aten.add.Tensor what is left of the
 * overload. */
static void name_type(const char *text, struct msprobe_name *name)
{
    const size_t end = name->base_len;
    const char *const dot = memchr(text, '.', end);
    size_t from = dot == NULL ? end : (size_t)(dot - text) + 1, to = end;

    if (name->form == MSPROBE_DEBUG || name->form == MSPROBE_OTHER)
        from = end;
    name->is_module =
        dot != NULL && (component_is(text, 0, (size_t)(dot - text), "Module") ||
                        component_is(text, 0, (size_t)(dot - text), "Cell"));
    if (name->is_module && from < end)
        from = component_at(text, end);
    if (dot != NULL && component_is(text, 0, (size_t)(dot - text), "Aten") && from < end) {
        const char *const next = memchr(text + from, '.', end - from);
        to = next == NULL ? end : (size_t)(next - text);
    }
    name->type = text + from;
    name->type_len = to - from;
}

void nd_msprobe_name_read(const char *text, struct msprobe_name *ret_name)
{
    const size_t len = strlen(text);
    const size_t last = component_at(text, len);
    const size_t word = component_at(text, before(last));
    struct msprobe_name name = {.form = MSPROBE_OTHER, .base_len = len};

    const bool is_number = component_number(text, last, len, &name.call);
    bool known = word > 0 || last > 0;
    if (known && is_number)
        known = name_numbered(text, word, last, &name);
    else if (known)
        known = name_worded(text, len, word, last, &name);
    if (!known || name.base_len == 0)
        name = (struct msprobe_name){.form = MSPROBE_OTHER, .base_len = len};
    name_type(text, &name);
    *ret_name = name;
}

const char *nd_msprobe_name_write(struct arena *arena, const char *text,
                                  const struct msprobe_name *name, int64_t call)
{
    static const char *const words[] = {"forward", "backward"};
    const int base = name->base_len > INT32_MAX ? INT32_MAX : (int)name->base_len;

    switch (name->form) {
    case MSPROBE_CALL_LAST:
        return nd_arena_format(arena, "%.*s.%s.%" PRId64, base, text,
                               words[name->direction], call);
    case MSPROBE_CALL_FIRST:
        return nd_arena_format(arena, "%.*s.%" PRId64 ".%s", base, text, call,
                               words[name->direction]);
    case MSPROBE_GRAD:
        return nd_arena_format(arena, "%.*s.parameters_grad.%" PRId64, base, text, call);
    case MSPROBE_DEBUG:
        return nd_arena_format(arena, "%.*s.%" PRId64 ".debug", base, text, call);
    case MSPROBE_NO_CALL:
    case MSPROBE_OTHER:
        break;
    }
    return nd_arena_string(arena, text);
}
