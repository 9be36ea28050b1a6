/*
 * The block about the first diverging layer: which, how far off, how it is known that the
 * drift entered there, and its neighbours.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BEFORE = 1, AFTER = 2 }; /* neighbours shown on either side */

bool nd_text_phrase(struct page *page, enum ink ink, const struct nd_phrase *phrase)
{
    struct text words = {0};

    nd_phrase_put(phrase, page->utf8 ? page->language : LANGUAGE_EN, &words);
    const bool some = words.len > 0;
    if (some)
        nd_page_flow(page, ink, words.bytes);
    nd_text_done(&words);
    return some;
}

static void first_indent(struct page *page)
{
    page->indent = 4;
    nd_page_tab(page, 2);
}

const char *nd_text_first_id(const struct nd_result *result)
{
    if (result->first.role != NULL && strcmp(result->first.role, "first_over") == 0)
        return "report.first.over.heading";
    return result->dump[result->order_borrowed].order == ND_ORDER_NAME ? "report.first.heading.name"
                                                  : "report.first.heading";
}

static void first_heading(struct page *page, const struct nd_result *result,
                          const struct nd_layer *layer)
{
    char number[32];

    page->indent = 2;
    nd_page_flow(page, INK_BOLD, nd_page_words(page, nd_text_first_id(result)));
    snprintf(number, sizeof number, "  #%zu  ", layer->index);
    nd_page_flow(page, INK_BOLD, number);
    nd_page_flow(page, INK_BOLD, layer->name);
    if (layer->step >= 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        ND_SAY(page, INK_PLAIN, "report.place.step", VALUE_NUMBER("step", layer->step));
    }
    if (layer->rank >= 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        ND_SAY(page, INK_PLAIN, "report.place.rank", VALUE_NUMBER("rank", layer->rank));
    }
    nd_page_end(page);
}

/* "LayerNorm, output.0, float32 [4, 128, 768]"; what is not known is left out. */
void nd_text_slot_words(const struct page *page, const struct nd_layer *layer,
                        const struct nd_slot *slot, struct text *out)
{
    const char *reference = slot->dtype[0], *candidate = slot->dtype[1];
    const char *comma = nd_page_words(page, "report.comma");
    char shape[FIGURE_SIZE], id[64];

    if (layer->type[0] != '\0') {
        nd_text_puts(out, layer->type);
        nd_text_puts(out, comma);
    }
    nd_text_puts(out, slot->name);
    if (reference != NULL || candidate != NULL) {
        nd_text_puts(out, comma);
        nd_text_puts(out, reference == NULL ? "?" : reference);
        if (reference == NULL || candidate == NULL || strcmp(reference, candidate) != 0) {
            nd_text_puts(out, " / ");
            nd_text_puts(out, candidate == NULL ? "?" : candidate);
        }
    }
    if (slot->shape.rank > 0 || slot->evidence == ND_EVIDENCE_VALUES) {
        nd_text_puts(out, " ");
        nd_text_puts(out, nd_figure_shape(&slot->shape, shape));
    }
    if (slot->evidence != ND_EVIDENCE_VALUES) {
        nd_text_puts(out, comma);
        snprintf(id, sizeof id, "evidence.%s", nd_evidence_word(slot->evidence));
        nd_text_puts(out, nd_page_words(page, id));
    }
}

static void first_slot(struct page *page, const struct nd_layer *layer,
                       const struct nd_slot *slot)
{
    struct text words = {0};

    nd_text_slot_words(page, layer, slot, &words);
    first_indent(page);
    nd_page_flow(page, INK_PLAIN, words.len == 0 ? "" : words.bytes);
    nd_page_end(page);
    nd_text_done(&words);
}

static void first_metric(struct page *page, const struct nd_slot *slot, const char *key)
{
    const struct nd_metric_value *metric = nd_slot_metric(slot, key);
    char text[FIGURE_SIZE], id[64];

    if (metric == NULL || metric->kind != ND_METRIC_NUMBER)
        return;
    if (strcmp(key, "cosine") == 0)
        nd_figure_cosine(metric->value[0], text);
    else
        nd_figure_value(metric->value[0], text);
    snprintf(id, sizeof id, "report.metric.%s", key);
    ND_SAY_ITEM(page, INK_PLAIN, id, VALUE_TEXT("value", text));
}

