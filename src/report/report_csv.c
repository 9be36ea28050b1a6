/*
 * CSV by RFC 4180, one row for each slot, and one for a layer without any.  A field that a
 * spreadsheet would take for a formula is quoted with an apostrophe before it.
 */
#include "report/figures.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

static const char *const metric_columns[] = {"max_abs", "mean_abs", "rmse", "cosine",
                                             "max_rel"};
enum { METRIC_COUNT = sizeof metric_columns / sizeof metric_columns[0] };

static void csv_text(struct report_job *job, const char *value)
{
    struct out *out = &job->page.out;
    struct out safe = {.depth = 0};

    nd_out_safe(&safe, value == NULL ? "" : value);
    const char *at = safe.text.len == 0 ? "" : safe.text.bytes;
    const bool formula = at[0] != '\0' && strchr("=+-@", at[0]) != NULL;
    if (job->shown++ > 0)
        nd_out_raw(out, ",");
    if (!formula && strpbrk(at, ",\"") == NULL) {
        nd_out_raw(out, at);
    } else {
        nd_out_raw(out, formula ? "\"'" : "\"");
        for (; *at != '\0'; at++)
            nd_out_printf(out, *at == '"' ? "\"%c" : "%c", *at);
        nd_out_raw(out, "\"");
    }
    nd_out_done(&safe);
}

static void csv_number(struct report_job *job, double value)
{
    char text[32];

    if (job->shown++ > 0)
        nd_out_raw(&job->page.out, ",");
    nd_out_raw(&job->page.out, isnan(value) ? "" : nd_number_text(value, text));
}

static void csv_count(struct report_job *job, uint64_t value)
{
    char text[FIGURE_SIZE];

    csv_text(job, nd_figure_count(value, text));
}

static void csv_place(struct report_job *job, int64_t value)
{
    if (value < 0)
        csv_text(job, "");
    else
        csv_count(job, (uint64_t)value);
}

static void csv_row_end(struct report_job *job)
{
    nd_out_raw(&job->page.out, "\r\n");
    job->shown = 0;
}

static void csv_head(struct report_job *job, const char *const *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        csv_text(job, columns[i]);
}

static void csv_begin(struct report_job *job, const struct nd_result *result)
{
    static const char *const columns[] = {"index",
                                          "step",
                                          "rank",
                                          "name",
                                          "candidate_name",
                                          "matched_by",
                                          "type",
                                          "direction",
                                          "layer_tier",
                                          "layer_drift",
                                          "fails",
                                          "bound",
                                          "role",
                                          "slot",
                                          "evidence",
                                          "tier",
                                          "drift",
                                          "dtype_reference",
                                          "dtype_candidate",
                                          "shape",
                                          "n",
                                          "differ"};

    (void)result;
    csv_head(job, columns, sizeof columns / sizeof columns[0]);
    csv_head(job, metric_columns, METRIC_COUNT);
    csv_row_end(job);
}

static const char *csv_tier(enum nd_tier tier)
{
    return tier == ND_TIER_NONE ? "" : nd_tier_word(tier);
}

static void csv_layer_fields(struct report_job *job, const struct nd_layer *layer)
{
    csv_count(job, layer->index);
    csv_place(job, layer->step);
    csv_place(job, layer->rank);
    csv_text(job, layer->name);
    csv_text(job, layer->candidate_name);
    csv_text(job,
             layer->matched_by == ND_MATCH_NONE ? "" : nd_match_word(layer->matched_by));
    csv_text(job, layer->type);
    csv_text(job, layer->direction);
    csv_text(job, csv_tier(layer->tier));
    csv_number(job, layer->drift);
    csv_text(job, nd_fail_word(layer->fails));
    csv_number(job, layer->bound);
    csv_text(job, nd_role_word(layer->role));
}

static void csv_slot_fields(struct report_job *job, const struct nd_slot *slot)
{
    char shape[FIGURE_SIZE];

    csv_text(job, slot->name);
    csv_text(job, nd_evidence_word(slot->evidence));
    csv_text(job, csv_tier(slot->tier));
    csv_number(job, slot->drift);
    csv_text(job, slot->dtype[0]);
    csv_text(job, slot->dtype[1]);
    csv_text(job, nd_figure_shape(&slot->shape, shape));
    csv_count(job, slot->n);
    csv_count(job, slot->differ);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct nd_metric_value *metric = nd_slot_metric(slot, metric_columns[i]);
        csv_number(job, metric == NULL ? (double)NAN : metric->value[0]);
    }
}

static void csv_layer(struct report_job *job, const struct nd_layer *layer)
{
    enum { SLOT_FIELDS = 9 };

    for (size_t i = 0; i < layer->slot_count; i++) {
        csv_layer_fields(job, layer);
        csv_slot_fields(job, &layer->slots[i]);
        csv_row_end(job);
    }
    if (layer->slot_count > 0)
        return;
    csv_layer_fields(job, layer);
    for (size_t i = 0; i < SLOT_FIELDS + METRIC_COUNT; i++)
        csv_text(job, "");
    csv_row_end(job);
}

static void csv_end(struct report_job *job, const struct nd_result *result)
{
    (void)job;
    (void)result;
}

static void csv_list_slot(struct report_job *job, const struct nd_list_slot *slot)
{
    const double statistics[] = {slot->min, slot->max, slot->mean, slot->norm};
    char shape[FIGURE_SIZE];

    csv_text(job, slot->name);
    csv_text(job, nd_evidence_word(slot->evidence));
    csv_text(job, slot->dtype);
    csv_text(job, nd_figure_shape(&slot->shape, shape));
    csv_text(job, nd_figure_shape(&slot->storage, shape));
    csv_text(job, slot->layout);
    csv_count(job, slot->n);
    for (size_t i = 0; i < sizeof statistics / sizeof statistics[0]; i++)
        csv_number(job, slot->has_stats ? statistics[i] : (double)NAN);
    csv_count(job, slot->nonfinite.nan);
    csv_count(job, slot->nonfinite.pos_inf);
    csv_count(job, slot->nonfinite.neg_inf);
    csv_text(job, slot->broken);
}

static void csv_listing(struct report_job *job, const struct nd_listing *listing)
{
    static const char *const columns[] = {
        "index",   "step",       "rank",    "name",     "type",  "direction",
        "call",    "attributes", "slot",    "evidence", "dtype", "shape",
        "storage", "layout",     "n",       "min",      "max",   "mean",
        "norm",    "nan",        "pos_inf", "neg_inf",  "broken"};

    csv_head(job, columns, sizeof columns / sizeof columns[0]);
    csv_row_end(job);
    for (size_t i = 0; i < listing->layer_count; i++) {
        const struct nd_list_layer *layer = &listing->layers[i];
        for (size_t k = 0; k < layer->slot_count; k++) {
            csv_count(job, i);
            csv_place(job, layer->step);
            csv_place(job, layer->rank);
            csv_text(job, layer->name);
            csv_text(job, layer->type);
            csv_text(job, layer->direction);
            csv_place(job, layer->call);
            csv_text(job, layer->attributes);
            csv_list_slot(job, &layer->slots[k]);
            csv_row_end(job);
        }
    }
}

const struct report nd_report_csv = {
    .name = "csv",
    .title = "one row a slot, for spreadsheets",
    .begin = csv_begin,
    .layer = csv_layer,
    .end = csv_end,
    .listing = csv_listing,
};
