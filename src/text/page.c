/*
 * Laying out text.
 */
#include "text/page.h"

#include <string.h>

#include "text/glyph.h"

enum { MARGIN = 1, ITEM_GAP = 3 };

/* What a terminal without UTF-8 sees instead. */
static const struct {
    const char *from, *to;
} ascii[] = {
    {"…", "..."  },
    {"≤", "<="   },
    {"≥", ">="   },
    {"×",  "x"    },
    {"−", "-"    },
    {"–", "-"    },
    {"→", "->"   },
    {"·",  "."    },
    {"±",  "+/-"  },
    {"√", "sqrt" },
    {"²",  "^2"   },
    {"ε",  "eps"  },
    {"≈", "~"    },
    {"σ",  "sigma"},
};

void nd_page_init(struct page *page, enum language language, unsigned width, bool utf8,
                  bool color)
{
    *page = (struct page){.language = language,
                          .width = width < 20 ? 20 : width,
                          .utf8 = utf8,
                          .color = color};
}

void nd_page_done(struct page *page)
{
    nd_out_done(&page->out);
    nd_out_done(&page->scratch);
    nd_text_done(&page->filled);
}

static void safe_ascii(struct out *out, const char *text)
{
    while (*text != '\0') {
        const size_t len = nd_glyph_len(text);
        const char *to = NULL;
        for (size_t i = 0; len > 1 && i < sizeof ascii / sizeof ascii[0] && to == NULL; i++)
            if (strncmp(text, ascii[i].from, strlen(ascii[i].from)) == 0)
                to = ascii[i].to;
        if (to != NULL)
            nd_out_raw(out, to);
        else if (len == 1)
            nd_out_raw(out, (const char[]){*text, '\0'});
        else
            for (size_t i = 0; i < len; i++)
                nd_out_printf(out, "\\x%02x", (unsigned char)text[i]);
        text += len;
    }
}

/* The text as the terminal may see it; good until the next call. */
static const char *page_safe(struct page *page, const char *text)
{
    struct out *scratch = &page->scratch;

    scratch->text.len = 0;
    nd_out_safe(scratch, text);
    if (!page->utf8 && scratch->text.len > 0) {
        struct out plain = {.depth = 0};
        safe_ascii(&plain, scratch->text.bytes);
        nd_out_done(scratch);
        *scratch = plain;
    }
    return scratch->text.len == 0 ? "" : scratch->text.bytes;
}

static void ink_set(struct page *page, enum ink ink)
{
    static const char *const codes[] = {"0", "1", "32", "33", "1;31", "2"};

    if (!page->color || page->ink == ink)
        return;
    if (page->ink != INK_PLAIN)
        nd_out_raw(&page->out, "\x1b[0m");
    if (ink != INK_PLAIN)
        nd_out_printf(&page->out, "\x1b[%sm", codes[ink]);
    page->ink = ink;
}

static void put_between(struct page *page, enum ink ink, const char *at, const char *end)
{
    if (at == end)
        return;
    page->wrapped = false;
    if (page->pending > 0 && page->ink != ink)
        ink_set(page, INK_PLAIN);
    for (; page->pending > 0; page->pending--)
        nd_out_raw(&page->out, " ");
    ink_set(page, ink);
    nd_text_add(&page->out.text, at, (size_t)(end - at));
    page->column += nd_glyph_columns_between(at, end);
}

void nd_page_put(struct page *page, enum ink ink, const char *text)
{
    const char *safe = page_safe(page, text);

    put_between(page, ink, safe, safe + strlen(safe));
}

/* The longest head (or tail) of [at, end) that takes at most `columns`. */
static const char *head_end(const char *at, const char *end, unsigned columns)
{
    while (at < end) {
        const size_t len = nd_glyph_len(at);
        const unsigned take = nd_glyph_columns(at, len);
        if (take > columns)
            break;
        columns -= take;
        at += len;
    }
    return at;
}

static const char *tail_start(const char *at, const char *end, unsigned columns)
{
    for (unsigned left = nd_glyph_columns_between(at, end); left > columns;) {
        const size_t len = nd_glyph_len(at);
        left -= nd_glyph_columns(at, len);
        at += len;
    }
    return at;
}

static void cut_between(struct page *page, enum ink ink, const char *at, const char *end,
                        unsigned columns)
{
    const char *dots = page->utf8 ? "…" : "...";
    const unsigned dots_columns = page->utf8 ? 1 : 3;

    if (nd_glyph_columns_between(at, end) <= columns) {
        put_between(page, ink, at, end);
        return;
    }
    if (columns <= dots_columns) {
        put_between(page, ink, dots, dots + strlen(dots));
        return;
    }
    /* The end of a layer's name tells more than its beginning. */
    const unsigned keep = columns - dots_columns;
    const unsigned head = keep * 2 / 5;
    put_between(page, ink, at, head_end(at, end, head));
    put_between(page, ink, dots, dots + strlen(dots));
    put_between(page, ink, tail_start(at, end, keep - head), end);
}

void nd_page_cut(struct page *page, enum ink ink, const char *text, unsigned columns)
{
    const char *safe = page_safe(page, text);

    cut_between(page, ink, safe, safe + strlen(safe), columns);
}

