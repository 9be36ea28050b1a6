/*
 * The head of a JSON report: dumps, policy, coverage, summary, verdict, firsts.
 */
#include "report/json_parts.h"

#include <math.h>
#include <string.h>

void nd_json_dump(struct out *out, const struct nd_dump_info *dump)
{
    nd_json_open(out, '{');
    ND_JSON(out, "path", string, dump->path);
    ND_JSON(out, "format", string, dump->format);
    ND_JSON(out, "device", string, dump->device);
    ND_JSON(out, "layers", uint, dump->layers);
    ND_JSON(out, "tensors", uint, dump->tensors);
    ND_JSON(out, "bytes", uint, dump->bytes);
    ND_JSON(out, "order", string, nd_order_word(dump->order));
    ND_JSON(out, "title", string, dump->title);
    ND_JSON(out, "dtype", string, dump->dtype);
    ND_JSON(out, "partial", boolean, dump->partial);
    nd_json_close(out);
}

static void head_named(struct out *out, const char *key, const char *second,
                       const struct nd_named *list, size_t count)
{
    nd_json_key(out, key);
    nd_json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        nd_json_open(out, '{');
        ND_JSON(out, "name", string, list[i].name);
        ND_JSON(out, second, string, list[i].reason);
        nd_json_close(out);
    }
    nd_json_close(out);
}

static void head_names(struct out *out, const char *key, const char *const *list,
                       size_t count)
{
    nd_json_key(out, key);
    nd_json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        nd_json_string(out, list[i]);
    nd_json_close(out);
}

/* Bounds were checked when they were typed; what is no number all the same stays text. */
static void head_tol(struct out *out, const struct nd_policy *policy)
{
    nd_json_key(out, "tol");
    nd_json_open(out, '[');
    for (size_t i = 0; i < policy->tol_count; i++) {
        const char *bound = policy->tol[i].reason, *end = bound + strlen(bound);
        double value;
        nd_json_open(out, '{');
        ND_JSON(out, "name", string, policy->tol[i].name);
        nd_json_key(out, "bound");
        if (nd_number_read(bound, end, &value) == end)
            nd_json_double(out, value);
        else
            nd_json_string(out, bound);
        nd_json_close(out);
    }
    nd_json_close(out);
}

static void head_policy(struct out *out, const struct nd_policy *policy)
{
    nd_json_key(out, "policy");
    nd_json_open(out, '{');
    nd_json_key(out, "tiers");
    nd_json_open(out, '[');
    for (size_t i = 0; i < 3; i++)
        nd_json_double(out, policy->tiers[i]);
    nd_json_close(out);
    ND_JSON(out, "metric", string, policy->metric);
    ND_JSON(out, "fail_on", string, policy->fail_on);
    ND_JSON(out, "nan", string, policy->nan);
    ND_JSON(out, "rel_floor", number_or_null, policy->rel_floor);
    ND_JSON(out, "abs_floor", number_or_null, policy->abs_floor);
    ND_JSON(out, "metrics", string, policy->metrics);
    ND_JSON(out, "strict_dtype", boolean, policy->strict_dtype);
    ND_JSON(out, "worst", uint, policy->worst);
    head_tol(out, policy);
    nd_json_close(out);
}

static void head_coverage(struct out *out, const struct nd_coverage *coverage)
{
    nd_json_key(out, "coverage");
    nd_json_open(out, '{');
    ND_JSON(out, "pairs", uint, coverage->pairs);
    ND_JSON(out, "tensors_compared", uint, coverage->tensors_compared);
    ND_JSON(out, "bytes_compared", uint, coverage->bytes_compared);
    ND_JSON(out, "bytes_total", uint, coverage->bytes_total);
    head_names(out, "reference_only", coverage->reference_only,
               coverage->reference_only_count);
    head_names(out, "candidate_only", coverage->candidate_only,
               coverage->candidate_only_count);
    head_named(out, "covered_by", "by", coverage->covered_by, coverage->covered_by_count);
    ND_JSON(out, "excluded", uint, coverage->excluded);
    head_named(out, "skipped", "reason", coverage->skipped, coverage->skipped_count);
    nd_json_close(out);
}

static void head_summary(struct out *out, const struct nd_result *result)
{
    nd_json_key(out, "summary");
    nd_json_open(out, '{');
    for (unsigned i = 0; i < ND_TIER_COUNT; i++)
        ND_JSON(out, nd_tier_word((enum nd_tier)i), uint, result->summary[i]);
    nd_json_close(out);
}

static void head_outcome(struct out *out, const struct nd_result *result)
{
    const struct nd_outcome *outcome = &result->outcome;
    const struct nd_layer *layer = nd_result_layer(result, outcome->layer);

    nd_json_key(out, "result");
    if (layer == NULL) {
        nd_json_null(out);
        return;
    }
    nd_json_open(out, '{');
    ND_JSON(out, "layer", string, layer->name);
    nd_json_key(out, "slot");
    nd_json_string(out, outcome->slot < layer->slot_count ? layer->slots[outcome->slot].name
                                                          : NULL);
    ND_JSON(out, "drift", number_or_null, outcome->drift);
    ND_JSON(out, "top1_agreement", number_or_null, outcome->top1_agreement);
    nd_json_key(out, "top1_rows");
    if (isnan(outcome->top1_agreement))
        nd_json_null(out);
    else
        nd_json_uint(out, outcome->top1_rows);
    nd_json_close(out);
}

