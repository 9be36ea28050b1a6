/*
 * --help, and its options as mdoc source for the man page.
 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "normdiff/report.h"
#include "text/page.h"

enum { OPTION_COLUMN = 2, WORDS_COLUMN = 30, EXAMPLE_COLUMN = 50 };

/* "-i, --include GLOB" */
static void option_heading(const struct option *option, struct text *out)
{
    if (option->letter != 0)
        nd_text_printf(out, "-%c, --%s", option->letter, option->name);
    else
        nd_text_printf(out, "    --%s", option->name);
    if (option->argument == NULL)
        return;
    if (nd_option_optional(option)) /* "[GLOB]": the brackets go around the = too */
        nd_text_printf(out, "[=%s", option->argument + 1);
    else
        nd_text_printf(out, " %s", option->argument);
}

static const char *option_words(const struct option *option, enum language language)
{
    char id[64];

    snprintf(id, sizeof id, "option.%s", option->name);
    const char *words = nd_catalogue_words(id, language);
    return words == NULL ? "" : words;
}

static void option_names(struct text *names)
{
    for (size_t i = 0; nd_report_name(i) != NULL; i++)
        nd_text_printf(names, i == 0 ? "%s" : ", %s", nd_report_name(i));
}

static void help_flow(struct page *page, const char *id, const char *key, const char *value)
{
    const struct catalogue_value values[] = {
        {.key = key, .text = value}
    };

    nd_page_flow(page, INK_PLAIN, " ");
    nd_page_say(page, INK_PLAIN, id, values, 1);
}

static void help_option(struct page *page, const struct option *option)
{
    const enum language language = page->utf8 ? page->language : LANGUAGE_EN;
    struct text heading = {0}, names = {0};

    option_heading(option, &heading);
    page->indent = WORDS_COLUMN;
    nd_page_tab(page, OPTION_COLUMN);
    nd_page_put(page, INK_BOLD, heading.broken ? option->name : heading.bytes);
    if (page->column + 2 > WORDS_COLUMN)
        nd_page_end(page);
    nd_page_tab(page, WORDS_COLUMN);
    nd_page_flow(page, INK_PLAIN, option_words(option, language));
    if (strcmp(option->name, "format") == 0) {
        option_names(&names);
        help_flow(page, "help.formats", "names", names.broken ? "" : names.bytes);
    }
    if (option->fallback != NULL)
        help_flow(page, "help.default", "value", option->fallback);
    nd_page_end(page);
    nd_text_done(&heading);
    nd_text_done(&names);
}

static void help_group(struct page *page, const char *group)
{
    char id[64];

    snprintf(id, sizeof id, "group.%s", group);
    nd_page_blank(page);
    nd_page_put(page, INK_BOLD, nd_page_words(page, id));
    nd_page_end(page);
}

static void help_examples(struct page *page)
{
    static const char *const rows[][2] = {
        {"normdiff gpu.dump npu.dump",                  "help.example.compare"},
        {"normdiff -o html=drift.html gpu.dump npu.dump", "help.example.html"   },
        {"normdiff --list npu.dump",                    "help.example.list"   },
        {"normdiff --explain list",                     "help.example.explain"},
    };

    const bool narrow = page->width < EXAMPLE_COLUMN + WORDS_COLUMN;

    nd_page_blank(page);
    nd_page_put(page, INK_BOLD, nd_page_words(page, "help.examples"));
    nd_page_end(page);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        page->indent = narrow ? 2 * OPTION_COLUMN : EXAMPLE_COLUMN;
        nd_page_tab(page, OPTION_COLUMN);
        nd_page_put(page, INK_PLAIN, rows[i][0]);
        if (narrow)
            nd_page_end(page);
        nd_page_tab(page, page->indent);
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, rows[i][1]));
        nd_page_end(page);
    }
}

