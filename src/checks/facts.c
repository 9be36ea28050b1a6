/*
 * Reading the comparison's result, and running the replays.
 */
#include "checks/facts.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "checks/name_guess.h"
#include "checks/product_replay.h"
#include "checks/norm_recognise.h"
#include "checks/replay_budget.h"
#include "checks/stand_in.h"

double nd_slot_number(const struct nd_slot *slot, const char *key, int side)
{
    for (size_t i = 0; i < slot->metric_count; i++)
        if (strcmp(slot->metrics[i].key, key) == 0)
            return slot->metrics[i]
                .value[slot->metrics[i].kind == ND_METRIC_PAIR ? side : 0];
    return (double)NAN;
}

const uint64_t *nd_slot_worst(const struct nd_slot *slot)
{
    if (slot->worst_count > 0)
        return slot->worst[0].index;
    /* A detailed pass was not worth it. */
    for (size_t i = 0; i < slot->metric_count; i++)
        if (strcmp(slot->metrics[i].key, "max_abs_index") == 0)
            return slot->metrics[i].index;
    return NULL;
}

double nd_slot_rel(const struct nd_slot *slot)
{
    if (slot->tier == ND_TIER_EXACT)
        return 0;
    const double rel = nd_slot_number(slot, "rel_l2", 0);
    return isnan(rel) ? slot->drift : rel;
}

bool nd_slot_is(const struct nd_slot *slot, const char *kind)
{
    const size_t len = strlen(kind);

    return strncmp(slot->name, kind, len) == 0 &&
           (slot->name[len] == '.' || slot->name[len] == '\0');
}

static bool slot_noted(const struct nd_slot *slot, const char *note)
{
    for (size_t i = 0; i < slot->note_count; i++)
        if (strcmp(slot->notes[i], note) == 0)
            return true;
    return false;
}

/* A layout that made shapes agree does not count: the drift is what it leaves. */
bool nd_slot_found(const struct nd_slot *slot)
{
    return slot_noted(slot, "equal_under_layout");
}

static enum nd_dtype slot_dtype(const struct nd_slot *slot, int side)
{
    const char *name = slot->dtype[side];

    return name == NULL ? ND_DTYPE_NONE : nd_dtype_by_name(name, strlen(name));
}

bool nd_slot_is_integer(const struct nd_slot *slot)
{
    for (int side = 0; side < 2; side++) {
        const enum nd_dtype dtype = slot_dtype(slot, side);
        if (dtype != ND_DTYPE_NONE && nd_dtype_info(dtype)->kind != ND_KIND_FLOAT &&
            nd_dtype_info(dtype)->kind != ND_KIND_COMPLEX)
            return true;
    }
    return false;
}

bool nd_slot_measured(const struct nd_slot *slot)
{
    return slot->tier <= ND_TIER_FAULT && !nd_slot_is_integer(slot) &&
           !isnan(nd_slot_rel(slot)) &&
           !(nd_slot_is(slot, "grad") && slot_noted(slot, "rounding_residue"));
}

double nd_floor(double roundoff)
{
    /* One rounding is 0.42 u; float32 products sum hundreds of terms in another order, 5 u.
     */
    return roundoff > 0x1p-24 ? roundoff : 5 * roundoff;
}

static void group_add(struct slot_group *group, const struct nd_slot *slot, size_t index)
{
    if (slot->tier > ND_TIER_FAULT)
        return;
    group->seen++;
    group->mismatches += slot->nonfinite_mismatches;
    if (slot->tier != ND_TIER_EXACT)
        group->equal = false;
    if (nd_slot_is_integer(slot)) {
        group->is_integer = group->is_integer || slot->tier != ND_TIER_EXACT;
        return;
    }
    if (!nd_slot_measured(slot))
        return;
    const double rel = nd_slot_rel(slot), rmse = nd_slot_number(slot, "rmse", 0);
    const double norm = nd_slot_number(slot, "norm", 0);
    group->count++;
    group->abs += isnan(rmse) ? 0 : rmse;
    if (group->worst == ND_NO_INDEX || rel > group->rel) {
        group->worst = index;
        group->rel = rel;
        group->n = slot->n;
        group->rms =
            slot->n > 0 && !isnan(norm) ? norm / sqrt((double)slot->n) : (double)NAN;
    }
}

static struct slot_group group_empty(void)
{
    return (struct slot_group){.worst = ND_NO_INDEX, .equal = true};
}

static void facts_slots(const struct nd_layer *layer, struct layer_facts *facts)
{
    facts->out = facts->in = facts->params = facts->after = group_empty();
    for (size_t i = 0; i < layer->slot_count; i++) {
        const struct nd_slot *slot = &layer->slots[i];
        const bool found = nd_slot_found(slot);
        if (nd_slot_is(slot, "input")) {
            group_add(&facts->in, slot, i);
            facts->input_found = facts->input_found || found;
        } else if (nd_slot_is(slot, "param") || nd_slot_is(slot, "state")) {
            group_add(&facts->params, slot, i);
        } else if (nd_slot_is(slot, "state_after")) {
            group_add(&facts->after, slot, i);
        } else {
            group_add(&facts->out, slot, i);
            facts->layout_found = facts->layout_found || found;
        }
    }
}

