/*
 * One walk over the layers of each run of a model (a step of a rank) in execution order.
 */
#include "checks/origin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/phrase.h"
#include "checks/walk.h"

static const struct nd_layer *walk_layer(const struct walk *walk, size_t i)
{
    return &walk->input->result->layers[i];
}

static enum nd_tristate expectation(const struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    /* Weights that have parted explain what follows, but are no rounding. */
    const bool tainted =
        walk->run->is_tainted || walk->was_tainted || walk->weights.has_parted;

    switch (walk->origin->roles[i]) {
    case ND_ROLE_ORIGIN:
    case ND_ROLE_GAP:
        return ND_NO;
    case ND_ROLE_CLEAN:
        return ND_YES;
    case ND_ROLE_INHERITED:
    case ND_ROLE_CONTAINER:
        return tainted && !nd_is_residue_only(walk_layer(walk, i)) ? ND_NO : ND_YES;
    default:
        break;
    }
    if (nd_is_residue_only(walk_layer(walk, i)))
        return ND_YES;
    if (facts->out.seen > 0 && facts->out.equal)
        return ND_YES;
    return tainted && facts->out.seen > 0 ? ND_NO : ND_UNKNOWN;
}

static void walk_remember(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    const enum nd_role role = walk->origin->roles[i];

    if (role == ND_ROLE_ORIGIN || role == ND_ROLE_GAP)
        walk->run->is_tainted = walk->is_step_tainted = true;
    walk->run->passed += !facts->pair && !facts->container;
    if (facts->container || facts->out.seen == 0)
        return;
    walk->run->is_bad = walk->run->is_bad || facts->out.mismatches > 0;
    if (facts->out.is_integer) { /* routing that differs can make anything differ */
        walk->run->worst = HUGE_VAL;
        walk->run->recent[walk->run->produced++ % WALK_RECENT] = HUGE_VAL;
    }
    if (facts->out.count > 0) {
        walk->run->recent[walk->run->produced % WALK_RECENT] = facts->out.rel;
        walk->run->worst = fmax(walk->run->worst, facts->out.rel);
        walk->run->produced++;
    }
}

/* Another step has other weights; another run other layers before it. False without
 * memory. */
static bool walk_start(struct walk *walk, size_t i)
{
    if (i == 0 || walk_layer(walk, i - 1)->step != walk_layer(walk, i)->step) {
        walk->was_tainted = walk->was_tainted || walk->is_step_tainted;
        walk->is_step_tainted = false;
        if (!nd_weights_weigh(walk->input, walk->facts, i, &walk->weights))
            return false;
    }
    walk->run = &walk->runs[walk->input->runs->run[i]];
    return true;
}

/* Running statistics are read by later steps only: no output of this step shows them. */
static void judge_after(struct walk *walk)
{
    for (size_t i = 0; i < walk->input->result->layer_count; i++) {
        const struct layer_facts *facts = &walk->facts[i];
        const double limit = facts->roundoff > 0x1p-24 ? 3e-3 : 1e-5;
        if (facts->after.count == 0 || facts->container || !(facts->after.rel > limit) ||
            facts->after.rel <= 8 * fmax(facts->in.rel, facts->params.rel))
            continue;
        walk->origin->roles[i] = ND_ROLE_ORIGIN;
        walk->origin->kinds[i] = ORIGIN_AFTER;
        walk->origin->why[i] =
            ND_PHRASE(walk->arena, "why.after",
                      ND_WORD("slot", walk_layer(walk, i)->slots[facts->after.worst].name),
                      ND_NUMBER("drift", facts->after.rel));
        walk->origin->expected[i] = ND_NO;
        walk->origin->first = i;
        walk->origin->slot = facts->after.worst;
        return;
    }
}

static bool origin_allocate(struct origin *origin, struct arena *arena, size_t layers)
{
    *origin = (struct origin){.first = ND_NO_INDEX, .slot = ND_NO_INDEX};
    origin->roles = nd_arena_alloc(arena, layers + 1, sizeof *origin->roles);
    origin->expected = nd_arena_alloc(arena, layers + 1, sizeof *origin->expected);
    origin->why = nd_arena_alloc(arena, layers + 1, sizeof *origin->why);
    origin->kinds = nd_arena_alloc(arena, layers + 1, sizeof *origin->kinds);
    return origin->roles != NULL && origin->expected != NULL && origin->why != NULL &&
           origin->kinds != NULL;
}

bool nd_origin_weigh(const struct diagnosis_input *input, const struct layer_facts *facts,
                     size_t layer, struct origin *origin)
{
    struct weights weights;

    if (!nd_weights_weigh(input, facts, layer, &weights))
        return false;
    origin->weights_parted = weights.has_parted;
    origin->weights_median = weights.median;
    return true;
}

static bool walk_all(struct walk *walk)
{
    struct origin *const origin = walk->origin;

    for (size_t i = 0; i < walk->input->result->layer_count; i++) {
        if (!walk_start(walk, i))
            return false;
        nd_walk_judge(walk, i);
        walk_remember(walk, i);
        origin->expected[i] = expectation(walk, i);
        if (origin->first == ND_NO_INDEX && origin->kinds[i] != ORIGIN_NONE) {
            origin->first = i;
            origin->slot = origin->kinds[i] == ORIGIN_UPDATE ? walk->update_slot
                                                             : walk->facts[i].out.worst;
        }
    }
    return true;
}

enum nd_status nd_origin_find(const struct diagnosis_input *input,
                              const struct layer_facts *facts, struct arena *arena,
                              struct origin *ret_origin, struct nd_error *err)
{
    struct walk walk = {
        .input = input, .facts = facts, .arena = arena, .origin = ret_origin};

    walk.runs = calloc(input->runs->count + 1, sizeof *walk.runs);
    const bool fine = walk.runs != NULL &&
                      origin_allocate(ret_origin, arena, input->result->layer_count) &&
                      nd_steps_index(input->result, &walk.steps) &&
                      nd_producers_make(input, &walk.producers) && walk_all(&walk);
    if (fine && ret_origin->first == ND_NO_INDEX)
        judge_after(&walk);
    nd_producers_done(&walk.producers);
    nd_steps_done(&walk.steps);
    free(walk.runs);
    return fine ? ND_OK : nd_fail_memory(err);
}
