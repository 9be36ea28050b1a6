/*
 * The diagnosis as a whole: facts, origin, the checklist of the first diverging layer,
 * causes, steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "checks/lowered.h"
#include "checks/mirror.h"
#include "checks/saved.h"
#include "checks/steps.h"
#include "checks/subject.h"

#define ND_CHECK(word) extern const struct check nd_check_##word;
#include "checks/checks.def"
#undef ND_CHECK

static const struct check *const checks[] = {
#define ND_CHECK(word) &nd_check_##word,
#include "checks/checks.def"
#undef ND_CHECK
};

enum { CHECK_COUNT = sizeof checks / sizeof *checks };

/* The first layer over the bar that rounding and inheritance do not explain. */
static size_t first_over(const struct nd_result *result, const struct layer_facts *facts,
                         const struct origin *origin, size_t over_bar)
{
    for (size_t i = over_bar; i < result->layer_count; i++) {
        const enum nd_tier tier = result->layers[i].tier;
        const bool over =
            tier == ND_TIER_ELEVATED || tier == ND_TIER_FAULT || tier == ND_TIER_CHECKSUM;
        if (over && !facts[i].container && origin->expected[i] != ND_YES)
            return i;
    }
    return ND_NO_INDEX;
}

static bool check_applies(const struct check *check, const struct subject *subject)
{
    const bool product = subject->own->op != NULL && subject->own->op->product;

    return (!check->of_norms && !check->of_products) ||
           (check->of_norms && subject->norm != NULL) || (check->of_products && product);
}

/* Inputs or weights that differ explain the layer by themselves: nothing else is asked. */
static bool is_from_outside(const struct subject *subject)
{
    return !subject->is_rounded_input &&
           (subject->kind == ORIGIN_INPUT || subject->kind == ORIGIN_GAP ||
            subject->kind == ORIGIN_UPDATE);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);

    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* One confirmed deviation from the formula and nothing left over: the lines that it covered
 * up are in order. */
static void settle_lines(struct diagnosis *ret)
{
    if (ret->cause_count == 0 || ret->causes[0].status != ND_CAUSE_CONFIRMED ||
        !(ret->causes[0].explains > 0.5))
        return;
    for (size_t i = 0; i < ret->checklist_count; i++) {
        struct nd_finding *finding = &ret->checklist[i];
        if (finding->evidence.id == NULL ||
            !ends_with(finding->evidence.id, ".other_fault"))
            continue;
        finding->status = ND_CHECK_OK;
        finding->evidence = nd_phrase_plain("finding.settled");
    }
}

/* Of a large layer a part is looked at, and that takes its time: what only names causes is not
 * asked once one is confirmed. */
static bool is_settled(const struct subject *subject, const struct check *check)
{
    return subject->window.is && !check->is_line && nd_has_confirmed(subject, "");
}

static enum nd_status run_checks(struct subject *subject, struct diagnosis *ret,
                                 struct nd_error *err)
{
    struct nd_finding *list = nd_arena_alloc(subject->arena, CHECK_COUNT, sizeof *list);

    if (list == NULL)
        return nd_fail_memory(err);
    ret->checklist = list;
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct nd_finding finding = {.id = checks[i]->id, .status = ND_CHECK_UNKNOWN};
        const size_t before = subject->hypothesis_count;
        if (!check_applies(checks[i], subject) || is_settled(subject, checks[i]))
            continue;
        checks[i]->run(subject, &finding);
        if (is_from_outside(subject) && checks[i]->is_line)
            subject->hypothesis_count = before;
        if (checks[i]->is_line && finding.id != NULL)
            list[ret->checklist_count++] = finding;
    }
    nd_mirror_run(subject, checks, CHECK_COUNT);
    ND_TRY(nd_rank_causes(subject, &ret->causes, &ret->cause_count, err));
    settle_lines(ret);
    return ND_OK;
}

static void say_first(const struct origin *origin, const struct layer_facts *facts,
                      size_t first, struct diagnosis *ret)
{
    ret->first = first;
    ret->origin_slot = ND_NO_INDEX;
    ret->input_drift = (double)NAN;
    if (first == ND_NO_INDEX)
        return;
    ret->why = origin->why[first];
    ret->origin_slot = origin->first == first ? origin->slot : facts[first].out.worst;
    if (facts[first].in.seen > 0)
        ret->input_drift = facts[first].in.is_integer && facts[first].in.count == 0
                               ? (double)NAN
                               : facts[first].in.rel;
}

static enum nd_status diagnose_facts(const struct diagnosis_input *input, size_t over_bar,
                                     const struct layer_facts *facts, struct arena *arena,
                                     struct diagnosis *ret, struct nd_error *err)
{
    struct origin origin;
    struct subject *subject = NULL;

    ND_TRY(nd_origin_find(input, facts, arena, &origin, err));
    ND_TRY(nd_lowered_find(input, facts, &origin, arena, &ret->lowered, err));
    ret->roles = origin.roles;
    ret->expected = origin.expected;
    ret->role_why = origin.why;
    ret->origin = origin.first;
    if (origin.first != ND_NO_INDEX)
        ret->origin_role = origin.roles[origin.first] == ND_ROLE_GAP ? "gap" : "origin";
    const size_t first = origin.first != ND_NO_INDEX
                             ? origin.first
                             : first_over(input->result, facts, &origin, over_bar);
    say_first(&origin, facts, first, ret);
    if (first != ND_NO_INDEX && !nd_origin_weigh(input, facts, first, &origin))
        return nd_fail_memory(err);
    if (first != ND_NO_INDEX) {
        subject = malloc(sizeof *subject);
        if (subject == NULL)
            return nd_fail_memory(err);
        nd_subject_open(subject, input, facts, &origin, first, arena);
        subject->lowered = &ret->lowered;
    }
    enum nd_status status = subject == NULL ? ND_OK : run_checks(subject, ret, err);
    if (status == ND_OK)
        status = nd_steps_make(input, subject, facts, arena, ret, err);
    if (subject != NULL)
        nd_subject_done(subject);
    free(subject);
    return status;
}

enum nd_status nd_diagnose(const struct diagnosis_input *given, size_t over_bar,
                           struct arena *arena, struct diagnosis *ret, struct nd_error *err)
{
    struct layer_facts *facts = calloc(given->result->layer_count + 1, sizeof *facts);
    struct run_index runs;
    struct diagnosis_input of = *given, *const input = &of;

    *ret = (struct diagnosis){.origin = ND_NO_INDEX,
                              .origin_slot = ND_NO_INDEX,
                              .first = ND_NO_INDEX,
                              .input_drift = (double)NAN};
    if (facts == NULL || !nd_runs_index(given->result, &runs)) {
        free(facts);
        return nd_fail_memory(err);
    }
    of.runs = &runs;
    nd_facts_gather(input, facts);
    const enum nd_status status =
        nd_saved_gather(input->result, facts)
            ? diagnose_facts(input, over_bar, facts, arena, ret, err)
            : nd_fail_memory(err);
    nd_runs_done(&runs);
    free(facts);
    nd_room_clear();
    return status;
}
