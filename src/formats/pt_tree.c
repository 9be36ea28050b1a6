/*
 * From the tree of a pickle to named tensors.  Keys and indexes on the way to a tensor,
 * joined by dots, are its name: {"conv1": {"output": (t,)}} gives conv1.output.0.
 *
 *   1. a dict (OrderedDict, defaultdict) goes by key, a list or tuple by index
 *   2. an object goes by what was set on it: items, else elements, else its state, else its
 *      arguments, whichever holds tensors first (a ModelOutput holds them three times).
 *      The dicts in which a torch.nn.Module keeps its parts add no name of their own
 *   3. a lone tensor under the key "input" or "output" is the first of its kind
 *   4. everything else is listed as ignored, in groups: it was never a tensor
 *
 * A pickle may share and nest lists without limit at one byte each, so the walk stops at
 * cycles, at a depth, and at a number of visits in proportion to the pickle's size.
 */
#include "formats/pt.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"

enum {
    MAX_DEPTH = 100,
    MAX_NAME = 4096,
    MAX_IGNORED = 10000, /* lines; what comes after is not listed */
    MAX_TENSORS = 1000000,
    /* What a walk may cost: each value of an unshared tree took a byte of pickle or more,
     * each tensor about sixty.  Lists shared through the memo have to stay near that. */
    FREE_COST = 1 << 20,
    COST_PER_BYTE = 2,
    TENSOR_COST = 16,
    SCANNED = 16,     /* items only looked at, that cost as much as a value */
    NAME_BYTES = 64,  /* of a name, that cost as much as a value */
    TEXT_PER_BYTE = 4 /* arrays that share their data are decoded once for each name */
};

struct walk {
    struct pt_source *source;
    struct nd_error *err;
    uint64_t cost, max_cost;
    unsigned depth;
    bool quiet;         /* inside an object: its scalars are not listed */
    bool first_of_kind; /* the last key was a hook's "input" or "output" */
    size_t tensors;
    size_t len; /* of name, as it would be without the limit */
    char name[MAX_NAME + 1];
};

static enum nd_status walk_value(struct walk *walk, const struct pickle *value);

/* --- names ------------------------------------------------------------------------- */

static void name_add(struct walk *walk, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++, walk->len++)
        if (walk->len < MAX_NAME)
            walk->name[walk->len] = text[i];
    walk->name[walk->len < MAX_NAME ? walk->len : MAX_NAME] = '\0';
}

static void name_cut(struct walk *walk, size_t len)
{
    walk->len = len;
    walk->name[len < MAX_NAME ? len : MAX_NAME] = '\0';
}

static void name_text(struct walk *walk, const struct pickle *text)
{
    const size_t len = text->len <= MAX_NAME ? text->len : MAX_NAME + 1;
    size_t from = 0;

    for (size_t i = 0; i < len; i++)
        if (text->as.text[i] == '\0') { /* a name is a C string */
            name_add(walk, text->as.text + from, i - from);
            name_add(walk, "\\x00", 4);
            from = i + 1;
        }
    name_add(walk, text->as.text + from, len - from);
}

/* A key as a name; the parts of a tuple are joined like those of a path. */
static void name_key(struct walk *walk, const struct pickle *key)
{
    char buf[400];

    switch (key->kind) {
    case PICKLE_TEXT:
    case PICKLE_BYTES:
        name_text(walk, key);
        return;
    case PICKLE_INT:
        snprintf(buf, sizeof buf, "%" PRId64, key->as.integer);
        break;
    case PICKLE_BOOL:
        snprintf(buf, sizeof buf, "%s", key->as.integer ? "True" : "False");
        break;
    case PICKLE_FLOAT:
        nd_number_text(key->as.number, buf);
        break;
    case PICKLE_TUPLE:
        for (uint32_t i = 0; i < key->as.list->count && walk->len <= MAX_NAME; i++) {
            if (i > 0)
                name_add(walk, ".", 1);
            if (key->as.list->items[i].kind != PICKLE_TUPLE)
                name_key(walk, &key->as.list->items[i]);
        }
        return;
    default:
        nd_pickle_title(key, buf, sizeof buf);
        break;
    }
    name_add(walk, buf, strlen(buf));
}

static void name_push(struct walk *walk, const struct pickle *key)
{
    const size_t before = walk->len;

    if (before > 0)
        name_add(walk, ".", 1);
    const size_t start = walk->len;
    name_key(walk, key);
    walk->cost += (walk->len - start) / NAME_BYTES;
    if (walk->len == start) /* the key "": the root module of named_modules() */
        name_cut(walk, before);
}

/* --- leaves ------------------------------------------------------------------------ */

