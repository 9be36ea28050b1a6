/*
 * One reader per type of option.  What is wrong is said with the option's name, what was
 * typed and what would have been right.
 */
#include "cli/option_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { WORST_LIMIT = 1000, JOBS_LIMIT = 4096 };

static enum nd_status value_wrong(const struct option *option, const char *value,
                                  const char *expected, struct nd_error *err)
{
    char name[80];

    snprintf(name, sizeof name, "--%s", option->name);
    return nd_fail_key(err, ND_ERR_USAGE, name, expected, "\"%s\"", value);
}

static void *value_place(struct cli *cli, const struct option *option)
{
    return (char *)cli + option->offset;
}

bool nd_strings_add(struct arena *arena, struct nd_strings *list, const char *item)
{
    /* Powers of two are where the room runs out. */
    if ((list->count & (list->count - 1)) == 0) {
        const size_t capacity = list->count == 0 ? 1 : list->count * 2;
        const char **moved = nd_arena_alloc(arena, capacity, sizeof *moved);
        if (moved == NULL)
            return false;
        if (list->count > 0)
            memcpy(moved, list->items, list->count * sizeof *moved);
        list->items = moved;
    }
    list->items[list->count++] = item;
    return true;
}

static enum nd_status set_text(struct cli *cli, const struct option *option,
                               const char *value, struct nd_error *err)
{
    const char **place = value_place(cli, option);

    if (value != NULL && value[0] == '\0' && option->type == OPTION_TEXT)
        return value_wrong(option, value, option->argument, err);
    *place = value == NULL ? "" : value;
    return ND_OK;
}

/* The position of value among the words "a|b|c"; -1: not one of them. */
static int word_position(const char *words, const char *value)
{
    const size_t len = strlen(value);

    for (int position = 0; words != NULL; position++) {
        const char *bar = strchr(words, '|');
        const size_t word = bar == NULL ? strlen(words) : (size_t)(bar - words);
        if (word == len && memcmp(words, value, len) == 0)
            return position;
        words = bar == NULL ? NULL : bar + 1;
    }
    return -1;
}

static enum nd_status set_choice(struct cli *cli, const struct option *option,
                                 const char *value, struct nd_error *err)
{
    const int position = word_position(option->argument, value);

    if (position < 0)
        return value_wrong(option, value, option->argument, err);
    if (option->type == OPTION_SECOND)
        *(bool *)value_place(cli, option) = position == 1;
    else
        *(const char **)value_place(cli, option) = value;
    return ND_OK;
}

static enum nd_status set_list(struct cli *cli, const struct option *option,
                               const char *value, struct nd_error *err)
{
    if (value[0] == '\0')
        return value_wrong(option, value, option->argument, err);
    return nd_strings_add(cli->arena, value_place(cli, option), value)
               ? ND_OK
               : nd_fail_memory(err);
}

static enum nd_status set_words(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    for (const char *at = value; at != NULL;) {
        const char *comma = strchr(at, ',');
        const size_t len = comma == NULL ? strlen(at) : (size_t)(comma - at);
        if (len == 0)
            return value_wrong(option, value, "names with commas between them", err);
        const char *word = nd_arena_copy(cli->arena, at, len);
        if (word == NULL || !nd_strings_add(cli->arena, value_place(cli, option), word))
            return nd_fail_memory(err);
        at = comma == NULL ? NULL : comma + 1;
    }
    return ND_OK;
}

static enum nd_status set_globs(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    if (value != NULL)
        return set_list(cli, option, value, err);
    cli->nd.allow_unmatched = true;
    return ND_OK;
}

/* A finite number, not negative, that fills all of [at, end). */
static bool read_number(const char *at, const char *end, double *ret_value)
{
    double value = 0;
    const char *after = nd_number_read(at, end, &value);

    if (after == NULL || after != end || !isfinite(value) || value < 0)
        return false;
    *ret_value = value;
    return true;
}

static enum nd_status set_number(struct cli *cli, const struct option *option,
                                 const char *value, struct nd_error *err)
{
    double number = 0;

    if (!read_number(value, value + strlen(value), &number))
        return value_wrong(option, value, "a number, zero or more", err);
    *(double *)value_place(cli, option) = number;
    return ND_OK;
}

static enum nd_status set_tolerance(struct cli *cli, const struct option *option,
                                    const char *value, struct nd_error *err)
{
    const char *equals = strrchr(value, '=');
    double number = 0;

    if (equals == NULL || equals == value ||
        !read_number(equals + 1, value + strlen(value), &number))
        return value_wrong(option, value, "GLOB=NUMBER", err);
    return set_list(cli, option, value, err);
}

