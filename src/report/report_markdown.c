/*
 * Markdown, for comments on changes and for wikis: the verdict, the first diverging layer,
 * why, the checklist, and a table of the layers that matter (-a: all of them).
 */
#include "report/text_parts.h"

#include <stdio.h>
#include <string.h>

enum section { SECTION_HEAD, SECTION_CHECKLIST, SECTION_LAYERS };
enum { ROWS_SHOWN = 50 };

/* Text in a cell or a line: what Markdown or HTML would take for a sign is escaped. */
static void markdown_text(struct report_job *job, const char *text)
{
    struct out safe = {.depth = 0};

    nd_out_safe(&safe, text == NULL ? "" : text);
    for (const char *at = safe.text.len == 0 ? "" : safe.text.bytes; *at != '\0'; at++) {
        if (*at == '<')
            nd_out_raw(&job->page.out, "&lt;");
        else if (*at == '&')
            nd_out_raw(&job->page.out, "&amp;");
        else
            nd_out_printf(&job->page.out,
                          strchr("\\`*_[]|#~@", *at) != NULL ? "\\%c" : "%c", *at);
    }
    nd_out_done(&safe);
}

static const char *markdown_words(const struct report_job *job, const char *id)
{
    const char *words = nd_catalogue_words(id, job->page.language);

    return words == NULL ? id : words;
}

static void markdown_phrase(struct report_job *job, const struct nd_phrase *phrase)
{
    struct text words = {0};

    nd_phrase_put(phrase, job->page.language, &words);
    markdown_text(job, words.len == 0 ? "" : words.bytes);
    nd_text_done(&words);
}

static void markdown_dumps(struct report_job *job, const struct nd_result *result)
{
    static const char *const labels[] = {"report.reference", "report.candidate"};

    for (size_t i = 0; i < 2; i++) {
        const struct nd_dump_info *dump = &result->dump[i];
        nd_out_printf(&job->page.out, "- %s: ", markdown_words(job, labels[i]));
        markdown_text(job, dump->path);
        nd_out_raw(&job->page.out, " (");
        markdown_text(job, dump->title);
        nd_out_raw(&job->page.out, dump->device == NULL ? "" : ", ");
        markdown_text(job, dump->device);
        nd_out_raw(&job->page.out, ")\n");
    }
}

static void markdown_tiers(struct report_job *job, const struct nd_result *result)
{
    char word[FIGURE_SIZE];

    nd_out_printf(&job->page.out, "- %s: ", markdown_words(job, "report.tiers"));
    for (unsigned i = 0; i < ND_TIER_COUNT; i++) {
        if (i > ND_TIER_FAULT && result->summary[i] == 0)
            continue;
        nd_out_raw(&job->page.out, i == 0 ? "" : ", ");
        markdown_text(job,
                      nd_text_tier(&job->page, &result->policy, (enum nd_tier)i, word));
        nd_out_printf(&job->page.out, " %zu", result->summary[i]);
    }
    nd_out_raw(&job->page.out, "\n");
}

static void markdown_place(struct report_job *job, const struct nd_layer *layer)
{
    struct text place = {0};

    nd_text_step_rank(&job->page, layer, &place);
    markdown_text(job, place.len == 0 ? "" : place.bytes);
    nd_text_done(&place);
}

static void markdown_first(struct report_job *job, const struct nd_result *result)
{
    const struct nd_layer *layer = nd_result_layer(result, result->first.layer);
    char drift[FIGURE_SIZE];

    if (layer == NULL)
        return;
    nd_out_printf(&job->page.out, "\n**%s**: \\#%zu **",
                  markdown_words(job, "report.first.heading"), layer->index);
    markdown_text(job, layer->name);
    nd_out_raw(&job->page.out, "**");
    markdown_place(job, layer);
    nd_out_raw(&job->page.out, " ");
    markdown_text(job, layer->type);
    nd_out_printf(&job->page.out, ", %s %s\n", markdown_words(job, "column.drift"),
                  nd_figure_drift(layer->drift, drift));
    for (unsigned i = 0; i < TEXT_WHERE_COUNT; i++) {
        struct text where = {0};
        nd_text_where_words(job, result, i, &where);
        nd_out_raw(&job->page.out, where.len > 0 ? "\n" : "");
        markdown_text(job, where.len > 0 ? where.bytes : "");
        nd_out_raw(&job->page.out, where.len > 0 ? "\n" : "");
        nd_text_done(&where);
    }
}

static void markdown_causes(struct report_job *job, const struct nd_result *result)
{
    char id[128];

    for (size_t i = 0; i < result->cause_count; i++) {
        const struct nd_cause *cause = &result->causes[i];
        snprintf(id, sizeof id, "cause.%s.title", cause->id);
        const char *title = nd_catalogue_words(id, job->page.language);
        nd_out_raw(&job->page.out, i == 0 ? "\n- **" : "- **");
        markdown_text(job, title == NULL ? cause->id : title);
        snprintf(id, sizeof id, "cause.status.%s", nd_cause_status_word(cause->status));
        nd_out_printf(&job->page.out, "** (%s): ", markdown_words(job, id));
        markdown_phrase(job, &cause->summary);
        nd_out_raw(&job->page.out, "\n");
    }
}

/* What to do: the advice of the findings that matter, else of the best cause. */
static void markdown_next(struct report_job *job, const struct nd_result *result)
{
    const struct nd_phrase *said[TEXT_ADVICE_LIMIT];
    const size_t count = nd_text_advice(result, said);
    char id[128];
    const bool of_cause = count == 0 && nd_text_cause_advice(result, id, sizeof id);

    for (size_t i = 0; i < count + of_cause; i++) {
        nd_out_printf(&job->page.out, i == 0 ? "\n**%s**\n\n- " : "- ",
                      markdown_words(job, "report.next"));
        if (of_cause)
            markdown_phrase(job, &(struct nd_phrase){id, result->causes[0].params,
                                                     result->causes[0].param_count});
        else
            markdown_phrase(job, said[i]);
        nd_out_raw(&job->page.out, "\n");
    }
}

