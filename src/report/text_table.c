/*
 * The table of layers: number, name, type, tier, drift, largest absolute error, role.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TYPE_LIMIT = 20,
    NAME_LEAST = 12,
    DRIFT_COLUMNS = 8,
    NOTE_COLUMNS = 10,
    PLACE_WIDTH = 72
};

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static const char *place_id(const struct page *page)
{
    return page->width < PLACE_WIDTH ? "column.place.short" : "column.place";
}

/* "1/3", step and rank, "-" for one of them that there is not; false: neither. */
static bool row_place(const struct nd_layer *layer, char text[FIGURE_SIZE])
{
    char step[24] = "-", rank[24] = "-";

    if (layer->step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)layer->step);
    if (layer->rank >= 0)
        snprintf(rank, sizeof rank, "%lld", (long long)layer->rank);
    snprintf(text, FIGURE_SIZE, "%s/%s", step, rank);
    return layer->step >= 0 || layer->rank >= 0;
}

void nd_text_table_plan(struct report_job *job, const struct nd_result *result,
                        size_t first, size_t last, struct layer_table *ret_table)
{
    struct page *page = &job->page;
    char text[FIGURE_SIZE];
    unsigned index = 2, place = 0, type = 0, tier = 0;
    unsigned name = nd_page_columns(page, nd_page_words(page, "column.layer"));

    for (size_t i = first; i <= last && i < result->layer_count; i++) {
        const struct nd_layer *layer = &result->layers[i];
        index = larger(index, (unsigned)snprintf(text, sizeof text, "%zu", layer->index));
        name = larger(name, nd_page_columns(page, layer->name));
        if (row_place(layer, text))
            place = larger(place, (unsigned)strlen(text));
        type = larger(type, nd_page_columns(page, layer->type));
    }
    ret_table->has_place = place > 0;
    if (place > 0)
        place = larger(place, nd_page_columns(page, nd_page_words(page, place_id(page))));
    if (type > 0) {
        type = larger(type, nd_page_columns(page, nd_page_words(page, "column.type")));
        type = type > TYPE_LIMIT ? TYPE_LIMIT : type;
    }
    for (unsigned i = 0; i <= ND_TIER_NONE; i++)
        if (i < ND_TIER_UNRESOLVED || i == ND_TIER_NONE || result->summary[i] > 0)
            tier = larger(tier, nd_page_columns(page, nd_text_tier(page, &result->policy,
                                                                   (enum nd_tier)i, text)));
    /* two spaces between columns, two before the first */
    const unsigned rest = 2 + index + (place > 0 ? place + 2 : 0) + 2 + 2 + tier + 2 +
                          DRIFT_COLUMNS + 2 + DRIFT_COLUMNS + 2 + NOTE_COLUMNS;
    const unsigned least = place > 0 ? NAME_LEAST - 8 : NAME_LEAST;
    ret_table->has_type = type > 0 && rest + type + 2 + least <= page->width;
    const unsigned others = rest + (ret_table->has_type ? type + 2 : 0);
    const unsigned room = others + least < page->width ? page->width - others : least;
    ret_table->index = 2 + index;
    ret_table->place = ret_table->index + (place > 0 ? place + 2 : 0);
    ret_table->name = ret_table->place + 2 + (name < room ? name : room);
    ret_table->type = ret_table->has_type ? ret_table->name + 2 + type : ret_table->name;
    ret_table->tier = ret_table->type + 2 + tier;
    ret_table->drift = ret_table->tier + 2 + DRIFT_COLUMNS;
    ret_table->max_abs = ret_table->drift + 2 + DRIFT_COLUMNS;
}

void nd_text_table_head(struct page *page, const struct layer_table *table)
{
    nd_page_right(page, INK_FAINT, nd_page_words(page, "column.index"), table->index);
    if (table->has_place)
        nd_page_right(page, INK_FAINT, nd_page_words(page, place_id(page)), table->place);
    nd_page_tab(page, table->place + 2);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.layer"));
    if (table->has_type) {
        nd_page_tab(page, table->name + 2);
        nd_page_put(page, INK_FAINT, nd_page_words(page, "column.type"));
    }
    nd_page_tab(page, table->type + 2);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.tier"));
    nd_page_right(page, INK_FAINT, nd_page_words(page, "column.drift"), table->drift);
    nd_page_right(page, INK_FAINT, nd_page_words(page, "column.max_abs"), table->max_abs);
    nd_page_tab(page, table->max_abs + 2);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.role"));
    nd_page_end(page);
}

