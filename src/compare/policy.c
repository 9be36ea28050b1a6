/*
 * The policy: what the options ask for, checked before any dump is opened, and frozen into
 * the result as effective values.
 */
#include "compare/policy.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "formats/format.h"

static enum nd_status refuse(struct nd_error *err, const char *option)
{
    return nd_fail_key(err, ND_ERR_UNSUPPORTED, option, "an option that this version carries out",
                       "%s is not carried out yet", option);
}

static enum nd_status check_unbuilt(const struct nd_options *options, struct nd_error *err)
{
    const struct {
        const void *value;
        const char *option;
    } unbuilt[] = {
        {options->baseline, "--baseline"},
        {options->write_baseline, "--write-baseline"},
    };

    for (size_t i = 0; i < sizeof unbuilt / sizeof *unbuilt; i++)
        if (unbuilt[i].value != NULL)
            return refuse(err, unbuilt[i].option);
    return ND_OK;
}

/* Drift must be a size of error: agreement scores run the other way. */
static bool is_error_metric(const char *key)
{
    static const char *const keys[] = {"max_abs", "mean_abs", "rmse", "rel_l2", "max_rel",
                                       "mean_rel", "max_scaled", "p50", "p90", "p99", "p999",
                                       "max_ulp", "p99_ulp"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

enum nd_status nd_policy_check(const struct nd_options *options,
                                    const struct metric **ret_metric, struct nd_error *err)
{
    const double *tiers = options->tiers;

    ND_TRY(check_unbuilt(options, err));
    if (!(tiers[0] >= 0 && tiers[0] <= tiers[1] && tiers[1] <= tiers[2] && isfinite(tiers[2])))
        return nd_fail_key(err, ND_ERR_USAGE, "--tiers", "three numbers in ascending order",
                           "%g,%g,%g", tiers[0], tiers[1], tiers[2]);
    *ret_metric = nd_metric_by_name(options->metric);
    if (*ret_metric == NULL || !is_error_metric((*ret_metric)->key))
        return nd_fail_key(err, ND_ERR_USAGE, "--metric",
                           "a metric that measures error: rel_l2, max_abs, mean_abs, rmse, "
                           "max_rel, mean_rel, max_scaled, max_ulp ...",
                           "\"%s\"", options->metric);
    for (size_t i = 0; i < options->tol.count; i++) {
        const char *rule = options->tol.items[i], *equals = strrchr(rule, '=');
        double      number;
        const char *end = equals == NULL ? NULL
                                         : nd_number_read(equals + 1, rule + strlen(rule), &number);
        if (end == NULL || *end != '\0' || equals == rule || !(number >= 0))
            return nd_fail_key(err, ND_ERR_USAGE, "--tol", "GLOB=NUMBER", "\"%s\"", rule);
    }
    return ND_OK;
}

enum nd_status nd_policy_kernels(const struct nd_options *options,
                                     const struct kernel_set **ret_set, struct nd_error *err)
{
    const enum isa isa = options->isa == NULL ? nd_isa_best() : nd_isa_by_name(options->isa);

    if (isa == ISA_COUNT)
        return nd_fail_key(err, ND_ERR_USAGE, "--isa", "base, avx2, avx512 or neon", "\"%s\"",
                           options->isa == NULL ? "" : options->isa);
    *ret_set = nd_kernel_set_for(isa);
    if (*ret_set == NULL)
        return nd_fail_key(err, ND_ERR_USAGE, "--isa", "an instruction set of this machine",
                           "%s, which this machine does not have", nd_isa_name(isa));
    return ND_OK;
}

static const char *fail_on_text(struct arena *arena, const struct nd_options *options)
{
    static const char *const words[] = {
        [ND_FAIL_ON_ANY] = "any",       [ND_FAIL_ON_ELEVATED] = "elevated",
        [ND_FAIL_ON_ORIGIN] = "origin", [ND_FAIL_ON_UNEXPECTED] = "unexpected",
        [ND_FAIL_ON_NEVER] = "never",
    };
    char buf[32];

    if (options->fail_on != ND_FAIL_ON_DEFAULT && options->fail_on != ND_FAIL_ON_NUMBER)
        return words[options->fail_on];
    return nd_arena_string(arena, nd_number_text(options->fail_on == ND_FAIL_ON_NUMBER
                                                     ? options->fail_on_number
                                                     : options->tiers[2],
                                                 buf));
}

enum nd_status nd_policy_freeze(struct arena *arena, const struct nd_options *options,
                                 const struct metric *metric, struct nd_policy *ret,
                                 struct nd_error *err)
{
    struct nd_named *tol = nd_arena_alloc(arena, options->tol.count + 1, sizeof *tol);

    if (tol == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < options->tol.count; i++) {
        const char *rule = options->tol.items[i], *equals = strrchr(rule, '=');
        tol[i].name = nd_arena_copy(arena, rule, (size_t)(equals - rule));
        tol[i].reason = nd_arena_string(arena, equals + 1);
        if (tol[i].name == NULL || tol[i].reason == NULL)
            return nd_fail_memory(err);
    }
    *ret = (struct nd_policy){
        .tiers = {options->tiers[0], options->tiers[1], options->tiers[2]},
        .metric = metric->key, .metrics = options->metrics_all ? "all" : "default",
        .fail_on = fail_on_text(arena, options), .nan = options->nan_strict ? "strict" : "equal",
        .rel_floor = options->rel_floor, .abs_floor = options->abs_floor,
        .strict_dtype = options->strict_dtype, .worst = options->worst, .tol = tol,
        .tol_count = options->tol.count,
    };
    return ret->fail_on == NULL ? nd_fail_memory(err) : ND_OK;
}

static const char *commonest_dtype(const struct dump *dump)
{
    size_t counts[ND_DTYPE_COUNT] = {0};
    int    best = -1;

    for (size_t i = 0; i < dump->layer_count; i++)
        for (size_t s = 0; s < dump->layers[i].slot_count; s++) {
            const struct dump_slot *slot = &dump->layers[i].slots[s];
            const enum nd_dtype     dtype = nd_slot_dtype(slot);
            if (dtype != ND_DTYPE_NONE && strncmp(slot->name, "output", 6) == 0 &&
                nd_dtype_info(dtype)->kind == ND_KIND_FLOAT)
                counts[dtype]++;
        }
    for (int d = 0; d < ND_DTYPE_COUNT; d++)
        if (counts[d] > 0 && (best < 0 || counts[d] > counts[best]))
            best = d;
    return best < 0 ? NULL : nd_dtype_info((enum nd_dtype)best)->name;
}

struct nd_dump_info nd_dump_info_of(const struct dump *dump, const struct nd_options *options)
{
    return (struct nd_dump_info){
        .path = dump->path, .format = dump->format->name, .title = dump->format->title,
        .device = dump->device, .dtype = commonest_dtype(dump), .layers = dump->layer_count,
        .tensors = dump->tensor_count, .bytes = dump->bytes,
        .order = options->order_file != NULL ? ND_ORDER_OPTION : dump->order,
        .partial = dump->partial,
    };
}
