/*
 * The table of reports and the walk over a result.
 */
#include "report/report.h"

#include <string.h>

#include "base/fail.h"

#define ND_REPORT(word) extern const struct report nd_report_##word;
#include "report/reports.def"
#undef ND_REPORT

static const struct report *const reports[] = {
#define ND_REPORT(word) &nd_report_##word,
#include "report/reports.def"
#undef ND_REPORT
};

enum {
    REPORT_COUNT = sizeof reports / sizeof reports[0],
    WRITE_SIZE = 256 * 1024 /* what is held before it goes to the stream */
};

static const struct report *report_named(const char *name)
{
    for (size_t i = 0; i < REPORT_COUNT; i++)
        if (name != NULL && strcmp(reports[i]->name, name) == 0)
            return reports[i];
    return NULL;
}

const char *nd_report_name(size_t i)
{
    return i < REPORT_COUNT ? reports[i]->name : NULL;
}

const char *nd_report_title(size_t i)
{
    return i < REPORT_COUNT ? reports[i]->title : NULL;
}

bool nd_report_for_people(const char *name)
{
    const struct report *report = report_named(name);

    return report != NULL && report->people;
}

static enum nd_status report_find(const char *name, const struct report **ret_report,
                                  struct nd_error *err)
{
    struct text names = {0};

    *ret_report = report_named(name);
    if (*ret_report != NULL)
        return ND_OK;
    for (size_t i = 0; i < REPORT_COUNT; i++)
        nd_text_printf(&names, i == 0 ? "%s" : ", %s", reports[i]->name);
    nd_fail(err, ND_ERR_USAGE, names.broken ? NULL : names.bytes, "no report format \"%s\"",
            name == NULL ? "" : name);
    nd_text_done(&names);
    return ND_ERR_USAGE;
}

static void job_init(struct report_job *job, const struct nd_report_options *options)
{
    static const struct nd_report_options plain = {.utf8 = true};

    *job = (struct report_job){.options = options == NULL ? &plain : options};
    const struct nd_report_options *used = job->options;
    nd_page_init(&job->page, nd_language_of(used->lang),
                 used->width == 0 ? 80 : used->width, used->utf8, used->color);
}

static enum nd_status job_flush(struct report_job *job, FILE *stream, struct nd_error *err)
{
    const bool broken = job->page.out.text.broken;

    if (nd_out_flush(&job->page.out, stream))
        return ND_OK;
    return broken ? nd_fail_memory(err)
                  : nd_fail(err, ND_ERR_IO, "room for the report",
                            "the report cannot be written");
}

static enum nd_status report_walk(const struct report *report, struct report_job *job,
                                  const struct nd_result *result, FILE *stream,
                                  struct nd_error *err)
{
    report->begin(job, result);
    for (size_t i = 0; report->finding != NULL && i < result->checklist_count; i++)
        report->finding(job, &result->checklist[i]);
    for (size_t i = 0; report->cause != NULL && i < result->cause_count; i++)
        report->cause(job, &result->causes[i]);
    for (size_t i = 0; report->step != NULL && i < result->step_count; i++)
        report->step(job, &result->steps[i]);
    for (size_t i = 0; report->layer != NULL && i < result->layer_count; i++) {
        report->layer(job, &result->layers[i]);
        if (job->page.out.text.len >= WRITE_SIZE)
            ND_TRY(job_flush(job, stream, err));
    }
    report->end(job, result);
    return job_flush(job, stream, err);
}

enum nd_status nd_report_write(const struct nd_result *result, const char *name,
                               const struct nd_report_options *options, FILE *stream,
                               struct nd_error *err)
{
    const struct report *report;
    struct report_job job;

    ND_TRY(report_find(name, &report, err));
    job_init(&job, options);
    job.result = result;
    const enum nd_status status = report_walk(report, &job, result, stream, err);
    nd_page_done(&job.page);
    return status;
}

enum nd_status nd_report_listing(const struct nd_listing *listing, const char *name,
                                 const struct nd_report_options *options, FILE *stream,
                                 struct nd_error *err)
{
    const struct report *report;
    struct report_job job;

    ND_TRY(report_find(name, &report, err));
    job_init(&job, options);
    report->listing(&job, listing);
    const enum nd_status status = job_flush(&job, stream, err);
    nd_page_done(&job.page);
    return status;
}

enum nd_status nd_report_error(const struct nd_error *error, const char *name, FILE *stream)
{
    const struct report *report;
    struct report_job job;

    ND_TRY(report_find(name, &report, NULL));
    if (report->error == NULL)
        return ND_OK;
    job_init(&job, NULL);
    report->error(&job, error);
    const enum nd_status status = job_flush(&job, stream, NULL);
    nd_page_done(&job.page);
    return status;
}

const struct nd_metric_value *nd_slot_metric(const struct nd_slot *slot, const char *key)
{
    for (size_t i = 0; i < slot->metric_count; i++)
        if (strcmp(slot->metrics[i].key, key) == 0)
            return &slot->metrics[i];
    return NULL;
}

const struct nd_layer *nd_result_layer(const struct nd_result *result, size_t index)
{
    return index < result->layer_count ? &result->layers[index] : NULL;
}
