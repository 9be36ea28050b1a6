/*
 * Results built by hand: a transformer with one wrong eps, a pair that agrees, and a pair
 * with a missing layer and hostile names.
 */
#include "report/canned.h"

#include <math.h>
#include <stdio.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

enum { LAYER_COUNT = 32, ORIGIN = 17 };

static const uint64_t origin_index[] = {2, 17, 340}, second_index[] = {0, 1, 2};
static const struct nd_shape origin_shape = {3, {4, 128, 768}};
static const struct nd_metric_value origin_metrics[] = {
    {.key = "max_abs", .value = {1.3111}},
    {.key = "max_abs_index",
     .kind = ND_METRIC_INDEX,
     .index = origin_index,
     .index_len = 3},
    {.key = "mean_abs", .value = {0.0971234}},
    {.key = "rel_l2", .value = {0.41}},
    {.key = "cosine", .value = {0.999711}},
    {.key = "mean", .kind = ND_METRIC_PAIR, .value = {0.5, 0.25}},
    {.key = "max_rel", .value = {0.98}},
};
static const struct nd_worst origin_worst[] = {
    {.index = origin_index, .index_len = 3, .reference = 2.4132, .candidate = 1.1021},
    {.index = second_index, .index_len = 3, .reference = -1, .candidate = (double)INFINITY},
};
static const struct nd_metric_value plain_metrics[] = {
    {.key = "max_abs", .value = {4.1e-6}},
};
static const char *const notes[] = {"dtype_differs"};

static char            names[LAYER_COUNT][64];
static struct nd_slot  slots[LAYER_COUNT];
static struct nd_layer layers[LAYER_COUNT];

static const struct nd_param eps_params[] = {
    {.key = "reference", .number = 1e-5},
    {.key = "candidate", .number = 1.0002e-4},
};
static const char *const rerun[] = {"normdiff", "--rerun-reference", "gpu2.dump",
                                    "gpu.dump", "npu/"};
static const struct nd_finding checklist[] = {
    {.id = "dtype", .status = ND_CHECK_OK, .declared = {"float32", "float32"}},
    {.id = "wrong_eps",
     .status = ND_CHECK_MISMATCH,
     .declared = {"1e-05", NULL},
     .recovered = {"1.000e-05", "1.0002e-04"},
     .evidence = {.id = "the evidence"},
     .advice = {.id = "set epsilon=1e-5 on the NPU operator"}},
    {.id = "layout", .status = ND_CHECK_OK, .declared = {"NCHW", "NC1HWC0"}},
    {.id = "statistics",
     .status = ND_CHECK_UNKNOWN,
     .advice = {.id = "dump the running statistics"}},
};
static const struct nd_cause causes[] = {
    {.id = "wrong_eps",
     .status = ND_CAUSE_CONFIRMED,
     .side = ND_SIDE_CANDIDATE,
     .explains = 0.99997,
     .params = eps_params,
     .param_count = COUNT(eps_params),
     .summary = {"the reference behaves as eps {reference}, the candidate as {candidate}",
                 eps_params, COUNT(eps_params)}},
};
static const struct nd_step steps[] = {
    {.id = "randomness", .status = ND_STEP_OPEN, .argv = rerun, .argc = COUNT(rerun)},
    {.id = "layers", .status = ND_STEP_DONE},
};
static const struct nd_param drift_params[] = {{.key = "count", .number = 15},
                                               {.key = "bound", .text = "1e-1"}};

static enum nd_tier tier_of(double drift)
{
    return drift == 0      ? ND_TIER_EXACT
           : drift <= 1e-6 ? ND_TIER_NOISE
           : drift <= 1e-3 ? ND_TIER_REDUCTION
           : drift < 1e-1  ? ND_TIER_ELEVATED
                           : ND_TIER_FAULT;
}

static const char *const parts[] = {"input_layernorm", "self_attn.q_proj",
                                    "self_attn.o_proj", "post_attention_layernorm", "mlp"};
static const char *const types[] = {"LayerNorm", "Linear", "Linear", "LayerNorm", "MLP"};

