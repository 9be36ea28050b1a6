/*
 * JUnit XML, for systems that show test results: one test case a layer.  What drifts is a
 * failure, what cannot be read an error, what only one side has a failure too.
 */
#include "report/figures.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void junit_attribute(struct out *out, const char *name, const char *value)
{
    nd_out_printf(out, " %s=\"", name);
    nd_out_xml(out, value);
    nd_out_raw(out, "\"");
}

static void junit_count(struct out *out, const char *name, size_t count)
{
    nd_out_printf(out, " %s=\"%zu\"", name, count);
}

static bool is_error(const struct nd_layer *layer)
{
    return layer->fails == ND_FAIL_UNREADABLE;
}

static void junit_open(struct out *out, size_t tests, size_t failures, size_t errors)
{
    nd_out_raw(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite");
    junit_attribute(out, "name", "normdiff");
    junit_count(out, "tests", tests);
    junit_count(out, "failures", failures);
    junit_count(out, "errors", errors);
    junit_count(out, "skipped", 0);
    nd_out_raw(out, ">\n");
}

static void junit_close(struct out *out)
{
    nd_out_raw(out, "</testsuite>\n</testsuites>\n");
}

static void junit_begin(struct report_job *job, const struct nd_result *result)
{
    size_t failures = 0, errors = 0;

    for (size_t i = 0; i < result->layer_count; i++) {
        const struct nd_layer *layer = &result->layers[i];
        errors += is_error(layer);
        failures += layer->fails != ND_FAIL_NONE && !is_error(layer);
    }
    junit_open(&job->page.out, result->layer_count, failures, errors);
}

static void junit_failure(struct report_job *job, const struct nd_layer *layer)
{
    struct out *out = &job->page.out;
    const char *element = is_error(layer) ? "error" : "failure";
    char drift[FIGURE_SIZE], bound[FIGURE_SIZE], message[2 * FIGURE_SIZE + 64];

    if (isnan(layer->drift)) /* missing, or of another shape */
        snprintf(message, sizeof message, "%s", nd_fail_word(layer->fails));
    else
        snprintf(message, sizeof message, "%s: drift %s, bound %s", nd_fail_word(layer->fails),
                 nd_figure_drift(layer->drift, drift), nd_figure_bound(layer->bound, bound));
    nd_out_printf(out, "<%s", element);
    junit_attribute(out, "message", message);
    junit_attribute(out, "type", nd_fail_word(layer->fails));
    nd_out_raw(out, ">");
    for (size_t i = 0; i < layer->slot_count; i++) {
        nd_out_raw(out, i == 0 ? "" : "\n");
        nd_out_xml(out, layer->slots[i].name);
        nd_out_printf(out, " %s drift %s", nd_tier_word(layer->slots[i].tier),
                      nd_figure_drift(layer->slots[i].drift, drift));
    }
    nd_out_printf(out, "</%s>", element);
}

/* Steps and ranks repeat the names of layers; the class tells them apart. */
static void junit_case(struct out *out, const char *name, int64_t step, int64_t rank)
{
    char group[96] = "normdiff";

    if (step >= 0)
        snprintf(group, sizeof group, "normdiff.step%lld", (long long)step);
    if (rank >= 0) {
        const size_t used = strlen(group);
        snprintf(group + used, sizeof group - used, ".rank%lld", (long long)rank);
    }
    nd_out_raw(out, "<testcase");
    junit_attribute(out, "classname", group);
    junit_attribute(out, "name", name);
}

static void junit_layer(struct report_job *job, const struct nd_layer *layer)
{
    struct out *out = &job->page.out;

    junit_case(out, layer->name, layer->step, layer->rank);
    if (layer->fails == ND_FAIL_NONE) {
        nd_out_raw(out, "/>\n");
        return;
    }
    nd_out_raw(out, ">");
    junit_failure(job, layer);
    nd_out_raw(out, "</testcase>\n");
}

static void junit_end(struct report_job *job, const struct nd_result *result)
{
    struct text reason = {0};

    nd_phrase_put(&result->reason, job->page.language, &reason);
    nd_out_raw(&job->page.out, "<system-out>");
    nd_out_xml(&job->page.out, reason.len == 0 ? "" : reason.bytes);
    nd_out_raw(&job->page.out, "</system-out>\n");
    junit_close(&job->page.out);
    nd_text_done(&reason);
}

static void junit_error(struct report_job *job, const struct nd_error *error)
{
    static const char *const names[] = {"file", "at", "expected", "hint"};
    const char *const places[] = {error->file, error->at, error->expected, error->hint};
    struct out *out = &job->page.out;
    size_t shown = 0;

    junit_open(out, 1, 0, 1);
    junit_case(out, "compare", -1, -1);
    nd_out_raw(out, "><error");
    junit_attribute(out, "message",
                    error->found[0] == '\0' ? nd_status_text(error->status) : error->found);
    junit_attribute(out, "type", "trouble");
    nd_out_raw(out, ">");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i][0] == '\0')
            continue;
        nd_out_printf(out, "%s%s: ", shown++ == 0 ? "" : "\n", names[i]);
        nd_out_xml(out, places[i]);
    }
    nd_out_raw(out, "</error></testcase>\n");
    junit_close(out);
}

/* Why the first slot of a layer that cannot be read cannot; NULL: all of them can. */
static const char *broken_slot(const struct nd_list_layer *layer)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (layer->slots[i].broken != NULL)
            return layer->slots[i].broken;
    return NULL;
}

static void junit_listing(struct report_job *job, const struct nd_listing *listing)
{
    struct out *out = &job->page.out;
    size_t errors = 0;

    for (size_t i = 0; i < listing->layer_count; i++)
        errors += broken_slot(&listing->layers[i]) != NULL;
    junit_open(out, listing->layer_count, 0, errors);
    for (size_t i = 0; i < listing->layer_count; i++) {
        const struct nd_list_layer *layer = &listing->layers[i];
        const char *broken = broken_slot(layer);
        junit_case(out, layer->name, layer->step, layer->rank);
        if (broken == NULL) {
            nd_out_raw(out, "/>\n");
            continue;
        }
        nd_out_raw(out, "><error");
        junit_attribute(out, "message", broken);
        junit_attribute(out, "type", "unreadable");
        nd_out_raw(out, "/></testcase>\n");
    }
    junit_close(out);
}

const struct report nd_report_junit = {
    .name = "junit",
    .title = "JUnit XML, one test case a layer",
    .begin = junit_begin,
    .layer = junit_layer,
    .end = junit_end,
    .listing = junit_listing,
    .error = junit_error,
};
