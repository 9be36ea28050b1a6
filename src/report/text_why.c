/*
 * WHY, the CHECKLIST and NEXT: causes, findings, and what to do about them.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY_COLUMNS = 7, FINDING_STATUS = 15, FINDING_TEXT = 26, NEXT_LIMIT = 6 };

static void why_begin(struct page *page, const char *id)
{
    page->indent = WHY_COLUMNS;
    nd_page_put(page, INK_BOLD, nd_page_words(page, id));
    nd_page_tab(page, WHY_COLUMNS);
}

/* "eps differs", or the cause's id where the catalogue has no title. */
static const char *why_title(const struct page *page, const struct nd_cause *cause)
{
    char id[128];

    snprintf(id, sizeof id, "cause.%s.title", cause->id);
    const char *words = nd_page_words(page, id);
    return words == id ? cause->id : words;
}

static void why_cause(struct page *page, const struct nd_cause *cause)
{
    char status[64], side[64], share[FIGURE_SIZE];

    snprintf(status, sizeof status, "cause.status.%s", nd_cause_status_word(cause->status));
    snprintf(side, sizeof side, "side.%s", nd_side_word(cause->side));
    ND_SAY(page, INK_BOLD,
           cause->side == ND_SIDE_UNKNOWN ? "report.why.named" : "report.why.sided",
           VALUE_TEXT("title", why_title(page, cause)),
           VALUE_TEXT("status", nd_page_words(page, status)),
           VALUE_TEXT("side", nd_page_words(page, side)));
    if (cause->summary.id != NULL) {
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.colon"));
        nd_text_phrase(page, INK_PLAIN, &cause->summary);
    }
    if (cause->status != ND_CAUSE_CONFIRMED && cause->explains > 0.0) {
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.semicolon"));
        ND_SAY(page, INK_PLAIN, "report.why.explains",
               VALUE_TEXT("share", nd_figure_share(cause->explains, share)));
    }
    nd_page_end(page);
}

void nd_text_why(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;
    bool named = false;

    if (nd_result_layer(result, result->first.layer) == NULL && result->cause_count == 0)
        return;
    nd_page_blank(page);
    why_begin(page, "report.why");
    for (size_t i = 0; i < result->cause_count; i++) {
        if (result->causes[i].status == ND_CAUSE_POSSIBLE)
            continue;
        nd_page_tab(page, WHY_COLUMNS);
        why_cause(page, &result->causes[i]);
        named = true;
    }
    if (named)
        return;
    nd_page_flow(page, INK_PLAIN,
                 nd_page_words(page, result->cause_count == 0 ? "report.why.unknown"
                                                              : "report.why.possible"));
    nd_page_end(page);
    for (size_t i = 0; i < result->cause_count; i++) {
        nd_page_tab(page, WHY_COLUMNS);
        why_cause(page, &result->causes[i]);
    }
}

static enum ink finding_ink(enum nd_check_status status)
{
    return status == ND_CHECK_MISMATCH  ? INK_BAD
           : status == ND_CHECK_SUSPECT ? INK_WARN
           : status == ND_CHECK_OK      ? INK_GOOD
                                        : INK_PLAIN;
}

/* "declared 1e-05 / not declared"; false if neither side says anything. */
static bool finding_pair(struct page *page, const char *const *pair, const char *id,
                         const char *absent)
{
    char both[64];

    if (pair[0] == NULL && pair[1] == NULL)
        return false;
    if (pair[0] != NULL && pair[1] != NULL && strcmp(pair[0], pair[1]) == 0) {
        snprintf(both, sizeof both, "%s.both", id);
        ND_SAY(page, INK_PLAIN, both, VALUE_TEXT("value", pair[0]));
        return true;
    }
    const char *none = nd_page_words(page, absent);
    ND_SAY(page, INK_PLAIN, id, VALUE_TEXT("reference", pair[0] == NULL ? none : pair[0]),
           VALUE_TEXT("candidate", pair[1] == NULL ? none : pair[1]));
    return true;
}

void nd_text_finding(struct report_job *job, const struct nd_finding *finding)
{
    struct page *page = &job->page;
    char id[64];

    page->indent = FINDING_TEXT;
    snprintf(id, sizeof id, "check.%s", finding->id);
    const char *name = nd_page_words(page, id);
    nd_page_tab(page, 2);
    nd_page_cut(page, INK_PLAIN, name == id ? finding->id : name, FINDING_STATUS - 3);
    nd_page_tab(page, FINDING_STATUS);
    snprintf(id, sizeof id, "check.status.%s", nd_check_status_word(finding->status));
    nd_page_put(page, finding_ink(finding->status), nd_page_words(page, id));
    nd_page_tab(page, FINDING_TEXT);
    bool said =
        finding_pair(page, finding->declared, "report.declared", "report.not_declared");
    if (finding->recovered[0] != NULL || finding->recovered[1] != NULL) {
        nd_page_flow(page, INK_PLAIN, said ? nd_page_words(page, "report.semicolon") : "");
        finding_pair(page, finding->recovered, "report.recovered", "report.not_recovered");
        said = true;
    }
    if (finding->evidence.id != NULL) {
        nd_page_flow(page, INK_PLAIN, said ? nd_page_words(page, "report.semicolon") : "");
        nd_text_phrase(page, INK_PLAIN, &finding->evidence);
        said = true;
    }
    if (finding->status == ND_CHECK_UNKNOWN && finding->advice.id != NULL) {
        nd_page_flow(page, INK_PLAIN, said ? nd_page_words(page, "report.semicolon") : "");
        nd_text_phrase(page, INK_PLAIN, &finding->advice);
    }
    nd_page_end(page);
}