static bool is_closing(const char *at)
{
    static const char *const closing[] = {"，", "。", "；", "：", "、", "）", "》", "”",
                                          "？", "！", ",",  ".",  ";",  ":",  ")"};

    for (size_t i = 0; i < sizeof closing / sizeof closing[0]; i++)
        if (strncmp(at, closing[i], strlen(closing[i])) == 0)
            return true;
    return false;
}

static bool is_opening(const char *at)
{
    return strncmp(at, "（", 3) == 0 || strncmp(at, "《", 3) == 0 ||
           strncmp(at, "“", 3) == 0;
}

/* The end of the unbreakable unit at `at`: a word, or one wide character with the closing
 * punctuation that must not begin a line and the opening one that must not end it. */
static const char *unit_end(const char *at)
{
    while (is_opening(at) && at[3] != '\0' && at[3] != ' ')
        at += 3;
    const size_t len = nd_glyph_len(at);
    const bool is_wide = nd_glyph_columns(at, len) == 2;
    const char *end = at + len;

    while (*end != '\0' && *end != ' ') {
        const size_t next = nd_glyph_len(end);
        const bool next_wide = nd_glyph_columns(end, next) == 2;
        if (!is_closing(end) && (is_wide || next_wide))
            break;
        end += next;
    }
    return end;
}

static void page_wrap(struct page *page)
{
    nd_page_end(page);
    page->pending = page->column = page->indent;
    page->wrapped = true;
}

static void flow_safe(struct page *page, enum ink ink, const char *at)
{
    while (*at != '\0') {
        if (*at == ' ') {
            if (!page->wrapped) {
                page->pending++;
                page->column++;
            }
            at++;
            continue;
        }
        const char *end = unit_end(at);
        const unsigned columns = nd_glyph_columns_between(at, end);
        /* The last column is left to punctuation, which clings to the word before it. */
        const bool clings = page->pending == 0 && is_closing(at);
        const unsigned margin = clings ? 0 : MARGIN;
        if (page->column > page->indent && page->column + columns + margin > page->width)
            page_wrap(page);
        const unsigned left = page->column < page->width ? page->width - page->column : 1;
        cut_between(page, ink, at, end, left);
        at = end;
    }
}

void nd_page_flow(struct page *page, enum ink ink, const char *text)
{
    flow_safe(page, ink, page_safe(page, text));
}

static const char *page_filled(struct page *page, const char *id,
                               const struct catalogue_value *values, size_t count)
{
    page->filled.len = 0;
    nd_catalogue_fill(nd_page_words(page, id), values, count, &page->filled);
    return page->filled.len == 0 ? "" : page->filled.bytes;
}

void nd_page_say(struct page *page, enum ink ink, const char *id,
                 const struct catalogue_value *values, size_t count)
{
    nd_page_flow(page, ink, page_filled(page, id, values, count));
}

void nd_page_say_item(struct page *page, enum ink ink, const char *id,
                      const struct catalogue_value *values, size_t count)
{
    nd_page_item(page, ink, page_filled(page, id, values, count));
}

void nd_page_item(struct page *page, enum ink ink, const char *text)
{
    const bool is_first = page->pending == page->column || page->pending > 0;
    const unsigned gap = is_first ? 0 : ITEM_GAP;
    const char *safe = page_safe(page, text);
    const char *end = safe + strlen(safe);
    const unsigned columns = nd_glyph_columns_between(safe, end);

    if (page->column > page->indent && page->column + gap + columns > page->width) {
        page_wrap(page);
    } else {
        page->pending += gap;
        page->column += gap;
    }
    cut_between(page, ink, safe, end,
                page->column < page->width ? page->width - page->column : 1);
}

void nd_page_tab(struct page *page, unsigned column)
{
    const unsigned least =
        page->column == 0 ? 0 : page->column + (page->pending > 0 ? 0 : 1);
    const unsigned to = column > least ? column : least;

    page->pending += to - page->column;
    page->column = to;
}

void nd_page_right(struct page *page, enum ink ink, const char *text, unsigned column)
{
    const unsigned columns = nd_page_columns(page, text);

    nd_page_tab(page, column > columns ? column - columns : 0);
    nd_page_put(page, ink, text);
}

void nd_page_end(struct page *page)
{
    ink_set(page, INK_PLAIN);
    nd_out_raw(&page->out, "\n");
    page->column = page->pending = 0;
    page->wrapped = false;
}

void nd_page_blank(struct page *page)
{
    if (page->column > 0)
        nd_page_end(page);
    nd_page_end(page);
}

unsigned nd_page_columns(struct page *page, const char *text)
{
    const char *safe = page_safe(page, text);

    return nd_glyph_columns_between(safe, safe + strlen(safe));
}

const char *nd_page_words(const struct page *page, const char *id)
{
    /* Chinese cannot be shown in ASCII. */
    const enum language language = page->utf8 ? page->language : LANGUAGE_EN;
    const char *words = nd_catalogue_words(id, language);

    return words == NULL ? id : words;
}
