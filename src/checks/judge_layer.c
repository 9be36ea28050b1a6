/*
 * The tests of one layer.  Every threshold is a multiple of what honest pairs of ten
 * architectures showed in float32, bfloat16 and float16: no layer type multiplied the
 * relative error by more than 4, and no layer stood more than 3.6 times above the ten
 * before it.
 */
#include "checks/walk.h"

#include <math.h>
#include <string.h>

#include "checks/phrase.h"

static const double JUMP = 8; /* the factor that no honest layer reaches */

static const struct nd_layer *walk_layer(const struct walk *walk, size_t i)
{
    return &walk->input->result->layers[i];
}

static double recent_worst(const struct walk *walk)
{
    double worst = 0;

    for (int k = 0; k < WALK_RECENT; k++)
        worst = fmax(worst, walk->run->recent[k]);
    return worst;
}

static void say(struct walk *walk, size_t i, enum nd_role role, enum origin_kind kind,
                struct nd_phrase why)
{
    walk->origin->roles[i] = role;
    walk->origin->kinds[i] = kind;
    walk->origin->why[i] = why;
}

/* --- inputs ------------------------------------------------------------------------- */

/* What a slot may differ by without anybody having computed it. */
static double input_limit(const struct nd_slot *slot)
{
    const double roundoff = nd_slot_roundoff(slot);

    return roundoff > 0x1p-24 ? 1.5 * roundoff : JUMP * nd_floor(roundoff);
}

/* What its producers' own drift allows this input; *ret_known: the producer was found. */
static double input_allowance(const struct walk *walk, size_t i, const struct nd_slot *slot,
                              const struct producer **ret_producer)
{
    *ret_producer = nd_producer_of(&walk->producers, slot, walk->input->runs->run[i], i);
    if (*ret_producer == NULL)
        return walk->run->worst;
    return nd_slot_rel(
        &walk_layer(walk, (*ret_producer)->layer)->slots[(*ret_producer)->slot]);
}

/* The layer took an input in another order for what it was: its output is off, and not by
 * the order alone. */
static bool order_matters(const struct layer_facts *facts)
{
    return !facts->layout_found && facts->out.rel > 1e-2;
}

/* An input that differs although everything that could have made it agrees. */
static bool input_unexplained(const struct walk *walk, size_t i, const struct nd_slot *slot,
                              const struct producer **ret_producer)
{
    *ret_producer = NULL;
    if (slot->tier > ND_TIER_FAULT || slot->tier == ND_TIER_EXACT ||
        slot->nonfinite_mismatches > 0)
        return false;
    /* Statistics are never exact: integers whose prints are equal do not differ. */
    if (nd_slot_is_integer(slot))
        return slot->drift > 0 && walk->run->worst <= nd_floor(0x1p-24) * JUMP && !walk->run->is_bad;
    if (!nd_slot_measured(slot) || (nd_slot_found(slot) && !order_matters(&walk->facts[i])))
        return false;
    const double rel = nd_slot_rel(slot);
    if (!(rel > input_limit(slot)))
        return false;
    const double allowed = input_allowance(walk, i, slot, ret_producer);
    return rel > JUMP * fmax(allowed, nd_floor(nd_slot_roundoff(slot))) ||
           walk->run->produced == 0;
}

static bool judge_inputs(struct walk *walk, size_t i)
{
    const struct nd_layer *layer = walk_layer(walk, i);

    for (size_t k = 0; k < layer->slot_count; k++) {
        const struct nd_slot *slot = &layer->slots[k];
        const struct producer *producer;
        if (!nd_slot_is(slot, "input") || !input_unexplained(walk, i, slot, &producer))
            continue;
        const double rel = nd_slot_is_integer(slot) ? slot->drift : nd_slot_rel(slot);
        if (producer != NULL)
            say(walk, i, ND_ROLE_GAP, ORIGIN_GAP,
                ND_PHRASE(walk->arena, "why.gap.changed", ND_WORD("slot", slot->name),
                          ND_NUMBER("drift", rel),
                          ND_WORD("producer", walk_layer(walk, producer->layer)->name)));
        else if (walk->run->produced + walk->run->passed == 0 || nd_slot_is_integer(slot))
            say(walk, i, ND_ROLE_GAP, ORIGIN_INPUT,
                ND_PHRASE(walk->arena, "why.input", ND_WORD("slot", slot->name),
                          ND_NUMBER("drift", rel)));
        else
            say(walk, i, ND_ROLE_GAP, ORIGIN_GAP,
                ND_PHRASE(walk->arena, "why.gap", ND_WORD("slot", slot->name),
                          ND_NUMBER("drift", rel), ND_NUMBER("worst", walk->run->worst)));
        return true;
    }
    return false;
}