/* Decimal digits only, at most `limit`. */
static bool read_whole(const char *at, const char *end, uint64_t limit, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (at == end)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        const uint64_t digit = (uint64_t)(*at - '0');
        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static enum nd_status set_whole(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    const uint64_t limit = option->type == OPTION_SIZE       ? WORST_LIMIT
                           : option->type == OPTION_UNSIGNED ? JOBS_LIMIT
                                                             : INT64_MAX;
    uint64_t number = 0;
    char expected[64];

    if (!read_whole(value, value + strlen(value), limit, &number)) {
        snprintf(expected, sizeof expected, "a whole number from 0 to %llu",
                 (unsigned long long)limit);
        return value_wrong(option, value, expected, err);
    }
    if (option->type == OPTION_SIZE)
        *(size_t *)value_place(cli, option) = (size_t)number;
    else if (option->type == OPTION_UNSIGNED)
        *(unsigned *)value_place(cli, option) = (unsigned)number;
    else
        *(int64_t *)value_place(cli, option) = (int64_t)number;
    return ND_OK;
}

static enum nd_status set_bytes(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    static const char units[] = "KMGT";
    const size_t len = strlen(value);
    const char last = len == 0 ? '\0' : value[len - 1];
    const char *unit = last == '\0' ? NULL : strchr(units, last >= 'a' ? last - 32 : last);
    const unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
    uint64_t number = 0;

    if (!read_whole(value, value + len - (unit != NULL), UINT64_MAX >> shift, &number))
        return value_wrong(option, value, "a number of bytes, such as 512M or 2G", err);
    *(uint64_t *)value_place(cli, option) = number << shift;
    return ND_OK;
}

static enum nd_status set_tiers(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    double bounds[3];
    const char *at = value;

    for (size_t i = 0; i < 3; i++) {
        const char *comma = strchr(at, ',');
        const char *end = comma == NULL ? at + strlen(at) : comma;
        if ((comma == NULL) != (i == 2) || !read_number(at, end, &bounds[i]) ||
            (i > 0 && bounds[i] <= bounds[i - 1]))
            return value_wrong(option, value, "three rising numbers A,B,C", err);
        at = end + 1;
    }
    memcpy(value_place(cli, option), bounds, sizeof bounds);
    return ND_OK;
}

static enum nd_status set_fail_on(struct cli *cli, const struct option *option,
                                  const char *value, struct nd_error *err)
{
    static const struct {
        const char *word;
        enum nd_fail_on fail_on;
    } words[] = {
        {"any",        ND_FAIL_ON_ANY       },
        {"elevated",   ND_FAIL_ON_ELEVATED  },
        {"origin",     ND_FAIL_ON_ORIGIN    },
        {"unexpected", ND_FAIL_ON_UNEXPECTED},
        {"never",      ND_FAIL_ON_NEVER     }
    };
    double number = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].word, value) == 0) {
            cli->nd.fail_on = words[i].fail_on;
            return ND_OK;
        }
    if (!read_number(value, value + strlen(value), &number))
        return value_wrong(option, value,
                           "a number, any, elevated, origin, unexpected or never", err);
    cli->nd.fail_on = ND_FAIL_ON_NUMBER;
    cli->nd.fail_on_number = number;
    return ND_OK;
}

static enum nd_status set_sided(struct cli *cli, const struct option *option,
                                const char *value, struct nd_error *err)
{
    const char **sides = value_place(cli, option);
    const char *colon = strchr(value, ':');
    const char *name = colon == NULL ? value : colon + 1;
    const bool reference = strncmp(value, "ref:", 4) == 0;
    const bool candidate = strncmp(value, "cand:", 5) == 0;

    if (name[0] == '\0' || (colon != NULL && !reference && !candidate))
        return value_wrong(option, value, option->argument, err);
    if (!candidate)
        sides[0] = name;
    if (!reference)
        sides[1] = name;
    return ND_OK;
}

static enum nd_status set_flag(struct cli *cli, const struct option *option,
                               const char *value, struct nd_error *err)
{
    if (value != NULL)
        return value_wrong(option, value, "no argument", err);
    *(bool *)value_place(cli, option) = true;
    return ND_OK;
}

static enum nd_status set_reserved(struct cli *cli, const struct option *option,
                                   const char *value, struct nd_error *err)
{
    char name[80];

    (void)value;
    cli->reserved = true;
    snprintf(name, sizeof name, "--%s", option->name);
    return nd_fail_key(err, ND_ERR_USAGE, name, "an option of normdiff --help",
                       "an option that is reserved for a later version");
}

typedef enum nd_status option_set_fn(struct cli *cli, const struct option *option,
                                     const char *value, struct nd_error *err);

enum nd_status nd_option_set(struct cli *cli, const struct option *option,
                             const char *value, struct nd_error *err)
{
    static option_set_fn *const setters[] = {
        [OPTION_FLAG] = set_flag,           [OPTION_TEXT] = set_text,
        [OPTION_OPTIONAL] = set_text,       [OPTION_CHOICE] = set_choice,
        [OPTION_SECOND] = set_choice,       [OPTION_LIST] = set_list,
        [OPTION_WORDS] = set_words,         [OPTION_GLOBS] = set_globs,
        [OPTION_TOLERANCE] = set_tolerance, [OPTION_NUMBER] = set_number,
        [OPTION_SIZE] = set_whole,          [OPTION_UNSIGNED] = set_whole,
        [OPTION_PLACE] = set_whole,         [OPTION_BYTES] = set_bytes,
        [OPTION_TIERS] = set_tiers,         [OPTION_FAIL_ON] = set_fail_on,
        [OPTION_SIDED] = set_sided,         [OPTION_RESERVED] = set_reserved,
    };

    return setters[option->type](cli, option, value, err);
}
