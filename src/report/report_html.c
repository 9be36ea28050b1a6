/*
 * HTML, to attach, to mail and to print: the whole result in one file without network and
 * script, with a drawing of the drift, the checklist, and a table of layers with anchors.
 */
#include "report/html_parts.h"

#include <stdio.h>

enum section { SECTION_HEAD, SECTION_CHECKLIST, SECTION_STEPS, SECTION_LAYERS };

/* The head of a table; bits tell the columns that stand on the right, and those that a
 * narrow screen leaves out. */
static void html_heads(struct report_job *job, const char *const *ids, size_t count,
                       size_t right, size_t wide)
{
    struct out *out = &job->page.out;

    nd_out_raw(out, "<div class=\"scroll\"><table>\n<thead><tr>");
    for (size_t i = 0; i < count; i++) {
        nd_out_printf(out, "<th class=\"%s%s\">", (right >> i & 1) != 0 ? "r" : "",
                      (wide >> i & 1) != 0 ? " w" : "");
        nd_html_words(job, ids[i]);
        nd_out_raw(out, "</th>");
    }
    nd_out_raw(out, "</tr></thead>\n<tbody>\n");
}

static void html_section_close(struct report_job *job)
{
    if (job->section == SECTION_HEAD)
        return;
    nd_out_raw(&job->page.out, "</tbody></table></div>\n");
    nd_html_section_end(job);
    job->section = SECTION_HEAD;
}

static void html_begin(struct report_job *job, const struct nd_result *result)
{
    struct text title = {0};

    nd_text_printf(&title, "%s \xe2\x80\x93 %s / %s", nd_verdict_word(result->verdict),
                   result->dump[0].path, result->dump[1].path);
    nd_html_open(job, title.len == 0 ? "" : title.bytes);
    nd_text_done(&title);
    nd_html_head(job, result);
    nd_html_first(job, result);
    nd_html_why(job, result);
    nd_html_next(job, result);
}

static void html_finding(struct report_job *job, const struct nd_finding *finding)
{
    static const char *const heads[] = {"column.line", "column.status", "column.evidence"};
    static const char *const inks[] = {"good", "bad", "warn", "soft"};
    struct out *out = &job->page.out;
    struct text words = {0};
    char id[64];

    if (job->section != SECTION_CHECKLIST) {
        nd_html_section(job, "checklist", "report.checklist");
        html_heads(job, heads, 3, 0, 0);
        job->section = SECTION_CHECKLIST;
    }
    nd_out_raw(out, "<tr><td class=\"k\">");
    nd_html_text(job, finding->id);
    nd_out_printf(out, "</td><td class=\"k\"><b class=\"%s\">",
                  (size_t)finding->status < 4 ? inks[finding->status] : "soft");
    snprintf(id, sizeof id, "check.status.%s", nd_check_status_word(finding->status));
    nd_html_words(job, id);
    nd_out_raw(out, "</b></td><td>");
    nd_text_finding_words(&job->page, finding, &words);
    nd_html_text(job, words.len == 0 ? "" : words.bytes);
    nd_out_raw(out, "</td></tr>\n");
    nd_text_done(&words);
}

static void html_step(struct report_job *job, const struct nd_step *step)
{
    if (job->section != SECTION_STEPS) {
        html_section_close(job);
        nd_html_section(job, "steps", "report.steps");
        nd_out_raw(&job->page.out, "<div><table class=\"stack\">\n<tbody>\n");
        job->section = SECTION_STEPS;
    }
    nd_html_step(job, step);
}

static void layer_role(struct report_job *job, const struct nd_layer *layer)
{
    const char *fails = nd_fail_word(layer->fails);
    char id[64];

    if (layer->role != ND_ROLE_UNKNOWN) {
        snprintf(id, sizeof id, "role.%s", nd_role_word(layer->role));
        nd_html_words(job, id);
    }
    if (fails == NULL)
        return;
    snprintf(id, sizeof id, "fail.%s", fails);
    nd_out_raw(&job->page.out,
               layer->role == ND_ROLE_UNKNOWN ? "<b class=\"bad\">" : " <b class=\"bad\">");
    nd_html_words(job, id);
    nd_out_raw(&job->page.out, "</b>");
}

