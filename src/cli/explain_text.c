/*
 * An explanation on a terminal.
 */
#include "cli/explain.h"

enum { NAME_COLUMNS = 26, TEXT_INDENT = 2 };

static void text_opening(struct page *page)
{
    page->indent = 0;
}

static void text_entry(struct page *page, const char *id, const char *words)
{
    if (id == NULL) {
        if (page->out.text.len > 0)
            nd_page_blank(page);
        nd_page_put(page, INK_BOLD, words);
        nd_page_end(page);
        return;
    }
    page->indent = NAME_COLUMNS;
    nd_page_tab(page, TEXT_INDENT);
    nd_page_put(page, INK_PLAIN, id);
    nd_page_tab(page, NAME_COLUMNS);
    nd_page_flow(page, INK_PLAIN, words);
    nd_page_end(page);
}

static void text_group(struct page *page, const char *words)
{
    (void)page;
    (void)words;
}

static void text_title(struct page *page, const char *id, const char *words)
{
    if (page->out.text.len > 0)
        nd_page_blank(page);
    page->indent = TEXT_INDENT;
    nd_page_put(page, INK_BOLD, id);
    if (words != NULL) {
        nd_page_put(page, INK_PLAIN, nd_page_words(page, "report.colon"));
        nd_page_flow(page, INK_BOLD, words);
    }
    nd_page_end(page);
}

static void text_heading(struct page *page, const char *words)
{
    page->indent = TEXT_INDENT;
    nd_page_put(page, INK_BOLD, words);
    nd_page_end(page);
}

static void text_line(struct page *page, const char *label, const char *words)
{
    page->indent = label == NULL ? TEXT_INDENT : TEXT_INDENT + 2;
    nd_page_tab(page, TEXT_INDENT);
    if (label != NULL && label[0] != '\0') {
        nd_page_put(page, INK_PLAIN, label);
        nd_page_put(page, INK_PLAIN, nd_page_words(page, "report.colon"));
    }
    nd_page_flow(page, INK_PLAIN, words);
    nd_page_end(page);
}

const struct explain_pen nd_explain_text = {text_opening, text_entry,   text_group,
                                            text_title,   text_heading, text_line};