static struct nd_slot slot_with(double drift)
{
    return (struct nd_slot){
        .name = "output.0",
        .tier = tier_of(drift),
        .drift = drift,
        .dtype = {"float32", "float32"},
        .shape = {3, {4, 128, 768}},
        .shape_of = {&origin_shape, &origin_shape},
        .n = 4 * 128 * 768,
        .differ = drift == 0 ? 0 : 393000,
        .bit_equal = drift == 0,
        .hidden_up_to = (double)NAN,
        .metrics = plain_metrics,
        .metric_count = COUNT(plain_metrics),
        .judged = true,
    };
}

static struct nd_layer layer_with(size_t i, double drift)
{
    return (struct nd_layer){
        .index = i,
        .step = -1,
        .rank = -1,
        .name = names[i],
        .candidate_name = names[i],
        .type = types[(i + 3) % 5],
        .direction = "forward",
        .matched_by = ND_MATCH_EXACT,
        .tier = tier_of(drift),
        .drift = drift,
        .fails = drift >= 0.1 ? ND_FAIL_DRIFT : ND_FAIL_NONE,
        .bound = 0.1,
        .expected = i < ORIGIN ? ND_YES : ND_UNKNOWN,
        .role = i < ORIGIN    ? ND_ROLE_CLEAN
                : i == ORIGIN ? ND_ROLE_ORIGIN
                              : ND_ROLE_INHERITED,
        .slots = &slots[i],
        .slot_count = 1,
        .worst_slot = 0,
    };
}

static void layers_fill(void)
{
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        const double drift = i < 2        ? 0
                             : i < ORIGIN ? 1e-7 * (double)i
                                          : 0.41 / (double)(i - ORIGIN + 1);
        snprintf(names[i], sizeof names[i], "layers.%zu.%s", (i + 3) / 5,
                 parts[(i + 3) % 5]);
        slots[i] = slot_with(drift);
        layers[i] = layer_with(i, drift);
    }
    slots[ORIGIN].metrics = origin_metrics;
    slots[ORIGIN].metric_count = COUNT(origin_metrics);
    slots[ORIGIN].worst = origin_worst;
    slots[ORIGIN].worst_count = COUNT(origin_worst);
    slots[ORIGIN].layout[1] = "NC1HWC0";
    slots[ORIGIN].c0 = 16;
    slots[ORIGIN].layout_how = "declared";
    slots[20].notes = notes;
    slots[20].note_count = COUNT(notes);
}

static struct nd_result result_base(void)
{
    return (struct nd_result){
        .dump = {{.path = "gpu.dump",
                  .format = "safetensors",
                  .title = "normdiff dump (safetensors)",
                  .device = "cuda:0",
                  .dtype = "float32",
                  .layers = LAYER_COUNT,
                  .tensors = 148,
                  .bytes = 1234567890,
                  .order = ND_ORDER_RECORDED},
                 {.path = "npu/",
                  .format = "cann",
                  .title = "CANN dump, 148 files",
                  .device = "npu:0",
                  .dtype = "float32",
                  .layers = LAYER_COUNT,
                  .tensors = 148,
                  .bytes = 1234567890,
                  .order = ND_ORDER_TIMESTAMP}},
        .policy = {.tiers = {1e-6, 1e-3, 1e-1},
                   .metric = "rel_l2",
                   .metrics = "default",
                   .fail_on = "0.1",
                   .nan = "equal",
                   .rel_floor = (double)NAN,
                   .abs_floor = (double)NAN,
                   .worst = 5},
        .coverage = {.pairs = LAYER_COUNT,
                     .tensors_compared = 148,
                     .bytes_compared = 1234567890,
                     .bytes_total = 1234567890},
        .outcome = {.layer = ND_NO_INDEX, .top1_agreement = (double)NAN},
        .first_elevated = ND_NO_INDEX,
        .first_fault = ND_NO_INDEX,
        .first_origin = ND_NO_INDEX,
        .first = {.layer = ND_NO_INDEX, .slot = ND_NO_INDEX, .input_drift = (double)NAN},
    };
}

