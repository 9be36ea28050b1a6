/*
 * The drift of every layer as a drawing: a column a layer on a logarithmic scale from 1e-9
 * to 1, the tiers as bands behind it.  The drawing is stretched to the width of the page,
 * so its labels stand beside it as text and keep their size.
 */
#include "report/html_parts.h"

#include <math.h>
#include <stdio.h>

enum { DECADES = 9, UNITS = 100, HEIGHT = DECADES * UNITS, COLUMNS_LIMIT = 1000, STUB = 8 };

/* The height of a drift over the ground, 0 to HEIGHT. */
static int chart_height(double drift)
{
    if (!(drift > 0.0))
        return 0;
    const double units = isinf(drift) ? HEIGHT : (log10(drift) + DECADES) * UNITS;
    return units < 0 ? 0 : units > HEIGHT ? HEIGHT : (int)(units + 0.5);
}

/* A column's height; what has no drift but is known to be bad fills it. */
static int layer_height(const struct nd_layer *layer)
{
    if (layer->fails != ND_FAIL_NONE &&
        (isnan(layer->drift) || layer->fails == ND_FAIL_NONFINITE ||
         layer->fails == ND_FAIL_SHAPE))
        return HEIGHT;
    const int height = chart_height(layer->drift);
    return height < STUB ? STUB : height;
}

static void chart_bands(struct report_job *job, const struct nd_policy *policy,
                        size_t columns)
{
    int below = HEIGHT;

    /* from the top down: fault, elevated, reduction */
    for (int tier = ND_TIER_FAULT; tier >= ND_TIER_REDUCTION; tier--) {
        const int ground = chart_height(policy->tiers[tier - ND_TIER_REDUCTION]);
        if (ground < below)
            nd_out_printf(&job->page.out,
                          "<rect class=\"band%d\" x=\"0\" y=\"%d\" width=\"%zu\" "
                          "height=\"%d\"/>\n",
                          tier, HEIGHT - below, columns, below - ground);
        below = ground < below ? ground : below;
    }
}

/* The layer that stands for a column: the highest of its group. */
static size_t chart_pick(const struct nd_result *result, size_t group, size_t *at)
{
    size_t taken = 0, pick = ND_NO_INDEX;

    for (; *at < result->layer_count && taken < group; (*at)++) {
        const struct nd_layer *layer = &result->layers[*at];
        if (layer->role == ND_ROLE_CONTAINER)
            continue;
        taken++;
        if (pick == ND_NO_INDEX ||
            layer_height(layer) > layer_height(&result->layers[pick]))
            pick = *at;
    }
    return pick;
}

static void chart_column(struct report_job *job, const struct nd_layer *layer,
                         size_t column)
{
    struct out *out = &job->page.out;
    const int height = layer_height(layer);
    const bool linked = nd_html_shows(job, layer);
    char drift[FIGURE_SIZE];

    if (linked)
        nd_out_printf(out, "<a href=\"#layer-%zu\">", layer->index);
    if (layer->tier <= ND_TIER_FAULT)
        nd_out_printf(out, "<rect class=\"c%d\"", (int)layer->tier);
    else
        nd_out_raw(out, "<rect class=\"cx\"");
    nd_out_printf(out, " x=\"%zu.08\" y=\"%d\" width=\"0.84\" height=\"%d\"><title>#%zu ",
                  column, HEIGHT - height, height, layer->index);
    nd_html_text(job, layer->name);
    nd_out_printf(out, " %s", nd_figure_drift(layer->drift, drift));
    nd_out_printf(out, "</title></rect>%s\n", linked ? "</a>" : "");
}

