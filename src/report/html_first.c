/*
 * The HTML report about the first diverging layer: how far off, how it is known, and why.
 */
#include "report/html_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void first_metrics(struct report_job *job, const struct nd_slot *slot)
{
    static const char *const keys[] = {"max_abs", "mean_abs", "max_rel", "cosine"};
    struct out *out = &job->page.out;
    char text[FIGURE_SIZE], id[64];

    nd_out_raw(out, "<ul class=\"tiers\">\n");
    if (slot->nonfinite_mismatches > 0) {
        nd_out_raw(out, "<li>");
        nd_html_words(job, "report.elsewhere");
        nd_out_raw(out, "</li>\n");
    }
    nd_out_raw(out, "<li>");
    HTML_SAY(job, "report.metric.drift",
             VALUE_TEXT("value", nd_figure_drift(slot->drift, text)));
    nd_out_raw(out, "</li>\n");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct nd_metric_value *metric = nd_slot_metric(slot, keys[i]);
        if (metric == NULL || metric->kind != ND_METRIC_NUMBER)
            continue;
        snprintf(id, sizeof id, "report.metric.%s", keys[i]);
        nd_out_raw(out, "<li>");
        HTML_SAY(job, id,
                 VALUE_TEXT("value", strcmp(keys[i], "cosine") == 0
                                         ? nd_figure_cosine(metric->value[0], text)
                                         : nd_figure_value(metric->value[0], text)));
        nd_out_raw(out, "</li>\n");
    }
    nd_out_raw(out, "</ul>\n");
}

static void first_trouble(struct report_job *job, const struct nd_slot *slot)
{
    const struct nd_nonfinite_side *side = slot->nonfinite;
    char shapes[2][FIGURE_SIZE];

    if (slot->nonfinite_mismatches > 0) {
        nd_out_raw(&job->page.out, "<p class=\"bad\">");
        HTML_SAY(job, "report.nonfinite", VALUE_NUMBER("count", slot->nonfinite_mismatches),
                 VALUE_NUMBER("nan0", side[0].nan), VALUE_NUMBER("pos0", side[0].pos_inf),
                 VALUE_NUMBER("neg0", side[0].neg_inf), VALUE_NUMBER("nan1", side[1].nan),
                 VALUE_NUMBER("pos1", side[1].pos_inf),
                 VALUE_NUMBER("neg1", side[1].neg_inf));
        nd_out_raw(&job->page.out, "</p>\n");
    }
    if (slot->fails == ND_FAIL_SHAPE) {
        nd_out_raw(&job->page.out, "<p class=\"bad\">");
        HTML_SAY(job, "report.shapes",
                 VALUE_TEXT("reference", nd_figure_shape(slot->shape_of[0], shapes[0])),
                 VALUE_TEXT("candidate", nd_figure_shape(slot->shape_of[1], shapes[1])));
        nd_out_raw(&job->page.out, "</p>\n");
    }
}

static void first_entered(struct report_job *job, const struct nd_result *result)
{
    const struct nd_first *first = &result->first;
    const bool is_gap = first->role != NULL && strcmp(first->role, "gap") == 0;
    char input[FIGURE_SIZE];
    size_t inherited = 0;

    for (size_t i = first->layer; i < result->layer_count; i++)
        inherited += result->layers[i].role == ND_ROLE_INHERITED;
    nd_out_raw(&job->page.out, "<p>");
    if (!is_gap || first->why.id == NULL)
        HTML_SAY(job, nd_text_entered_id(result),
                 VALUE_TEXT("input", nd_figure_drift(first->input_drift, input)));
    else
        nd_html_phrase(job, &first->why);
    if (inherited > 0) {
        nd_html_words(job, "report.semicolon");
        HTML_SAY(job, "report.why.inherit", VALUE_NUMBER("count", inherited));
    }
    nd_out_raw(&job->page.out, "</p>\n");
    if (is_gap || first->why.id == NULL)
        return;
    nd_out_raw(&job->page.out, "<p>");
    nd_html_phrase(job, &first->why);
    nd_out_raw(&job->page.out, "</p>\n");
}

static void first_worst(struct report_job *job, const struct nd_slot *slot)
{
    struct out *out = &job->page.out;
    char text[FIGURE_SIZE], value[2][FIGURE_SIZE];

    if (slot->worst_count == 0)
        return;
    nd_out_raw(out, "<div class=\"scroll\"><table class=\"few\">\n<tr>");
    static const char *const heads[] = {"column.worst", "report.reference",
                                        "report.candidate"};
    for (size_t i = 0; i < 3; i++) {
        nd_out_raw(out, i == 0 ? "<th>" : "<th class=\"r\">");
        nd_html_words(job, heads[i]);
        nd_out_raw(out, "</th>");
    }
    nd_out_raw(out, "</tr>\n");
    for (size_t i = 0; i < slot->worst_count; i++) {
        const struct nd_worst *worst = &slot->worst[i];
        nd_out_printf(
            out, "<tr><td>%s</td><td class=\"r\">%s</td><td class=\"r\">%s</td></tr>\n",
            nd_figure_index(worst->index, worst->index_len, text),
            nd_figure_element(worst->reference, value[0]),
            nd_figure_element(worst->candidate, value[1]));
    }
    nd_out_raw(out, "</table></div>\n");
}