static enum nd_status walk_ignore(struct walk *walk, const char *what, uint32_t count)
{
    struct dump *dump = walk->source->dump;
    const char *name = walk->len == 0 ? "the whole object" : walk->name;
    char *line;

    if (dump->ignored_count >= MAX_IGNORED)
        return ND_OK;
    if (count > 0)
        line =
            nd_arena_format(dump->arena, "%.300s (%s of %" PRIu32 ")", name, what, count);
    else
        line = nd_arena_format(dump->arena, "%.300s (%s)", name, what);
    if (line == NULL)
        return nd_fail_memory(walk->err);
    return nd_dump_ignore(dump, line, walk->err);
}

static enum nd_status walk_tensor(struct walk *walk, const struct dump_slot *slot)
{
    static const struct pickle zero = {.kind = PICKLE_INT};
    struct pt_source *source = walk->source;

    if (walk->first_of_kind)
        name_push(walk, &zero);
    walk->cost += TENSOR_COST + walk->len / NAME_BYTES;
    if (++walk->tensors > MAX_TENSORS)
        return nd_fail_key(walk->err, ND_ERR_LIMIT, "the pickle", "at most 1000000 tensors",
                           "more");
    if (walk->len > MAX_NAME)
        return nd_fail_key(walk->err, ND_ERR_LIMIT, "a tensor's name", "at most 4096 bytes",
                           "%zu bytes", walk->len);
    if (walk->len == 0 && slot->broken != NULL && source->is_cut && source->dump->is_lone)
        return nd_fail(walk->err, ND_ERR_MALFORMED, "the whole of a tensor", "%s",
                       slot->broken);
    if (walk->len == 0)
        return nd_dump_add_lone(source->dump, source->file, slot, walk->err);
    return nd_dump_add_tensor(source->dump, walk->name, slot, walk->err);
}

/* --- containers -------------------------------------------------------------------- */

static bool is_list(const struct pickle *value)
{
    return value->kind >= PICKLE_TUPLE && value->kind <= PICKLE_PERSISTENT &&
           value->kind != PICKLE_GLOBAL;
}

static bool has_lists(const struct pickle_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (is_list(&list->items[i]))
            return true;
    return false;
}

static enum nd_status walk_child(struct walk *walk, const struct pickle *key,
                                 const struct pickle *value)
{
    const size_t before = walk->len;

    name_push(walk, key);
    walk->first_of_kind = false;
    const enum nd_status status = walk_value(walk, value);
    name_cut(walk, before);
    return status;
}

static enum nd_status walk_pairs(struct walk *walk, const struct pickle_list *pairs,
                                 bool of_module)
{
    for (uint32_t i = 0; i + 1 < pairs->count; i += 2) {
        const struct pickle *key = &pairs->items[i];
        const bool is_part = of_module && (nd_pickle_is(key, "_modules") ||
                                           nd_pickle_is(key, "_parameters") ||
                                           nd_pickle_is(key, "_buffers"));
        const size_t before = walk->len;
        if (!is_part)
            name_push(walk, key);
        walk->first_of_kind =
            before > 0 && (nd_pickle_is(key, "input") || nd_pickle_is(key, "output"));
        ND_TRY(walk_value(walk, key + 1));
        name_cut(walk, before);
    }
    return ND_OK;
}

static enum nd_status walk_elements(struct walk *walk, const struct pickle_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct pickle index = {.kind = PICKLE_INT, .as.integer = i};
        ND_TRY(walk_child(walk, &index, &list->items[i]));
    }
    return ND_OK;
}

/* OrderedDict([(k, v), ...]), as Python 2 and copies of dict views write it. */
static enum nd_status walk_arguments(struct walk *walk, const struct pickle *call)
{
    const struct pickle *arguments = nd_pickle_item(call, CALL_ARGUMENTS);
    const struct pickle *first = nd_pickle_item(arguments, 0);
    const struct pickle *callable = nd_pickle_item(call, CALL_CALLABLE);

    if (first == NULL)
        return ND_OK;
    if (nd_pickle_is_global(callable, "collections", "OrderedDict") &&
        (first->kind == PICKLE_LIST || first->kind == PICKLE_TUPLE)) {
        for (uint32_t i = 0; i < first->as.list->count; i++) {
            const struct pickle *key = nd_pickle_item(&first->as.list->items[i], 0);
            const struct pickle *value = nd_pickle_item(&first->as.list->items[i], 1);
            if (key != NULL && value != NULL)
                ND_TRY(walk_child(walk, key, value));
        }
        return ND_OK;
    }
    /* torch.return_types and named tuples are called with all of their items in one. */
    if (first->kind == PICKLE_TUPLE &&
        nd_pickle_is(nd_pickle_item(callable, 0), "torch.return_types"))
        return walk_elements(walk, first->as.list);
    return walk_elements(walk, arguments->as.list);
}