double nd_slot_roundoff(const struct nd_slot *slot)
{
    double coarse = 0;

    for (int side = 0; side < 2; side++) {
        const enum nd_dtype dtype = slot_dtype(slot, side);
        if (dtype != ND_DTYPE_NONE)
            coarse = fmax(coarse, nd_dtype_roundoff(dtype));
    }
    return coarse > 0 ? coarse : 0x1p-24;
}

/* Enough values to tell a grid by; the first diverging layer is looked at whole. */
enum { GRID_BUDGET = 8192 };

static void facts_grid(const struct layer_pair_view *pair, struct layer_facts *facts)
{
    for (int side = 0; side < 2; side++) {
        const struct slot_view *slot =
            pair->side[side] == NULL ? NULL : nd_layer_slot(pair->side[side], "output.0");
        struct grid_shares shares;
        facts->grid[side] = GRID_NONE;
        if (slot == NULL || !slot->has_tensor ||
            nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT)
            continue;
        nd_grid_shares(&slot->tensor, GRID_BUDGET, &shares);
        facts->grid[side] = nd_grid_of(&shares, slot->real_dtype);
    }
}

/* The spacing of float16 below 2^-14 is absolute: small tensors round relatively worse. */
static double subnormal_floor(const struct layer_facts *facts)
{
    return facts->roundoff == 0x1p-11 && facts->out.rms > 0 ? 0x1p-25 / facts->out.rms : 0;
}

static void facts_precision(const struct nd_layer *layer,
                            const struct layer_pair_view *pair, struct layer_facts *facts)
{
    facts->roundoff = 0x1p-24;
    facts->grid[0] = facts->grid[1] = GRID_NONE;
    if (facts->out.worst != ND_NO_INDEX)
        facts->roundoff = nd_slot_roundoff(&layer->slots[facts->out.worst]);
    if (facts->pair)
        facts_grid(pair, facts);
    /* Values kept in a wider container by both runs: the computation was coarser. */
    const enum grid coarse = facts->grid[0];
    if (coarse != GRID_NONE && facts->grid[1] != GRID_NONE)
        facts->roundoff = fmax(facts->roundoff, fmax(nd_grid_roundoff(coarse),
                                                     nd_grid_roundoff(facts->grid[1])));
    facts->floor = fmax(nd_floor(facts->roundoff), subnormal_floor(facts));
}

/* A product over K terms summed in another order: about u sqrt(K) / 4. */
static void facts_product(const struct layer_pair_view *pair, struct layer_facts *facts)
{
    const struct slot_view *weight, *input;
    double terms = 0;

    if (facts->op == NULL || !facts->op->product || !facts->pair)
        return;
    weight = nd_layer_slot(pair->side[0], "param.weight");
    input = nd_layer_slot(pair->side[0], "input.0");
    if (weight != NULL && weight->has_tensor && weight->tensor.shape.rank > 1 &&
        weight->tensor.shape.dim[0] > 0)
        terms = (double)weight->tensor.count / (double)weight->tensor.shape.dim[0];
    else if (input != NULL && input->has_tensor && input->tensor.shape.rank > 0)
        terms = (double)input->tensor.shape.dim[input->tensor.shape.rank - 1];
    facts->floor = fmax(facts->floor, 0x1p-24 * sqrt(terms) / 4);
}

static double facts_noise(const struct diagnosis_input *input, size_t i)
{
    double noise = 0;

    for (int side = 0; side < 2; side++)
        if (input->rerun[side].given && input->rerun[side].drift != NULL &&
            input->rerun[side].drift[i] > noise)
            noise = input->rerun[side].drift[i];
    return noise;
}

struct gathering {
    const struct diagnosis_input *input;
    struct layer_facts *facts;
    uint64_t elements[2]; /* of a replay: norms, others */
    uint64_t terms;       /* multiply-adds of a product's */
    uint64_t row;
};

/* Products are replayed on single outputs. */
static void facts_product_replay(const struct gathering *job, size_t i)
{
    struct layer_facts *facts = &job->facts[i];
    const struct nd_slot *out = &job->input->result->layers[i].slots[facts->out.worst];
    const bool shown = strcmp(out->name, "output.0") == 0;

    nd_product_replay(nd_pair_of(job->input, i), facts->op, facts->roundoff,
                      shown ? nd_slot_worst(out) : NULL, job->terms,
                      job->input->max_mem, i, &facts->replay);
}

/* Nothing to learn from a layer whose outputs are equal. */
static bool replay_worthwhile(const struct layer_facts *facts)
{
    return facts->pair && !facts->container && facts->forward && facts->op != NULL &&
           facts->out.count > 0 && !facts->out.equal;
}