void nd_html_first(struct report_job *job, const struct nd_result *result)
{
    const struct nd_layer *layer = nd_result_layer(result, result->first.layer);
    struct text words = {0};

    if (layer == NULL)
        return;
    nd_html_section(job, "first", nd_text_first_id(result));
    nd_out_raw(&job->page.out, "<h3>");
    nd_html_layer_link(job, layer);
    nd_out_raw(&job->page.out, "</h3>\n");
    if (result->first.slot < layer->slot_count) {
        const struct nd_slot *slot = &layer->slots[result->first.slot];
        nd_text_slot_words(&job->page, layer, slot, &words);
        nd_out_raw(&job->page.out, "<p>");
        nd_html_text(job, words.len == 0 ? "" : words.bytes);
        nd_out_raw(&job->page.out, "</p>\n");
        first_trouble(job, slot);
        first_metrics(job, slot);
    }
    first_entered(job, result);
    nd_html_lines(job, nd_text_where);
    if (result->first.slot < layer->slot_count)
        first_worst(job, &layer->slots[result->first.slot]);
    nd_html_section_end(job);
    nd_text_done(&words);
}

/* "eps differs (confirmed, candidate side)" and what was seen. */
static void why_cause(struct report_job *job, const struct nd_cause *cause)
{
    struct out *out = &job->page.out;
    char status[64], side[64], share[FIGURE_SIZE];

    snprintf(status, sizeof status, "cause.status.%s", nd_cause_status_word(cause->status));
    snprintf(side, sizeof side, "side.%s", nd_side_word(cause->side));
    nd_out_raw(out, "<h3>");
    HTML_SAY(job, cause->side == ND_SIDE_UNKNOWN ? "report.why.named" : "report.why.sided",
             VALUE_TEXT("title", nd_text_cause_title(&job->page, cause)),
             VALUE_TEXT("status", nd_page_words(&job->page, status)),
             VALUE_TEXT("side", nd_page_words(&job->page, side)));
    nd_out_raw(out, "</h3>\n<p>");
    const bool some = nd_html_phrase(job, &cause->summary);
    if (cause->status != ND_CAUSE_CONFIRMED && cause->explains > 0.0) {
        if (some)
            nd_html_words(job, "report.semicolon");
        HTML_SAY(job, "report.why.explains",
                 VALUE_TEXT("share", nd_figure_share(cause->explains, share)));
    }
    nd_out_raw(out, "</p>\n");
}

/* What the catalogue says about a cause, folded away. */
static void why_more(struct report_job *job, const struct nd_cause *cause)
{
    static const char *const parts[][2] = {
        {"what",   "explain.what"  },
        {"looks",  "explain.looks" },
        {"unlike", "explain.unlike"}
    };
    struct out *out = &job->page.out;
    char id[128];

    snprintf(id, sizeof id, "cause.%s.what", cause->id);
    if (nd_page_words(&job->page, id) == id)
        return;
    nd_out_raw(out, "<details><summary>");
    nd_html_words(job, "report.more.about");
    nd_out_printf(out, "</summary>\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(id, sizeof id, "cause.%s.%s", cause->id, parts[i][0]);
        nd_out_raw(out, "<p><b>");
        nd_html_words(job, parts[i][1]);
        nd_html_words(job, "report.colon");
        nd_out_raw(out, "</b>");
        nd_html_words(job, id);
        nd_out_raw(out, "</p>\n");
    }
    nd_out_raw(out, "</details>\n");
}

void nd_html_why(struct report_job *job, const struct nd_result *result)
{
    const bool named =
        result->cause_count > 0 && result->causes[0].status != ND_CAUSE_POSSIBLE;

    if (nd_result_layer(result, result->first.layer) == NULL && result->cause_count == 0)
        return;
    nd_html_section(job, "why", "report.why");
    if (!named) {
        nd_out_raw(&job->page.out, "<p>");
        nd_html_words(job, result->cause_count == 0 ? "report.why.unknown"
                                                    : "report.why.possible");
        nd_out_raw(&job->page.out, "</p>\n");
    }
    for (size_t i = 0; i < result->cause_count; i++) {
        const struct nd_cause *cause = &result->causes[i];
        if (named && cause->status == ND_CAUSE_POSSIBLE)
            continue;
        why_cause(job, cause);
        why_more(job, cause);
    }
    nd_html_section_end(job);
}
