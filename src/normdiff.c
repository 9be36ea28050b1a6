/*
 * The one meeting point: dumps are opened and compared, the figures are frozen, the checks
 * say where and why, and everything becomes one struct nd_result.
 */
#include "normdiff/normdiff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "checks/check.h"
#include "compare/compare.h"
#include "compare/layout_rules.h"
#include "compare/listing.h"
#include "compare/policy.h"
#include "compare/side_run.h"
#include "operators.h"
#include "owned.h"
#include "repeat.h"

const char *nd_version(void)
{
    return ND_VERSION;
}

void nd_options_init(struct nd_options *options)
{
    *options = (struct nd_options){
        .step = -1, .rank = -1, .tiers = {1e-6, 1e-3, 1e-1}, .metric = "rel_l2",
        .rel_floor = (double)NAN, .abs_floor = (double)NAN, .worst = 5, .max_mem = 1ull << 30,
    };
}

void nd_guard_install(void)
{
    nd_map_guard();
}

void nd_result_free(struct nd_result *result)
{
    if (result != NULL)
        nd_owned_free(result->arena);
}

void nd_listing_free(struct nd_listing *listing)
{
    if (listing != NULL)
        nd_owned_free(listing->arena);
}

/* --- warnings --------------------------------------------------------------------------- */

static bool starts_with(const char *text, const char *prefix)
{
    return text != NULL && strncmp(text, prefix, strlen(prefix)) == 0;
}

static void add_warning(struct arena *arena, struct nd_result *result, struct nd_phrase *list,
                        const char *id, const char *a, const char *b)
{
    struct nd_param *params = nd_arena_alloc(arena, 2, sizeof *params);

    if (params == NULL)
        return;
    params[0] = (struct nd_param){"reference", a, 0};
    params[1] = (struct nd_param){"candidate", b, 0};
    list[result->warning_count++] = (struct nd_phrase){id, params, 2};
}

static void set_warnings(struct arena *arena, const struct comparison *comparison,
                         struct nd_result *result)
{
    const struct nd_dump_info *r = &result->dump[0], *c = &result->dump[1];
    struct nd_phrase          *list = nd_arena_alloc(arena, 4 + comparison->warning_count, sizeof *list);

    if (list == NULL)
        return;
    result->warnings = list;
    if (strcmp(r->path, c->path) == 0)
        add_warning(arena, result, list, "warning.same_path", r->path, c->path);
    if (starts_with(r->device, "npu") &&
        (starts_with(c->device, "cuda") || starts_with(c->device, "cpu")))
        add_warning(arena, result, list, "warning.swapped", r->device, c->device);
    if (r->partial)
        add_warning(arena, result, list, "warning.partial_reference", r->path, c->path);
    if (c->partial)
        add_warning(arena, result, list, "warning.partial_candidate", r->path, c->path);
    for (size_t i = 0; i < comparison->warning_count; i++)
        list[result->warning_count++] = comparison->warnings[i];
}

/* --- the diagnosis ------------------------------------------------------------------------- */

/* The first layer over the bar: elevated or worse (or an unequal checksum), and not expected. */
static size_t first_over(const struct nd_result *result)
{
    for (size_t i = 0; i < result->layer_count; i++) {
        const struct nd_layer *layer = &result->layers[i];
        const bool             over = layer->tier == ND_TIER_ELEVATED ||
                          layer->tier == ND_TIER_FAULT || layer->tier == ND_TIER_CHECKSUM;
        if (over && layer->role != ND_ROLE_CONTAINER && layer->expected != ND_YES)
            return i;
    }
    return ND_NO_INDEX;
}