static void html_layer(struct report_job *job, const struct nd_layer *layer)
{
    static const char *const heads[] = {"column.index", "column.layer", "column.type",
                                        "column.tier",  "column.drift", "column.max_abs",
                                        "column.role"};
    struct out *out = &job->page.out;
    struct text place = {0};
    char text[FIGURE_SIZE];

    if (!nd_html_shows(job, layer))
        return;
    if (job->section != SECTION_LAYERS) {
        html_section_close(job);
        nd_html_section(job, "layers", "report.layers");
        html_heads(job, heads, 7, 1 << 0 | 1 << 4 | 1 << 5, 1 << 2 | 1 << 5);
        job->section = SECTION_LAYERS;
    }
    const bool is_first = layer == nd_result_layer(job->result, job->result->first.layer);
    const struct nd_metric_value *max_abs =
        layer->worst_slot < layer->slot_count
            ? nd_slot_metric(&layer->slots[layer->worst_slot], "max_abs")
            : NULL;
    nd_out_printf(out, "<tr id=\"layer-%zu\"%s><td class=\"r\">%zu</td><td>", layer->index,
                  is_first ? " class=\"first\"" : "", layer->index);
    nd_html_name(job, layer->name);
    nd_text_step_rank(&job->page, layer, &place);
    nd_html_text(job, place.len == 0 ? "" : place.bytes);
    nd_text_done(&place);
    nd_out_raw(out, "</td><td class=\"w\"><span class=\"ty\">");
    nd_html_text(job, layer->type);
    nd_out_raw(out, "</span></td><td>");
    nd_html_tier(job, layer->tier);
    nd_out_printf(out, "</td><td class=\"r\">%s</td>", nd_figure_drift(layer->drift, text));
    nd_out_printf(out, "<td class=\"r w\">%s</td><td>",
                  max_abs == NULL ? "-" : nd_figure_value(max_abs->value[0], text));
    layer_role(job, layer);
    nd_out_raw(out, "</td></tr>\n");
}

static void html_end(struct report_job *job, const struct nd_result *result)
{
    size_t hidden = 0;

    html_section_close(job);
    for (size_t i = 0; i < result->layer_count; i++)
        hidden += !nd_html_shows(job, &result->layers[i]);
    if (hidden > 0) {
        nd_out_raw(&job->page.out, "<p class=\"soft\">");
        HTML_SAY(job, "report.more.layers", VALUE_NUMBER("count", hidden));
        nd_out_raw(&job->page.out, "</p>\n");
    }
    nd_html_coverage(job, result);
    nd_html_close(job);
}

static void listing_slot(struct report_job *job, const struct nd_list_slot *slot,
                         const struct nd_list_layer *layer, size_t index)
{
    struct out *out = &job->page.out;
    char text[FIGURE_SIZE];

    nd_out_printf(out, "<tr><td class=\"r\">%zu</td><td>", index);
    nd_html_name(job, layer->name);
    nd_out_raw(out, "</td><td class=\"w\"><span class=\"ty\">");
    nd_html_text(job, layer->type);
    nd_out_raw(out, "</span></td><td>");
    nd_html_text(job, slot->name);
    nd_out_raw(out, "</td><td>");
    nd_html_text(job, slot->dtype == NULL ? "?" : slot->dtype);
    nd_out_printf(out, "</td><td>%s</td><td>", nd_figure_shape(&slot->shape, text));
    nd_html_text(job, slot->layout == NULL ? "" : slot->layout);
    if (slot->broken != NULL) {
        nd_out_raw(out, "<span class=\"bad\">");
        HTML_SAY(job, "report.broken", VALUE_TEXT("why", slot->broken));
        nd_out_raw(out, "</span>");
    }
    nd_out_raw(out, "</td></tr>\n");
}

static void html_listing(struct report_job *job, const struct nd_listing *listing)
{
    static const char *const heads[] = {"column.index", "column.layer", "column.type",
                                        "column.slot",  "column.dtype", "column.shape",
                                        "column.notes"};

    nd_html_open(job, listing->dump.path);
    nd_out_raw(&job->page.out, "<h1>");
    nd_html_name(job, listing->dump.path);
    nd_out_raw(&job->page.out, "</h1>\n<p class=\"soft\">");
    nd_html_text(job, listing->dump.title);
    nd_html_words(job, "report.comma");
    HTML_SAY(job, "report.counts", VALUE_NUMBER("layers", listing->dump.layers),
             VALUE_NUMBER("tensors", listing->dump.tensors));
    nd_out_raw(&job->page.out, "</p>\n");
    html_heads(job, heads, 7, 1, 1 << 2);
    for (size_t i = 0; i < listing->layer_count; i++)
        for (size_t k = 0; k < listing->layers[i].slot_count; k++)
            listing_slot(job, &listing->layers[i].slots[k], &listing->layers[i], i);
    nd_out_raw(&job->page.out, "</tbody></table></div>\n");
    nd_html_close(job);
}

const struct report nd_report_html = {
    .name = "html",
    .title = "one page for a browser, with a drawing of the drift",
    .people = true,
    .begin = html_begin,
    .finding = html_finding,
    .step = html_step,
    .layer = html_layer,
    .end = html_end,
    .listing = html_listing,
};
