/*
 * The HTML report: what to do next, and what was not compared.
 */
#include "report/html_parts.h"

#include <stdio.h>

enum { NAMES_SHOWN = 200 }; /* of each list, unless asked for more */

static void next_item(struct report_job *job, const struct nd_phrase *advice)
{
    nd_out_raw(&job->page.out, "<p>");
    nd_html_phrase(job, advice);
    nd_out_raw(&job->page.out, "</p>\n");
}

static void next_advice(struct report_job *job, const struct nd_result *result)
{
    const struct nd_phrase *said[TEXT_ADVICE_LIMIT];
    const size_t count = nd_text_advice(result, said);
    char id[128];

    for (size_t i = 0; i < count; i++)
        next_item(job, said[i]);
    if (count > 0 || !nd_text_cause_advice(result, id, sizeof id))
        return;
    const struct nd_cause *cause = &result->causes[0];
    next_item(job, &(struct nd_phrase){id, cause->params, cause->param_count});
}

static void next_command(struct report_job *job, const struct nd_step *step)
{
    struct text line = {0};

    if (step->argc == 0)
        return;
    for (size_t i = 0; i < step->argc; i++) {
        nd_text_puts(&line, i == 0 ? "" : " ");
        nd_text_shell_word(step->argv[i], &line);
    }
    nd_out_raw(&job->page.out, "<pre>");
    nd_html_text(job, line.len == 0 ? "" : line.bytes);
    nd_out_raw(&job->page.out, "</pre>\n");
    nd_text_done(&line);
}

void nd_html_step(struct report_job *job, const struct nd_step *step)
{
    struct out *out = &job->page.out;
    char id[64];

    nd_out_raw(out, "<tr><td class=\"k\">");
    snprintf(id, sizeof id, "step.%s", step->id);
    const char *name = nd_page_words(&job->page, id);
    nd_html_text(job, name == id ? step->id : name);
    nd_out_raw(out, "</td><td class=\"k\">");
    snprintf(id, sizeof id, "step.status.%s", nd_step_status_word(step->status));
    nd_html_words(job, id);
    nd_out_raw(out, "</td><td>");
    nd_html_phrase(job, &step->evidence);
    next_command(job, step);
    nd_out_raw(out, "</td></tr>\n");
}

void nd_html_next(struct report_job *job, const struct nd_result *result)
{
    if (result->verdict == ND_VERDICT_AGREE && result->cause_count == 0)
        return;
    nd_html_section(job, "next", "report.next");
    next_advice(job, result);
    nd_html_section_end(job);
}

/* A list with its heading: names, or names with a reason or a partner. */
static void coverage_list(struct report_job *job, const char *id, const char *const *names,
                          const struct nd_named *pairs, size_t count)
{
    const size_t shown =
        job->options->verbose || count <= NAMES_SHOWN ? count : NAMES_SHOWN;
    struct out *out = &job->page.out;

    if (count == 0)
        return;
    nd_out_raw(out, "<p>");
    HTML_SAY(job, id, VALUE_NUMBER("count", count));
    nd_out_raw(out, "</p>\n<ul>\n");
    for (size_t i = 0; i < shown; i++) {
        nd_out_raw(out, "<li>");
        nd_html_name(job, names != NULL ? names[i] : pairs[i].name);
        if (pairs != NULL) {
            nd_html_words(job, "report.colon");
            nd_html_text(job, pairs[i].reason);
        }
        nd_out_raw(out, "</li>\n");
    }
    if (shown < count) {
        nd_out_raw(out, "<li>");
        HTML_SAY(job, "report.more", VALUE_NUMBER("count", count - shown));
        nd_out_raw(out, "</li>\n");
    }
    nd_out_raw(out, "</ul>\n");
}

void nd_html_coverage(struct report_job *job, const struct nd_result *result)
{
    const struct nd_coverage *coverage = &result->coverage;

    if (coverage->reference_only_count + coverage->candidate_only_count +
            coverage->skipped_count + coverage->covered_by_count + coverage->excluded ==
        0)
        return;
    nd_html_section(job, "coverage", "report.coverage");
    coverage_list(job, "report.only.reference", coverage->reference_only, NULL,
                  coverage->reference_only_count);
    coverage_list(job, "report.only.candidate", coverage->candidate_only, NULL,
                  coverage->candidate_only_count);
    coverage_list(job, "report.skipped", NULL, coverage->skipped, coverage->skipped_count);
    coverage_list(job, "report.covered", NULL, coverage->covered_by,
                  coverage->covered_by_count);
    if (coverage->excluded > 0) {
        nd_out_raw(&job->page.out, "<p>");
        HTML_SAY(job, "report.excluded", VALUE_NUMBER("count", coverage->excluded));
        nd_out_raw(&job->page.out, "</p>\n");
    }
    nd_html_section_end(job);
}
