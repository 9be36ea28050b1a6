/*
 * Layers, slots and small values as JSON.
 */
#include "report/json_parts.h"

#include <math.h>

#include "normdiff/normdiff.h"

void nd_json_tool(struct out *out)
{
    nd_json_key(out, "tool");
    nd_json_open(out, '{');
    ND_JSON(out, "name", string, "normdiff");
    ND_JSON(out, "version", string, ND_VERSION);
    nd_json_close(out);
}

void nd_json_index(struct out *out, const uint64_t *index, uint32_t len)
{
    nd_json_open(out, '[');
    for (uint32_t i = 0; i < len && i < ND_MAX_RANK; i++)
        nd_json_uint(out, index[i]);
    nd_json_close(out);
}

void nd_json_shape(struct out *out, const struct nd_shape *shape)
{
    nd_json_index(out, shape->dim, shape->rank);
}

void nd_json_number_or_null(struct out *out, double value)
{
    if (isnan(value))
        nd_json_null(out);
    else
        nd_json_double(out, value);
}

void nd_json_place(struct out *out, int64_t value)
{
    if (value < 0)
        nd_json_null(out);
    else
        nd_json_int(out, value);
}

void nd_json_pair(struct out *out, const char *key, const char *const *pair)
{
    nd_json_key(out, key);
    nd_json_open(out, '{');
    ND_JSON(out, "reference", string, pair[0]);
    ND_JSON(out, "candidate", string, pair[1]);
    nd_json_close(out);
}

void nd_json_phrase(struct out *out, const struct nd_phrase *phrase, enum language language)
{
    struct text words = {0};

    nd_phrase_put(phrase, language, &words);
    nd_json_string(out, phrase->id == NULL ? NULL : words.len == 0 ? "" : words.bytes);
    nd_text_done(&words);
}

void nd_json_nonfinite_side(struct out *out, const struct nd_nonfinite_side *side)
{
    nd_json_open(out, '{');
    ND_JSON(out, "nan", uint, side->nan);
    ND_JSON(out, "pos_inf", uint, side->pos_inf);
    ND_JSON(out, "neg_inf", uint, side->neg_inf);
    nd_json_close(out);
}

void nd_json_metrics(struct out *out, const struct nd_slot *slot)
{
    nd_json_open(out, '{');
    for (size_t i = 0; i < slot->metric_count; i++) {
        const struct nd_metric_value *metric = &slot->metrics[i];
        nd_json_key(out, metric->key);
        if (metric->kind == ND_METRIC_INDEX) {
            nd_json_index(out, metric->index, metric->index_len);
        } else if (metric->kind == ND_METRIC_PAIR) {
            nd_json_open(out, '{');
            ND_JSON(out, "reference", double, metric->value[0]);
            ND_JSON(out, "candidate", double, metric->value[1]);
            nd_json_close(out);
        } else {
            nd_json_double(out, metric->value[0]);
        }
    }
    if (slot->worst_channel != NULL) {
        nd_json_key(out, "worst_channel");
        nd_json_open(out, '{');
        ND_JSON(out, "axis", uint, slot->worst_channel->axis);
        ND_JSON(out, "index", uint, slot->worst_channel->index[0]);
        ND_JSON(out, "drift", double, slot->worst_channel->drift);
        nd_json_close(out);
    }
    if (slot->worst_row != NULL) {
        nd_json_key(out, "worst_row");
        nd_json_open(out, '{');
        nd_json_key(out, "index");
        nd_json_index(out, slot->worst_row->index, slot->worst_row->index_len);
        ND_JSON(out, "drift", double, slot->worst_row->drift);
        nd_json_close(out);
    }
    nd_json_close(out);
}

void nd_json_worst(struct out *out, const struct nd_slot *slot)
{
    nd_json_open(out, '[');
    for (size_t i = 0; i < slot->worst_count; i++) {
        nd_json_open(out, '{');
        nd_json_key(out, "index");
        nd_json_index(out, slot->worst[i].index, slot->worst[i].index_len);
        ND_JSON(out, "reference", double, slot->worst[i].reference);
        ND_JSON(out, "candidate", double, slot->worst[i].candidate);
        nd_json_close(out);
    }
    nd_json_close(out);
}

