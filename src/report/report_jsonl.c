/*
 * JSON lines: the head of the JSON report first, then one line for each finding, cause,
 * step and layer, for readers that stream.  Every line says what it is under "type".
 */
#include "report/json_parts.h"

static void jsonl_open(struct report_job *job, const char *type)
{
    nd_json_open(&job->page.out, '{');
    ND_JSON(&job->page.out, "type", string, type);
}

static void jsonl_close(struct report_job *job)
{
    nd_json_close(&job->page.out);
    nd_out_raw(&job->page.out, "\n");
}

static void jsonl_begin(struct report_job *job, const struct nd_result *result)
{
    jsonl_open(job, "report");
    ND_JSON(&job->page.out, "schema", string, "normdiff/report/1");
    nd_json_tool(&job->page.out);
    nd_json_head(job, result);
    jsonl_close(job);
}

static void jsonl_finding(struct report_job *job, const struct nd_finding *finding)
{
    jsonl_open(job, "finding");
    nd_json_key(&job->page.out, "finding");
    nd_json_finding(job, finding);
    jsonl_close(job);
}

static void jsonl_cause(struct report_job *job, const struct nd_cause *cause)
{
    jsonl_open(job, "cause");
    nd_json_key(&job->page.out, "cause");
    nd_json_cause(job, cause);
    jsonl_close(job);
}

static void jsonl_step(struct report_job *job, const struct nd_step *step)
{
    jsonl_open(job, "step");
    nd_json_key(&job->page.out, "step");
    nd_json_step(job, step);
    jsonl_close(job);
}

static void jsonl_layer(struct report_job *job, const struct nd_layer *layer)
{
    jsonl_open(job, "layer");
    ND_JSON(&job->page.out, "layer", layer, layer);
    jsonl_close(job);
}

static void jsonl_end(struct report_job *job, const struct nd_result *result)
{
    jsonl_open(job, "end");
    ND_JSON(&job->page.out, "layers", uint, result->layer_count);
    ND_JSON(&job->page.out, "exit_code", int, result->exit_code);
    nd_json_lowered(&job->page.out, result);
    jsonl_close(job);
}

const struct report nd_report_jsonl = {
    .name = "jsonl",
    .title = "the same as JSON, one line a layer",
    .begin = jsonl_begin,
    .finding = jsonl_finding,
    .cause = jsonl_cause,
    .step = jsonl_step,
    .layer = jsonl_layer,
    .end = jsonl_end,
    .listing = nd_json_listing,
    .error = nd_json_error,
};
