/*
 * Completion scripts for shells, made from the table of options.
 */
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "cli/help.h"
#include "cli/options.h"
#include "normdiff/report.h"
#include "text/catalogue.h"

static bool is_shown(const struct option *option)
{
    return strcmp(option->group, "reserved") != 0;
}

/* What --explain has a page for: ids of the catalogue, between cause. and .what. */
static void explain_choices(struct text *out)
{
    static const char before[] = "cause.", after[] = ".what";

    nd_text_puts(out, "list all");
    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++) {
        const char *id = nd_catalogue_id(i);
        const size_t len = strlen(id), edges = sizeof before - 1 + sizeof after - 1;
        if (len > edges && strncmp(id, before, sizeof before - 1) == 0 &&
            strcmp(id + len - (sizeof after - 1), after) == 0)
            nd_text_printf(out, " %.*s", (int)(len - edges), id + sizeof before - 1);
    }
}

/* The words that the option's argument may be, blanks between them; "" for any. */
static void option_choices(const struct option *option, struct text *out)
{
    if (strcmp(option->name, "format") == 0) {
        for (size_t i = 0; nd_report_name(i) != NULL; i++)
            nd_text_printf(out, i == 0 ? "%s" : " %s", nd_report_name(i));
    } else if (strcmp(option->name, "explain") == 0) {
        explain_choices(out);
    } else if (nd_option_worded(option)) {
        for (const char *at = option->argument; *at != '\0'; at++)
            nd_text_add(out, *at == '|' ? " " : at, 1);
    }
    nd_text_puts(out, "");
}

/* Words in single quotes of a shell. */
static void quoted(struct out *out, const char *words)
{
    nd_out_raw(out, "'");
    for (; *words != '\0'; words++)
        nd_out_printf(out, *words == '\'' ? "'\\%c'" : "%c", *words);
    nd_out_raw(out, "'");
}

static const char *option_words(const struct option *option)
{
    char id[64];

    snprintf(id, sizeof id, "option.%s", option->name);
    const char *words = nd_catalogue_words(id, LANGUAGE_EN);
    return words == NULL ? "" : words;
}

static void completion_bash(struct out *out)
{
    nd_out_raw(out,
               "_normdiff()\n{\n    local current=${COMP_WORDS[COMP_CWORD]}\n"
               "    local previous=${COMP_WORDS[COMP_CWORD-1]}\n    case $previous in\n");
    for (size_t i = 0; nd_option_at(i) != NULL; i++) {
        const struct option *option = nd_option_at(i);
        struct text choices = {0};
        option_choices(option, &choices);
        if (choices.len > 0 && is_shown(option)) {
            nd_out_raw(out, "    ");
            if (option->letter != 0)
                nd_out_printf(out, "-%c|", option->letter);
            nd_out_printf(
                out, "--%s) COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;\n",
                option->name, choices.bytes);
        }
        nd_text_done(&choices);
    }
    nd_out_raw(out, "    esac\n    if [[ $current == -* ]]; then\n"
                    "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0, shown = 0; nd_option_at(i) != NULL; i++)
        if (is_shown(nd_option_at(i)))
            nd_out_printf(out, shown++ == 0 ? "--%s" : " --%s", nd_option_at(i)->name);
    nd_out_raw(out, "' -- \"$current\"))\n    else\n"
                    "        COMPREPLY=($(compgen -f -- \"$current\"))\n    fi\n}\n"
                    "complete -o filenames -F _normdiff normdiff\n");
}

/* One specification of _arguments: --name=[words]:argument:action */
static void zsh_option(struct out *out, const struct option *option, const char *name)
{
    struct text choices = {0}, spec = {0};

    option_choices(option, &choices);
    nd_text_printf(&spec, "*%s%s[", name,
                   nd_option_takes(option) && name[1] == '-' ? "=" : "");
    for (const char *at = option_words(option); *at != '\0'; at++)
        nd_text_printf(&spec, strchr("[]:", *at) != NULL ? "\\%c" : "%c", *at);
    nd_text_puts(&spec, "]");
    if (choices.len > 0)
        nd_text_printf(&spec, ":%s:(%s)", option->name, choices.bytes);
    else if (nd_option_takes(option))
        nd_text_printf(&spec, "%s:%s:_files", nd_option_optional(option) ? ":" : "",
                       option->name);
    nd_out_raw(out, "    ");
    quoted(out, spec.broken ? "" : spec.bytes);
    nd_out_raw(out, " \\\n");
    nd_text_done(&choices);
    nd_text_done(&spec);
}

static void completion_zsh(struct out *out)
{
    char name[64];

    nd_out_raw(out, "#compdef normdiff\n_arguments -s \\\n");
    for (size_t i = 0; nd_option_at(i) != NULL; i++) {
        const struct option *option = nd_option_at(i);
        if (!is_shown(option))
            continue;
        snprintf(name, sizeof name, "--%s", option->name);
        zsh_option(out, option, name);
        snprintf(name, sizeof name, "-%c", option->letter);
        if (option->letter != 0)
            zsh_option(out, option, name);
    }
    nd_out_raw(out, "    '*:dump:_files'\n");
}

static void completion_fish(struct out *out)
{
    for (size_t i = 0; nd_option_at(i) != NULL; i++) {
        const struct option *option = nd_option_at(i);
        struct text choices = {0};
        if (!is_shown(option))
            continue;
        option_choices(option, &choices);
        nd_out_raw(out, "complete -c normdiff");
        if (option->letter != 0)
            nd_out_printf(out, " -s %c", option->letter);
        nd_out_printf(out, " -l %s", option->name);
        if (nd_option_takes(option) && !nd_option_optional(option))
            nd_out_raw(out, " -r");
        if (choices.len > 0) {
            nd_out_raw(out, " -f -a ");
            quoted(out, choices.bytes);
        }
        nd_out_raw(out, " -d ");
        quoted(out, option_words(option));
        nd_out_raw(out, "\n");
        nd_text_done(&choices);
    }
}

bool nd_completion_print(const char *shell)
{
    struct out out = {.depth = 0};

    if (strcmp(shell, "bash") == 0)
        completion_bash(&out);
    else if (strcmp(shell, "zsh") == 0)
        completion_zsh(&out);
    else
        completion_fish(&out);
    const bool written = nd_out_flush(&out, stdout);
    nd_out_done(&out);
    return written;
}