static void apply_diagnosis(struct nd_result *result, struct nd_layer *layers,
                            const struct diagnosis *diagnosis)
{
    for (size_t i = 0; i < result->layer_count; i++) {
        if (layers[i].role != ND_ROLE_CONTAINER)
            layers[i].role = diagnosis->roles[i];
        layers[i].expected = diagnosis->expected[i];
    }
    result->first_origin = diagnosis->origin;
    result->first.layer = diagnosis->origin;
    result->first.role = diagnosis->origin_role;
    result->first.slot = diagnosis->origin_slot;
    if (diagnosis->origin == ND_NO_INDEX) {
        result->first.layer = diagnosis->first;
        result->first.role = "first_over";
    }
    result->first.input_drift = diagnosis->input_drift;
    result->first.why = diagnosis->why;
    result->lowered = diagnosis->lowered;
    result->checklist = diagnosis->checklist;
    result->checklist_count = diagnosis->checklist_count;
    result->causes = diagnosis->causes;
    result->cause_count = diagnosis->cause_count;
    result->steps = diagnosis->steps;
    result->step_count = diagnosis->step_count;
}

/* --- evidence beside the pair ---------------------------------------------------------------- */

/* A side's further runs are read as the side is; format NULL: by content. */
static enum nd_status open_beside(struct owned *owned, const struct nd_options *options,
                                  const char *path, const char *format,
                                  struct dump **ret_dump, struct nd_error *err)
{
    ND_TRY(nd_dump_open(path, format, options->raw, ret_dump, err));
    owned->beside[owned->beside_count++] = *ret_dump;
    return ND_OK;
}

static struct side_evidence evidence_of(const struct side_run *run)
{
    return (struct side_evidence){.given = run->given, .compared = run->compared,
                                  .bit_equal = run->bit_equal, .worst = run->worst,
                                  .over = run->over, .first_over = run->first_over,
                                  .drift = run->drift};
}

/* Step 2 of the guides: the float32 runs against each other; a side without one stands in
 * itself. */
static enum nd_status run_fp32(struct owned *owned, const struct comparison *comparison,
                               struct diagnosis_input *input, struct nd_error *err)
{
    const struct nd_options *options = comparison->options;
    struct dump             *dump[2] = {owned->dump[0], owned->dump[1]};
    struct side_run          run;

    if (options->fp32[0] == NULL && options->fp32[1] == NULL)
        return ND_OK;
    for (unsigned side = 0; side < 2; side++) {
        input->fp32_path[side] = dump[side]->path;
        if (options->fp32[side] == NULL)
            continue;
        ND_TRY(open_beside(owned, options, options->fp32[side], options->input_format[side],
                           &dump[side], err));
        input->fp32_path[side] = options->fp32[side];
    }
    ND_TRY(nd_side_run(comparison, dump[0], dump[1], 2, 0, &run, err));
    input->fp32 = evidence_of(&run);
    return ND_OK;
}

static enum nd_status run_beside(struct owned *owned, struct comparison *comparison,
                                 struct diagnosis_input *input, struct nd_error *err)
{
    const struct nd_options *options = comparison->options;
    struct dump             *dump;
    struct side_run          run;

    for (unsigned side = 0; side < 2; side++) {
        if (options->rerun[side] == NULL)
            continue;
        ND_TRY(open_beside(owned, options, options->rerun[side], options->input_format[side],
                           &dump, err));
        ND_TRY(nd_side_run(comparison, owned->dump[side], dump, 0, side, &run, err));
        input->rerun[side] = evidence_of(&run);
    }
    if (options->golden != NULL) {
        ND_TRY(open_beside(owned, options, options->golden, NULL, &dump, err));
        for (unsigned side = 0; side < 2; side++) {
            ND_TRY(nd_side_run(comparison, dump, owned->dump[side], 1, side, &run, err));
            input->golden[side] = evidence_of(&run);
            comparison->golden[side] = run.drift;
        }
    }
    return run_fp32(owned, comparison, input, err);
}

/* What a command that the report proposes has to say again. */
static enum nd_status input_given(const struct comparison *comparison,
                                  struct diagnosis_input *input, struct nd_error *err)
{
    struct words words = {0}, dumps = {0};