/* Bounds of the tiers on the left, what the bands mean on the right. */
static void chart_labels(struct report_job *job, const struct nd_policy *policy)
{
    static const char *const words[] = {"tier.noise", "tier.reduction", "tier.elevated",
                                        "tier.fault"};
    struct out *out = &job->page.out;
    char bound[FIGURE_SIZE];
    int below = 0;

    nd_out_raw(out, "<span class=\"y\" style=\"top:0%\">1e0</span>"
                    "<span class=\"y\" style=\"top:100%\">1e-9</span>\n");
    for (size_t i = 0; i < 4; i++) {
        const int top = i < 3 ? chart_height(policy->tiers[i]) : HEIGHT;
        const int middle = HEIGHT - (below + top) / 2;
        if (i < 3 && top >= HEIGHT / 20 && top <= HEIGHT - HEIGHT / 20)
            nd_out_printf(out, "<span class=\"y\" style=\"top:%d.%d%%\">%s</span>",
                          (HEIGHT - top) * 100 / HEIGHT,
                          (HEIGHT - top) * 1000 / HEIGHT % 10,
                          nd_figure_bound(policy->tiers[i], bound));
        if (top - below >= HEIGHT / 15) {
            nd_out_printf(out, "<span class=\"b\" style=\"top:%d.%d%%\">",
                          middle * 100 / HEIGHT, middle * 1000 / HEIGHT % 10);
            nd_html_words(job, words[i]);
            nd_out_raw(out, "</span>");
        }
        below = top > below ? top : below;
    }
    nd_out_raw(out, "\n");
}

/* Under the columns, at the first diverging layer. */
static void chart_mark(struct report_job *job, const struct nd_result *result,
                       size_t column, size_t columns)
{
    const size_t share = (2 * column + 1) * 500 / columns; /* thousandths */

    if (column == ND_NO_INDEX)
        return;
    nd_out_printf(&job->page.out,
                  "<div class=\"mark\"><a href=\"#layer-%zu\"%s style=\"left:%zu.%zu%%\">",
                  result->layers[result->first.layer].index,
                  share > 500 ? " class=\"end\"" : "", share / 10, share % 10);
    if (share > 500)
        nd_out_printf(&job->page.out, "#%zu \xe2\x96\xb2",
                      result->layers[result->first.layer].index);
    else
        nd_out_printf(&job->page.out, "\xe2\x96\xb2 #%zu",
                      result->layers[result->first.layer].index);
    nd_out_raw(&job->page.out, "</a></div>\n");
}

static void chart_caption(struct report_job *job, size_t group)
{
    nd_out_raw(&job->page.out, "<figcaption>");
    if (group == 1)
        HTML_SAY(job, "report.drift.scale", VALUE_TEXT("low", "1e-9"));
    else
        HTML_SAY(job, "report.drift.scale.grouped", VALUE_TEXT("low", "1e-9"),
                 VALUE_NUMBER("count", group));
    nd_out_raw(&job->page.out, "</figcaption>\n</figure>\n");
}

void nd_html_chart(struct report_job *job, const struct nd_result *result)
{
    struct out *out = &job->page.out;
    size_t leaves = 0, mark = ND_NO_INDEX;

    for (size_t i = 0; i < result->layer_count; i++)
        leaves += result->layers[i].role != ND_ROLE_CONTAINER;
    if (leaves == 0)
        return;
    const size_t group = (leaves + COLUMNS_LIMIT - 1) / COLUMNS_LIMIT;
    const size_t columns = (leaves + group - 1) / group;
    nd_out_printf(out,
                  "<figure>\n<div class=\"plot\">\n<svg viewBox=\"0 0 %zu %d\" "
                  "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                  columns, HEIGHT);
    nd_html_words(job, "report.drift");
    nd_out_raw(out, "\">\n");
    chart_bands(job, &result->policy, columns);
    for (size_t at = 0, column = 0; column < columns; column++) {
        const size_t from = at;
        const size_t pick = chart_pick(result, group, &at);
        if (result->first.layer >= from && result->first.layer < at)
            mark = column;
        if (pick != ND_NO_INDEX)
            chart_column(job, &result->layers[pick], column);
    }
    nd_out_raw(out, "</svg>\n");
    chart_labels(job, &result->policy);
    nd_out_raw(out, "</div>\n");
    chart_mark(job, result, mark, columns);
    chart_caption(job, group);
}
