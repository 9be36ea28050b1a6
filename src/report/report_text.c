/*
 * The text report: what a person reads.  It fits a screen; -a adds the table of all layers
 * and -v the details.  A pair that agrees gets a short, calm one.
 */
#include "report/text_parts.h"

enum section { SECTION_HEAD, SECTION_CHECKLIST, SECTION_LAYERS };

static void text_heading(struct report_job *job, enum section section, const char *id)
{
    if (job->section == (unsigned)section)
        return;
    job->section = (unsigned)section;
    nd_page_blank(&job->page);
    nd_page_put(&job->page, INK_BOLD, nd_page_words(&job->page, id));
    nd_page_end(&job->page);
}

static void text_begin(struct report_job *job, const struct nd_result *result)
{
    nd_text_head(job, result);
    nd_text_first(job, result);
    nd_text_why(job, result);
}

static void text_finding(struct report_job *job, const struct nd_finding *finding)
{
    text_heading(job, SECTION_CHECKLIST, "report.checklist");
    nd_text_finding(job, finding);
}

static void text_layer(struct report_job *job, const struct nd_layer *layer)
{
    if (!job->options->all)
        return;
    if (job->section != SECTION_LAYERS) {
        text_heading(job, SECTION_LAYERS, "report.layers");
        nd_text_table_plan(job, job->result, 0, job->result->layer_count, &job->table);
        nd_text_table_head(&job->page, &job->table);
    }
    nd_text_table_row(job, &job->table, layer);
}

static void text_end(struct report_job *job, const struct nd_result *result)
{
    nd_text_next(job, result);
    nd_text_coverage(job, result);
    nd_text_closing(job, result);
}

const struct report nd_report_text = {
    .name = "text",
    .title = "for people",
    .people = true,
    .begin = text_begin,
    .finding = text_finding,
    .layer = text_layer,
    .end = text_end,
    .listing = nd_text_listing,
};