/* Statistics of both sides, where they are all there is. */
static void first_statistics(struct page *page, const struct nd_slot *slot)
{
    static const char *const keys[] = {"max", "min", "mean", "norm"};
    char id[64], reference[FIGURE_SIZE], candidate[FIGURE_SIZE], hidden[FIGURE_SIZE];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct nd_metric_value *metric = nd_slot_metric(slot, keys[i]);
        if (metric == NULL || metric->kind != ND_METRIC_PAIR)
            continue;
        snprintf(id, sizeof id, "column.%s", keys[i]);
        ND_SAY_ITEM(
            page, INK_PLAIN, "report.metric.pair",
            VALUE_TEXT("name", nd_page_words(page, id)),
            VALUE_TEXT("reference", nd_figure_element(metric->value[0], reference)),
            VALUE_TEXT("candidate", nd_figure_element(metric->value[1], candidate)));
    }
    if (isnan(slot->hidden_up_to))
        return;
    nd_page_end(page);
    first_indent(page);
    ND_SAY(page, INK_PLAIN,
           slot->hidden_up_to > 0 ? "report.lower_bound" : "report.lower_bound.exact",
           VALUE_TEXT("hidden", nd_figure_drift(slot->hidden_up_to, hidden)));
}

static void first_metrics(struct page *page, const struct nd_slot *slot)
{
    static const char *const keys[] = {"max_abs", "mean_abs", "max_rel", "cosine"};
    char drift[FIGURE_SIZE];

    first_indent(page);
    if (slot->nonfinite_mismatches > 0)
        nd_page_item(page, INK_PLAIN, nd_page_words(page, "report.elsewhere"));
    ND_SAY_ITEM(page, nd_text_tier_ink(slot->tier), "report.metric.drift",
                VALUE_TEXT("value", nd_figure_drift(slot->drift, drift)));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        first_metric(page, slot, keys[i]);
    if (slot->evidence == ND_EVIDENCE_STATISTICS)
        first_statistics(page, slot);
    nd_page_end(page);
}

static void first_trouble(struct page *page, const struct nd_slot *slot)
{
    char shapes[2][FIGURE_SIZE];

    if (slot->nonfinite_mismatches > 0) {
        const struct nd_nonfinite_side *side = slot->nonfinite;
        first_indent(page);
        ND_SAY(page, INK_BAD, "report.nonfinite",
               VALUE_NUMBER("count", slot->nonfinite_mismatches),
               VALUE_NUMBER("nan0", side[0].nan), VALUE_NUMBER("pos0", side[0].pos_inf),
               VALUE_NUMBER("neg0", side[0].neg_inf), VALUE_NUMBER("nan1", side[1].nan),
               VALUE_NUMBER("pos1", side[1].pos_inf),
               VALUE_NUMBER("neg1", side[1].neg_inf));
        nd_page_end(page);
    }
    if (slot->fails == ND_FAIL_SHAPE) {
        first_indent(page);
        ND_SAY(page, INK_BAD, "report.shapes",
               VALUE_TEXT("reference", nd_figure_shape(slot->shape_of[0], shapes[0])),
               VALUE_TEXT("candidate", nd_figure_shape(slot->shape_of[1], shapes[1])));
        nd_page_end(page);
    }
    if (slot->fails == ND_FAIL_INTEGER) {
        first_indent(page);
        ND_SAY(page, INK_PLAIN, "report.differ", VALUE_NUMBER("differ", slot->differ),
               VALUE_NUMBER("n", slot->n));
        nd_page_end(page);
    }
}

static void first_worst(struct page *page, const struct nd_slot *slot)
{
    char text[FIGURE_SIZE];

    if (slot->worst_count == 0 || slot->worst[0].reference == slot->worst[0].candidate)
        return;
    const struct nd_worst *worst = &slot->worst[0];
    first_indent(page);
    ND_SAY_ITEM(page, INK_PLAIN, "report.worst",
                VALUE_TEXT("index", nd_figure_index(worst->index, worst->index_len, text)));
    ND_SAY_ITEM(page, INK_PLAIN, "report.worst.reference",
                VALUE_TEXT("value", nd_figure_element(worst->reference, text)));
    ND_SAY_ITEM(page, INK_PLAIN, "report.worst.candidate",
                VALUE_TEXT("value", nd_figure_element(worst->candidate, text)));
    nd_page_end(page);
}

