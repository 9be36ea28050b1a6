/*
 * Parsing by the GNU conventions: options and operands in any order, short options in
 * clusters, --name=value and --name value, unambiguous beginnings of long names, and --
 * after which everything is an operand.
 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "cli/option_values.h"
#include "normdiff/normdiff.h"

#define ND_OPTION(group, letter, name, argument, type, field, fallback)                    \
    {#group, letter, name, argument, OPTION_##type, offsetof(struct cli, field), fallback},
static const struct option options[] = {
#include "cli/options.def"
};
#undef ND_OPTION

enum { OPTION_COUNT = sizeof options / sizeof options[0], NAME_LIMIT = 32, NEAR = 3 };

const struct option *nd_option_at(size_t i)
{
    return i < OPTION_COUNT ? &options[i] : NULL;
}

bool nd_option_optional(const struct option *option)
{
    return option->type == OPTION_GLOBS || option->type == OPTION_OPTIONAL;
}

bool nd_option_takes(const struct option *option)
{
    return option->type != OPTION_FLAG && option->type != OPTION_RESERVED;
}

bool nd_option_worded(const struct option *option)
{
    return option->type == OPTION_CHOICE || option->type == OPTION_SECOND;
}

/* Edits between two words: inserted, left out or changed letters. */
static size_t word_distance(const char *a, const char *b)
{
    size_t row[NAME_LIMIT + 1];
    const size_t width = strlen(b);

    if (strlen(a) > NAME_LIMIT || width > NAME_LIMIT)
        return NAME_LIMIT;
    for (size_t i = 0; i <= width; i++)
        row[i] = i;
    for (; *a != '\0'; a++) {
        size_t corner = row[0]++;
        for (size_t i = 1; i <= width; i++) {
            const size_t changed = corner + (*a != b[i - 1]);
            const size_t shorter = (row[i] < row[i - 1] ? row[i] : row[i - 1]) + 1;
            corner = row[i];
            row[i] = changed < shorter ? changed : shorter;
        }
    }
    return row[width];
}

const char *nd_nearest(const char *typed, const char *(*word_at)(size_t i))
{
    const char *best = NULL;
    size_t least = NEAR + 1;

    for (size_t i = 0; word_at(i) != NULL; i++) {
        const size_t distance = word_distance(typed, word_at(i));
        if (distance < least && 2 * distance <= strlen(typed)) {
            least = distance;
            best = word_at(i);
        }
    }
    return best;
}

static const char *option_name_at(size_t i)
{
    return i < OPTION_COUNT ? options[i].name : NULL;
}

/* The option whose name is, or alone begins with, the first len bytes of name. */
static enum nd_status option_by_name(const char *name, size_t len,
                                     const struct option **ret_option, struct nd_error *err)
{
    char typed[80], hint[160], fits[320] = "";
    const struct option *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < OPTION_COUNT && len > 0; i++) {
        if (strncmp(options[i].name, name, len) != 0)
            continue;
        if (options[i].name[len] == '\0') {
            *ret_option = &options[i];
            return ND_OK;
        }
        found = &options[i];
        const size_t used = strlen(fits);
        snprintf(fits + used, sizeof fits - used, count++ == 0 ? "--%s" : ", --%s",
                 options[i].name);
    }
    if (count == 1) {
        *ret_option = found;
        return ND_OK;
    }
    snprintf(typed, sizeof typed, "--%.*s", (int)(len < 64 ? len : 64), name);
    if (count > 1)
        return nd_fail_key(err, ND_ERR_USAGE, typed, fits,
                           "the beginning of several options");
    nd_fail_key(err, ND_ERR_USAGE, typed, "an option of normdiff --help",
                "an unknown option");
    const char *near = nd_nearest(typed + 2, option_name_at);
    if (near != NULL) {
        snprintf(hint, sizeof hint, "did you mean --%s?", near);
        nd_error_hint(err, hint);
    }
    return ND_ERR_USAGE;
}

static const struct option *option_by_letter(char letter)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].letter != 0 && options[i].letter == letter)
            return &options[i];
    return NULL;
}

struct parse {
    int argc, at;
    char **argv;
};

/* Sets an option whose argument, where it takes one, is `value` or the next word. */
static enum nd_status parse_apply(struct parse *in, struct cli *cli,
                                  const struct option *option, const char *value,
                                  struct nd_error *err)
{
    char name[80];

    if (value == NULL && nd_option_takes(option) && !nd_option_optional(option)) {
        if (in->at == in->argc) {
            snprintf(name, sizeof name, "--%s", option->name);
            return nd_fail_key(err, ND_ERR_USAGE, name, option->argument, "no argument");
        }
        value = in->argv[in->at++];
    }
    return nd_option_set(cli, option, value, err);
}

static enum nd_status parse_long(struct parse *in, struct cli *cli, const char *word,
                                 struct nd_error *err)
{
    const char *equals = strchr(word, '=');
    const size_t len = equals == NULL ? strlen(word) : (size_t)(equals - word);
    const struct option *option = NULL;

    ND_TRY(option_by_name(word, len, &option, err));
    return parse_apply(in, cli, option, equals == NULL ? NULL : equals + 1, err);
}

static enum nd_status parse_cluster(struct parse *in, struct cli *cli, const char *letters,
                                    struct nd_error *err)
{
    char name[3] = "-";

    for (; *letters != '\0'; letters++) {
        const struct option *option = option_by_letter(*letters);
        if (option == NULL) {
            name[1] = *letters;
            return nd_fail_key(err, ND_ERR_USAGE, name, "an option of normdiff --help",
                               "an unknown option");
        }
        if (!nd_option_takes(option) || nd_option_optional(option)) {
            ND_TRY(nd_option_set(cli, option, NULL, err));
            continue;
        }
        const char *rest = letters[1] == '=' ? letters + 2 : letters + 1;
        return parse_apply(in, cli, option, letters[1] == '\0' ? NULL : rest, err);
    }
    return ND_OK;
}

static enum nd_status parse_word(struct parse *in, struct cli *cli,
                                 bool *inout_only_operands, struct nd_error *err)
{
    const char *word = in->argv[in->at++];

    if (*inout_only_operands || word[0] != '-' || word[1] == '\0')
        return nd_strings_add(cli->arena, &cli->operands, word) ? ND_OK
                                                                : nd_fail_memory(err);
    if (strcmp(word, "--") == 0) {
        *inout_only_operands = true;
        return ND_OK;
    }
    return word[1] == '-' ? parse_long(in, cli, word + 2, err)
                          : parse_cluster(in, cli, word + 1, err);
}

enum nd_status nd_cli_parse(int argc, char **argv, struct cli *ret_cli,
                            struct nd_error *err)
{
    struct parse in = {argc, 1, argv};
    enum nd_status status = ND_OK;
    bool only_operands = false;
    struct nd_error later;

    *ret_cli = (struct cli){.format = "text", .color = "auto", .progress = "auto"};
    nd_options_init(&ret_cli->nd);
    ret_cli->arena = nd_arena_new();
    if (ret_cli->arena == NULL)
        return nd_fail_memory(err);
    while (in.at < argc) {
        const enum nd_status now =
            parse_word(&in, ret_cli, &only_operands, status == ND_OK ? err : &later);
        if (status == ND_OK)
            status = now;
    }
    return status;
}

void nd_cli_done(struct cli *cli)
{
    nd_arena_free(cli->arena);
}