static enum nd_status walk_state(struct walk *walk, const struct pickle *state)
{
    if (state->kind == PICKLE_DICT)
        return walk_pairs(walk, state->as.list, true);
    if (state->kind == PICKLE_TUPLE) /* (dict or None, slots) of copyreg */
        for (uint32_t i = 0; i < state->as.list->count; i++)
            if (state->as.list->items[i].kind == PICKLE_DICT)
                ND_TRY(walk_pairs(walk, state->as.list->items[i].as.list, true));
    return ND_OK;
}

static enum nd_status walk_object(struct walk *walk, const struct pickle *call)
{
    const struct pickle *parts = call->as.list->items;
    const size_t before = walk->tensors;
    const bool was_quiet = walk->quiet;
    const bool is_dict =
        nd_pickle_is_global(&parts[CALL_CALLABLE], "collections", "OrderedDict") ||
        nd_pickle_is_global(&parts[CALL_CALLABLE], "collections", "defaultdict");
    char title[512];

    if (is_dict && parts[CALL_ENTRIES].kind == PICKLE_DICT)
        return walk_pairs(walk, parts[CALL_ENTRIES].as.list, false);
    walk->quiet = true;
    enum nd_status status = ND_OK;
    if (parts[CALL_ENTRIES].kind == PICKLE_DICT)
        status = walk_pairs(walk, parts[CALL_ENTRIES].as.list, false);
    if (status == ND_OK && parts[CALL_ELEMENTS].kind == PICKLE_LIST)
        status = walk_elements(walk, parts[CALL_ELEMENTS].as.list);
    if (status == ND_OK && walk->tensors == before)
        status = walk_state(walk, &parts[CALL_STATE]);
    if (status == ND_OK && walk->tensors == before)
        status = walk_arguments(walk, call);
    walk->quiet = was_quiet;
    if (status == ND_OK && walk->tensors == before && !walk->quiet)
        status = walk_ignore(walk, nd_pickle_title(call, title, sizeof title), 0);
    return status;
}

static enum nd_status walk_inside(struct walk *walk, const struct pickle *value)
{
    char title[512];

    if (value->kind == PICKLE_CALL)
        return walk_object(walk, value);
    walk->cost += value->as.list->count / SCANNED;
    if (value->kind != PICKLE_PERSISTENT && has_lists(value->as.list))
        return value->kind == PICKLE_DICT ? walk_pairs(walk, value->as.list, false)
                                          : walk_elements(walk, value->as.list);
    if (walk->quiet)
        return ND_OK;
    const uint32_t count =
        value->kind == PICKLE_DICT ? value->as.list->count / 2 : value->as.list->count;
    return walk_ignore(walk, nd_pickle_title(value, title, sizeof title),
                       value->kind == PICKLE_PERSISTENT ? 0 : count);
}

static enum nd_status walk_value(struct walk *walk, const struct pickle *value)
{
    struct dump_slot slot;
    bool is_tensor;
    char title[512];

    if (++walk->cost > walk->max_cost)
        return nd_fail_key(walk->err, ND_ERR_LIMIT, "the pickle",
                           "as many objects as its size allows for",
                           "lists that are shared over and over");
    if (!is_list(value))
        return walk->quiet
                   ? ND_OK
                   : walk_ignore(walk, nd_pickle_title(value, title, sizeof title), 0);
    ND_TRY(nd_pt_tensor(walk->source, value, &is_tensor, &slot, walk->err));
    if (is_tensor)
        return walk_tensor(walk, &slot);
    walk->first_of_kind = false;
    if (value->as.list->walking)
        return ND_OK; /* an object that refers to one it is part of */
    if (walk->depth == MAX_DEPTH)
        return nd_fail_key(walk->err, ND_ERR_LIMIT, "the pickle", "at most 100 levels",
                           "objects nested deeper");
    walk->depth++;
    value->as.list->walking = true;
    const enum nd_status status = walk_inside(walk, value);
    value->as.list->walking = false;
    walk->depth--;
    return status;
}

enum nd_status nd_pt_walk(struct pt_source *source, const struct pickle *root,
                          uint64_t pickle_size, struct nd_error *err)
{
    struct walk *walk = nd_arena_alloc(source->dump->arena, 1, sizeof *walk);

    if (walk == NULL)
        return nd_fail_memory(err);
    walk->source = source;
    walk->err = err;
    walk->max_cost = FREE_COST + pickle_size * COST_PER_BYTE;
    source->dump->order = ND_ORDER_CONTAINER;
    source->spool = -1;
    source->text_left = source->spool_size = pickle_size * TEXT_PER_BYTE;
    source->spool_used = 0;
    const enum nd_status status = walk_value(walk, root);
    if (source->spool >= 0)
        close(source->spool);
    return status;
}
