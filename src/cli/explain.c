/*
 * --explain: what the catalogue says about an id of the report.  A cause has a page of its
 * own; a note, a tier, a role or a line of the checklist has a sentence.
 */
#include "cli/explain.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/help.h"

enum { ID_SIZE = 96, SEARCH_COUNT = 9 };

/* The parts of a cause's page, in order.  A part without a heading follows the one before.
 */
static const struct part {
    const char *name, *heading, *label;
} parts[] = {
    {"what",      "explain.what",   NULL       },
    {"looks",     "explain.looks",  NULL       },
    {"proof",     "explain.proof",  NULL       },
    {"unlike",    "explain.unlike", NULL       },
    {"advice",    "explain.advice", NULL       },
    {"pytorch",   NULL,             "PyTorch"  },
    {"torch_npu", NULL,             "torch_npu"},
    {"cann",      NULL,             "CANN"     },
};

/* What an id may be that is no cause. */
static const char *const families[] = {"note", "tier", "role", "fail", "check"};

/* The words of family.id or family.id.part; NULL: there are none. */
static const char *explain_words(const struct page *page, const char *family,
                                 const char *id, const char *part)
{
    char key[ID_SIZE];
    const int size = snprintf(key, sizeof key, "%s.%s%s%s", family, id,
                              part == NULL ? "" : ".", part == NULL ? "" : part);

    if (size < 0 || (size_t)size >= sizeof key)
        return NULL;
    const char *words = nd_page_words(page, key);
    return words == key || words[0] == '\0' ? NULL : words;
}

static void explain_search(struct page *page, const struct explain_pen *pen, const char *id)
{
    char part[16];

    for (unsigned i = 1; i <= SEARCH_COUNT; i++) {
        snprintf(part, sizeof part, "search.%u", i);
        const char *words = explain_words(page, "cause", id, part);
        if (words == NULL)
            return;
        if (i == 1)
            pen->heading(page, nd_page_words(page, "explain.search"));
        pen->line(page, "", words);
    }
}

static bool explain_cause(struct page *page, const struct explain_pen *pen, const char *id)
{
    const char *title = explain_words(page, "cause", id, "title");

    if (title == NULL)
        return false;
    pen->title(page, id, title);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *words = explain_words(page, "cause", id, parts[i].name);
        if (words == NULL)
            continue;
        if (parts[i].heading != NULL)
            pen->heading(page, nd_page_words(page, parts[i].heading));
        pen->line(page, parts[i].label, words);
    }
    explain_search(page, pen, id);
    return true;
}

static bool explain_other(struct page *page, const struct explain_pen *pen, const char *id)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *own = explain_words(page, families[i], id, NULL);
        const char *meaning = explain_words(page, families[i], id, "meaning");
        if (own == NULL && meaning == NULL)
            continue;
        const bool is_plain = own == NULL || meaning == NULL || strcmp(own, id) == 0;
        pen->title(page, id, is_plain ? NULL : own);
        pen->line(page, NULL, meaning == NULL ? own : meaning);
        return true;
    }
    return false;
}

/* Whether an id of the catalogue is prefix, a name, and suffix; fills in the name. */
static bool id_between(const char *id, const char *prefix, const char *suffix,
                       char name[ID_SIZE])
{
    const size_t before = strlen(prefix), after = strlen(suffix), len = strlen(id);

    if (len <= before + after || len - before - after >= ID_SIZE ||
        strncmp(id, prefix, before) != 0 || strcmp(id + len - after, suffix) != 0)
        return false;
    memcpy(name, id + before, len - before - after);
    name[len - before - after] = '\0';
    return true;
}

/* All causes, in the order of the catalogue's pages: listed, or explained whole. */
static void explain_causes(struct page *page, const struct explain_pen *pen, bool whole)
{
    char name[ID_SIZE];

    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++) {
        const char *id = nd_catalogue_id(i);
        if (id_between(id, "causes.group.", "", name)) {
            if (whole)
                pen->group(page, nd_page_words(page, id));
            else
                pen->entry(page, NULL, nd_page_words(page, id));
        } else if (id_between(id, "cause.", ".what", name)) {
            if (whole)
                explain_cause(page, pen, name);
            else
                pen->entry(page, name, explain_words(page, "cause", name, "title"));
        }
    }
}

static bool explain_id(struct page *page, const struct explain_pen *pen, const char *id)
{
    const bool is_list = strcmp(id, "list") == 0;

    if (!is_list && strcmp(id, "all") != 0)
        return explain_cause(page, pen, id) || explain_other(page, pen, id);
    if (!is_list)
        pen->opening(page);
    if (is_list || pen == &nd_explain_markdown)
        explain_causes(page, pen, false);
    if (!is_list)
        explain_causes(page, pen, true);
    return true;
}

enum nd_status nd_explain(const char *id, const char *format,
                          const struct terminal *terminal, struct nd_error *err)
{
    const bool is_markdown = strcmp(format, "markdown") == 0;
    const struct explain_pen *pen = is_markdown ? &nd_explain_markdown : &nd_explain_text;
    struct page page;
    enum nd_status status = ND_OK;

    if (!is_markdown && strcmp(format, "text") != 0)
        return nd_fail_key(err, ND_ERR_USAGE, "--format", "text or markdown with --explain",
                           "\"%s\"", format);
    nd_page_init(&page, nd_language_of(terminal->lang), terminal->width,
                 terminal->utf8 || is_markdown, terminal->color);
    if (!explain_id(&page, pen, id))
        status = nd_fail_key(err, ND_ERR_USAGE, "--explain",
                             "list, all, or the id of a cause, a note, a tier, a role or a "
                             "line of the checklist, as in a JSON report",
                             "\"%s\"", id);
    else if (!nd_out_flush(&page.out, stdout))
        status = nd_fail(err, ND_ERR_IO, NULL, "standard output cannot be written");
    nd_page_done(&page);
    return status;
}