/* --- tests ---------------------------------------------------------------------------- */

static bool judge_nonfinite(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    const bool from_input = facts->in.seen > 0 ? facts->in.mismatches > 0 : walk->run->is_bad;

    if (facts->out.mismatches == 0)
        return false;
    if (from_input)
        say(walk, i, ND_ROLE_INHERITED, ORIGIN_NONE,
            nd_phrase_plain("why.nonfinite.inherited"));
    else
        say(walk, i, ND_ROLE_ORIGIN, ORIGIN_NONFINITE,
            ND_PHRASE(walk->arena, "why.nonfinite",
                      ND_NUMBER("count", (double)facts->out.mismatches)));
    return true;
}

static bool judge_weights(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];

    if (facts->params.count == 0 || !(facts->params.rel > walk->weights.limit) ||
        facts->out.equal)
        return false;
    if (facts->in.seen > 0 && facts->out.rel <= 2 * facts->in.rel)
        return false;
    if (facts->in.seen == 0 && facts->out.rel <= 2 * recent_worst(walk))
        return false;
    if (facts->params.rel <=
        2 * nd_update_moved(walk->input, &walk->steps, i, facts->params.worst))
        return false;
    say(walk, i, ND_ROLE_ORIGIN, ORIGIN_WEIGHTS,
        ND_PHRASE(walk->arena, "why.weights",
                  ND_WORD("slot", walk_layer(walk, i)->slots[facts->params.worst].name),
                  ND_NUMBER("drift", facts->params.rel),
                  ND_NUMBER("median", walk->weights.median)));
    return true;
}

static void say_innocent(struct walk *walk, size_t i, struct nd_phrase why)
{
    const struct layer_facts *facts = &walk->facts[i];

    if (facts->out.is_integer) /* the largest of values that nearly tie is another one */
        say(walk, i, ND_ROLE_INHERITED, ORIGIN_NONE,
            ND_PHRASE(walk->arena, "why.ties",
                      ND_NUMBER("input", facts->in.count > 0 ? facts->in.rel
                                                             : recent_worst(walk))));
    else if (facts->out.rel <= 2 * facts->floor)
        say(walk, i, ND_ROLE_CLEAN, ORIGIN_NONE,
            ND_PHRASE(walk->arena, "why.floor", ND_NUMBER("floor", facts->floor)));
    else
        say(walk, i, ND_ROLE_INHERITED, ORIGIN_NONE, why);
}

static bool judge_replay(struct walk *walk, size_t i)
{
    static const char *const ids[] = {[REPLAY_NONFINITE] = "why.replay.nonfinite",
                                      [REPLAY_RESIDUAL] = "why.replay",
                                      [REPLAY_LOCAL] = "why.replay.local",
                                      [REPLAY_SLOPE] = "why.replay.slope"};
    const struct replay *replay = &walk->facts[i].replay;
    const struct residual *own = &replay->residual[replay->side];
    const struct residual *other = &replay->residual[!replay->side];

    if (!replay->done || !replay->trusted)
        return false;
    /* A replay speaks for output.0; another output that is further off needs its own
     * excuse. */
    if (replay->flag == REPLAY_FOLLOWS &&
        strcmp(walk_layer(walk, i)->slots[walk->facts[i].out.worst].name, "output.0") != 0)
        return false;
    /* Single outputs of a product do not speak for those between them. */
    if (replay->flag == REPLAY_FOLLOWS && !replay->whole && walk->facts[i].op->product)
        return false;
    if (replay->flag == REPLAY_FOLLOWS) {
        say_innocent(walk, i,
                     ND_PHRASE(walk->arena, "why.follows", ND_NUMBER("residual", own->rel),
                               ND_NUMBER("reference", other->rel),
                               ND_NUMBER("whole", replay->whole)));
        return true;
    }
    say(walk, i, ND_ROLE_ORIGIN, ORIGIN_REPLAY,
        ND_PHRASE(walk->arena, ids[replay->flag], ND_NUMBER("is_candidate", replay->side),
                  ND_NUMBER("whole", replay->whole), ND_NUMBER("residual", own->rel),
                  ND_NUMBER("other", other->rel), ND_NUMBER("local", own->local),
                  ND_NUMBER("slope", own->slope),
                  ND_NUMBER("count", (double)own->mismatches)));
    return true;
}

