/*
 * A listing as JSON.
 */
#include "report/json_parts.h"

static void listing_number(struct out *out, const char *key, double value, bool is_nan)
{
    nd_json_key(out, key);
    if (is_nan)
        nd_json_double(out, value);
    else
        nd_json_number_or_null(out, value);
}

static void listing_slot(struct out *out, const struct nd_list_slot *slot)
{
    nd_json_open(out, '{');
    ND_JSON(out, "slot", string, slot->name);
    ND_JSON(out, "evidence", string, nd_evidence_word(slot->evidence));
    ND_JSON(out, "dtype", string, slot->dtype);
    ND_JSON(out, "shape", shape, &slot->shape);
    ND_JSON(out, "storage", shape, &slot->storage);
    ND_JSON(out, "layout", string, slot->layout);
    ND_JSON(out, "broken", string, slot->broken);
    ND_JSON(out, "meaning", string, slot->meaning);
    ND_JSON(out, "n", uint, slot->n);
    nd_json_key(out, "statistics");
    if (slot->has_stats) {
        nd_json_open(out, '{');
        listing_number(out, "max", slot->max, slot->is_nan[0]);
        listing_number(out, "min", slot->min, slot->is_nan[1]);
        listing_number(out, "mean", slot->mean, slot->is_nan[2]);
        listing_number(out, "norm", slot->norm, slot->is_nan[3]);
        nd_json_close(out);
    } else {
        nd_json_null(out);
    }
    nd_json_key(out, "nonfinite");
    nd_json_nonfinite_side(out, &slot->nonfinite);
    nd_json_close(out);
}

static void listing_layer(struct out *out, const struct nd_list_layer *layer, size_t index)
{
    nd_json_open(out, '{');
    ND_JSON(out, "index", uint, index);
    ND_JSON(out, "step", place, layer->step);
    ND_JSON(out, "rank", place, layer->rank);
    ND_JSON(out, "name", string, layer->name);
    ND_JSON(out, "type", string, layer->type);
    ND_JSON(out, "direction", string, layer->direction);
    ND_JSON(out, "call", int, layer->call);
    ND_JSON(out, "attributes", string, layer->attributes);
    ND_JSON(out, "container", boolean, layer->container);
    nd_json_key(out, "slots");
    nd_json_open(out, '[');
    for (size_t i = 0; i < layer->slot_count; i++)
        listing_slot(out, &layer->slots[i]);
    nd_json_close(out);
    nd_json_close(out);
}

void nd_json_listing(struct report_job *job, const struct nd_listing *listing)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    ND_JSON(out, "schema", string, "normdiff/list/1");
    nd_json_tool(out);
    ND_JSON(out, "dump", dump, &listing->dump);
    nd_json_key(out, "layers");
    nd_json_open(out, '[');
    for (size_t i = 0; i < listing->layer_count; i++)
        listing_layer(out, &listing->layers[i], i);
    nd_json_close(out);
    nd_json_key(out, "ignored");
    nd_json_open(out, '[');
    for (size_t i = 0; i < listing->ignored_count; i++)
        nd_json_string(out, listing->ignored[i]);
    nd_json_close(out);
    nd_json_close(out);
    nd_out_raw(out, "\n");
}
