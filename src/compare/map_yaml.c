/*
 * msprobe's mapping files for --map.  The key is the candidate's name:
 *
 *   1. NPU.NAME: BENCH.NAME             data_mapping: whole names, slots included
 *   2. fc1.Dense: fc1.Linear            cell_mapping: path and class; where none is equal,
 *                                       every key found in the name is replaced once
 *   3. - ms_api: Functional.conv2d      api_mapping: a list; the lists of arguments that
 *        pt_api: Torch.conv2d           stand beside them are not used
 *   4. TopLayer:                        layer_mapping: below the class of a parent on the
 *        left.child: right.child        candidate's side, children are renamed, the longest
 *                                       key first; classes need not be equal
 *
 * This is the block form of YAML with plain or quoted scalars on one line, which is how
 * such files are written.  A name is mapped once, so that no file can make a circle.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/map_yaml.h"

enum { MAX_RULES = 100000, MAX_NAME = 4096 };

/* --- reading ------------------------------------------------------------------------- */

struct line {
    const char *key, *value; /* trimmed, quotes removed; value "" for none */
    size_t indent, number;
    bool is_item; /* begins with "- " */
};

static enum nd_status bad_line(struct nd_error *err, size_t line, const char *expected,
                               const char *found)
{
    char at[32];

    snprintf(at, sizeof at, "line %zu", line);
    return nd_fail_key(err, ND_ERR_USAGE, at, expected, "\"%.200s\"", found);
}

/* The colon that ends a key: one before a blank or the end, outside quotes. */
static const char *find_colon(const char *from, const char *end)
{
    char quote = '\0';

    for (const char *at = from; at < end; at++) {
        if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '#' && at > from && at[-1] == ' ')
            return NULL;
        else if (*at == ':' && at > from &&
                 (at + 1 == end || at[1] == ' ' || at[1] == '\r'))
            return at;
    }
    return NULL;
}

static const char *scalar(struct arena *arena, const char *from, const char *to)
{
    for (const char *p = from; p + 1 < to; p++) /* a comment */
        if (p[0] == ' ' && p[1] == '#')
            to = p;
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    if (to - from >= 2 && (*from == '"' || *from == '\'') && to[-1] == *from) {
        from++;
        to--;
    }
    return nd_arena_copy(arena, from, (size_t)(to - from));
}

/* The next line with content; false at the end. */
static bool next_line(const char **at, const char *end, size_t *number,
                      const char **ret_from, const char **ret_to)
{
    while (*at < end) {
        const char *newline = memchr(*at, '\n', (size_t)(end - *at));
        const char *stop = newline == NULL ? end : newline, *from = *at;
        *at = newline == NULL ? end : newline + 1;
        ++*number;
        *ret_from = from;
        *ret_to = stop;
        while (from < stop && isspace((unsigned char)*from))
            from++;
        const size_t left = (size_t)(stop - from);
        if (left > 0 && *from != '#' && (left < 3 || strncmp(from, "---", 3) != 0))
            return true;
    }
    return false;
}

static enum nd_status read_line(struct arena *arena, const char *from, const char *to,
                                size_t number, struct line *ret, struct nd_error *err)
{
    struct line line = {.number = number};
    const char *at = from;

    while (at < to && *at == ' ')
        at++;
    line.indent = (size_t)(at - from);
    if (to - at >= 2 && at[0] == '-' && at[1] == ' ') {
        line.is_item = true;
        at += 2;
        while (at < to && *at == ' ')
            at++;
    }
    const char *colon = find_colon(at, to);
    if (colon == NULL) {
        const char *whole = scalar(arena, from, to);
        line.value = whole; /* an element of a list of arguments */
        line.key = "";
        if (whole == NULL)
            return nd_fail_memory(err);
        if (!line.is_item)
            return bad_line(err, number, "candidate name: reference name", whole);
    } else {
        line.key = scalar(arena, at, colon);
        line.value = scalar(arena, colon + 1, to);
        if (line.key == NULL || line.value == NULL)
            return nd_fail_memory(err);
    }
    *ret = line;
    return ND_OK;
}

static enum nd_status rule_add(struct arena *arena, struct map_yaml *yaml,
                               const struct yaml_rule *rule, struct nd_error *err)
{
    if (yaml->count == MAX_RULES)
        return nd_fail(err, ND_ERR_LIMIT, "at most 100000 rules", "more");
    if (strlen(rule->from) > MAX_NAME || strlen(rule->to) > MAX_NAME)
        return bad_line(err, rule->line, "names of at most 4096 bytes", "a longer one");
    struct yaml_rule *grown =
        nd_arena_grow(arena, yaml->rules, yaml->count, &yaml->capacity, sizeof *grown);
    if (grown == NULL)
        return nd_fail_memory(err);
    yaml->rules = grown;
    grown[yaml->count++] = *rule;
    return ND_OK;
}

