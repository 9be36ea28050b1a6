/*
 * The head of the text report: the two dumps, what was compared, the drift of every layer
 * in one line, and where it was first seen.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GAP = 3, NAME_LEAST = 10 }; /* spaces between cells; columns for a name */

/* What a line about a dump says, cell by cell. */
enum cell {
    CELL_PATH,
    CELL_TITLE,
    CELL_COUNTS,
    CELL_BYTES,
    CELL_DEVICE,
    CELL_DTYPE,
    CELL_COUNT
};
struct dump_line {
    const char *cells[CELL_COUNT];
    struct text counts;
    char bytes[FIGURE_SIZE];
};

void nd_text_label(struct page *page, const char *id)
{
    page->indent = LABEL_COLUMNS;
    nd_page_put(page, INK_PLAIN, nd_page_words(page, id));
    nd_page_tab(page, LABEL_COLUMNS);
}

static void line_init(struct dump_line *line, const struct page *page,
                      const struct nd_dump_info *dump)
{
    const struct catalogue_value values[] = {VALUE_NUMBER("layers", dump->layers),
                                             VALUE_NUMBER("tensors", dump->tensors)};

    *line = (struct dump_line){
        .cells = {dump->path, dump->title}
    };
    nd_catalogue_fill(nd_page_words(page, "report.counts"), values, 2, &line->counts);
    line->cells[CELL_COUNTS] = line->counts.len == 0 ? "" : line->counts.bytes;
    line->cells[CELL_BYTES] =
        dump->bytes == 0 ? "" : nd_figure_bytes(dump->bytes, line->bytes);
    line->cells[CELL_DEVICE] = dump->device == NULL ? "" : dump->device;
    line->cells[CELL_DTYPE] = dump->dtype == NULL ? "" : dump->dtype;
}

/* All cells in one line, each in its column. */
static void line_wide(struct page *page, const struct dump_line *line,
                      const unsigned *columns)
{
    unsigned at = LABEL_COLUMNS;

    for (unsigned i = 0; i < CELL_COUNT; i++) {
        if (line->cells[i][0] != '\0') {
            nd_page_tab(page, at);
            nd_page_put(page, i == CELL_PATH ? INK_BOLD : INK_PLAIN, line->cells[i]);
        }
        at += columns[i] == 0 ? 0 : columns[i] + GAP;
    }
    nd_page_end(page);
}

/* The path and the format, then the rest below. */
static void line_narrow(struct page *page, const struct dump_line *line)
{
    const unsigned room = page->width - LABEL_COLUMNS;
    const unsigned title = nd_page_columns(page, line->cells[CELL_TITLE]);

    nd_page_cut(page, INK_BOLD, line->cells[CELL_PATH], room);
    if (page->column + GAP + title <= page->width) {
        nd_page_tab(page, page->column + GAP);
        nd_page_put(page, INK_PLAIN, line->cells[CELL_TITLE]);
    } else {
        nd_page_end(page);
        nd_page_tab(page, LABEL_COLUMNS);
        nd_page_cut(page, INK_PLAIN, line->cells[CELL_TITLE], room);
    }
    nd_page_end(page);
    nd_page_tab(page, LABEL_COLUMNS);
    for (unsigned i = CELL_COUNTS; i < CELL_COUNT; i++) {
        if (line->cells[i][0] != '\0')
            nd_page_item(page, INK_PLAIN, line->cells[i]);
    }
    nd_page_end(page);
}

void nd_text_dumps(struct page *page, const char *const *labels,
                   const struct nd_dump_info *dumps, size_t count)
{
    struct dump_line lines[2];
    unsigned columns[CELL_COUNT] = {0};
    unsigned total = LABEL_COLUMNS;

    for (size_t k = 0; k < count; k++) {
        line_init(&lines[k], page, &dumps[k]);
        for (unsigned i = 0; i < CELL_COUNT; i++) {
            const unsigned need = nd_page_columns(page, lines[k].cells[i]);
            columns[i] = need > columns[i] ? need : columns[i];
        }
    }
    for (unsigned i = 0; i < CELL_COUNT; i++)
        total += columns[i] == 0 ? 0 : columns[i] + GAP;
    for (size_t k = 0; k < count; k++) {
        nd_text_label(page, labels[k]);
        if (total - GAP <= page->width)
            line_wide(page, &lines[k], columns);
        else
            line_narrow(page, &lines[k]);
        if (dumps[k].partial && count == 1) { /* a pair has a warning that says so */
            nd_page_tab(page, LABEL_COLUMNS);
            nd_page_flow(page, INK_WARN, nd_page_words(page, "report.partial"));
            nd_page_end(page);
        }
        nd_text_done(&lines[k].counts);
    }
}

const char *nd_text_scope_id(const struct nd_coverage *coverage, bool whole)
{
    if (coverage->bytes_total == 0)
        return "report.compared.statistics";
    return whole ? "report.compared.all" : "report.compared.part";
}

