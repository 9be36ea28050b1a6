/*
 * --explain: what the catalogue says about an id of the report.
 */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/help.h"
#include "cli/options.h"
#include "text/page.h"

/* What an id may be, most useful first. */
static const char *const families[] = {"cause", "note", "tier", "role", "fail"};
enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

/* Whether the catalogue's `id` belongs to `wanted`: family.wanted or family.wanted.part,
 * with the part returned ("" for none). */
static bool explain_belongs(const char *id, const char *family, const char *wanted,
                            const char **ret_part)
{
    const size_t family_len = strlen(family), len = strlen(wanted);

    if (strncmp(id, family, family_len) != 0 || id[family_len] != '.')
        return false;
    id += family_len + 1;
    if (strncmp(id, wanted, len) != 0 || (id[len] != '\0' && id[len] != '.'))
        return false;
    *ret_part = id[len] == '.' ? id + len + 1 : "";
    return true;
}

enum part { PART_WORDS, PART_ADVICE, PART_SEARCH, PART_COUNT };

static enum part explain_part(const char *part)
{
    if (strcmp(part, "advice") == 0)
        return PART_ADVICE;
    return strncmp(part, "search.", 7) == 0 ? PART_SEARCH : PART_WORDS;
}

/* The phrases of one part of one family about the id; how many there were. */
static size_t explain_phrases(struct page *page, const char *family, const char *wanted,
                              enum part chosen)
{
    static const char *const headings[] = {NULL, "explain.advice", "explain.search"};
    size_t count = 0;
    const char *part;

    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++) {
        const char *id = nd_catalogue_id(i);
        if (!explain_belongs(id, family, wanted, &part) || explain_part(part) != chosen)
            continue;
        if (count++ == 0 && headings[chosen] != NULL) {
            nd_page_put(page, INK_BOLD, nd_page_words(page, headings[chosen]));
            nd_page_end(page);
        }
        nd_page_tab(page, headings[chosen] == NULL ? 0 : 2);
        nd_page_flow(page, count == 1 && chosen == PART_WORDS ? INK_BOLD : INK_PLAIN,
                     nd_page_words(page, id));
        nd_page_end(page);
    }
    return count;
}

static size_t explain_family(struct page *page, const char *family, const char *wanted)
{
    size_t count = 0;

    for (unsigned part = 0; part < PART_COUNT; part++)
        count += explain_phrases(page, family, wanted, (enum part)part);
    return count;
}

static enum nd_status explain_unknown(const char *wanted, struct nd_error *err)
{
    return nd_fail_key(err, ND_ERR_USAGE, "--explain",
                       "the id of a cause, a note, a tier or a role, as in a JSON report",
                       "\"%s\"", wanted);
}

enum nd_status nd_explain(const char *id, const struct terminal *terminal,
                          struct nd_error *err)
{
    struct page page;
    size_t count = 0;
    enum nd_status status = ND_OK;

    nd_page_init(&page, nd_language_of(terminal->lang), terminal->width, terminal->utf8,
                 terminal->color);
    page.indent = 2;
    for (size_t i = 0; i < FAMILY_COUNT && count == 0; i++)
        count = explain_family(&page, families[i], id);
    if (count == 0)
        status = explain_unknown(id, err);
    else if (!nd_out_flush(&page.out, stdout))
        status = nd_fail(err, ND_ERR_IO, NULL, "standard output cannot be written");
    nd_page_done(&page);
    return status;
}
