/*
 * Did the optimiser move a parameter differently?  It agreed one step before, and so did
 * its gradient: what each side made of them shows its rule, and the rules are compared.
 */
#include <math.h>
#include <string.h>

#include "checks/subject.h"
#include "checks/update_fit.h"

enum { OPTIMIZER_VALUES = 1 << 16 };

struct story {
    struct subject *subject;
    const struct update *update;
    struct update_rule rule[2];
    bool fits[2];
    struct update_gap gap;
    bool has_gap;
};

static enum nd_side side_of(int side)
{
    return side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE;
}

/* As the settings are written in code, which reads alike in every language. */
static const char *rule_words(struct arena *arena, const struct update_rule *rule)
{
    const bool is_apart = rule->kind == UPDATE_ADAMW && rule->has_decay;
    const char *name = rule->kind == UPDATE_SGD ? "SGD" : is_apart ? "AdamW" : "Adam";
    const char *text = nd_arena_format(arena, "%s(lr=%.4g", name, rule->lr);

    if (text != NULL && rule->has_momentum)
        text = nd_arena_format(arena, "%s, momentum=%.4g", text, rule->momentum);
    if (text != NULL && rule->has_betas)
        text = nd_arena_format(arena, "%s, betas=(%.4g, %.4g)", text, rule->beta[0],
                               rule->beta[1]);
    if (text != NULL && rule->has_eps)
        text = nd_arena_format(arena, "%s, eps%s=%.2g", text,
                               rule->is_inside ? "_in_root" : "", rule->eps);
    if (text != NULL)
        text = nd_arena_format(arena, "%s, weight_decay=%.3g%s)", text,
                               rule->has_decay ? rule->decay : 0,
                               rule->is_raw ? ", bias_correction=False" : "");
    return text == NULL ? name : text;
}

static void propose(const struct story *story, enum nd_side side, bool is_exact,
                    struct nd_phrase summary, const struct nd_param *params, size_t count)
{
    const struct hypothesis update = {.id = "optimizer_update",
                                      .residual = (double)NAN,
                                      .is_certain = is_exact,
                                      .is_fingerprint = true,
                                      .penalty = -1,
                                      .side = side,
                                      .summary = summary};

    nd_propose_with(story->subject, &update, params, count);
}

/* PROPOSE(story, side, is_exact, id, values...): the summary's values are the parameters.
 */
#define PROPOSE(story_, side_, is_exact_, id_, ...)                                        \
    propose((story_), (side_), (is_exact_),                                                \
            ND_PHRASE((story_)->subject->arena, (id_), __VA_ARGS__),                       \
            (const struct nd_param[]){__VA_ARGS__},                                        \
            sizeof((const struct nd_param[]){__VA_ARGS__}) / sizeof(struct nd_param))

/* --- too few bits, and no step at all --- */

/* Shares of the values of a side that are the other side's rule, rounded to its type (after
 * the decay too, where that is a step of its own), and that did not move. */
static double kept_share(const struct story *story, int side, enum grid grid,
                         double *ret_lost)
{
    const struct update *update = story->update;
    const struct update_rule *rule = &story->rule[!side];
    const double keep = rule->kind == UPDATE_ADAM ? 1 : 1 - rule->lr * rule->decay;
    uint64_t once = 0, twice = 0, lost = 0;

    for (uint64_t i = 0; i < update->n; i++) {
        const double p = update->p[side][1][i], after = update->p[side][0][i];
        const double step = nd_update_step(update, side, rule, i);
        const double decayed = nd_grid_round(grid, p * keep);
        once += nd_grid_round(grid, p + step) == after;
        twice += nd_grid_round(grid, decayed + (step - (keep - 1) * p)) == after;
        lost += after == p && step != 0;
    }
    *ret_lost = (double)lost / (double)update->n;
    return (double)(once > twice ? once : twice) / (double)update->n;
}

static double percent(double share)
{
    return nearbyint(1000 * share) / 10;
}

/* One side keeps the parameter in far fewer bits, and only that tells it from the other. */
static bool try_kept(const struct story *story, int side)
{
    const struct update *update = story->update;
    double lost;

    if (!story->fits[!side] || update->has_noise || !nd_update_is_narrowed(update, side))
        return false;
    const double match = kept_share(story, side, update->grid[side], &lost);
    if (!(match > 0.9) || lost > 0.999)
        return false; /* a float32 parameter that stood still is told from it by nothing */
    PROPOSE(story, side_of(side), match > 0.98, "summary.optimizer_update.kept",
            ND_NUMBER("is_candidate", side),
            ND_WORD("dtype", nd_grid_name(update->grid[side])),
            ND_WORD("rule", rule_words(story->subject->arena, &story->rule[!side])),
            ND_NUMBER("match", percent(match)), ND_NUMBER("lost", percent(lost)));
    return true;
}

/* Sixteen bits would have lost the whole step: weights of 1 that move by a thousandth. */
static bool is_too_small(const struct story *story, int side)
{
    double lost;

    return story->fits[!side] && (kept_share(story, side, GRID_BF16, &lost) > 0.98 ||
                                  kept_share(story, side, GRID_F16, &lost) > 0.98);
}

enum { WHOLE_STEP = 4 }; /* tensors that stood still, all there are: some bias would move */

/* A side left the parameter as it was, while the other moved most of it. */
static bool try_skipped(const struct story *story, const struct step_index *index, int side)
{
    const struct update *update = story->update;
    size_t still, count;

    if (!nd_update_is_still(update, side) || !(story->gap.still[side] > 0.5))
        return false;
    nd_update_count(story->subject->input, index, update->layer, side, &still, &count);
    const bool whole = still == count && count >= WHOLE_STEP;
    PROPOSE(story, side_of(side), whole || !is_too_small(story, side),
            still == count ? "summary.optimizer_update.skipped"
                           : "summary.optimizer_update.frozen",
            ND_NUMBER("is_candidate", side), ND_NUMBER("still", (double)still),
            ND_NUMBER("count", (double)count));
    return true;
}