/* Where the order comes from and how much was compared: one line if both fit. */
static void head_scope(struct page *page, const struct nd_result *result)
{
    const struct nd_coverage *coverage = &result->coverage;
    const enum nd_order order = result->dump[result->order_borrowed].order;
    const char *label = nd_page_words(page, "report.compared");
    char done[FIGURE_SIZE], total[FIGURE_SIZE], id[64];
    struct text compared = {0};

    const struct catalogue_value values[] = {
        VALUE_NUMBER("pairs", coverage->pairs),
        VALUE_NUMBER("tensors", coverage->tensors_compared),
        VALUE_TEXT("bytes", nd_figure_bytes(coverage->bytes_compared, done)),
        VALUE_TEXT("total", nd_figure_bytes(coverage->bytes_total, total)),
    };
    nd_catalogue_fill(
        nd_page_words(page, nd_text_scope_id(coverage, strcmp(done, total) == 0)), values,
        sizeof values / sizeof values[0], &compared);
    const char *words = compared.len == 0 ? "" : compared.bytes;
    nd_text_label(page, "report.order");
    strcat(strcpy(id, "order."), nd_order_word(order));
    nd_page_flow(page, order == ND_ORDER_NAME ? INK_WARN : INK_PLAIN,
                 nd_page_words(page, id));
    if (page->column + GAP + nd_page_columns(page, label) + 2 +
            nd_page_columns(page, words) <=
        page->width) {
        nd_page_tab(page, page->column + GAP);
        nd_page_put(page, INK_PLAIN, label);
        nd_page_tab(page, page->column + 2);
    } else {
        nd_page_end(page);
        nd_text_label(page, "report.compared");
    }
    nd_page_flow(page, INK_PLAIN, words);
    nd_page_end(page);
    nd_text_done(&compared);
}

const char *nd_text_tier(const struct page *page, const struct nd_policy *policy,
                         enum nd_tier tier, char *buf)
{
    char bound[FIGURE_SIZE], id[64];

    if (tier < ND_TIER_NOISE || tier > ND_TIER_FAULT) {
        strcat(strcpy(id, "tier."), nd_tier_word(tier));
        return nd_page_words(page, id);
    }
    static const char *const signs[] = {"≤", "≤", "<", "≥"};
    static const size_t bounds[] = {0, 1, 2, 2};
    const size_t i = (size_t)(tier - ND_TIER_NOISE);
    strcpy(buf, signs[i]);
    return strcat(buf, nd_figure_bound(policy->tiers[bounds[i]], bound));
}

enum ink nd_text_tier_ink(enum nd_tier tier)
{
    return tier == ND_TIER_FAULT                                  ? INK_BAD
           : tier == ND_TIER_ELEVATED || tier == ND_TIER_CHECKSUM ? INK_WARN
                                                                  : INK_PLAIN;
}

static void head_tiers(struct page *page, const struct nd_result *result)
{
    char word[FIGURE_SIZE], count[FIGURE_SIZE];

    nd_text_label(page, "report.tiers");
    for (unsigned i = 0; i < ND_TIER_COUNT; i++) {
        const enum nd_tier tier = (enum nd_tier)i;
        const size_t n = result->summary[i];
        if (tier > ND_TIER_FAULT && n == 0)
            continue;
        const enum ink ink = n == 0 ? INK_PLAIN : nd_text_tier_ink(tier);
        ND_SAY_ITEM(page, ink, "report.tier.count",
                    VALUE_TEXT("tier", nd_text_tier(page, &result->policy, tier, word)),
                    VALUE_TEXT("count", nd_figure_count(n, count)));
    }
    nd_page_end(page);
}

static void head_outcome(struct page *page, const struct nd_result *result)
{
    const struct nd_outcome *outcome = &result->outcome;
    const struct nd_layer *layer = nd_result_layer(result, outcome->layer);
    char drift[FIGURE_SIZE];
    struct text slot = {0};

    if (layer == NULL)
        return;
    nd_text_label(page, "report.result");
    nd_text_puts(&slot,
                 outcome->slot < layer->slot_count ? layer->slots[outcome->slot].name : "");
    nd_text_step_rank(page, layer, &slot);
    ND_SAY(page, INK_PLAIN, "report.result.drift", VALUE_TEXT("layer", layer->name),
           VALUE_TEXT("slot", slot.len == 0 ? "" : slot.bytes),
           VALUE_TEXT("drift", nd_figure_drift(outcome->drift, drift)));
    if (!isnan(outcome->top1_agreement)) {
        const double rows = (double)outcome->top1_rows;
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "report.comma"));
        ND_SAY(page, INK_PLAIN, "report.result.top1",
               VALUE_NUMBER("same", round(outcome->top1_agreement * rows)),
               VALUE_NUMBER("rows", rows));
    }
    nd_page_end(page);
    nd_text_done(&slot);
}

const char *nd_text_fails(const struct page *page, const struct nd_layer *layer)
{
    const char *fails = nd_fail_word(layer->fails);
    char id[64];

    if (fails == NULL || layer->fails == ND_FAIL_DRIFT ||
        (layer->fails != ND_FAIL_NONFINITE && layer->drift >= layer->bound))
        return NULL;
    snprintf(id, sizeof id, "fail.%s", fails);
    const char *words = nd_page_words(page, id);
    return words == id ? fails : words;
}

