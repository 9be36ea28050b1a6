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

/* The end of the brackets of a call that begin at `end`, and of what is called on its
 * result; `end` where there are none, or where it is no call but arithmetic: "sqrt(v)". */
static const char *call_end(const char *at, const char *end)
{
    while (*end == '(') {
        const size_t len = strcspn(end, ") ");
        const bool is_call = len == 1 || memchr(end, '=', len) != NULL ||
                             memchr(at, '.', (size_t)(end - at)) != NULL;
        if (end[len] != ')' || !is_call)
            return end;
        end += len + 1;
        while (end[0] == '.' ? is_name(end[1]) : is_name(end[0]))
            end++;
    }
    return end;
}

/* The end of a run of the characters that names are made of, without the punctuation that
 * follows it, but with an argument: "model.eval()", "p=0", "var(unbiased=False)". */
static const char *name_end(const char *at)
{
    const char *end = at;

    while (is_name(*end) ||
           (end > at && *end == '=' && (is_name(end[1]) || end[1] == '\'')) ||
           (end > at && end[-1] == '=' && *end == '\''))
        end++;
    if (end > at && *end == '\'' && memchr(at, '\'', (size_t)(end - at)) != NULL)
        end++;
    while (end > at && (end[-1] == '.' || end[-1] == '-'))
        end--;
    return end == at ? at : call_end(at, end);
}

/* Whether such a run is code: an option, or a word with a sign inside. */
static bool is_identifier(const char *at, size_t len)
{
    const bool is_option = len > 2 && at[0] == '-' && at[1] == '-';
    const bool is_number = len > 0 && ((at[0] >= '0' && at[0] <= '9') || at[0] == '-');

    for (size_t i = 0; i < len && !is_number; i++)
        if (strchr("_.(=", at[i]) != NULL)
            return true;
    return is_option;
}

/* Whether such a run names a cause other than the one that the page is about: surely where
 * no other word looks like it, and where a colon follows. */
static bool is_cause(const struct page *page, const char *at, size_t len)
{
    const char *own = page->filled.len == 0 ? "" : page->filled.bytes;
    const char *end = at + len;
    const bool is_named = *end == ':' || strncmp(end, "：", 3) == 0;
    char id[96];

    if (len > 60 || (!is_named && memchr(at, '_', len) == NULL) ||
        (strlen(own) == len && strncmp(own, at, len) == 0))
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
        if (is_cause(page, words, (size_t)len))
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
    page->filled.len = 0; /* kept: what the page is about */
    nd_text_puts(&page->filled, id);
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
