/*
 * What was not compared, by name, and the last line, which says why the exit status is
 * what it is.
 */
#include "report/text_parts.h"

#include <stdio.h>

enum { NAMES_SHOWN = 5 }; /* of each list, unless asked for more */

static void coverage_heading(struct page *page, const char *id, size_t count, enum ink ink)
{
    page->indent = 4;
    ND_SAY(page, ink, id, VALUE_NUMBER("count", count));
    nd_page_end(page);
}

static size_t coverage_shown(const struct report_job *job, size_t count)
{
    /* Leaving out a single name would save nothing. */
    return job->options->verbose || count <= NAMES_SHOWN + 1 ? count : NAMES_SHOWN;
}

static void coverage_more(struct page *page, size_t count, size_t shown)
{
    if (shown == count)
        return;
    nd_page_tab(page, 2);
    ND_SAY(page, INK_PLAIN, "report.more", VALUE_NUMBER("count", count - shown));
    nd_page_end(page);
}

static void coverage_names(struct report_job *job, const char *id, const char *const *names,
                           size_t count, enum ink ink)
{
    struct page *page = &job->page;
    const size_t shown = coverage_shown(job, count);

    if (count == 0)
        return;
    coverage_heading(page, id, count, ink);
    for (size_t i = 0; i < shown; i++) {
        nd_page_tab(page, 2);
        nd_page_cut(page, INK_PLAIN, names[i], page->width - 2);
        nd_page_end(page);
    }
    coverage_more(page, count, shown);
}

static void coverage_pairs(struct report_job *job, const char *id,
                           const struct nd_named *list, size_t count, const char *row_id)
{
    struct page *page = &job->page;
    const size_t shown = coverage_shown(job, count);

    if (count == 0)
        return;
    coverage_heading(page, id, count, row_id == NULL ? INK_WARN : INK_PLAIN);
    for (size_t i = 0; i < shown; i++) {
        page->indent = 4;
        nd_page_tab(page, 2);
        if (row_id != NULL) {
            ND_SAY(page, INK_PLAIN, row_id, VALUE_TEXT("name", list[i].name),
                   VALUE_TEXT("by", list[i].reason));
        } else {
            nd_page_flow(page, INK_PLAIN, list[i].name);
            nd_page_flow(page, INK_PLAIN, ": ");
            nd_page_flow(page, INK_PLAIN, list[i].reason);
        }
        nd_page_end(page);
    }
    coverage_more(page, count, shown);
}

void nd_text_coverage(struct report_job *job, const struct nd_result *result)
{
    const struct nd_coverage *coverage = &result->coverage;
    struct page *page = &job->page;

    if (coverage->reference_only_count + coverage->candidate_only_count +
            coverage->skipped_count + coverage->covered_by_count + coverage->excluded ==
        0)
        return;
    nd_page_blank(page);
    coverage_names(job, "report.only.reference", coverage->reference_only,
                   coverage->reference_only_count, INK_WARN);
    coverage_names(job, "report.only.candidate", coverage->candidate_only,
                   coverage->candidate_only_count, INK_PLAIN);
    coverage_pairs(job, "report.skipped", coverage->skipped, coverage->skipped_count, NULL);
    coverage_pairs(job, "report.covered", coverage->covered_by, coverage->covered_by_count,
                   "report.covered.by");
    if (coverage->excluded > 0)
        coverage_heading(page, "report.excluded", coverage->excluded, INK_PLAIN);
}

void nd_text_closing(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;
    struct text reason = {0};
    const enum ink ink = result->exit_code != 0                ? INK_BAD
                         : result->verdict == ND_VERDICT_AGREE ? INK_GOOD
                                                               : INK_WARN;

    nd_phrase_put(&result->reason, page->utf8 ? page->language : LANGUAGE_EN, &reason);
    nd_page_blank(page);
    page->indent = 8;
    ND_SAY(page, ink, "report.closing", VALUE_NUMBER("code", result->exit_code),
           VALUE_TEXT("reason",
                      reason.len == 0 ? nd_verdict_word(result->verdict) : reason.bytes));
    nd_page_end(page);
    nd_text_done(&reason);
}
