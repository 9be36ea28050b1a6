/*
 * The parts of a JSON report that more than one format writes.
 */
#ifndef ND_REPORT_JSON_PARTS_H
#define ND_REPORT_JSON_PARTS_H

#include "report/report.h"

void nd_json_tool(struct out *out);
void nd_json_shape(struct out *out, const struct nd_shape *shape);
void nd_json_index(struct out *out, const uint64_t *index, uint32_t len);
void nd_json_number_or_null(struct out *out, double value); /* NAN: null */
void nd_json_place(struct out *out, int64_t value);         /* negative: null */
void nd_json_pair(struct out *out, const char *key, const char *const *pair);
void nd_json_phrase(struct out *out, const struct nd_phrase *phrase,
                    enum language language);
void nd_json_nonfinite_side(struct out *out, const struct nd_nonfinite_side *side);
void nd_json_dump(struct out *out, const struct nd_dump_info *dump);
void nd_json_worst(struct out *out, const struct nd_slot *slot);
void nd_json_metrics(struct out *out, const struct nd_slot *slot);
void nd_json_layer(struct out *out, const struct nd_layer *layer);

/* Everything from "schema" to "first_divergence", inside an object that is open. */
void nd_json_head(struct report_job *job, const struct nd_result *result);
/* "lowered": a candidate in a narrower type, or null. */
void nd_json_lowered(struct out *out, const struct nd_result *result);
void nd_json_finding(struct report_job *job, const struct nd_finding *finding);
void nd_json_cause(struct report_job *job, const struct nd_cause *cause);
void nd_json_step(struct report_job *job, const struct nd_step *step);
void nd_json_listing(struct report_job *job, const struct nd_listing *listing);
void nd_json_error(struct report_job *job, const struct nd_error *error);

/* "key": value, in one line of code. */
#define ND_JSON(out, key, kind, value)                                                     \
    do {                                                                                   \
        nd_json_key(out, key);                                                             \
        nd_json_##kind(out, value);                                                        \
    } while (0)

#endif