static void facts_replay(const struct gathering *job, size_t i,
                         const struct layer_pair_view *pair)
{
    struct layer_facts *facts = &job->facts[i];
    const struct nd_slot *out = &job->input->result->layers[i].slots[facts->out.worst];
    const struct replay_limits limits = {
        .elements = job->elements[facts->op->norm == NULL], .row = job->row, .seed = i};
    const bool shown = strcmp(out->name, "output.0") == 0;

    nd_replay_layer(pair, facts->op, facts->roundoff, &limits,
                    shown ? nd_slot_worst(out) : NULL, &facts->replay);
}

/* Without dumped inputs: earlier outputs, if they prove to be them. */
static void facts_stand_in(const struct gathering *job, size_t i)
{
    const struct nd_result *result = job->input->result;
    struct layer_facts *facts = &job->facts[i];
    struct stand_in stand_in;

    if (!nd_stand_in_find(job->input, i, facts->op, facts->roundoff,
                          &stand_in))
        return;
    facts->stand_ins = stand_in.count;
    for (unsigned k = 0; k < stand_in.count; k++) {
        const struct nd_layer *from = &result->layers[stand_in.from[k]];
        facts->stand_in[k] = stand_in.from[k];
        for (size_t s = 0; s < from->slot_count; s++)
            if (strcmp(from->slots[s].name, "output.0") == 0)
                group_add(&facts->in, &from->slots[s], ND_NO_INDEX - 1);
    }
    facts_replay(job, i, &stand_in.pair);
    nd_stand_in_done(&stand_in);
}

static void facts_recompute(const struct gathering *job, size_t i)
{
    const struct nd_result *result = job->input->result;
    struct layer_facts *facts = &job->facts[i];

    if (!replay_worthwhile(facts))
        return;
    if (facts->in.count > 0 && facts->op->product)
        facts_product_replay(job, i);
    else if (facts->in.count > 0)
        facts_replay(job, i, nd_pair_of(job->input, i));
    else if (facts->in.seen == 0 &&
             result->dump[result->order_borrowed].order != ND_ORDER_NAME)
        facts_stand_in(job, i);
    if (facts->op->product && facts->op->bias &&
        !(facts->replay.trusted && facts->replay.whole))
        nd_channel_gap(nd_pair_of(job->input, i), &facts->gap);
}

/* No type is recorded: what the name suggests, if the formula reproduces a side. */
static void facts_by_name(const struct gathering *job, size_t i)
{
    struct layer_facts *facts = &job->facts[i];
    const struct op *ops[NAME_GUESSES];
    const size_t count = nd_name_guess(job->input->result->layers[i].name, ops);

    for (size_t k = 0; k < count; k++) {
        facts->op = ops[k];
        facts_recompute(job, i);
        if (facts->replay.trusted)
            return;
        facts->op = NULL;
        facts->replay = (struct replay){.done = false};
        if (facts->stand_ins > 0)
            facts->in = group_empty();
        facts->stand_ins = 0;
    }
}

static void gather_one(void *user, size_t i, unsigned worker)
{
    struct gathering own = *(const struct gathering *)user;
    struct diagnosis_input input = *own.input;
    const struct gathering *const job = &own;

    input.worker = worker;
    own.input = &input;
    const struct nd_layer *layer = &job->input->result->layers[i];
    const struct layer_pair_view *pair = nd_pair_of(job->input, i);
    struct layer_facts *facts = &job->facts[i];

    *facts = (struct layer_facts){
        .op = nd_op_for(layer->type),
        .pair = pair->side[0] != NULL && pair->side[1] != NULL,
        .forward = strcmp(layer->direction, "backward") != 0,
        .container = layer->role == ND_ROLE_CONTAINER,
    };
    facts_slots(layer, facts);
    facts_precision(layer, pair, facts);
    facts_product(pair, facts);
    facts->noise = facts_noise(job->input, i);
    if (facts->op == NULL && facts->pair && facts->forward && !facts->container &&
        facts->in.count > 0 && facts->out.count > 0 && !facts->out.equal)
        facts->op = nd_recognise(pair, facts->roundoff);
    if (facts->op == NULL && layer->type[0] == '\0')
        facts_by_name(job, i);
    else
        facts_recompute(job, i);
}

void nd_facts_gather(const struct diagnosis_input *input, struct layer_facts *ret_facts)
{
    const struct replay_budget budget = nd_replay_budget(input->result);
    struct gathering job = {.input = input,
                            .facts = ret_facts,
                            .elements = {budget.norm, budget.other},
                            .terms = budget.terms};
    const uint64_t room = input->max_mem / 2 / nd_sample_bytes(1, 1);
    unsigned jobs = input->jobs == 0 ? nd_pool_processors() : input->jobs;

    /* The sample must not depend on the number of threads; their number gives way. */
    for (int kind = 0; kind < 2; kind++)
        if (job.elements[kind] > room)
            job.elements[kind] = room < 1024 ? 1024 : room;
    job.row = room;
    const uint64_t each = job.elements[0] * 2;
    if (jobs > room / each + 1)
        jobs = (unsigned)(room / each + 1);
    nd_pool_run(jobs, input->result->layer_count, gather_one, NULL, &job);
}