/* Why it fails, where that is not the drift beside it; else its role. */
static void row_note(struct page *page, const struct nd_layer *layer)
{
    char id[64];
    const char *fails = nd_text_fails(page, layer);

    if (fails != NULL && layer->role != ND_ROLE_ORIGIN) {
        nd_page_cut(page, INK_BAD, fails, NOTE_COLUMNS);
        return;
    }
    snprintf(id, sizeof id, "role.%s", nd_role_word(layer->role));
    nd_page_cut(page,
                layer->role == ND_ROLE_ORIGIN || layer->role == ND_ROLE_GAP ? INK_BOLD
                                                                            : INK_PLAIN,
                nd_page_words(page, id), NOTE_COLUMNS);
}

static void row_slot(struct page *page, const struct nd_slot *slot, unsigned indent)
{
    const char *reference = slot->dtype[0], *candidate = slot->dtype[1];
    char text[FIGURE_SIZE], id[FIGURE_SIZE];

    page->indent = indent + 2;
    nd_page_tab(page, indent);
    nd_page_flow(page, INK_PLAIN, slot->name);
    nd_page_flow(page, INK_PLAIN, "  ");
    nd_page_flow(page, INK_PLAIN, reference == NULL ? "" : reference);
    if (reference != NULL && candidate != NULL && strcmp(reference, candidate) != 0) {
        nd_page_flow(page, INK_PLAIN, "/");
        nd_page_flow(page, INK_PLAIN, candidate);
    }
    if (slot->shape.rank > 0 || slot->evidence == ND_EVIDENCE_VALUES) {
        nd_page_flow(page, INK_PLAIN, " ");
        nd_page_flow(page, INK_PLAIN, nd_figure_shape(&slot->shape, text));
    }
    nd_page_flow(page, INK_PLAIN, "  ");
    nd_page_flow(page, nd_text_tier_ink(slot->tier), nd_figure_drift(slot->drift, text));
    for (size_t i = 0; i < slot->note_count; i++) {
        snprintf(id, sizeof id, "note.%s", slot->notes[i]);
        const char *words = nd_page_words(page, id);
        nd_page_flow(page, INK_PLAIN,
                     i == 0 ? "  " : nd_page_words(page, "report.semicolon"));
        nd_page_flow(page, INK_FAINT, words == id ? slot->notes[i] : words);
    }
    nd_page_end(page);
}

/* With -v: how the layer was matched, and its slots. */
static void row_details(struct page *page, const struct layer_table *table,
                        const struct nd_layer *layer)
{
    char id[64];

    if (layer->candidate_name != NULL && layer->matched_by != ND_MATCH_EXACT) {
        snprintf(id, sizeof id, "match.%s", nd_match_word(layer->matched_by));
        page->indent = table->place + 4;
        nd_page_tab(page, table->place + 2);
        ND_SAY(page, INK_FAINT, "report.matched", VALUE_TEXT("name", layer->candidate_name),
               VALUE_TEXT("how", nd_page_words(page, id)));
        nd_page_end(page);
    }
    for (size_t i = 0; i < layer->slot_count; i++)
        row_slot(page, &layer->slots[i], table->place + 2);
}

void nd_text_table_row(struct report_job *job, const struct layer_table *table,
                       const struct nd_layer *layer)
{
    struct page *page = &job->page;
    char text[FIGURE_SIZE];
    const bool is_first = layer == nd_result_layer(job->result, job->result->first.layer);

    if (is_first)
        nd_page_put(page, INK_BOLD, ">");
    snprintf(text, sizeof text, "%zu", layer->index);
    nd_page_right(page, INK_PLAIN, text, table->index);
    if (table->has_place && row_place(layer, text))
        nd_page_right(page, INK_PLAIN, text, table->place);
    nd_page_tab(page, table->place + 2);
    const unsigned columns = table->name - table->place - 2;
    char name[256];
    nd_page_cut(page, is_first ? INK_BOLD : INK_PLAIN,
                nd_text_short_name(page, layer, table->has_type, columns, name, sizeof name),
                columns);
    if (table->has_type) {
        nd_page_tab(page, table->name + 2);
        nd_page_cut(page, INK_PLAIN, layer->type, table->type - table->name - 2);
    }
    nd_page_tab(page, table->type + 2);
    nd_page_put(page, nd_text_tier_ink(layer->tier),
                nd_text_tier(page, &job->result->policy, layer->tier, text));
    nd_page_right(page, nd_text_tier_ink(layer->tier), nd_figure_drift(layer->drift, text),
                  table->drift);
    const struct nd_metric_value *max_abs =
        layer->worst_slot < layer->slot_count
            ? nd_slot_metric(&layer->slots[layer->worst_slot], "max_abs")
            : NULL;
    nd_page_right(page, INK_PLAIN,
                  max_abs == NULL ? "-" : nd_figure_value(max_abs->value[0], text),
                  table->max_abs);
    nd_page_tab(page, table->max_abs + 2);
    row_note(page, layer);
    nd_page_end(page);
    if (job->options->verbose)
        row_details(page, table, layer);
}