/* "Functional.conv2d.1.forward.input.0" without its slot. */
static const char *without_slot(struct arena *arena, const char *name)
{
    static const char *const groups[] = {".input.", ".output.", ".parameters."};
    static const char gradient[] = ".parameters_grad.";

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const char *at = strstr(name, groups[i]);
        if (at != NULL &&
            (strstr(name, ".forward") != NULL || strstr(name, ".backward") != NULL))
            return nd_arena_copy(arena, name, (size_t)(at - name));
    }
    const char *grad = strstr(name, gradient);
    if (grad == NULL)
        return name;
    const size_t digits = strspn(grad + sizeof gradient - 1, "0123456789");
    return digits > 0
               ? nd_arena_copy(arena, name,
                               (size_t)(grad - name) + sizeof gradient - 1 + digits)
               : nd_arena_format(arena, "%.*s%s0", (int)(grad - name), name, gradient);
}

struct reading {
    const char *owner; /* of the lines further in; "" on the top */
    size_t owner_indent;
    const char *ms_api; /* of an api_mapping's item */
};

static enum nd_status take_line(struct arena *arena, struct map_yaml *yaml,
                                struct reading *reading, const struct line *line,
                                struct nd_error *err)
{
    struct yaml_rule rule = {.line = line->number};

    if (line->indent <= reading->owner_indent)
        reading->owner = "";
    if (line->is_item && *line->key == '\0')
        return ND_OK;
    if (strcmp(line->key, "ms_api") == 0) {
        reading->ms_api = line->value;
        yaml->is_list = true;
        return ND_OK;
    }
    if (reading->ms_api != NULL && strcmp(line->key, "pt_api") != 0 &&
        (strncmp(line->key, "ms_", 3) == 0 || strncmp(line->key, "pt_", 3) == 0))
        return ND_OK;
    if (*line->value == '\0') {
        reading->owner = strcmp(line->key, "Cell") == 0 ? "TopLayer" : line->key;
        reading->owner_indent = line->indent;
        return ND_OK;
    }
    if (*line->value == '{' || *line->value == '[' || *line->value == '&' ||
        *line->value == '*')
        return bad_line(err, line->number, "one name: one name", line->value);
    const bool is_api = strcmp(line->key, "pt_api") == 0 && reading->ms_api != NULL;
    rule.owner = is_api ? "" : reading->owner;
    rule.from = without_slot(arena, is_api ? reading->ms_api : line->key);
    rule.to = without_slot(arena, line->value);
    if (rule.from == NULL || rule.to == NULL)
        return nd_fail_memory(err);
    yaml->has_owners = yaml->has_owners || *rule.owner != '\0';
    return rule_add(arena, yaml, &rule, err);
}

static int rule_order(const void *a, const void *b)
{
    const struct yaml_rule *x = a, *y = b;
    int order = strcmp(x->owner, y->owner);

    if (order == 0)
        order = strcmp(x->from, y->from);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Slots of one layer give the same rule many times; a key with two meanings is a mistake.
 */
static enum nd_status sort_rules(struct arena *arena, struct map_yaml *yaml,
                                 struct nd_error *err)
{
    size_t kept = 0;

    yaml->in_order = nd_arena_alloc(arena, yaml->count + 1, sizeof *yaml->in_order);
    if (yaml->in_order == NULL)
        return nd_fail_memory(err);
    if (yaml->count > 0)
        memcpy(yaml->in_order, yaml->rules, yaml->count * sizeof *yaml->rules);
    if (yaml->count > 1)
        qsort(yaml->rules, yaml->count, sizeof *yaml->rules, rule_order);
    for (size_t i = 0; i < yaml->count; i++) {
        const struct yaml_rule *last = kept == 0 ? NULL : &yaml->rules[kept - 1];
        const struct yaml_rule *rule = &yaml->rules[i];
        if (last == NULL || strcmp(last->owner, rule->owner) != 0 ||
            strcmp(last->from, rule->from) != 0)
            yaml->rules[kept++] = *rule;
        else if (strcmp(last->to, rule->to) != 0)
            return bad_line(err, rule->line, "each name once", rule->from);
    }
    yaml->count = kept;
    return ND_OK;
}

bool nd_map_yaml_is(const char *text, const char *end)
{
    const char *at = text, *from, *to;
    size_t number = 0;

    if (!next_line(&at, end, &number, &from, &to))
        return false;
    return memchr(from, '=', (size_t)(to - from)) == NULL && find_colon(from, to) != NULL;
}

enum nd_status nd_map_yaml_read(struct arena *arena, const char *text, const char *end,
                                struct map_yaml **ret_yaml, struct nd_error *err)
{
    struct map_yaml *yaml = nd_arena_alloc(arena, 1, sizeof *yaml);
    struct reading reading = {.owner = ""};
    const char *from, *to;
    size_t number = 0;

    if (yaml == NULL)
        return nd_fail_memory(err);
    while (next_line(&text, end, &number, &from, &to)) {
        struct line line = {0};
        ND_TRY(read_line(arena, from, to, number, &line, err));
        ND_TRY(take_line(arena, yaml, &reading, &line, err));
    }
    ND_TRY(sort_rules(arena, yaml, err));
    yaml->met = nd_arena_alloc(arena, number + 1, sizeof *yaml->met);
    if (yaml->met == NULL)
        return nd_fail_memory(err);
    *ret_yaml = yaml;
    return ND_OK;
}