/* Where the error sits: one channel, one row, or spread (then both are near the drift). */
static void first_slices(struct page *page, const struct nd_slot *slot)
{
    const struct nd_slice *channel = slot->worst_channel, *row = slot->worst_row;
    char                   text[FIGURE_SIZE], drift[FIGURE_SIZE];

    if (channel == NULL || row == NULL || !(channel->drift > 0))
        return;
    first_indent(page);
    ND_SAY_ITEM(page, INK_PLAIN, "report.worst.channel",
                VALUE_NUMBER("index", channel->index[0]), VALUE_NUMBER("axis", channel->axis),
                VALUE_TEXT("drift", nd_figure_drift(channel->drift, drift)));
    ND_SAY_ITEM(page, INK_PLAIN, "report.worst.row",
                VALUE_TEXT("index", nd_figure_index(row->index, row->index_len, text)),
                VALUE_TEXT("drift", nd_figure_drift(row->drift, drift)));
    nd_page_end(page);
}

/* Equal prints are no equal tensors. */
static bool has_input_statistics(const struct nd_layer *layer)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strncmp(layer->slots[i].name, "input", 5) == 0 &&
            layer->slots[i].evidence == ND_EVIDENCE_STATISTICS)
            return true;
    return false;
}

const char *nd_text_entered_id(const struct nd_result *result)
{
    const double input = result->first.input_drift;
    const char *role = result->first.role == NULL ? "" : result->first.role;

    if (strcmp(role, "gap") == 0)
        return isnan(input) ? "report.why.gap.unknown" : "report.why.gap";
    if (strcmp(role, "origin") != 0)
        return "report.why.over";
    if (isnan(input))
        return result->first.span.points > 0 ? "report.why.span" : "report.why.origin";
    if (input == 0.0)
        return has_input_statistics(&result->layers[result->first.layer])
                   ? "report.why.exact_input.statistics"
                   : "report.why.exact_input";
    return input <= result->policy.tiers[1] ? "report.why.entered" : "report.why.partly";
}

/* How it is known that the drift entered here; of a gap, how it is known says it all. */
static void first_entered(struct page *page, const struct nd_result *result)
{
    char input[FIGURE_SIZE];
    size_t inherited = 0;
    const bool is_gap =
        result->first.role != NULL && strcmp(result->first.role, "gap") == 0;

    for (size_t i = result->first.layer; i < result->layer_count; i++)
        inherited += result->layers[i].role == ND_ROLE_INHERITED;
    first_indent(page);
    if (is_gap && result->first.why.id != NULL)
        nd_text_phrase(page, INK_PLAIN, &result->first.why);
    else
        ND_SAY(page, INK_PLAIN, nd_text_entered_id(result),
               VALUE_TEXT("input", nd_figure_drift(result->first.input_drift, input)));
    if (inherited > 0) {
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.semicolon"));
        ND_SAY(page, INK_PLAIN, "report.why.inherit", VALUE_NUMBER("count", inherited));
    }
    nd_page_end(page);
    if (is_gap || result->first.why.id == NULL)
        return;
    first_indent(page);
    nd_text_phrase(page, INK_PLAIN, &result->first.why);
    nd_page_end(page);
}

static bool is_same_run(const struct nd_layer *a, const struct nd_layer *b)
{
    return a->step == b->step && a->rank == b->rank;
}

/* The layers around it: ranks stand side by side, and those of others are passed over. */
static void first_neighbours(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;
    const struct nd_layer *own = &result->layers[result->first.layer];
    size_t first = own->index, last = first, shown = 0;

    for (size_t i = own->index; i-- > 0 && shown < BEFORE;)
        if (is_same_run(&result->layers[i], own)) {
            first = i;
            shown++;
        }
    shown = 0;
    for (size_t i = own->index + 1; i < result->layer_count && shown < AFTER; i++)
        if (is_same_run(&result->layers[i], own)) {
            last = i;
            shown++;
        }
    struct layer_table table;
    nd_text_table_plan(job, result, first, last, &table);
    nd_text_table_head(page, &table);
    for (size_t i = first; i <= last; i++)
        if (is_same_run(&result->layers[i], own))
            nd_text_table_row(job, &table, &result->layers[i]);
}

void nd_text_first(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;
    const struct nd_layer *layer = nd_result_layer(result, result->first.layer);

    if (layer == NULL)
        return;
    nd_page_blank(page);
    first_heading(page, result, layer);
    if (result->first.slot < layer->slot_count) {
        const struct nd_slot *slot = &layer->slots[result->first.slot];
        first_slot(page, layer, slot);
        first_trouble(page, slot);
        first_metrics(page, slot);
    }
    first_entered(page, result);
    nd_text_where(job, result);
    if (result->first.slot < layer->slot_count) {
        first_worst(page, &layer->slots[result->first.slot]);
        first_slices(page, &layer->slots[result->first.slot]);
    }
    if (!job->options->all)
        first_neighbours(job, result);
}