static void markdown_begin(struct report_job *job, const struct nd_result *result)
{
    job->page.utf8 = true;
    nd_out_printf(&job->page.out, "### normdiff: %s\n\n", nd_verdict_word(result->verdict));
    markdown_phrase(job, &result->reason);
    nd_out_raw(&job->page.out, "\n\n");
    markdown_dumps(job, result);
    markdown_tiers(job, result);
    markdown_first(job, result);
    markdown_causes(job, result);
    markdown_next(job, result);
}

static void markdown_finding(struct report_job *job, const struct nd_finding *finding)
{
    struct out *out = &job->page.out;
    struct text words = {0};
    char id[64];

    if (job->section != SECTION_CHECKLIST) {
        job->section = SECTION_CHECKLIST;
        nd_out_printf(out, "\n| %s | | |\n|---|---|---|\n",
                      markdown_words(job, "report.checklist"));
    }
    nd_out_raw(out, "| ");
    markdown_text(job, finding->id);
    snprintf(id, sizeof id, "check.status.%s", nd_check_status_word(finding->status));
    nd_out_printf(out, " | %s | ", markdown_words(job, id));
    nd_text_finding_words(&job->page, finding, &words);
    markdown_text(job, words.len == 0 ? "" : words.bytes);
    nd_out_raw(out, " |\n");
    nd_text_done(&words);
}

static bool is_shown(const struct report_job *job, const struct nd_layer *layer)
{
    return job->options->all ||
           (job->shown < ROWS_SHOWN &&
            (layer->fails != ND_FAIL_NONE || layer->role == ND_ROLE_ORIGIN ||
             layer->role == ND_ROLE_GAP));
}

static void markdown_layer(struct report_job *job, const struct nd_layer *layer)
{
    struct out *out = &job->page.out;
    char text[FIGURE_SIZE], id[64];

    if (!is_shown(job, layer))
        return;
    if (job->shown++ == 0)
        nd_out_printf(
            out, "\n| # | %s | %s | %s | %s | %s |\n|--:|---|---|---|--:|---|\n",
            markdown_words(job, "column.layer"), markdown_words(job, "column.type"),
            markdown_words(job, "column.tier"), markdown_words(job, "column.drift"),
            markdown_words(job, "column.role"));
    nd_out_printf(out, "| %zu | ", layer->index);
    markdown_text(job, layer->name);
    markdown_place(job, layer);
    nd_out_raw(out, " | ");
    markdown_text(job, layer->type);
    nd_out_raw(out, " | ");
    markdown_text(job, nd_text_tier(&job->page, &job->result->policy, layer->tier, text));
    nd_out_printf(out, " | %s | ", nd_figure_drift(layer->drift, text));
    const char *fails = nd_text_fails(&job->page, layer);
    snprintf(id, sizeof id, "role.%s", nd_role_word(layer->role));
    const char *role = markdown_words(job, id);
    nd_out_printf(out, "%s%s%s |\n", role, fails == NULL || role[0] == '\0' ? "" : ", ",
                  fails == NULL ? "" : fails);
}

static void markdown_end(struct report_job *job, const struct nd_result *result)
{
    const struct catalogue_value code = VALUE_NUMBER("code", result->exit_code);
    struct text words = {0}, reason = {0};

    nd_phrase_put(&result->reason, job->page.language, &reason);
    const struct catalogue_value values[] = {
        code, VALUE_TEXT("reason", reason.len == 0 ? nd_verdict_word(result->verdict)
                                                   : reason.bytes)};
    nd_catalogue_fill(markdown_words(job, "report.closing"), values, 2, &words);
    nd_out_raw(&job->page.out, "\n");
    markdown_text(job, words.len == 0 ? "" : words.bytes);
    nd_out_raw(&job->page.out, "\n");
    nd_text_done(&words);
    nd_text_done(&reason);
}

static void markdown_listing(struct report_job *job, const struct nd_listing *listing)
{
    struct out *out = &job->page.out;
    char text[FIGURE_SIZE];

    nd_out_raw(out, "### ");
    markdown_text(job, listing->dump.path);
    nd_out_printf(out, "\n\n| # | %s | %s | %s | %s | %s |\n|--:|---|---|---|---|---|\n",
                  markdown_words(job, "column.layer"), markdown_words(job, "column.type"),
                  markdown_words(job, "column.slot"), markdown_words(job, "column.dtype"),
                  markdown_words(job, "column.shape"));
    for (size_t i = 0; i < listing->layer_count; i++) {
        const struct nd_list_layer *layer = &listing->layers[i];
        for (size_t k = 0; k < layer->slot_count; k++) {
            const struct nd_list_slot *slot = &layer->slots[k];
            const char *const cells[] = {layer->name, layer->type, slot->name,
                                         slot->dtype == NULL ? "?" : slot->dtype,
                                         nd_figure_shape(&slot->shape, text)};
            nd_out_printf(out, "| %zu |", i);
            for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
                nd_out_raw(out, " ");
                markdown_text(job, cells[c]);
                nd_out_raw(out, " |");
            }
            nd_out_raw(out, "\n");
        }
    }
}

const struct report nd_report_markdown = {
    .name = "markdown",
    .title = "for comments and wikis",
    .people = true,
    .begin = markdown_begin,
    .finding = markdown_finding,
    .layer = markdown_layer,
    .end = markdown_end,
    .listing = markdown_listing,
};