/* How much a norm magnifies a relative error: by rms / sigma of its input. */
static double norm_gain(const struct nd_layer *layer, const struct layer_facts *facts)
{
    if (facts->in.worst == ND_NO_INDEX)
        return JUMP;
    if (facts->stand_ins > 0)
        return JUMP;
    const struct nd_slot *slot = &layer->slots[facts->in.worst];
    const double mean = nd_slot_number(slot, "mean", 0);
    const double square = facts->in.rms * facts->in.rms;
    const double var = square - mean * mean;
    if (isnan(mean) || isnan(square))
        return JUMP;
    return var > 0 ? JUMP * fmax(1, sqrt(square / var)) : HUGE_VAL;
}

/* The largest relative error that the layer's inputs and parameters explain; NAN: no limit
 * is known. */
static double explained_error(const struct nd_layer *layer, const struct layer_facts *facts)
{
    const enum op_bound bound = facts->op == NULL ? BOUND_RELATIVE : facts->op->bound;
    const double gain = facts->op == NULL ? JUMP : fmax(facts->op->gain, 1.5);
    const double rel = fmax(fmax(facts->in.rel, facts->params.rel), facts->saved);
    const double least = JUMP * facts->floor;

    if (facts->in.equal && facts->params.equal && !(facts->saved > 0))
        return least;
    if (bound == BOUND_NONE || facts->in.is_integer || facts->in.count == 0)
        return (double)NAN;
    if (bound == BOUND_NORM)
        return fmax(norm_gain(layer, facts) * rel, least);
    if (bound == BOUND_ABSOLUTE && facts->out.rms > 0)
        return fmax(2 * facts->in.abs / facts->out.rms, least);
    return fmax(gain * rel, least);
}

static bool judge_bound(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];

    if (facts->in.seen == 0)
        return false;
    if (facts->out.is_integer && facts->in.equal && facts->params.equal) {
        say(walk, i, ND_ROLE_ORIGIN, ORIGIN_BOUND, nd_phrase_plain("why.integer"));
        return true;
    }
    const double limit = explained_error(walk_layer(walk, i), facts);
    if (isnan(limit) || facts->out.rms == 0) {
        if (facts->out.rel <= 2 * facts->floor)
            say_innocent(walk, i, nd_phrase_plain("why.unbounded"));
        else
            say(walk, i, walk->run->is_tainted ? ND_ROLE_INHERITED : ND_ROLE_UNKNOWN,
                ORIGIN_NONE, nd_phrase_plain("why.unbounded"));
        return true;
    }
    const bool is_over = (facts->forward ? facts->out.rel / limit
                                         : nd_gradient_excess(walk_layer(walk, i), facts,
                                                              limit)) > 1;
    const struct nd_phrase why =
        ND_PHRASE(walk->arena, is_over ? "why.bound" : "why.explained",
                  ND_NUMBER("drift", facts->out.rel),
                  ND_NUMBER("input", fmax(facts->in.rel, facts->saved)),
                  ND_NUMBER("limit", limit));
    if (is_over)
        say(walk, i, ND_ROLE_ORIGIN, ORIGIN_BOUND, why);
    else
        say_innocent(walk, i, why);
    return true;
}

/* Without inputs: far above the ten layers before it. */
static void judge_growth(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    const double level = recent_worst(walk);
    const double limit = JUMP * fmax(level, facts->floor);
    const struct nd_result *result = walk->input->result;
    const bool by_name = result->dump[result->order_borrowed].order == ND_ORDER_NAME;

    if (by_name && facts->out.rel > 2 * facts->floor) {
        /* Without an order of execution nothing comes before anything. */
        say(walk, i, ND_ROLE_UNKNOWN, ORIGIN_NONE, nd_phrase_plain("why.no_order"));
        return;
    }
    const bool grew = facts->out.rel > limit;
    const struct nd_phrase why =
        ND_PHRASE(walk->arena, grew ? "why.growth" : "why.no_growth",
                  ND_NUMBER("drift", facts->out.rel), ND_NUMBER("level", level));
    if (!grew)
        say_innocent(walk, i, why);
    else if (walk->run->is_tainted) /* a fault may grow further, and may meet another one */
        say(walk, i, ND_ROLE_UNKNOWN, ORIGIN_NONE, why);
    else
        say(walk, i, ND_ROLE_ORIGIN, ORIGIN_GROWTH, why);
}

