/*
 * The JSON report, schema normdiff/report/1; docs/report.schema.json describes every key.
 * The lists that the walk fills follow each other; one that got no element still appears.
 */
#include "report/json_parts.h"

enum section {
    SECTION_NONE,
    SECTION_CHECKLIST,
    SECTION_CAUSES,
    SECTION_STEPS,
    SECTION_LAYERS
};

/* Opens the list of a section, and those before it that stayed empty. */
static void json_enter(struct report_job *job, enum section section)
{
    static const char *const keys[] = {NULL, "checklist", "causes", "steps", "layers"};
    struct out *out = &job->page.out;

    while (job->section < (unsigned)section) {
        if (job->section != SECTION_NONE)
            nd_json_close(out);
        nd_json_key(out, keys[++job->section]);
        nd_json_open(out, '[');
    }
}

static void json_begin(struct report_job *job, const struct nd_result *result)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    ND_JSON(out, "schema", string, "normdiff/report/1");
    nd_json_tool(out);
    nd_json_head(job, result);
}

static void json_finding(struct report_job *job, const struct nd_finding *finding)
{
    json_enter(job, SECTION_CHECKLIST);
    nd_json_finding(job, finding);
}

static void json_cause(struct report_job *job, const struct nd_cause *cause)
{
    json_enter(job, SECTION_CAUSES);
    nd_json_cause(job, cause);
}

static void json_step(struct report_job *job, const struct nd_step *step)
{
    json_enter(job, SECTION_STEPS);
    nd_json_step(job, step);
}

static void json_layer(struct report_job *job, const struct nd_layer *layer)
{
    json_enter(job, SECTION_LAYERS);
    nd_json_layer(&job->page.out, layer);
}

static void json_end(struct report_job *job, const struct nd_result *result)
{
    struct out *out = &job->page.out;

    json_enter(job, SECTION_LAYERS);
    nd_json_close(out);
    nd_json_key(out, "warnings");
    nd_json_open(out, '[');
    for (size_t i = 0; i < result->warning_count; i++)
        nd_json_phrase(out, &result->warnings[i], job->page.language);
    nd_json_close(out);
    nd_json_lowered(out, result);
    nd_json_close(out);
    nd_out_raw(out, "\n");
}

const struct report nd_report_json = {
    .name = "json",
    .title = "everything that was measured, for programs",
    .begin = json_begin,
    .finding = json_finding,
    .cause = json_cause,
    .step = json_step,
    .layer = json_layer,
    .end = json_end,
    .listing = nd_json_listing,
    .error = nd_json_error,
};
