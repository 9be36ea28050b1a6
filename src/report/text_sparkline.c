/*
 * The drift of every layer in one line: a bar a layer on a logarithmic scale from 1e-9 to
 * 1, and under it a mark at the first diverging layer.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>

enum { BAR_COUNT = 8, DECADES = 9, SCALE_COLUMNS = 26 };

/* The height of a bar, 0 to BAR_COUNT - 1; -1 for what has no drift. */
static int sparkline_height(const struct nd_layer *layer)
{
    if (layer->fails == ND_FAIL_NONFINITE || layer->fails == ND_FAIL_SHAPE)
        return BAR_COUNT - 1;
    if (isnan(layer->drift))
        return layer->tier == ND_TIER_FAULT ? BAR_COUNT - 1 : -1;
    if (layer->drift <= 0.0)
        return 0;
    if (isinf(layer->drift))
        return BAR_COUNT - 1;
    const double place = (log10(layer->drift) + DECADES) / DECADES * BAR_COUNT;
    return place < 0 ? 0 : place >= BAR_COUNT ? BAR_COUNT - 1 : (int)place;
}

static void sparkline_bar(struct page *page, int height, enum nd_tier tier)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", ".", ",", "-", "=", "+", "*", "#"};

    if (height < 0)
        nd_page_put(page, INK_PLAIN, page->utf8 ? "·" : "?");
    else
        nd_page_put(page, nd_text_tier_ink(tier),
                    page->utf8 ? blocks[height] : plain[height]);
}

/* One column: the largest of `group` layers from the given position on. */
static size_t sparkline_column(struct page *page, const struct nd_result *result, size_t at,
                               size_t group, bool *ret_marked)
{
    int height = -1;
    enum nd_tier tier = ND_TIER_NONE;
    size_t taken = 0;

    *ret_marked = false;
    for (; at < result->layer_count && taken < group; at++) {
        const struct nd_layer *layer = &result->layers[at];
        *ret_marked = *ret_marked || at == result->first.layer;
        if (layer->role == ND_ROLE_CONTAINER)
            continue;
        taken++;
        const int own = sparkline_height(layer);
        if (own > height || (own == height && layer->tier == ND_TIER_FAULT)) {
            height = own;
            tier = layer->tier;
        }
    }
    if (taken > 0)
        sparkline_bar(page, height, tier);
    return at;
}

static void sparkline_scale(struct page *page, size_t group)
{
    nd_page_tab(page, page->column + 3);
    if (group == 1)
        ND_SAY(page, INK_PLAIN, "report.drift.scale", VALUE_TEXT("low", "1e-9"));
    else
        ND_SAY(page, INK_PLAIN, "report.drift.scale.grouped", VALUE_TEXT("low", "1e-9"),
               VALUE_NUMBER("count", group));
    nd_page_end(page);
}

void nd_text_sparkline(struct page *page, const struct nd_result *result)
{
    size_t leaves = 0;
    unsigned mark = 0;
    char number[32];
    const unsigned wide = page->width - LABEL_COLUMNS;

    for (size_t i = 0; i < result->layer_count; i++)
        leaves += result->layers[i].role != ND_ROLE_CONTAINER;
    if (leaves == 0)
        return;
    const size_t group = (leaves + wide - 1) / wide;
    nd_text_label(page, "report.drift");
    for (size_t at = 0; at < result->layer_count;) {
        bool marked = false;
        const unsigned column = page->column;
        at = sparkline_column(page, result, at, group, &marked);
        if (marked)
            mark = column;
    }
    if (page->column + SCALE_COLUMNS + 8 > page->width) {
        nd_page_end(page);
        page->column = 0;
        nd_page_tab(page, LABEL_COLUMNS - 3);
    }
    sparkline_scale(page, group);
    if (mark > 0) {
        snprintf(number, sizeof number, "^ #%zu",
                 result->layers[result->first.layer].index);
        if (mark + nd_page_columns(page, number) > page->width)
            snprintf(number, sizeof number, "^");
        nd_page_tab(page, mark);
        nd_page_put(page, INK_BOLD, number);
        nd_page_end(page);
    }
}
