/*
 * The --map file: one rule a line, '#' starts a comment.
 *
 *   reference-glob = candidate-glob      each * of the right side repeats what the same *
 *                                        of the left side matched
 *   ref = concat(q, k, v; axis=-1)       one reference layer, several candidate layers
 *
 * msprobe's YAML files are told by their first line; see map_yaml.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/map_yaml.h"

enum { MAX_RULES = 100000, MAX_CAPTURES = 16 };

static const char *trimmed(struct arena *arena, const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    return nd_arena_copy(arena, from, (size_t)(to - from));
}

static enum nd_status bad_line(struct nd_error *err, size_t line, const char *expected,
                               const char *found)
{
    char at[32];

    snprintf(at, sizeof at, "line %zu", line);
    return nd_fail_key(err, ND_ERR_USAGE, at, expected, "\"%.200s\"", found);
}

/* "concat(a, b; axis=N)": fills parts and axis. */
static enum nd_status read_concat(struct arena *arena, const char *text, struct map_rule *rule,
                                  struct nd_error *err)
{
    static const char form[] = "concat(NAME, NAME ...; axis=NUMBER)";
    const char *at = text + strlen("concat(");
    const char *close = strrchr(text, ')');
    const char *semicolon = strchr(text, ';');
    size_t      capacity = 0;

    if (close == NULL || close[1] != '\0')
        return bad_line(err, rule->line, form, text);
    const char *names_end = semicolon != NULL && semicolon < close ? semicolon : close;
    rule->axis = -1;
    if (names_end == semicolon) {
        const char *axis = trimmed(arena, semicolon + 1, close);
        char       *end;
        if (axis == NULL)
            return nd_fail_memory(err);
        if (strncmp(axis, "axis=", 5) != 0)
            return bad_line(err, rule->line, form, text);
        const long value = strtol(axis + 5, &end, 10);
        if (end == axis + 5 || *end != '\0' || value < -ND_MAX_RANK || value >= ND_MAX_RANK)
            return bad_line(err, rule->line, form, text);
        rule->axis = value;
    }
    while (at < names_end) {
        const char *comma = memchr(at, ',', (size_t)(names_end - at));
        const char *end = comma == NULL ? names_end : comma;
        const char *name = trimmed(arena, at, end);
        const char **parts = nd_arena_grow(arena, rule->parts, rule->part_count, &capacity,
                                           sizeof *parts);
        if (name == NULL || parts == NULL)
            return nd_fail_memory(err);
        if (*name == '\0')
            return bad_line(err, rule->line, form, text);
        rule->parts = parts;
        parts[rule->part_count++] = name;
        at = end + 1;
    }
    return rule->part_count > 0 ? ND_OK : bad_line(err, rule->line, form, text);
}

static enum nd_status read_rule(struct arena *arena, const char *line, const char *end,
                                struct map_rule *rule, struct nd_error *err)
{
    const char *equals = memchr(line, '=', (size_t)(end - line));
    const char *whole = trimmed(arena, line, end);

    if (whole == NULL)
        return nd_fail_memory(err);
    if (equals == NULL)
        return bad_line(err, rule->line, "reference-glob = candidate-glob", whole);
    rule->reference = trimmed(arena, line, equals);
    const char *right = trimmed(arena, equals + 1, end);
    if (rule->reference == NULL || right == NULL)
        return nd_fail_memory(err);
    if (rule->reference[0] == '\0' || right[0] == '\0')
        return bad_line(err, rule->line, "reference-glob = candidate-glob", whole);
    if (strncmp(right, "concat(", 7) == 0)
        return read_concat(arena, right, rule, err);
    rule->candidate = right;
    return ND_OK;
}

static enum nd_status read_rules(struct arena *arena, const char *text, const char *end,
                                 struct map_rules *rules, struct nd_error *err)
{
    size_t capacity = 0, number = 0;

    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline == NULL ? end : newline;
        const char *start = trimmed(arena, line, line_end);
        number++;
        line = line_end + 1;
        if (start == NULL)
            return nd_fail_memory(err);
        if (*start == '\0' || *start == '#')
            continue;
        if (rules->count >= MAX_RULES)
            return nd_fail(err, ND_ERR_LIMIT, "at most 100000 rules", "more");
        struct map_rule *grown = nd_arena_grow(arena, rules->rules, rules->count, &capacity,
                                               sizeof *grown);
        if (grown == NULL)
            return nd_fail_memory(err);
        rules->rules = grown;
        grown[rules->count] = (struct map_rule){.line = number};
        ND_TRY(read_rule(arena, start, start + strlen(start), &grown[rules->count], err));
        rules->count++;
    }
    return ND_OK;
}

enum nd_status nd_map_rules_read(struct arena *arena, const char *path, struct map_rules *ret,
                                 struct nd_error *err)
{
    struct map       map;
    struct map_rules rules = {0};

    ND_TRY(nd_map_open(path, &map, err));
    const char *text = map.size == 0 ? "" : (const char *)map.bytes, *end = text + map.size;
    const enum nd_status status = nd_map_yaml_is(text, end)
                                      ? nd_map_yaml_read(arena, text, end, &rules.yaml, err)
                                      : read_rules(arena, text, end, &rules, err);
    nd_map_close(&map);
    if (status != ND_OK)
        nd_error_file(err, path);
    else
        *ret = rules;
    return status;
}

struct capture {
    const char *text;
    size_t      len;
};

/* Matches with every * captured, each as short as it can be; as in any glob, going back to
 * the last star is enough. */
static bool capture_match(const char *glob, const char *name, struct capture *captures)
{
    const char *star = NULL, *retry = NULL;
    size_t      stars = 0;

    for (;;) {
        if (*glob == '*') {
            if (stars == MAX_CAPTURES)
                return false;
            star = ++glob;
            retry = name;
            captures[stars++] = (struct capture){name, 0};
        } else if (*name == '\0') {
            return *glob == '\0';
        } else if (*glob == '?' || *glob == *name) {
            glob++;
            name++;
        } else if (star != NULL) {
            glob = star;
            name = ++retry;
        } else {
            return false;
        }
        if (star != NULL && glob == star)
            captures[stars - 1].len = (size_t)(name - captures[stars - 1].text);
        if (star != NULL && *star == '\0') { /* a last star takes the rest */
            captures[stars - 1].len = strlen(captures[stars - 1].text);
            return true;
        }
    }
}

const char *nd_map_rule_apply(struct arena *arena, const struct map_rule *rule, const char *name)
{
    struct capture captures[MAX_CAPTURES] = {{0}};
    struct text    made = {0};
    size_t         star = 0;

    if (rule->candidate == NULL || !capture_match(rule->reference, name, captures))
        return NULL;
    for (const char *p = rule->candidate; *p != '\0'; p++) {
        if (*p == '*' && star < MAX_CAPTURES && captures[star].text != NULL) {
            nd_text_add(&made, captures[star].text, captures[star].len);
            star++;
        } else {
            nd_text_add(&made, p, 1);
        }
    }
    const char *copy = made.broken ? NULL : nd_arena_copy(arena, made.bytes, made.len);
    nd_text_done(&made);
    return copy;
}