void nd_text_step_rank(const struct page *page, const struct nd_layer *layer, struct text *out)
{
    const struct catalogue_value step = VALUE_NUMBER("step", layer->step);
    const struct catalogue_value rank = VALUE_NUMBER("rank", layer->rank);

    if (layer->step < 0 && layer->rank < 0)
        return;
    nd_text_puts(out, " (");
    if (layer->step >= 0)
        nd_catalogue_fill(nd_page_words(page, "report.place.step"), &step, 1, out);
    if (layer->step >= 0 && layer->rank >= 0)
        nd_text_puts(out, nd_page_words(page, "report.comma"));
    if (layer->rank >= 0)
        nd_catalogue_fill(nd_page_words(page, "report.place.rank"), &rank, 1, out);
    nd_text_puts(out, ")");
}

/* A layer's drift, and in a word why it fails where that is not the drift. */
static void head_drift(const struct page *page, const struct nd_layer *layer,
                       char text[FIGURE_SIZE])
{
    const char *fails = nd_text_fails(page, layer);

    text[0] = '\0';
    if (!isnan(layer->drift))
        nd_figure_drift(layer->drift, text);
    if (fails == NULL)
        return;
    const size_t used = strlen(text);
    snprintf(text + used, FIGURE_SIZE - used, used == 0 ? "%s" : "  %s", fails);
}

static void head_first_line(struct page *page, const struct nd_result *result, size_t index)
{
    const struct nd_layer *layer = nd_result_layer(result, index);
    char text[FIGURE_SIZE];

    if (layer == NULL) {
        nd_page_put(page, INK_PLAIN, nd_page_words(page, "report.none"));
        nd_page_end(page);
        return;
    }
    nd_figure_count(layer->index, text);
    nd_page_put(page, INK_PLAIN, "#");
    nd_page_put(page, INK_PLAIN, text);
    nd_page_tab(page, page->column + 2);
    head_drift(page, layer, text);
    if (page->column + nd_page_columns(page, text) + NAME_LEAST > page->width)
        nd_figure_drift(layer->drift, text); /* no room for the word */
    const unsigned drift = text[0] == '\0' ? 0 : nd_page_columns(page, text) + 2;
    const unsigned used = page->column + drift;
    struct text name = {0};
    nd_text_puts(&name, layer->name);
    nd_text_step_rank(page, layer, &name);
    nd_page_cut(page, INK_PLAIN, name.len == 0 ? "" : name.bytes,
                used + 8 > page->width ? 8 : page->width - used);
    nd_text_done(&name);
    if (drift > 0) {
        nd_page_tab(page, page->column + 2);
        nd_page_put(page, nd_text_tier_ink(layer->tier), text);
    }
    nd_page_end(page);
}

/* The three lines that are always given: first elevated, first fault, origin. */
static void head_firsts(struct page *page, const struct nd_result *result)
{
    static const char *const ids[] = {"report.first.elevated", "report.first.fault",
                                      "report.first.origin"};
    const size_t layers[] = {result->first_elevated, result->first_fault,
                             result->first_origin};
    unsigned column = 0;
    struct text words[3] = {{0}};

    for (size_t i = 0; i < 3; i++) {
        char bound[FIGURE_SIZE];
        const double tier = result->policy.tiers[i == 0 ? 1 : 2];
        const struct catalogue_value value =
            VALUE_TEXT("bound", nd_figure_bound(tier, bound));
        nd_catalogue_fill(nd_page_words(page, ids[i]), &value, 1, &words[i]);
        const unsigned need =
            nd_page_columns(page, words[i].len == 0 ? "" : words[i].bytes);
        column = need > column ? need : column;
    }
    for (size_t i = 0; i < 3; i++) {
        if (i == 0)
            nd_text_label(page, "report.first");
        else
            nd_page_tab(page, LABEL_COLUMNS);
        nd_page_put(page, INK_PLAIN, words[i].len == 0 ? "" : words[i].bytes);
        nd_page_tab(page, LABEL_COLUMNS + column + 2);
        head_first_line(page, result, layers[i]);
        nd_text_done(&words[i]);
    }
}

void nd_text_head(struct report_job *job, const struct nd_result *result)
{
    static const char *const labels[] = {"report.reference", "report.candidate"};
    struct page *page = &job->page;

    nd_text_dumps(page, labels, result->dump, 2);
    head_scope(page, result);
    for (size_t i = 0; i < result->warning_count; i++) {
        nd_text_label(page, "report.warning");
        nd_text_phrase(page, INK_WARN, &result->warnings[i]);
        nd_page_end(page);
    }
    nd_page_blank(page);
    nd_text_sparkline(page, result);
    head_tiers(page, result);
    head_outcome(page, result);
    head_firsts(page, result);
    nd_text_lowered(page, result);
}
