/*
 * WHY and NEXT: the causes, and what to do about them.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY_COLUMNS = 7 };

static void why_begin(struct page *page, const char *id)
{
    page->indent = WHY_COLUMNS;
    nd_page_put(page, INK_BOLD, nd_page_words(page, id));
    nd_page_tab(page, WHY_COLUMNS);
}

/* "eps differs", or the cause's id where the catalogue has no title. */
const char *nd_text_cause_title(const struct page *page, const struct nd_cause *cause)
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
    const bool possible = cause->status == ND_CAUSE_POSSIBLE;
    const bool sided = cause->side != ND_SIDE_UNKNOWN;
    ND_SAY(page, possible ? INK_PLAIN : INK_BOLD,
           possible ? "report.why.possible.one"
           : sided  ? "report.why.sided"
                    : "report.why.named",
           VALUE_TEXT("title", nd_text_cause_title(page, cause)),
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

void nd_text_shell_word(const char *word, struct text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    const bool is_plain = word[0] != '\0' && word[strspn(word, plain)] == '\0';

    nd_text_puts(out, is_plain ? "" : "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            nd_text_puts(out, "'\\''");
        else
            nd_text_add(out, word, 1);
    }
    nd_text_puts(out, is_plain ? "" : "'");
}

/* A command to copy: never cut, continued with a backslash. */
static void next_command(struct page *page, const struct nd_step *step)
{
    nd_page_tab(page, WHY_COLUMNS + 2);
    for (size_t i = 0; i < step->argc; i++) {
        struct text word = {0};
        nd_text_shell_word(step->argv[i], &word);
        const char *shown = word.len == 0 ? "" : word.bytes;
        const unsigned need = nd_page_columns(page, shown) + 3;
        if (i > 0 && page->column + need > page->width) {
            nd_page_put(page, INK_PLAIN, " \\");
            nd_page_end(page);
            nd_page_tab(page, WHY_COLUMNS + 4);
        } else if (i > 0) {
            nd_page_put(page, INK_PLAIN, " ");
        }
        nd_page_put(page, INK_PLAIN, shown);
        nd_text_done(&word);
    }
    nd_page_end(page);
}

/* Once a cause is confirmed, only the finding that bears its name has more to say. */
static bool advice_matters(const struct nd_result *result, const struct nd_finding *finding)
{
    return finding->advice.id != NULL &&
           (finding->status == ND_CHECK_MISMATCH || finding->status == ND_CHECK_SUSPECT) &&
           (!nd_text_settled(result) || strcmp(finding->id, result->causes[0].id) == 0);
}

size_t nd_text_advice(const struct nd_result *result,
                      const struct nd_phrase *ret_said[TEXT_ADVICE_LIMIT])
{
    size_t count = 0;

    for (size_t i = 0; i < result->checklist_count && count < TEXT_ADVICE_LIMIT; i++) {
        const struct nd_finding *finding = &result->checklist[i];
        bool fresh = advice_matters(result, finding);
        for (size_t k = 0; k < count && fresh; k++)
            fresh = strcmp(ret_said[k]->id, finding->advice.id) != 0;
        if (fresh)
            ret_said[count++] = &finding->advice;
    }
    return count;
}

/* Advice of the findings that matter. */
static size_t next_advice(struct page *page, const struct nd_result *result)
{
    const struct nd_phrase *said[TEXT_ADVICE_LIMIT];
    const size_t count = nd_text_advice(result, said);

    for (size_t i = 0; i < count; i++) {
        nd_page_tab(page, WHY_COLUMNS);
        nd_text_phrase(page, INK_PLAIN, said[i]);
        nd_page_end(page);
    }
    return count;
}

bool nd_text_cause_advice(const struct nd_result *result, char *id, size_t size)
{
    if (result->cause_count == 0 || result->causes[0].status == ND_CAUSE_POSSIBLE)
        return false;
    snprintf(id, size, "cause.%s.advice", result->causes[0].id);
    return nd_catalogue_words(id, LANGUAGE_EN) != NULL;
}

/* The best cause's advice, where no finding said so already. */
static void next_cause(struct page *page, const struct nd_result *result)
{
    char id[128];

    if (!nd_text_cause_advice(result, id, sizeof id))
        return;
    const struct nd_cause *cause = &result->causes[0];
    const struct nd_phrase advice = {id, cause->params, cause->param_count};
    nd_page_tab(page, WHY_COLUMNS);
    nd_text_phrase(page, INK_PLAIN, &advice);
    nd_page_end(page);
}

/* Where more is said about the best cause. */
static void next_explain(struct page *page, const struct nd_result *result)
{
    char id[128];

    if (result->cause_count == 0 || result->causes[0].status == ND_CAUSE_POSSIBLE)
        return;
    snprintf(id, sizeof id, "cause.%s.what", result->causes[0].id);
    if (nd_catalogue_words(id, LANGUAGE_EN) == NULL)
        return;
    nd_page_tab(page, WHY_COLUMNS);
    ND_SAY(page, INK_PLAIN, "report.next.explain",
           VALUE_TEXT("id", result->causes[0].id));
    nd_page_end(page);
}

/* Where layers are missing and no more, steps have nothing to settle. */
static bool something_diverges(const struct nd_result *result)
{
    return result->verdict == ND_VERDICT_DRIFT ||
           nd_result_layer(result, result->first.layer) != NULL;
}

/* Open steps matter while the cause is open; with -v all of them are shown. */
bool nd_text_step_matters(const struct report_job *job, const struct nd_step *step)
{
    return job->options->verbose ||
           (step->status != ND_STEP_DONE && something_diverges(job->result) &&
            !nd_text_settled(job->result));
}

static void next_step(struct page *page, const struct nd_step *step)
{
    char id[64], status[64];

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
    char id[128];
    bool some = nd_text_cause_advice(result, id, sizeof id);

    for (size_t i = 0; i < result->checklist_count; i++)
        some = some || advice_matters(result, &result->checklist[i]);
    for (size_t i = 0; i < result->step_count; i++)
        some = some || nd_text_step_matters(job, &result->steps[i]);
    if (!some)
        return;
    nd_page_blank(page);
    why_begin(page, "report.next");
    if (next_advice(page, result) == 0)
        next_cause(page, result);
    next_explain(page, result);
    for (size_t i = 0; i < result->step_count; i++)
        if (nd_text_step_matters(job, &result->steps[i]))
            next_step(page, &result->steps[i]);
}
