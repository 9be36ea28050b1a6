/*
 * --map applied: rules make candidate names of reference names, several candidate layers
 * become one (concat), and a rule that pairs nothing is named in a warning, since it is
 * most likely a slip of the pen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/map_yaml.h"
#include "compare/select.h"

enum {
    MAX_GLOBS = 4096,
    MAX_LOOKS = 64, /* unused rules that are looked for among what the options leave out */
    WARNINGS_SHOWN = 8
};

/* Rules without a wildcard by name, the others as they stand. */
struct rule_book {
    struct map_rules *rules;
    struct map_rule **plain; /* sorted by name, then line */
    size_t plain_count;
    struct map_rule **globs;
    size_t glob_count;
};

static int rule_order(const void *a, const void *b)
{
    const struct map_rule *x = *(struct map_rule *const *)a,
                          *y = *(struct map_rule *const *)b;
    const int order = strcmp(x->reference, y->reference);

    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static enum nd_status book_make(struct arena *arena, const char *path,
                                struct map_rules *rules, struct rule_book *ret,
                                struct nd_error *err)
{
    struct rule_book book = {.rules = rules};
    size_t concats = 0;

    book.plain = nd_arena_alloc(arena, rules->count + 1, sizeof(struct map_rule *));
    book.globs = nd_arena_alloc(arena, rules->count + 1, sizeof(struct map_rule *));
    if (book.plain == NULL || book.globs == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < rules->count; i++) {
        struct map_rule *rule = &rules->rules[i];
        if (rule->part_count > 0) {
            concats++;
            continue;
        }
        if (strpbrk(rule->reference, "*?[\\") == NULL)
            book.plain[book.plain_count++] = rule;
        else
            book.globs[book.glob_count++] = rule;
    }
    if (book.glob_count > MAX_GLOBS || concats > MAX_GLOBS) {
        nd_fail(err, ND_ERR_LIMIT,
                "at most 4096 rules with wildcards, and 4096 with concat", "%zu and %zu",
                book.glob_count, concats);
        nd_error_file(err, path);
        return ND_ERR_LIMIT;
    }
    if (book.plain_count > 1)
        qsort(book.plain, book.plain_count, sizeof(struct map_rule *), rule_order);
    *ret = book;
    return ND_OK;
}

static struct map_rule *plain_rule(const struct rule_book *book, const char *name)
{
    size_t low = 0, high = book->plain_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(book->plain[middle]->reference, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < book->plain_count && strcmp(book->plain[low]->reference, name) == 0
               ? book->plain[low]
               : NULL;
}

/* The first rule of the file that is about a name, and what it makes of it. */
static struct map_rule *first_rule(struct arena *arena, const struct rule_book *book,
                                   const char *name, const char **ret_name)
{
    struct map_rule *const plain = plain_rule(book, name);

    for (size_t i = 0; i < book->glob_count; i++) {
        if (plain != NULL && book->globs[i]->line > plain->line)
            break;
        *ret_name = nd_map_rule_apply(arena, book->globs[i], name);
        if (*ret_name != NULL)
            return book->globs[i];
    }
    *ret_name = plain == NULL ? NULL : nd_map_rule_apply(arena, plain, name);
    return *ret_name == NULL ? NULL : plain;
}

static const char *mapped(struct arena *arena, const void *user,
                          const struct dump_layer *layer, unsigned side)
{
    const struct rule_book *book = user;
    const char *name;

    if (book->rules->yaml != NULL)
        return nd_map_yaml_key(arena, book->rules->yaml, layer, side);
    if (side == 1)
        return layer->name;
    (void)first_rule(arena, book, layer->name, &name);
    return name;
}

/* --- several candidate layers for one ------------------------------------------------ */

struct part {
    const struct dump_layer *layer;
    size_t index;
};

static int part_order(const void *a, const void *b)
{
    const struct dump_layer *x = ((const struct part *)a)->layer,
                            *y = ((const struct part *)b)->layer;
    int order = strcmp(x->name, y->name);

    if (order == 0)
        order = (x->step > y->step) - (x->step < y->step);
    if (order == 0)
        order = (x->rank > y->rank) - (x->rank < y->rank);
    return order != 0 ? order
                      : (x->direction > y->direction) - (x->direction < y->direction);
}

/* The first free layer of that name at the reference layer's place; ND_NO_INDEX: none. */
static size_t find_part(const struct side_layers *side, const struct part *list,
                        const struct dump_layer *reference, const char *name)
{
    struct dump_layer wanted = *reference;
    const struct part key = {&wanted, 0};
    size_t low = 0, high = side->count;

    wanted.name = name;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (part_order(&list[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < side->count && part_order(&list[low], &key) == 0; low++)
        if (side->partner[list[low].index] == ND_NO_INDEX)
            return list[low].index;
    return ND_NO_INDEX;
}

/* The parts of one reference layer; where one is missing the layer stays unpaired. */
static enum nd_status take_parts(struct arena *arena, struct side_layers *sides,
                                 const struct part *list, size_t i, struct map_rule *rule,
                                 struct concat_list *concats, struct nd_error *err)
{
    const struct dump_layer **parts =
        nd_arena_alloc(arena, rule->part_count, sizeof *parts);
    size_t *taken = nd_arena_alloc(arena, rule->part_count, sizeof *taken);
    size_t found = 0, last = ND_NO_INDEX;
    struct concat_pair *pairs = nd_arena_grow(arena, concats->pairs, concats->count,
                                              &concats->capacity, sizeof *pairs);

    if (parts == NULL || taken == NULL || pairs == NULL)
        return nd_fail_memory(err);
    concats->pairs = pairs;
    while (found < rule->part_count) {
        last = find_part(&sides[1], list, sides[0].layers[i], rule->parts[found]);
        if (last == ND_NO_INDEX)
            break;
        sides[1].partner[last] = i;
        taken[found] = last;
        parts[found++] = sides[1].layers[last];
    }
    if (found == rule->part_count) {
        nd_align_pair(sides, i, last, ND_MATCH_MAP);
        pairs[concats->count++] = (struct concat_pair){sides[0].layers[i], parts, rule};
        rule->used = true;
        return ND_OK;
    }
    while (found > 0) /* they are free again */
        sides[1].partner[taken[--found]] = ND_NO_INDEX;
    return ND_OK;
}

static enum nd_status align_concat(struct arena *arena, struct side_layers *sides,
                                   struct map_rules *rules, struct concat_list *concats,
                                   struct nd_error *err)
{
    struct part *list = nd_arena_alloc(arena, sides[1].count + 1, sizeof *list);

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t k = 0; k < sides[1].count; k++)
        list[k] = (struct part){sides[1].layers[k], k};
    if (sides[1].count > 1)
        qsort(list, sides[1].count, sizeof *list, part_order);
    for (size_t r = 0; r < rules->count; r++)
        for (size_t i = 0; rules->rules[r].part_count > 0 && i < sides[0].count; i++)
            if (sides[0].partner[i] == ND_NO_INDEX &&
                nd_glob_match(rules->rules[r].reference, sides[0].layers[i]->name))
                ND_TRY(take_parts(arena, sides, list, i, &rules->rules[r], concats, err));
    return ND_OK;
}

/* --- rules that pair nothing --------------------------------------------------------- */

static bool options_choose(const struct nd_options *options)
{
    return options->include.count + options->exclude.count + options->slots.count > 0 ||
           options->step >= 0 || options->rank >= 0 || options->direction != NULL;
}

/* A rule about a layer that the options leave out is no mistake. */
static bool is_left_out(const struct comparison *comparison, const struct map_rule *rule)
{
    const struct dump *dump = comparison->dump[0];

    for (size_t i = 0; i < dump->layer_count; i++)
        if (nd_glob_match(rule->reference, dump->layers[i].name))
            return true;
    return false;
}

static enum nd_status warn_rule(struct comparison *comparison, size_t line,
                                const char *reference, const char *candidate,
                                size_t *inout_count, struct nd_error *err)
{
    if (++*inout_count > WARNINGS_SHOWN)
        return ND_OK;
    return nd_warn(comparison, "warning.map.unused",
                   (const struct nd_param[]){
                       {"file",  comparison->options->map_file, 0           },
                       {"line",  NULL,                          (double)line},
                       {"left",  reference,                     0           },
                       {"right", candidate,                     0           }
    },
                   4, err);
}

static enum nd_status warn_unused(struct comparison *comparison,
                                  const struct map_rules *rules, struct nd_error *err)
{
    const struct map_yaml *yaml = rules->yaml;
    const bool chosen = options_choose(comparison->options);
    size_t unused = 0, looks = 0;

    for (size_t i = 0; i < rules->count; i++) {
        const struct map_rule *rule = &rules->rules[i];
        if (!rule->used &&
            !(chosen && (looks++ >= MAX_LOOKS || is_left_out(comparison, rule))))
            ND_TRY(warn_rule(comparison, rule->line, rule->reference,
                             rule->part_count > 0 ? "concat(...)" : rule->candidate,
                             &unused, err));
    }
    /* A list of an interface's functions is longer than any model needs. */
    for (size_t i = 0; yaml != NULL && !yaml->is_list && i < yaml->count; i++)
        if (!yaml->met[yaml->rules[i].line])
            ND_TRY(warn_rule(comparison, yaml->rules[i].line, yaml->rules[i].from,
                             yaml->rules[i].to, &unused, err));
    if (unused <= WARNINGS_SHOWN)
        return ND_OK;
    return nd_warn(comparison, "warning.map.unused.more",
                   (const struct nd_param[]){
                       {"file",  comparison->options->map_file, 0                                },
                       {"count", NULL,                          (double)(unused - WARNINGS_SHOWN)}
    },
                   2, err);
}

enum nd_status nd_align_mapped(struct comparison *comparison, struct side_layers *sides,
                               struct concat_list *concats, struct nd_error *err)
{
    struct arena *arena = comparison->arena;
    struct map_rules rules = {0};
    struct rule_book book;
    const char *name;

    if (comparison->options->map_file == NULL)
        return ND_OK;
    ND_TRY(nd_map_rules_read(arena, comparison->options->map_file, &rules, err));
    ND_TRY(book_make(arena, comparison->options->map_file, &rules, &book, err));
    if (rules.yaml != NULL)
        ND_TRY(nd_map_yaml_prepare(arena, rules.yaml, &sides[1], err));
    ND_TRY(align_concat(arena, sides, &rules, concats, err));
    ND_TRY(nd_align_by_key(sides, mapped, &book, ND_MATCH_MAP, err));
    for (size_t i = 0; rules.yaml == NULL && i < sides[0].count; i++) {
        struct map_rule *rule =
            sides[0].partner[i] == ND_NO_INDEX
                ? NULL
                : first_rule(arena, &book, sides[0].layers[i]->name, &name);
        if (rule != NULL)
            rule->used = true;
    }
    return warn_unused(comparison, &rules, err);
}
