/*
 * Explaining an id of the report.  explain.c walks the catalogue; a pen writes what it
 * finds, for a terminal or as Markdown.
 */
#ifndef ND_CLI_EXPLAIN_H
#define ND_CLI_EXPLAIN_H

#include "text/page.h"

struct explain_pen {
    /* The head of docs/causes.md; only where all causes are explained. */
    void (*opening)(struct page *page);
    /* One line of the list of causes: a group, or a cause with its title. */
    void (*entry)(struct page *page, const char *id, const char *words);
    void (*group)(struct page *page, const char *words);
    void (*title)(struct page *page, const char *id, const char *words);
    void (*heading)(struct page *page, const char *words);
    /* A paragraph (label NULL), or an item of a list, with a label ("CANN") or without
     * (""). */
    void (*line)(struct page *page, const char *label, const char *words);
};

extern const struct explain_pen nd_explain_text, nd_explain_markdown;

#endif