const struct nd_result *nd_canned_drift(void)
{
    static struct nd_result result;

    layers_fill();
    result = result_base();
    result.layers = layers;
    result.layer_count = LAYER_COUNT;
    for (size_t i = 0; i < LAYER_COUNT; i++)
        result.summary[layers[i].tier]++;
    result.verdict = ND_VERDICT_DRIFT;
    result.exit_code = 1;
    result.reason = (struct nd_phrase){"{count} layers reach {bound}", drift_params,
                                       COUNT(drift_params)};
    result.outcome = (struct nd_outcome){LAYER_COUNT - 1, 0, 0.22, 61.0 / 128.0, 128};
    result.first_elevated = result.first_fault = result.first_origin = ORIGIN;
    result.first =
        (struct nd_first){.layer = ORIGIN, .role = "origin", .input_drift = 2.7e-7};
    result.checklist = checklist;
    result.checklist_count = COUNT(checklist);
    result.causes = causes;
    result.cause_count = COUNT(causes);
    result.steps = steps;
    result.step_count = COUNT(steps);
    return &result;
}

const struct nd_result *nd_canned_clean(void)
{
    static struct nd_result result;
    static const struct nd_param params[] = {{.key = "bound", .text = "1e-1"}};

    layers_fill();
    result = result_base();
    result.layers = layers;
    result.layer_count = ORIGIN;
    for (size_t i = 0; i < ORIGIN; i++)
        result.summary[layers[i].tier]++;
    result.verdict = ND_VERDICT_AGREE;
    result.reason = (struct nd_phrase){"every layer agrees within {bound}", params, 1};
    result.outcome = (struct nd_outcome){ORIGIN - 1, 0, 1.6e-6, (double)NAN, 0};
    return &result;
}

const struct nd_result *nd_canned_incomplete(void)
{
    static struct nd_result       result;
    static struct nd_layer        two[2];
    static const char *const      missing[] = {"decoder.\x1b[31mred\x1b[0m"};
    static const struct nd_named  skipped[] = {{"a.output.0", "bad CRC"}};
    static const struct nd_phrase warnings[] = {{.id = "both operands are the same path"}};

    layers_fill();
    result = result_base();
    two[0] = layers[5];
    two[0].index = 0;
    two[1] = (struct nd_layer){.index = 1,
                               .step = 3,
                               .rank = 0,
                               .name = missing[0],
                               .type = "",
                               .direction = "backward",
                               .tier = ND_TIER_NONE,
                               .drift = (double)NAN,
                               .fails = ND_FAIL_MISSING,
                               .bound = 0.1,
                               .worst_slot = ND_NO_INDEX};
    result.layers = two;
    result.layer_count = 2;
    result.summary[ND_TIER_NOISE] = 1;
    result.dump[0].order = ND_ORDER_NAME;
    result.dump[0].device = NULL;
    result.dump[1].partial = true;
    result.coverage.reference_only = missing;
    result.coverage.reference_only_count = 1;
    result.coverage.skipped = skipped;
    result.coverage.skipped_count = 1;
    result.coverage.excluded = 2;
    result.warnings = warnings;
    result.warning_count = 1;
    result.verdict = ND_VERDICT_INCOMPLETE;
    result.exit_code = 1;
    result.reason = (struct nd_phrase){.id = "1 reference layer was not compared"};
    return &result;
}

const struct nd_listing *nd_canned_listing(void)
{
    static const struct nd_list_slot list_slots[] = {
        {.name = "input.0",
         .dtype = "float32",
         .shape = {4, {4, 19, 7, 7}},
         .storage = {5, {4, 2, 7, 7, 16}},
         .layout = "NC1HWC0",
         .has_stats = true,
         .max = 3.25,
         .min = -2.5,
         .mean = 0.001,
         .norm = 123.456,
         .n = 3724},
        {.name = "output.0",
         .broken = "bad CRC",
         .max = (double)NAN,
         .min = (double)NAN,
         .mean = (double)NAN,
         .norm = (double)NAN},
    };
    static const struct nd_list_layer list_layers[] = {
        {.name = "conv1",
         .type = "Conv2d",
         .direction = "forward",
         .step = -1,
         .rank = -1,
         .attributes = "kernel_size=[3, 3] bias=false",
         .slots = list_slots,
         .slot_count = 2},
    };
    static const char *const ignored[] = {"epoch (int)"};
    static struct nd_listing listing;

    listing = (struct nd_listing){.dump = result_base().dump[0],
                                  .layers = list_layers,
                                  .layer_count = 1,
                                  .ignored = ignored,
                                  .ignored_count = 1};
    return &listing;
}