bool nd_help_print(const struct terminal *terminal)
{
    struct page page;
    const char *group = "";

    nd_page_init(&page, nd_language_of(terminal->lang), terminal->width, terminal->utf8,
                 terminal->color);
    nd_page_put(&page, INK_PLAIN, nd_page_words(&page, "help.usage"));
    nd_page_end(&page);
    nd_page_tab(&page, nd_page_columns(&page, "usage: "));
    nd_page_put(&page, INK_PLAIN, nd_page_words(&page, "help.usage.list"));
    nd_page_end(&page);
    nd_page_blank(&page);
    nd_page_flow(&page, INK_PLAIN, nd_page_words(&page, "help.purpose"));
    nd_page_end(&page);
    for (size_t i = 0; nd_option_at(i) != NULL; i++) {
        const struct option *option = nd_option_at(i);
        if (strcmp(option->group, "reserved") == 0)
            continue;
        if (strcmp(option->group, group) != 0)
            help_group(&page, option->group);
        group = option->group;
        help_option(&page, option);
    }
    help_examples(&page);
    nd_page_blank(&page);
    page.indent = 0;
    nd_page_flow(&page, INK_PLAIN, nd_page_words(&page, "help.exit"));
    nd_page_end(&page);
    const bool written = nd_out_flush(&page.out, stdout);
    nd_page_done(&page);
    return written;
}

/* A text as roff: no line begins with a control character, backslashes stand for
 * themselves, and hyphens of options can be copied. */
static void man_text(struct out *out, const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        nd_out_raw(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            nd_out_raw(out, "\\e");
        else if (*text == '-')
            nd_out_raw(out, "\\-");
        else
            nd_out_printf(out, "%c", *text);
    }
}

/* An argument as mdoc: words in .Cm, names in .Ar, brackets in .Op. */
static void man_argument(struct out *out, const struct option *option)
{
    if (option->argument == NULL)
        return;
    if (nd_option_optional(option)) {
        nd_out_printf(out, " Ns Op = Ns Ar %.*s", (int)(strlen(option->argument) - 2),
                      option->argument + 1);
        return;
    }
    nd_out_raw(out, " Ar ");
    for (const char *at = option->argument; *at != '\0'; at++) {
        if (*at == '|' || *at == '[' || *at == ']')
            nd_out_raw(out, "\\&");
        nd_out_printf(out, "%c", *at);
    }
}

static void man_option(struct out *out, const struct option *option)
{
    nd_out_raw(out, ".It ");
    if (option->letter != 0)
        nd_out_printf(out, "Fl %c , ", option->letter);
    nd_out_raw(out, "Fl \\-");
    man_text(out, option->name);
    man_argument(out, option);
    nd_out_raw(out, "\n");
    man_text(out, option_words(option, LANGUAGE_EN));
    if (strcmp(option->name, "format") == 0) {
        struct text names = {0};
        option_names(&names);
        nd_out_printf(out, "; formats: %s", names.broken ? "" : names.bytes);
        nd_text_done(&names);
    }
    if (option->fallback != NULL) {
        nd_out_raw(out, "; default ");
        man_text(out, option->fallback);
    }
    nd_out_raw(out, ".\n");
}

bool nd_help_man(void)
{
    struct out out = {.depth = 0};
    const char *group = "";
    char id[64];

    for (size_t i = 0; nd_option_at(i) != NULL; i++) {
        const struct option *option = nd_option_at(i);
        if (strcmp(option->group, "reserved") == 0)
            continue;
        if (strcmp(option->group, group) != 0) {
            snprintf(id, sizeof id, "group.%s", option->group);
            nd_out_printf(&out, "%s.Ss %s\n.Bl -tag -width Ds\n",
                          group[0] == '\0' ? "" : ".El\n",
                          nd_catalogue_words(id, LANGUAGE_EN));
        }
        group = option->group;
        man_option(&out, option);
    }
    nd_out_raw(&out, ".El\n");
    const bool written = nd_out_flush(&out, stdout);
    nd_out_done(&out);
    return written;
}
