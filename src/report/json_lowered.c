/*
 * A candidate in a narrower type, as JSON.
 */
#include "report/json_parts.h"

void nd_json_lowered(struct out *out, const struct nd_result *result)
{
    const struct nd_lowered *lowered = &result->lowered;

    nd_json_key(out, "lowered");
    if (lowered->dtype[1] == NULL) {
        nd_json_null(out);
        return;
    }
    nd_json_open(out, '{');
    ND_JSON(out, "reference", string, lowered->dtype[0]);
    ND_JSON(out, "candidate", string, lowered->dtype[1]);
    ND_JSON(out, "layers", uint, lowered->layers);
    ND_JSON(out, "of", uint, lowered->of);
    ND_JSON(out, "explains", number_or_null, lowered->explains);
    nd_json_key(out, "ranked");
    nd_json_open(out, '[');
    for (size_t i = 0; i < lowered->ranked_count; i++) {
        const struct nd_lowered_layer *row = &lowered->ranked[i];
        const struct nd_layer *layer = &result->layers[row->layer];
        nd_json_open(out, '{');
        ND_JSON(out, "layer", string, layer->name);
        ND_JSON(out, "index", uint, layer->index);
        ND_JSON(out, "drift", number_or_null, layer->drift);
        ND_JSON(out, "explained", number_or_null, row->explained);
        ND_JSON(out, "own_error", number_or_null, row->own);
        ND_JSON(out, "roundings", number_or_null, row->times);
        nd_json_close(out);
    }
    nd_json_close(out);
    nd_json_close(out);
}
