/*
 * A page: text laid out in columns of a terminal.  It wraps words, cuts names that do not
 * fit in the middle, counts double-width characters, keeps colour to itself, and shows
 * ASCII where the terminal knows no more.  Everything put on it is escaped first.
 */
#ifndef ND_TEXT_PAGE_H
#define ND_TEXT_PAGE_H

#include "base/out.h"
#include "text/catalogue.h"

/* Colours, sparingly; what they mean always stands in words too. */
enum ink { INK_PLAIN, INK_BOLD, INK_GOOD, INK_WARN, INK_BAD, INK_FAINT };

struct page {
    struct out out;     /* finished lines and the current one */
    struct out scratch; /* a text made safe */
    struct text filled; /* a phrase with its values */
    enum language language;
    unsigned width;
    bool utf8, color;
    unsigned column;  /* where the next character goes */
    unsigned indent;  /* where wrapped lines begin */
    unsigned pending; /* spaces due before the next character */
    bool wrapped;     /* nothing on this line yet but its indent */
    enum ink ink;     /* switched on at the moment */
};

void nd_page_init(struct page *page, enum language language, unsigned width, bool utf8,
                  bool color);
void nd_page_done(struct page *page);

/* Puts a text as it is, without wrapping. */
void nd_page_put(struct page *page, enum ink ink, const char *text);
/* The same in at most `columns` columns, its middle left out if it is longer. */
void nd_page_cut(struct page *page, enum ink ink, const char *text, unsigned columns);
/* Puts words, going to a new line at page->indent where one does not fit. */
void nd_page_flow(struct page *page, enum ink ink, const char *text);
/* Puts a text that is not broken, a gap after the one before it, or on a new line at
 * page->indent where it does not fit. */
void nd_page_item(struct page *page, enum ink ink, const char *text);
/* Flows a phrase of the catalogue; an unknown id stands for itself. */
void nd_page_say(struct page *page, enum ink ink, const char *id,
                 const struct catalogue_value *values, size_t count);
void nd_page_say_item(struct page *page, enum ink ink, const char *id,
                      const struct catalogue_value *values, size_t count);

/* Spaces up to a column; one at least, unless the line is empty. */
void nd_page_tab(struct page *page, unsigned column);
/* Puts a text so that it ends before `column`. */
void nd_page_right(struct page *page, enum ink ink, const char *text, unsigned column);
void nd_page_end(struct page *page); /* ends the line */
void nd_page_blank(struct page *page);

/* Columns that a text takes once it is escaped. */
unsigned nd_page_columns(struct page *page, const char *text);
/* The words of an id in the page's language; the id itself where it is unknown. */
const char *nd_page_words(const struct page *page, const char *id);

#endif