    ND_TRY(nd_repeat_options(comparison->options, comparison->arena, &words, err));
    ND_TRY(nd_repeat_evidence(comparison->options, comparison->arena, &dumps, err));
    input->given = words.items;
    input->given_count = words.count;
    input->given_dumps = dumps.items;
    input->given_dump_count = dumps.count;
    return ND_OK;
}

static enum nd_status diagnose(struct owned *owned, struct comparison *comparison,
                               struct nd_result *result, struct nd_error *err)
{
    struct nd_layer *layers = (struct nd_layer *)(uintptr_t)result->layers;
    struct evidence  evidence;
    struct diagnosis diagnosis = {.origin = ND_NO_INDEX, .origin_slot = ND_NO_INDEX,
                                  .input_drift = (double)NAN};

    struct diagnosis_input input = {.result = result, .max_mem = comparison->options->max_mem,
                                    .jobs = comparison->options->jobs};
    ND_TRY(run_beside(owned, comparison, &input, err));
    ND_TRY(input_given(comparison, &input, err));
    ND_TRY(nd_evidence_open(comparison, &evidence, err));
    input.max_mem -= evidence.memory;
    input.look = nd_evidence_look;
    input.layers = &evidence;
    enum nd_status status =
        nd_diagnose(&input, first_over(result), comparison->arena, &diagnosis, err);
    if (status == ND_OK && atomic_load(&evidence.short_of_memory))
        status = nd_fail_memory(err);
    nd_evidence_close(&evidence);
    ND_TRY(status);
    apply_diagnosis(result, layers, &diagnosis);
    if (result->first.layer == ND_NO_INDEX)
        return ND_OK;
    struct layer_pair *pair = &comparison->layers[result->first.layer];
    struct nd_layer   *layer = &layers[result->first.layer];
    ND_TRY(nd_measure_detail(comparison, pair, err));
    ND_TRY(nd_freeze_layer(comparison, pair, layer, err));
    if (result->first.slot == ND_NO_INDEX || result->first.slot >= layer->slot_count)
        result->first.slot = layer->worst_slot;
    return ND_OK;
}

/* --- the whole ------------------------------------------------------------------------------ */

/* Layers that pair by name and have no tensor in common agree on nothing.  Tensors that were
 * there and could not be compared are named, and are another matter. */
static enum nd_status compared_any(const struct nd_result *result, struct nd_error *err)
{
    if (result->coverage.tensors_compared > 0 || result->coverage.skipped_count > 0 ||
        result->exit_code != 0)
        return ND_OK;
    nd_fail(err, ND_ERR_NOTHING, "a tensor of the same layer and slot on both sides",
            "paired layers (%zu) without any tensor that both sides have",
            result->coverage.pairs);
    nd_error_file(err, result->dump[1].path);
    nd_error_hint(err, "normdiff --list shows the slots of a dump");
    return ND_ERR_NOTHING;
}

static enum nd_status compare_dumps(struct owned *owned, const struct nd_options *options,
                                    struct nd_result *result, struct nd_error *err)
{
    struct comparison comparison = {.arena = owned->arena, .options = options,
                                    .dump = {owned->dump[0], owned->dump[1]},
                                    .family = nd_operator_family};

