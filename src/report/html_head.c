/*
 * The head of the HTML report: the verdict, the two dumps, what was compared, the tiers,
 * and where drift was first seen.
 */
#include "report/html_parts.h"
#include "report/text_parts.h"

#include <math.h>
#include <string.h>

static void head_title(struct report_job *job, const struct nd_result *result)
{
    const char *ink = result->exit_code != 0                ? "bad"
                      : result->verdict == ND_VERDICT_AGREE ? "good"
                                                            : "warn";

    nd_out_printf(&job->page.out,
                  "<header>\n<h1>normdiff: <span class=\"%s\">%s</span></h1>\n", ink,
                  nd_verdict_word(result->verdict));
    nd_out_raw(&job->page.out, "<p class=\"reason\">");
    nd_html_phrase(job, &result->reason);
    nd_out_printf(&job->page.out, " <span class=\"soft\">(exit %d)</span></p>\n",
                  result->exit_code);
    for (size_t i = 0; i < result->warning_count; i++) {
        nd_out_raw(&job->page.out, "<p class=\"warn\">");
        nd_html_words(job, "report.warning");
        nd_html_words(job, "report.colon");
        nd_html_phrase(job, &result->warnings[i]);
        nd_out_raw(&job->page.out, "</p>\n");
    }
    nd_out_raw(&job->page.out, "</header>\n");
}

enum { LOWERED_ROWS = 20 }; /* layers of a narrower type that are listed */

/* Begins a row of a table of two columns: what it is, and what it says. */
static void head_row(struct report_job *job, const char *label)
{
    nd_out_raw(&job->page.out, "<tr><td class=\"k\">");
    nd_html_words(job, label);
    nd_out_raw(&job->page.out, "</td><td>");
}

static void head_row_end(struct report_job *job)
{
    nd_out_raw(&job->page.out, "</td></tr>\n");
}

static void head_dump(struct report_job *job, const char *label,
                      const struct nd_dump_info *dump)
{
    struct out *out = &job->page.out;
    char bytes[FIGURE_SIZE];
    const char *const more[] = {dump->bytes == 0 ? NULL
                                                 : nd_figure_bytes(dump->bytes, bytes),
                                dump->device, dump->dtype};

    head_row(job, label);
    nd_html_name(job, dump->path);
    nd_out_raw(out, "<br><span class=\"soft\">");
    nd_html_text(job, dump->title);
    nd_html_words(job, "report.comma");
    HTML_SAY(job, "report.counts", VALUE_NUMBER("layers", dump->layers),
             VALUE_NUMBER("tensors", dump->tensors));
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (more[i] == NULL)
            continue;
        nd_html_words(job, "report.comma");
        nd_html_text(job, more[i]);
    }
    nd_out_raw(out, "</span>");
    head_row_end(job);
}

static void head_scope(struct report_job *job, const struct nd_result *result)
{
    const struct nd_coverage *coverage = &result->coverage;
    char done[FIGURE_SIZE], total[FIGURE_SIZE], id[64] = "order.";

    head_row(job, "report.order");
    nd_html_words(job,
                  strcat(id, nd_order_word(result->dump[result->order_borrowed].order)));
    head_row_end(job);
    head_row(job, "report.compared");
    nd_figure_bytes(coverage->bytes_compared, done);
    nd_figure_bytes(coverage->bytes_total, total);
    HTML_SAY(job, nd_text_scope_id(coverage, strcmp(done, total) == 0),
             VALUE_NUMBER("pairs", coverage->pairs),
             VALUE_NUMBER("tensors", coverage->tensors_compared), VALUE_TEXT("bytes", done),
             VALUE_TEXT("total", total));
    head_row_end(job);
}

static void head_outcome(struct report_job *job, const struct nd_result *result)
{
    const struct nd_outcome *outcome = &result->outcome;
    const struct nd_layer *layer = nd_result_layer(result, outcome->layer);
    char drift[FIGURE_SIZE];

    if (layer == NULL)
        return;
    struct text slot = {0};
    nd_text_puts(&slot,
                 outcome->slot < layer->slot_count ? layer->slots[outcome->slot].name : "");
    nd_text_step_rank(&job->page, layer, &slot);
    head_row(job, "report.result");
    HTML_SAY(job, "report.result.drift", VALUE_TEXT("layer", layer->name),
             VALUE_TEXT("slot", slot.len == 0 ? "" : slot.bytes),
             VALUE_TEXT("drift", nd_figure_drift(outcome->drift, drift)));
    nd_text_done(&slot);
    if (!isnan(outcome->top1_agreement)) {
        const double rows = (double)outcome->top1_rows;
        nd_html_words(job, "report.comma");
        HTML_SAY(job, "report.result.top1",
                 VALUE_NUMBER("same", round(outcome->top1_agreement * rows)),
                 VALUE_NUMBER("rows", rows));
    }
    head_row_end(job);
}

