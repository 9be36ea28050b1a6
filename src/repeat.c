/*
 * Only what differs from the defaults is said again; what changes no finding (threads,
 * reports, colours) is left out.
 */
#include "repeat.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

struct writer {
    struct arena *arena;
    struct words  words;
    bool          broken;
};

static void put(struct writer *to, const char *word)
{
    const char **const items = to->broken
                                   ? NULL
                                   : nd_arena_grow(to->arena, to->words.items, to->words.count,
                                                   &to->words.capacity, sizeof *items);

    to->broken = items == NULL || word == NULL;
    if (to->broken)
        return;
    to->words.items = items;
    to->words.items[to->words.count++] = word;
}

static void put_text(struct writer *to, const char *option, const char *value)
{
    if (value == NULL)
        return;
    put(to, option);
    put(to, value);
}

static void put_number(struct writer *to, const char *option, double value)
{
    char buf[32];

    if (!isnan(value))
        put_text(to, option, nd_arena_string(to->arena, nd_number_text(value, buf)));
}

static void put_index(struct writer *to, const char *option, int64_t value)
{
    if (value >= 0)
        put_text(to, option, nd_arena_format(to->arena, "%lld", (long long)value));
}

static void put_list(struct writer *to, const char *option, const struct nd_strings *list)
{
    for (size_t i = 0; i < list->count; i++)
        put_text(to, option, list->items[i]);
}

static void put_sides(struct writer *to, const char *option, const char *const *value)
{
    static const char *const prefix[] = {"ref:", "cand:"};

    if (value[0] != NULL && value[1] != NULL && strcmp(value[0], value[1]) == 0) {
        put_text(to, option, value[0]);
        return;
    }
    for (int side = 0; side < 2; side++)
        if (value[side] != NULL)
            put_text(to, option, nd_arena_format(to->arena, "%s%s", prefix[side], value[side]));
}

static void put_tiers(struct writer *to, const double *tiers)
{
    struct nd_options usual;
    char              buf[3][32];

    nd_options_init(&usual);
    if (memcmp(tiers, usual.tiers, sizeof usual.tiers) == 0)
        return;
    for (int i = 0; i < 3; i++)
        nd_number_text(tiers[i], buf[i]);
    put_text(to, "--tiers", nd_arena_format(to->arena, "%s,%s,%s", buf[0], buf[1], buf[2]));
}

static void put_judging(struct writer *to, const struct nd_options *options)
{
    static const char *const fail_on[] = {
        [ND_FAIL_ON_ANY] = "any", [ND_FAIL_ON_ELEVATED] = "elevated",
        [ND_FAIL_ON_ORIGIN] = "origin", [ND_FAIL_ON_UNEXPECTED] = "unexpected",
        [ND_FAIL_ON_NEVER] = "never"};

    put_tiers(to, options->tiers);
    if (options->metric != NULL && strcmp(options->metric, "rel_l2") != 0)
        put_text(to, "--metric", options->metric);
    if (options->fail_on == ND_FAIL_ON_NUMBER)
        put_number(to, "--fail-on", options->fail_on_number);
    else if (options->fail_on != ND_FAIL_ON_DEFAULT)
        put_text(to, "--fail-on", fail_on[options->fail_on]);
    put_list(to, "--tol", &options->tol);
    if (options->nan_strict)
        put_text(to, "--nan", "strict");
    put_number(to, "--rel-floor", options->rel_floor);
    put_number(to, "--abs-floor", options->abs_floor);
    if (options->strict_dtype)
        put(to, "--strict-dtype");
}

static void put_choice(struct writer *to, const struct nd_options *options)
{
    put_list(to, "--include", &options->include);
    put_list(to, "--exclude", &options->exclude);
    put_list(to, "--slots", &options->slots);
    put_text(to, "--direction", options->direction);
    put_index(to, "--step", options->step);
    put_index(to, "--rank", options->rank);
}

static void put_matching(struct writer *to, const struct nd_options *options)
{
    put_text(to, "--map", options->map_file);
    put_text(to, "--order", options->order_file);
    put_text(to, "--fusion", options->fusion_file);
    if (options->allow_unmatched)
        put(to, "--allow-unmatched");
    for (size_t i = 0; i < options->allow_unmatched_globs.count; i++)
        put(to, nd_arena_format(to->arena, "--allow-unmatched=%s",
                                options->allow_unmatched_globs.items[i]));
}

static enum nd_status finish(const struct writer *from, struct words *ret_words,
                             struct nd_error *err)
{
    if (from->broken)
        return nd_fail_memory(err);
    *ret_words = from->words;
    return ND_OK;
}

enum nd_status nd_repeat_options(const struct nd_options *options, struct arena *arena,
                                 struct words *ret_words, struct nd_error *err)
{
    struct writer to = {.arena = arena};

    put_text(&to, "--raw", options->raw);
    put_sides(&to, "--input-format", options->input_format);
    put_list(&to, "--layout", &options->layout);
    put_choice(&to, options);
    put_matching(&to, options);
    put_judging(&to, options);
    return finish(&to, ret_words, err);
}

enum nd_status nd_repeat_evidence(const struct nd_options *options, struct arena *arena,
                                  struct words *ret_words, struct nd_error *err)
{
    struct writer to = {.arena = arena};

    put_text(&to, "--golden", options->golden);
    put_text(&to, "--rerun-reference", options->rerun[0]);
    put_text(&to, "--rerun-candidate", options->rerun[1]);
    put_text(&to, "--fp32-reference", options->fp32[0]);
    put_text(&to, "--fp32-candidate", options->fp32[1]);
    return finish(&to, ret_words, err);
}
