/*
 * One walk over the layers of each run of a model (a step of a rank) in execution order.
 */
#include "checks/origin.h"

#include <math.h>
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
        walk->is_tainted || walk->was_tainted || walk->weights.has_parted;

    switch (walk->origin->roles[i]) {
    case ND_ROLE_ORIGIN:
    case ND_ROLE_GAP:
        return ND_NO;
    case ND_ROLE_CLEAN:
        return ND_YES;
    case ND_ROLE_INHERITED:
    case ND_ROLE_CONTAINER:
        return tainted ? ND_NO : ND_YES;
    default:
        break;
    }
    if (facts->out.seen > 0 && facts->out.equal)
        return ND_YES;
    return tainted && facts->out.seen > 0 ? ND_NO : ND_UNKNOWN;
}

static void walk_remember(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    const enum nd_role role = walk->origin->roles[i];

    if (role == ND_ROLE_ORIGIN || role == ND_ROLE_GAP)
        walk->is_tainted = true;
    walk->passed += !facts->pair && !facts->container;
    if (facts->container || facts->out.seen == 0)
        return;
    walk->is_bad = walk->is_bad || facts->out.mismatches > 0;
    if (facts->out.is_integer) { /* routing that differs can make anything differ */
        walk->worst = HUGE_VAL;
        walk->recent[walk->produced++ % WALK_RECENT] = HUGE_VAL;
    }
    if (facts->out.count > 0) {
        walk->recent[walk->produced % WALK_RECENT] = facts->out.rel;
        walk->worst = fmax(walk->worst, facts->out.rel);
        walk->produced++;
    }
}

/* A new step or another rank: other layers come before. */
static void walk_start(struct walk *walk, size_t i)
{
    const struct nd_layer *layer = walk_layer(walk, i);

    if (i > 0) {
        const struct nd_layer *last = walk_layer(walk, i - 1);
        if (last->step == layer->step && last->rank == layer->rank)
            return;
        if (last->step != layer->step)
            walk->was_tainted = walk->was_tainted || walk->is_tainted;
    }
    walk->first = i;
    walk->produced = walk->passed = 0;
    walk->worst = 0;
    walk->is_bad = walk->is_tainted = false;
    memset(walk->recent, 0, sizeof walk->recent);
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

enum nd_status nd_origin_find(const struct diagnosis_input *input,
                              const struct layer_facts *facts, struct arena *arena,
                              struct origin *ret_origin, struct nd_error *err)
{
    const size_t layers = input->result->layer_count;
    struct walk walk = {
        .input = input, .facts = facts, .arena = arena, .origin = ret_origin};

    if (!origin_allocate(ret_origin, arena, layers) ||
        !nd_weights_weigh(input, facts, &walk.weights) ||
        !nd_steps_index(input->result, &walk.steps) ||
        !nd_producers_make(input->result, &walk.producers)) {
        nd_steps_done(&walk.steps);
        return nd_fail_memory(err);
    }
    for (size_t i = 0; i < layers; i++) {
        walk_start(&walk, i);
        nd_walk_judge(&walk, i);
        walk_remember(&walk, i);
        ret_origin->expected[i] = expectation(&walk, i);
        if (ret_origin->first == ND_NO_INDEX && ret_origin->kinds[i] != ORIGIN_NONE) {
            ret_origin->first = i;
            ret_origin->slot = ret_origin->kinds[i] == ORIGIN_UPDATE ? walk.update_slot
                                                                     : facts[i].out.worst;
        }
    }
    if (ret_origin->first == ND_NO_INDEX)
        judge_after(&walk);
    ret_origin->weights_parted = walk.weights.has_parted;
    ret_origin->weights_median = walk.weights.median;
    nd_producers_done(&walk.producers);
    nd_steps_done(&walk.steps);
    return ND_OK;
}