static void json_tier(struct out *out, enum nd_tier tier)
{
    nd_json_key(out, "tier");
    nd_json_string(out, tier == ND_TIER_NONE ? NULL : nd_tier_word(tier));
}

static void json_layout(struct out *out, const struct nd_slot *slot)
{
    nd_json_key(out, "layout");
    nd_json_open(out, '{');
    ND_JSON(out, "reference", string, slot->layout[0]);
    ND_JSON(out, "candidate", string, slot->layout[1]);
    nd_json_key(out, "c0");
    if (slot->c0 == 0)
        nd_json_null(out);
    else
        nd_json_uint(out, slot->c0);
    ND_JSON(out, "how", string, slot->layout_how);
    nd_json_close(out);
}

static void json_nonfinite(struct out *out, const struct nd_slot *slot)
{
    nd_json_key(out, "nonfinite");
    nd_json_open(out, '{');
    ND_JSON(out, "mismatches", uint, slot->nonfinite_mismatches);
    ND_JSON(out, "masked", uint, slot->masked);
    nd_json_key(out, "reference");
    nd_json_nonfinite_side(out, &slot->nonfinite[0]);
    nd_json_key(out, "candidate");
    nd_json_nonfinite_side(out, &slot->nonfinite[1]);
    nd_json_close(out);
}

static void json_slot(struct out *out, const struct nd_slot *slot)
{
    nd_json_open(out, '{');
    ND_JSON(out, "slot", string, slot->name);
    ND_JSON(out, "evidence", string, nd_evidence_word(slot->evidence));
    json_tier(out, slot->tier);
    ND_JSON(out, "drift", number_or_null, slot->drift);
    nd_json_pair(out, "dtype", slot->dtype);
    ND_JSON(out, "shape", shape, &slot->shape);
    json_layout(out, slot);
    ND_JSON(out, "n", uint, slot->n);
    ND_JSON(out, "differ", uint, slot->differ);
    ND_JSON(out, "bit_equal", boolean, slot->bit_equal);
    ND_JSON(out, "hidden_up_to", number_or_null, slot->hidden_up_to);
    nd_json_key(out, "notes");
    nd_json_open(out, '[');
    for (size_t i = 0; i < slot->note_count; i++)
        nd_json_string(out, slot->notes[i]);
    nd_json_close(out);
    nd_json_key(out, "metrics");
    nd_json_metrics(out, slot);
    json_nonfinite(out, slot);
    nd_json_key(out, "shapes");
    nd_json_open(out, '{');
    ND_JSON(out, "reference", shape, slot->shape_of[0]);
    ND_JSON(out, "candidate", shape, slot->shape_of[1]);
    nd_json_close(out);
    ND_JSON(out, "fails", string, nd_fail_word(slot->fails));
    ND_JSON(out, "judged", boolean, slot->judged);
    if (slot->worst_count > 0) {
        nd_json_key(out, "worst");
        nd_json_worst(out, slot);
    }
    nd_json_close(out);
}

void nd_json_layer(struct out *out, const struct nd_layer *layer)
{
    nd_json_open(out, '{');
    ND_JSON(out, "index", uint, layer->index);
    ND_JSON(out, "step", place, layer->step);
    ND_JSON(out, "rank", place, layer->rank);
    ND_JSON(out, "name", string, layer->name);
    ND_JSON(out, "candidate_name", string, layer->candidate_name);
    nd_json_key(out, "matched_by");
    nd_json_string(
        out, layer->matched_by == ND_MATCH_NONE ? NULL : nd_match_word(layer->matched_by));
    ND_JSON(out, "type", string, layer->type);
    json_tier(out, layer->tier);
    ND_JSON(out, "drift", number_or_null, layer->drift);
    ND_JSON(out, "fails", string, nd_fail_word(layer->fails));
    ND_JSON(out, "bound", number_or_null, layer->bound);
    nd_json_key(out, "expected");
    if (layer->expected == ND_UNKNOWN)
        nd_json_null(out);
    else
        nd_json_boolean(out, layer->expected == ND_YES);
    ND_JSON(out, "role", string, nd_role_word(layer->role));
    nd_json_key(out, "slots");
    nd_json_open(out, '[');
    for (size_t i = 0; i < layer->slot_count; i++)
        json_slot(out, &layer->slots[i]);
    nd_json_close(out);
    ND_JSON(out, "direction", string, layer->direction);
    nd_json_close(out);
}