/* In a word why a layer fails, where that is not its drift. */
static void head_fails(struct report_job *job, const struct nd_layer *layer)
{
    const char *fails = nd_text_fails(&job->page, layer);

    if (fails == NULL)
        return;
    nd_out_raw(&job->page.out, " <b class=\"bad\">");
    nd_html_text(job, fails);
    nd_out_raw(&job->page.out, "</b>");
}

static void head_first(struct report_job *job, const struct nd_result *result,
                       const char *id, double bound, size_t index)
{
    const struct nd_layer *layer = nd_result_layer(result, index);
    char text[FIGURE_SIZE];

    nd_out_raw(&job->page.out, "<tr><td class=\"k\">");
    nd_html_words(job, "report.first");
    nd_out_raw(&job->page.out, " ");
    HTML_SAY(job, id, VALUE_TEXT("bound", nd_figure_bound(bound, text)));
    nd_out_raw(&job->page.out, "</td><td>");
    if (layer == NULL) {
        nd_html_words(job, "report.none");
    } else {
        nd_html_layer_link(job, layer);
        nd_out_printf(&job->page.out, " %s", nd_figure_drift(layer->drift, text));
        head_fails(job, layer);
    }
    head_row_end(job);
}

static void lowered_row(struct report_job *job, const struct nd_result *result,
                        const struct nd_lowered_layer *row)
{
    char own[FIGURE_SIZE], times[FIGURE_SIZE];

    nd_out_raw(&job->page.out, "<li>");
    nd_html_layer_link(job, &result->layers[row->layer]);
    nd_html_words(job, "report.colon");
    HTML_SAY(job, isinf(row->own) ? "report.lowered.nonfinite" : "report.lowered.own",
             VALUE_TEXT("own", nd_figure_drift(row->own, own)),
             VALUE_TEXT("times", nd_figure_value(row->times, times)));
    nd_out_raw(&job->page.out, "</li>\n");
}

static void head_lowered(struct report_job *job, const struct nd_result *result)
{
    const struct nd_lowered *lowered = &result->lowered;
    char explains[FIGURE_SIZE];

    if (lowered->dtype[1] == NULL)
        return;
    head_row(job, "report.lowered");
    HTML_SAY(job, "report.lowered.whole", VALUE_TEXT("candidate", lowered->dtype[1]),
             VALUE_NUMBER("is_half", strcmp(lowered->dtype[1], "float16") == 0),
             VALUE_TEXT("reference", lowered->dtype[0] == NULL ? "" : lowered->dtype[0]),
             VALUE_NUMBER("layers", lowered->layers), VALUE_NUMBER("of", lowered->of),
             VALUE_TEXT("explains", nd_figure_drift(lowered->explains, explains)));
    nd_out_raw(&job->page.out, "<ul>\n");
    for (size_t i = 0; i < lowered->ranked_count && i < LOWERED_ROWS; i++)
        lowered_row(job, result, &lowered->ranked[i]);
    if (lowered->ranked_count == 0 || lowered->ranked_count > LOWERED_ROWS) {
        nd_out_raw(&job->page.out, "<li>");
        if (lowered->ranked_count == 0)
            nd_html_words(job, "report.lowered.none");
        else
            HTML_SAY(job, "report.lowered.more",
                     VALUE_NUMBER("count", lowered->ranked_count - LOWERED_ROWS));
        nd_out_raw(&job->page.out, "</li>\n");
    }
    nd_out_raw(&job->page.out, "</ul>\n");
    head_row_end(job);
}

static void head_tiers(struct report_job *job, const struct nd_result *result)
{
    nd_out_raw(&job->page.out, "<ul class=\"tiers\">\n");
    for (unsigned i = 0; i < ND_TIER_COUNT; i++) {
        const size_t count = result->summary[i];
        if (i > ND_TIER_FAULT && count == 0)
            continue;
        nd_out_raw(&job->page.out, count == 0 ? "<li class=\"zero\">" : "<li>");
        nd_html_tier(job, (enum nd_tier)i);
        nd_out_printf(&job->page.out, " <b>%zu</b></li>\n", count);
    }
    nd_out_raw(&job->page.out, "</ul>\n");
}

void nd_html_head(struct report_job *job, const struct nd_result *result)
{
    const double *tiers = result->policy.tiers;

    head_title(job, result);
    nd_out_raw(&job->page.out, "<table class=\"stack\">\n");
    head_dump(job, "report.reference", &result->dump[0]);
    head_dump(job, "report.candidate", &result->dump[1]);
    head_scope(job, result);
    nd_out_raw(&job->page.out, "</table>\n");
    nd_html_section(job, "drift", "report.drift");
    nd_html_chart(job, result);
    head_tiers(job, result);
    nd_out_raw(&job->page.out, "<table class=\"stack\">\n");
    head_outcome(job, result);
    head_first(job, result, "report.first.elevated", tiers[1], result->first_elevated);
    head_first(job, result, "report.first.fault", tiers[2], result->first_fault);
    head_first(job, result, "report.first.origin", tiers[2], result->first_origin);
    head_lowered(job, result);
    nd_out_raw(&job->page.out, "</table>\n");
    nd_html_section_end(job);
}