static void head_place(struct out *out, const struct nd_layer *layer)
{
    ND_JSON(out, "layer", string, layer->name);
    ND_JSON(out, "index", uint, layer->index);
    ND_JSON(out, "step", place, layer->step);
    ND_JSON(out, "rank", place, layer->rank);
}

static void head_measure(struct out *out, enum nd_tier tier, double drift)
{
    nd_json_key(out, "tier");
    nd_json_string(out, tier == ND_TIER_NONE ? NULL : nd_tier_word(tier));
    ND_JSON(out, "drift", number_or_null, drift);
}

static void head_first(struct out *out, const char *key, const struct nd_layer *layer)
{
    nd_json_key(out, key);
    if (layer == NULL) {
        nd_json_null(out);
        return;
    }
    nd_json_open(out, '{');
    head_place(out, layer);
    head_measure(out, layer->tier, layer->drift);
    nd_json_close(out);
}

/* null: the layer itself is the place, or nothing is known of one. */
static void head_span(struct out *out, const struct nd_result *result)
{
    const struct nd_span *span = &result->first.span;
    const struct nd_layer *from = nd_result_layer(result, span->from);
    const struct nd_layer *to = nd_result_layer(result, span->to);

    nd_json_key(out, "span");
    if (span->points == 0 || to == NULL) {
        nd_json_null(out);
        return;
    }
    nd_json_open(out, '{');
    ND_JSON(out, "points", uint, span->points);
    ND_JSON(out, "from", string, from == NULL ? NULL : from->name);
    ND_JSON(out, "to", string, to->name);
    nd_json_key(out, "skipped");
    nd_json_open(out, '{');
    head_names(out, "reference", span->skipped[0], span->skipped_count[0]);
    head_names(out, "candidate", span->skipped[1], span->skipped_count[1]);
    nd_json_close(out);
    nd_json_close(out);
}

/* Lines of a call, innermost first; null where none were recorded. */
static void head_stack(struct out *out, const char *key, const char *stack)
{
    char line[4096];

    nd_json_key(out, key);
    if (stack == NULL) {
        nd_json_null(out);
        return;
    }
    nd_json_open(out, '[');
    while (nd_stack_line(&stack, line, sizeof line))
        nd_json_string(out, line);
    nd_json_close(out);
}

static void head_divergence(struct report_job *job, const struct nd_result *result)
{
    struct out *out = &job->page.out;
    const struct nd_layer *layer = nd_result_layer(result, result->first.layer);

    nd_json_key(out, "first_divergence");
    if (layer == NULL) {
        nd_json_null(out);
        return;
    }
    static const struct nd_slot none = {.tier = ND_TIER_NONE, .drift = (double)NAN};
    const struct nd_slot *slot =
        result->first.slot < layer->slot_count ? &layer->slots[result->first.slot] : &none;
    nd_json_open(out, '{');
    head_place(out, layer);
    ND_JSON(out, "type", string, layer->type);
    ND_JSON(out, "slot", string, slot->name);
    if (slot == &none)
        head_measure(out, layer->tier, layer->drift);
    else
        head_measure(out, slot->tier, slot->drift);
    ND_JSON(out, "role", string, result->first.role);
    ND_JSON(out, "input_drift", number_or_null, result->first.input_drift);
    nd_json_key(out, "metrics");
    nd_json_metrics(out, slot);
    nd_json_key(out, "worst");
    nd_json_worst(out, slot);
    nd_json_key(out, "why");
    nd_json_phrase(out, &result->first.why, job->page.language);
    head_span(out, result);
    nd_json_key(out, "stack");
    nd_json_open(out, '{');
    head_stack(out, "reference", result->first.stack[0]);
    head_stack(out, "candidate", result->first.stack[1]);
    nd_json_close(out);
    nd_json_close(out);
}

void nd_json_head(struct report_job *job, const struct nd_result *result)
{
    struct out *out = &job->page.out;

    ND_JSON(out, "reference", dump, &result->dump[0]);
    ND_JSON(out, "candidate", dump, &result->dump[1]);
    head_policy(out, &result->policy);
    head_coverage(out, &result->coverage);
    head_summary(out, result);
    ND_JSON(out, "verdict", string, nd_verdict_word(result->verdict));
    nd_json_key(out, "reason");
    nd_json_phrase(out, &result->reason, job->page.language);
    ND_JSON(out, "exit_code", int, result->exit_code);
    head_outcome(out, result);
    nd_json_key(out, "first");
    nd_json_open(out, '{');
    head_first(out, "elevated", nd_result_layer(result, result->first_elevated));
    head_first(out, "fault", nd_result_layer(result, result->first_fault));
    head_first(out, "origin", nd_result_layer(result, result->first_origin));
    nd_json_close(out);
    head_divergence(job, result);
}