/* A command to copy: never cut, continued with a backslash. */
static void next_command(struct page *page, const struct nd_step *step)
{
    nd_page_tab(page, WHY_COLUMNS + 2);
    for (size_t i = 0; i < step->argc; i++) {
        const unsigned need = nd_page_columns(page, step->argv[i]) + 3;
        if (i > 0 && page->column + need > page->width) {
            nd_page_put(page, INK_PLAIN, " \\");
            nd_page_end(page);
            nd_page_tab(page, WHY_COLUMNS + 4);
        } else if (i > 0) {
            nd_page_put(page, INK_PLAIN, " ");
        }
        nd_page_put(page, INK_PLAIN, step->argv[i]);
    }
    nd_page_end(page);
}

/* Advice of the findings that matter; each sentence once. */
static size_t next_advice(struct page *page, const struct nd_result *result)
{
    const char *said[NEXT_LIMIT];
    size_t count = 0;

    for (size_t i = 0; i < result->checklist_count && count < NEXT_LIMIT; i++) {
        const struct nd_finding *finding = &result->checklist[i];
        bool fresh = finding->advice.id != NULL && (finding->status == ND_CHECK_MISMATCH ||
                                                    finding->status == ND_CHECK_SUSPECT);
        for (size_t k = 0; k < count && fresh; k++)
            fresh = strcmp(said[k], finding->advice.id) != 0;
        if (!fresh)
            continue;
        said[count++] = finding->advice.id;
        nd_page_tab(page, WHY_COLUMNS);
        nd_text_phrase(page, INK_PLAIN, &finding->advice);
        nd_page_end(page);
    }
    return count;
}

/* What the best cause calls for, where no finding said so. */
static size_t next_cause(struct page *page, const struct nd_result *result)
{
    char id[128];

    if (result->cause_count == 0 || result->causes[0].status == ND_CAUSE_POSSIBLE)
        return 0;
    const struct nd_cause *cause = &result->causes[0];
    snprintf(id, sizeof id, "cause.%s.advice", cause->id);
    const struct nd_phrase advice = {id, cause->params, cause->param_count};
    if (nd_catalogue_words(id, LANGUAGE_EN) == NULL)
        return 0;
    nd_page_tab(page, WHY_COLUMNS);
    nd_text_phrase(page, INK_PLAIN, &advice);
    nd_page_end(page);
    return 1;
}

static void next_step(struct page *page, const struct nd_step *step, bool verbose)
{
    char id[64], status[64];

    if (step->status == ND_STEP_DONE && !verbose)
        return;
    nd_page_tab(page, WHY_COLUMNS);
    snprintf(id, sizeof id, "step.%s", step->id);
    const char *name = nd_page_words(page, id);
    snprintf(status, sizeof status, "step.status.%s", nd_step_status_word(step->status));
    ND_SAY(page, INK_PLAIN, "report.why.named",
           VALUE_TEXT("title", name == id ? step->id : name),
           VALUE_TEXT("status", nd_page_words(page, status)));
    if (step->evidence.id != NULL) {
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.colon"));
        nd_text_phrase(page, INK_PLAIN, &step->evidence);
    }
    nd_page_end(page);
    if (step->argc > 0)
        next_command(page, step);
}

void nd_text_next(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;
    bool some = false;

    for (size_t i = 0; i < result->checklist_count; i++)
        some = some || (result->checklist[i].advice.id != NULL &&
                        result->checklist[i].status != ND_CHECK_UNKNOWN);
    for (size_t i = 0; i < result->step_count; i++)
        some = some || result->steps[i].status != ND_STEP_DONE || job->options->verbose;
    some =
        some || (result->cause_count > 0 && result->causes[0].status != ND_CAUSE_POSSIBLE);
    if (!some)
        return;
    nd_page_blank(page);
    why_begin(page, "report.next");
    if (next_advice(page, result) == 0)
        next_cause(page, result);
    for (size_t i = 0; i < result->step_count; i++)
        next_step(page, &result->steps[i], job->options->verbose);
    if (page->column > 0)
        nd_page_end(page);
}