/*
 * A layer that is no further off than a side is from its own second run is no origin: the
 * drift is a difference of two draws of that noise.  Drift that people would see stays
 * unexplained, so that the layer is still shown.
 */
static void judge_noise(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];
    const enum origin_kind kind = walk->origin->kinds[i];
    const enum nd_tier tier = walk_layer(walk, i)->tier;

    if (!(facts->noise > 0) || facts->out.is_integer || facts->out.rel > 2 * facts->noise ||
        (kind != ORIGIN_REPLAY && kind != ORIGIN_BOUND && kind != ORIGIN_GROWTH))
        return;
    say(walk, i,
        tier == ND_TIER_ELEVATED || tier == ND_TIER_FAULT ? ND_ROLE_UNKNOWN : ND_ROLE_CLEAN,
        ORIGIN_NONE,
        ND_PHRASE(walk->arena, "why.noise", ND_NUMBER("drift", facts->out.rel),
                  ND_NUMBER("noise", facts->noise)));
}

enum { GAP_BEHIND = 4 };

/* A few channels are wrong, whatever the sum over all says. */
static void judge_gap(struct walk *walk, size_t i)
{
    const struct channel_gap *gap = &walk->facts[i].gap;
    const enum nd_role role = walk->origin->roles[i];

    if (!nd_channel_stands_out(gap) || walk->run->is_tainted ||
        (role != ND_ROLE_INHERITED && role != ND_ROLE_CLEAN && role != ND_ROLE_UNKNOWN))
        return;
    size_t behind = nd_before(walk->input, i);
    for (int k = 0; k < GAP_BEHIND && behind != ND_NO_INDEX; k++) {
        if (nd_channel_error(nd_pair_of(walk->input, behind), gap->channels, gap->channel) >
            gap->error / CHANNEL_GAP)
            return;
        behind = nd_before(walk->input, behind);
    }
    say(walk, i, ND_ROLE_ORIGIN, ORIGIN_BOUND,
        ND_PHRASE(walk->arena, "why.channels", ND_NUMBER("wrong", (double)gap->wrong),
                  ND_NUMBER("count", (double)gap->channels),
                  ND_NUMBER("error", gap->error), ND_NUMBER("ratio", gap->ratio)));
}

/* Without an output a layer is judged on nothing; what came in was made before it. */
static void judge_inputs_only(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];

    if (facts->in.seen > 0 && facts->in.equal)
        say(walk, i, ND_ROLE_CLEAN, ORIGIN_NONE, nd_phrase_plain("why.exact"));
    else if (facts->in.count > 0 && walk->run->produced > 0 &&
             facts->in.rel <= JUMP * fmax(walk->run->worst, facts->floor))
        say(walk, i, ND_ROLE_INHERITED, ORIGIN_NONE, nd_phrase_plain("why.inputs_only"));
}

void nd_walk_judge(struct walk *walk, size_t i)
{
    const struct layer_facts *facts = &walk->facts[i];

    say(walk, i, ND_ROLE_UNKNOWN, ORIGIN_NONE, nd_phrase_plain(NULL));
    if (facts->container) {
        walk->origin->roles[i] = ND_ROLE_CONTAINER;
        return;
    }
    if (!facts->pair)
        return;
    if (facts->out.seen > 0 && (judge_inputs(walk, i) || judge_nonfinite(walk, i)))
        return;
    if (nd_walk_judge_update(walk, i) || nd_walk_judge_kink(walk, i))
        return;
    if (facts->out.seen == 0) {
        judge_inputs_only(walk, i);
        return;
    }
    if (facts->out.equal) {
        say(walk, i, ND_ROLE_CLEAN, ORIGIN_NONE, nd_phrase_plain("why.exact"));
        return;
    }
    if (facts->out.count == 0 && !facts->out.is_integer)
        return;
    if (!judge_weights(walk, i) && !judge_replay(walk, i) && !judge_bound(walk, i))
        judge_growth(walk, i);
    judge_gap(walk, i);
    judge_noise(walk, i);
}