/* --- two rules --- */

/* What Adam's first step is larger by when m and v are not corrected: (1 - b1) / sqrt(1 -
 * b2) with the betas that torch and MindSpore start from. */
static const double RAW_BETA[2] = {0.9, 0.999};

/* At the first step a missing correction is a factor of the rate (and of eps); seen against
 * the other side it has that very size. */
static void name_raw(struct story *story)
{
    const double factor = (1 - RAW_BETA[0]) / sqrt(1 - RAW_BETA[1]);

    for (int side = 0; side < 2; side++) {
        struct update_rule *rule = &story->rule[side];
        const double ratio = rule->lr / story->rule[!side].lr;
        if (rule->kind == UPDATE_SGD || story->rule[!side].kind != rule->kind ||
            rule->has_betas || fabs(ratio / factor - 1) > 1e-3)
            continue;
        rule->is_raw = true;
        rule->beta[0] = RAW_BETA[0];
        rule->beta[1] = RAW_BETA[1];
        rule->lr /= factor;
        rule->eps *= sqrt(1 - RAW_BETA[1]);
        rule->decay *= rule->kind == UPDATE_ADAMW ? factor : 1;
        return;
    }
}

/* A rate that changed since the step before scales what momentum carries over: where rates
 * and momenta are in one ratio, the rates alone differ. */
static void name_momentum(struct story *story)
{
    struct update_rule *one = &story->rule[0], *two = &story->rule[1];

    if (!one->has_momentum || !two->has_momentum ||
        fabs(one->momentum * two->lr / (two->momentum * one->lr) - 1) > 1e-3)
        return;
    const double larger = fmax(one->momentum, two->momentum);
    one->momentum = two->momentum =
        larger < 1 ? larger : fmin(one->momentum, two->momentum);
}

static bool try_rules(struct story *story)
{
    struct update_rule *rule = story->rule;

    if (!story->fits[0] || !story->fits[1])
        return false;
    if (!nd_update_rules_differ(story->update, rule))
        return true; /* the same rule: nothing to say */
    name_raw(story);
    name_momentum(story);
    struct arena *arena = story->subject->arena;
    const bool is_raw = rule[0].is_raw != rule[1].is_raw;
    PROPOSE(story, is_raw ? side_of(rule[1].is_raw) : ND_SIDE_CANDIDATE, true,
            "summary.optimizer_update.rules",
            ND_WORD("reference", rule_words(arena, &rule[0])),
            ND_WORD("candidate", rule_words(arena, &rule[1])),
            ND_NUMBER("residual", fmax(rule[0].residual, rule[1].residual)),
            ND_NUMBER("reference_lr", rule[0].lr), ND_NUMBER("candidate_lr", rule[1].lr),
            ND_NUMBER("reference_decay", rule[0].has_decay ? rule[0].decay : 0),
            ND_NUMBER("candidate_decay", rule[1].has_decay ? rule[1].decay : 0),
            ND_NUMBER("reference_eps", rule[0].has_eps ? rule[0].eps : (double)NAN),
            ND_NUMBER("candidate_eps", rule[1].has_eps ? rule[1].eps : (double)NAN));
    return true;
}

/* --- without --- */

static void tell_difference(const struct story *story)
{
    const int known = story->fits[0] ? 0 : 1;

    if (!story->has_gap || !(story->gap.rel > story->gap.allowed) ||
        story->update->has_noise ||
        nd_update_is_damage(story->update, story->fits, story->rule))
        return; /* what came in earlier, momentum may have made more of */
    if (story->fits[0] || story->fits[1])
        PROPOSE(story, side_of(!known), false, "summary.optimizer_update.one_rule",
                ND_NUMBER("is_candidate", !known), ND_NUMBER("ratio", story->gap.ratio),
                ND_NUMBER("gap", story->gap.rel),
                ND_NUMBER("gradient", story->update->grad_rel),
                ND_WORD("rule", rule_words(story->subject->arena, &story->rule[known])));
    else
        PROPOSE(story, ND_SIDE_CANDIDATE, false, "summary.optimizer_update",
                ND_NUMBER("ratio", story->gap.ratio), ND_NUMBER("gap", story->gap.rel),
                ND_NUMBER("gradient", story->update->grad_rel));
}

static void tell(struct story *story, const struct step_index *index)
{
    story->has_gap = nd_update_gap(story->update, &story->gap);
    for (int side = 0; side < 2; side++)
        story->fits[side] = nd_update_fit(story->update, side, &story->rule[side]);
    for (int side = 0; side < 2; side++)
        if (try_kept(story, side) || try_skipped(story, index, side))
            return;
    if (!try_rules(story))
        tell_difference(story);
}

static void optimizer_run(struct subject *subject, struct nd_finding *finding)
{
    struct step_index index;
    struct update update;

    (void)finding;
    if (subject->kind == ORIGIN_INPUT || subject->kind == ORIGIN_NONFINITE ||
        subject->own->params.equal || !nd_steps_index(subject->input->result, &index))
        return;
    if (nd_update_load(subject->input, &index, subject->index, OPTIMIZER_VALUES, &update)) {
        struct story story = {.subject = subject, .update = &update};
        tell(&story, &index);
        nd_update_done(&update);
    }
    nd_steps_done(&index);
}

const struct check nd_check_optimizer = {.id = "optimizer", .run = optimizer_run};
