/*
 * The CHECKLIST: a line for each finding.  What is in order takes one line where that says a
 * whole sentence: of declared, recovered and evidence, parts are left out before a sentence
 * is broken off, and -v shows all.
 */
#include "report/text_parts.h"

#include <stdio.h>
#include <string.h>

enum { FINDING_STATUS = 15, FINDING_TEXT = 26 };

static enum ink finding_ink(enum nd_check_status status)
{
    return status == ND_CHECK_MISMATCH  ? INK_BAD
           : status == ND_CHECK_SUSPECT ? INK_WARN
           : status == ND_CHECK_OK      ? INK_GOOD
                                        : INK_PLAIN;
}

/* "declared 1e-05 / not declared"; false if neither side says anything. */
static bool finding_pair(const struct page *page, const char *const *pair, const char *id,
                         const char *absent, struct text *out)
{
    char both[64];

    if (pair[0] == NULL && pair[1] == NULL)
        return false;
    if (pair[0] != NULL && pair[1] != NULL && strcmp(pair[0], pair[1]) == 0) {
        const struct catalogue_value value = VALUE_TEXT("value", pair[0]);
        snprintf(both, sizeof both, "%s.both", id);
        nd_catalogue_fill(nd_page_words(page, both), &value, 1, out);
        return true;
    }
    const char *none = nd_page_words(page, absent);
    const struct catalogue_value values[] = {
        VALUE_TEXT("reference", pair[0] == NULL ? none : pair[0]),
        VALUE_TEXT("candidate", pair[1] == NULL ? none : pair[1])};
    nd_catalogue_fill(nd_page_words(page, id), values, 2, out);
    return true;
}

static const char *words_of(const struct text *text)
{
    return text->len == 0 ? "" : text->bytes;
}

static void finding_add(const struct page *page, const struct nd_phrase *phrase,
                        struct text *out)
{
    if (phrase->id == NULL)
        return;
    if (out->len > 0)
        nd_text_puts(out, nd_page_words(page, "report.semicolon"));
    nd_phrase_put(phrase, page->utf8 ? page->language : LANGUAGE_EN, out);
}

void nd_text_finding_words(const struct page *page, const struct nd_finding *finding,
                           struct text *out)
{
    const bool recovered = finding->recovered[0] != NULL || finding->recovered[1] != NULL;

    if (finding_pair(page, finding->declared, "report.declared", "report.not_declared",
                     out) &&
        recovered)
        nd_text_puts(out, nd_page_words(page, "report.semicolon"));
    if (recovered)
        finding_pair(page, finding->recovered, "report.recovered", "report.not_recovered",
                     out);
    finding_add(page, &finding->evidence, out);
    if (finding->status == ND_CHECK_UNKNOWN)
        finding_add(page, &finding->advice, out);
}

/* What a finding that is in order says in one line: all of it, else what is declared and the
 * evidence, else the evidence. */
static void finding_short(struct page *page, const struct nd_finding *finding,
                          struct text *out)
{
    struct nd_finding part = *finding;
    const unsigned room = page->width - FINDING_TEXT - 1; /* the last column stays free */

    for (unsigned step = 0; step < 3; step++) {
        out->len = 0;
        nd_text_finding_words(page, &part, out);
        if (part.evidence.id == NULL || nd_page_columns(page, words_of(out)) <= room)
            return;
        if (step == 0)
            part.recovered[0] = part.recovered[1] = NULL;
        else
            part.declared[0] = part.declared[1] = NULL;
    }
}

bool nd_text_settled(const struct nd_result *result)
{
    return result->cause_count > 0 && result->causes[0].status == ND_CAUSE_CONFIRMED;
}

/* Once a cause is confirmed, what stayed unknown is named and no more. */
static bool finding_waits(const struct report_job *job, const struct nd_finding *finding)
{
    return !job->options->verbose && nd_text_settled(job->result) &&
           finding->status == ND_CHECK_UNKNOWN;
}

static void finding_waiting(struct report_job *job)
{
    const struct nd_result *result = job->result;
    struct page *page = &job->page;
    struct text names = {0};

    for (size_t i = 0; i < result->checklist_count; i++)
        if (finding_waits(job, &result->checklist[i]))
            nd_text_printf(&names, names.len == 0 ? "%s" : ", %s", result->checklist[i].id);
    if (names.len > 0) {
        page->indent = FINDING_STATUS;
        nd_page_tab(page, 2);
        nd_page_put(page, INK_PLAIN, nd_page_words(page, "check.status.unknown"));
        nd_page_tab(page, FINDING_STATUS);
        ND_SAY(page, INK_PLAIN, "report.unsettled", VALUE_TEXT("names", names.bytes));
        nd_page_end(page);
    }
    nd_text_done(&names);
}

static void finding_row(struct report_job *job, const struct nd_finding *finding)
{
    struct page *page = &job->page;
    struct text words = {0};
    char id[64];

    page->indent = FINDING_TEXT;
    nd_page_tab(page, 2);
    nd_page_cut(page, INK_PLAIN, finding->id, FINDING_STATUS - 3);
    nd_page_tab(page, FINDING_STATUS);
    snprintf(id, sizeof id, "check.status.%s", nd_check_status_word(finding->status));
    nd_page_put(page, finding_ink(finding->status), nd_page_words(page, id));
    if (finding->status == ND_CHECK_OK && !job->options->verbose)
        finding_short(page, finding, &words);
    else
        nd_text_finding_words(page, finding, &words);
    if (words.len > 0) {
        nd_page_tab(page, FINDING_TEXT);
        nd_page_flow(page, INK_PLAIN, words.bytes);
    }
    nd_page_end(page);
    nd_text_done(&words);
}

void nd_text_finding(struct report_job *job, const struct nd_finding *finding)
{
    if (!finding_waits(job, finding))
        finding_row(job, finding);
    if (finding == &job->result->checklist[job->result->checklist_count - 1])
        finding_waiting(job);
}
