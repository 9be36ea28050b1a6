/*
 * An explanation as Markdown; of all causes it is docs/causes.md.
 */
#include "cli/explain.h"

#include <stdio.h>
#include <string.h>

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '-';
}

/* The end of a run of the characters that names are made of, without the punctuation that
 * follows it. */
static const char *name_end(const char *at)
{
    const char *end = at;

    while (is_name(*end))
        end++;
    while (end > at && (end[-1] == '.' || end[-1] == '-'))
        end--;
    return end;
}

/* Whether a run of such characters is code: an option, or a word with a _ or a . inside. */
static bool is_identifier(const char *at, size_t len)
{
    const bool is_option = len > 2 && at[0] == '-' && at[1] == '-';
    const bool is_number = len > 0 && ((at[0] >= '0' && at[0] <= '9') || at[0] == '-');

    return is_option ||
           (!is_number && (memchr(at, '_', len) != NULL || memchr(at, '.', len) != NULL));
}

/* Whether such a run names a cause: surely where no other word looks like it, and where a
 * colon follows. */
static bool is_cause(const char *at, size_t len)
{
    char id[96];
    const char *end = at + len;
    const bool is_named = *end == ':' || strncmp(end, "：", 3) == 0;

    if (len > 60 || (!is_named && memchr(at, '_', len) == NULL))
        return false;
    snprintf(id, sizeof id, "cause.%.*s.title", (int)len, at);
    return nd_catalogue_words(id, LANGUAGE_EN) != NULL;
}

/* Words of the catalogue: causes as links, identifiers and options as code, signs of
 * Markdown escaped. */
static void markdown_put(struct page *page, const char *words)
{
    while (*words != '\0') {
        const char *end = name_end(words);
        const int len = (int)(end - words);
        if (len == 0) {
            nd_out_printf(&page->out,
                          strchr("\\`*_[]|#~<&", *words) != NULL ? "\\%c" : "%c", *words);
            words++;
            continue;
        }
        if (is_cause(words, (size_t)len))
            nd_out_printf(&page->out, "[`%.*s`](#%.*s)", len, words, len, words);
        else
            nd_out_printf(&page->out, is_identifier(words, (size_t)len) ? "`%.*s`" : "%.*s",
                          len, words);
        words = end;
    }
}

static void markdown_opening(struct page *page)
{
    nd_out_printf(
        &page->out,
        "<!-- Made by `normdiff --explain all -f markdown`; a test compares. -->\n"
        "# %s\n\n",
        nd_page_words(page, "causes.title"));
    markdown_put(page, nd_page_words(page, "causes.opening"));
    nd_out_raw(&page->out, "\n\n");
    markdown_put(page, nd_page_words(page, "causes.statuses"));
    nd_out_raw(&page->out, "\n");
}

static void markdown_entry(struct page *page, const char *id, const char *words)
{
    if (id == NULL) {
        nd_out_raw(&page->out, page->out.text.len == 0 ? "**" : "\n**");
        markdown_put(page, words);
        nd_out_raw(&page->out, "**\n\n");
        return;
    }
    nd_out_printf(&page->out, "- [`%s`](#%s)%s", id, id,
                  nd_page_words(page, "report.colon"));
    markdown_put(page, words);
    nd_out_raw(&page->out, "\n");
}

static void markdown_group(struct page *page, const char *words)
{
    nd_out_raw(&page->out, "\n## ");
    markdown_put(page, words);
    nd_out_raw(&page->out, "\n");
}

static void markdown_title(struct page *page, const char *id, const char *words)
{
    nd_out_printf(&page->out, "%s### %s\n", page->out.text.len == 0 ? "" : "\n", id);
    if (words == NULL)
        return;
    nd_out_raw(&page->out, "\n**");
    markdown_put(page, words);
    nd_out_raw(&page->out, "**\n");
}

static void markdown_heading(struct page *page, const char *words)
{
    nd_out_raw(&page->out, "\n**");
    markdown_put(page, words);
    nd_out_raw(&page->out, page->language == LANGUAGE_ZH ? "。**" : ".**");
    page->pending = 1;
}

/* A paragraph goes on behind its heading, a list begins under it. */
static void markdown_line(struct page *page, const char *label, const char *words)
{
    const char *const before[2][2] = {
        {"",  "- "    },
        {" ", "\n\n- "}
    };

    nd_out_raw(&page->out, before[page->pending > 0][label != NULL]);
    page->pending = 0;
    if (label != NULL && label[0] != '\0') {
        markdown_put(page, label);
        nd_out_raw(&page->out, nd_page_words(page, "report.colon"));
    }
    markdown_put(page, words);
    nd_out_raw(&page->out, "\n");
}

const struct explain_pen nd_explain_markdown = {markdown_opening, markdown_entry,
                                                markdown_group,   markdown_title,
                                                markdown_heading, markdown_line};