    ND_TRY(nd_policy_check(options, &comparison.metric, err));
    ND_TRY(nd_policy_kernels(options, &comparison.kernels, err));
    for (unsigned side = 0; side < 2; side++)
        comparison.bytes_total += owned->dump[side]->bytes;
    ND_TRY(nd_align(&comparison, err));
    ND_TRY(nd_operators_apply(&comparison, err));
    ND_TRY(nd_layout_rules_apply(&comparison, err));
    ND_TRY(nd_measure(&comparison, err));
    for (unsigned side = 0; side < 2; side++)
        result->dump[side] = nd_dump_info_of(owned->dump[side], options);
    ND_TRY(nd_policy_freeze(owned->arena, options, comparison.metric, &result->policy, err));
    ND_TRY(nd_judge(&comparison, result, err));
    result->order_borrowed = comparison.order_borrowed;
    result->first_elevated = result->first_fault = result->first_origin = ND_NO_INDEX;
    result->first.layer = result->first.slot = ND_NO_INDEX;
    result->first.span.from = result->first.span.to = ND_NO_INDEX;
    result->first.input_drift = (double)NAN;
    ND_TRY(diagnose(owned, &comparison, result, err));
    ND_TRY(nd_cover(&comparison, &result->coverage, err));
    nd_outcome(&comparison, result, &result->outcome);
    ND_TRY(nd_span_find(&comparison, result, err));
    nd_stack_find(&comparison, result);
    nd_conclude(&comparison, result);
    ND_TRY(compared_any(result, err));
    set_warnings(owned->arena, &comparison, result);
    return ND_OK;
}

enum nd_status nd_compare(const char *reference, const char *candidate,
                          const struct nd_options *options, struct nd_result **ret_result,
                          struct nd_error *err)
{
    const char          *paths[2] = {reference, candidate};
    struct nd_options    effective = *options;
    const struct metric *metric;
    struct owned        *owned;
    enum nd_status       status = ND_OK;
    const unsigned       shrunk_before = nd_map_shrink_count();

    ND_TRY(nd_policy_check(options, &metric, err));
    if (candidate != NULL && strcmp(reference, "-") == 0 && strcmp(candidate, "-") == 0)
        return nd_fail(err, ND_ERR_USAGE, "'-' at most once", "standard input twice");
    owned = nd_owned_new(err);
    if (owned == NULL)
        return ND_ERR_MEMORY;
    if (candidate == NULL)
        status = nd_owned_find(owned, paths, &effective, err);
    else if (effective.fusion_file == NULL)
        status = nd_dump_find_model(candidate, owned->arena, &effective.fusion_file, err);
    options = &effective;
    if (status == ND_OK)
        status = nd_owned_open(owned, paths, options, err);
    struct nd_result *result = nd_arena_alloc(owned->arena, 1, sizeof *result);
    if (status == ND_OK && result == NULL)
        status = nd_fail_memory(err);
    if (status == ND_OK) {
        result->arena = owned;
        status = compare_dumps(owned, options, result, err);
    }
    if (status == ND_OK)
        status = nd_owned_intact(shrunk_before, paths[0], err);
    if (status == ND_OK)
        *ret_result = result;
    else
        nd_owned_free(owned);
    return status;
}

enum nd_status nd_list(const char *path, const struct nd_options *options,
                       struct nd_listing **ret_listing, struct nd_error *err)
{
    const struct kernel_set *kernels;
    struct nd_listing       *listing = NULL;
    const unsigned           shrunk_before = nd_map_shrink_count();
    struct owned            *owned;
    enum nd_status           status;

    ND_TRY(nd_policy_kernels(options, &kernels, err));
    owned = nd_owned_new(err);
    if (owned == NULL)
        return ND_ERR_MEMORY;
    status = nd_dump_open(path, options->input_format[0], options->raw, &owned->dump[0], err);
    if (status == ND_OK) {
        listing = nd_arena_alloc(owned->arena, 1, sizeof *listing);
        status = listing == NULL ? nd_fail_memory(err)
                                 : nd_list_dump(owned->dump[0], options, kernels, owned->arena,
                                                listing, err);
    }
    if (status == ND_OK)
        status = nd_operators_list(owned->arena, listing, err);
    if (status == ND_OK)
        status = nd_owned_intact(shrunk_before, path, err);
    if (status != ND_OK) {
        nd_owned_free(owned);
        return status;
    }
    listing->dump = nd_dump_info_of(owned->dump[0], options);
    listing->arena = owned;
    *ret_listing = listing;
    return ND_OK;
}
