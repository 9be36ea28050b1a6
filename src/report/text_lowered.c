/*
 * The lines about a candidate that computed in a narrower type: what that explains, and
 * which layers are off by more.
 */
#include "report/text_parts.h"

#include <math.h>
#include <string.h>

enum { LOWERED_ROWS = 5, LOWERED_NAME = 40 };

static void lowered_row(struct page *page, const struct nd_result *result,
                        const struct nd_lowered_layer *row)
{
    char own[FIGURE_SIZE], times[FIGURE_SIZE], index[FIGURE_SIZE];
    const struct nd_layer *layer = &result->layers[row->layer];

    nd_page_tab(page, LABEL_COLUMNS);
    nd_page_put(page, INK_PLAIN, "#");
    nd_page_put(page, INK_PLAIN, nd_figure_count(layer->index, index));
    nd_page_tab(page, page->column + 2);
    nd_page_cut(page, INK_PLAIN, layer->name, LOWERED_NAME);
    nd_page_tab(page, page->column + 2);
    ND_SAY(page, INK_PLAIN,
           isinf(row->own) ? "report.lowered.nonfinite" : "report.lowered.own",
           VALUE_TEXT("own", nd_figure_drift(row->own, own)),
           VALUE_TEXT("times", nd_figure_value(row->times, times)));
    nd_page_end(page);
}

void nd_text_lowered(struct page *page, const struct nd_result *result)
{
    const struct nd_lowered *lowered = &result->lowered;
    char explains[FIGURE_SIZE];

    if (lowered->dtype[1] == NULL)
        return;
    nd_text_label(page, "report.lowered");
    ND_SAY(page, INK_PLAIN, "report.lowered.whole",
           VALUE_TEXT("candidate", lowered->dtype[1]),
           VALUE_TEXT("reference", lowered->dtype[0] == NULL ? "" : lowered->dtype[0]),
           VALUE_NUMBER("is_half", strcmp(lowered->dtype[1], "float16") == 0),
           VALUE_NUMBER("layers", lowered->layers), VALUE_NUMBER("of", lowered->of),
           VALUE_TEXT("explains", nd_figure_drift(lowered->explains, explains)));
    if (lowered->ranked_count == 0) {
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.semicolon"));
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.lowered.none"));
    }
    nd_page_end(page);
    for (size_t i = 0; i < lowered->ranked_count && i < LOWERED_ROWS; i++)
        lowered_row(page, result, &lowered->ranked[i]);
    if (lowered->ranked_count <= LOWERED_ROWS)
        return;
    nd_page_tab(page, LABEL_COLUMNS);
    ND_SAY(page, INK_PLAIN, "report.lowered.more",
           VALUE_NUMBER("count", lowered->ranked_count - LOWERED_ROWS));
    nd_page_end(page);
}
