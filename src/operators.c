/*
 * Operators beside their dumps.
 */
#include "operators.h"

#include <stdio.h>
#include <string.h>

#include "ops/ascend_op.h"
#include "ops/op.h"
#include "ops/type_name.h"

enum { MAX_OUTPUTS = 64 }; /* more than any operator of the table has */

/* An operator without a row returns its value first. */
static enum output_meaning meaning_of(const struct ascend_op *op,
                                      const struct dump_slot *slot)
{
    struct ascend_output output;
    size_t number;

    if (slot == NULL || !nd_slot_numbered(slot->name, "output.", MAX_OUTPUTS, &number))
        return OUTPUT_NOTHING;
    if (op == NULL)
        return number == 0 ? OUTPUT_VALUE : OUTPUT_NOTHING;
    return nd_ascend_output(op, number, &output) ? output.meaning : OUTPUT_NOTHING;
}

static bool is_scatter(enum output_meaning meaning)
{
    return meaning == OUTPUT_VARIANCE || meaning == OUTPUT_RSTD;
}

/* --- pairing outputs ----------------------------------------------------------------- */

struct outputs {
    struct slot_pair *pair[MAX_OUTPUTS]; /* the places: pairs whose slots are outputs */
    size_t pairs;
    const struct dump_slot *slot[MAX_OUTPUTS]; /* the candidate's outputs */
    size_t slots;
};

static bool outputs_of(struct layer_pair *layer, struct outputs *ret)
{
    *ret = (struct outputs){.pairs = 0};
    for (size_t s = 0; s < layer->slot_count; s++) {
        struct slot_pair *pair = &layer->slots[s];
        const struct dump_slot *any = pair->side[0] != NULL ? pair->side[0] : pair->side[1];
        size_t number;
        if (!nd_slot_numbered(any->name, "output.", MAX_OUTPUTS, &number))
            continue;
        if (ret->pairs == MAX_OUTPUTS)
            return false;
        ret->pair[ret->pairs++] = pair;
        if (pair->side[1] != NULL)
            ret->slot[ret->slots++] = pair->side[1];
    }
    return ret->slots > 0;
}

/* The candidate's output for a reference output: of the same meaning, else the other form
 * of the same statistic; ND_NO_INDEX: none. */
static size_t partner_of(const struct outputs *outputs, const struct ascend_op *op,
                         enum output_meaning wanted, const bool *taken)
{
    size_t other = ND_NO_INDEX;

    for (size_t i = 0; i < outputs->slots; i++) {
        const enum output_meaning meaning = meaning_of(op, outputs->slot[i]);
        if (taken[i])
            continue;
        if (meaning == wanted)
            return i;
        if (other == ND_NO_INDEX && is_scatter(meaning) && is_scatter(wanted))
            other = i;
    }
    return other;
}

/* A place that lost its only output goes. */
static void slots_compact(struct layer_pair *layer)
{
    size_t kept = 0;

    for (size_t s = 0; s < layer->slot_count; s++)
        if (layer->slots[s].side[0] != NULL || layer->slots[s].side[1] != NULL)
            layer->slots[kept++] = layer->slots[s];
    layer->slot_count = kept;
}

/* Lays the candidate's outputs anew under the reference's; what finds no partner goes where
 * there is no reference output, and if that has no room the pairs stay as they are. */
static void outputs_pair(struct layer_pair *layer, const struct outputs *outputs,
                         const struct ascend_op *const *op)
{
    const struct dump_slot *side[MAX_OUTPUTS] = {NULL};
    bool taken[MAX_OUTPUTS] = {false};
    size_t place = 0;

    for (size_t p = 0; p < outputs->pairs; p++) {
        const enum output_meaning wanted = meaning_of(op[0], outputs->pair[p]->side[0]);
        const size_t i = wanted == OUTPUT_NOTHING
                             ? ND_NO_INDEX
                             : partner_of(outputs, op[1], wanted, taken);
        if (i == ND_NO_INDEX)
            continue;
        side[p] = outputs->slot[i];
        taken[i] = true;
    }
    for (size_t i = 0; i < outputs->slots; i++) {
        if (taken[i])
            continue;
        while (place < outputs->pairs && outputs->pair[place]->side[0] != NULL)
            place++;
        if (place == outputs->pairs)
            return;
        side[place++] = outputs->slot[i];
    }
    for (size_t p = 0; p < outputs->pairs; p++) {
        struct slot_pair *pair = outputs->pair[p];
        layer->reordered = layer->reordered || side[p] != pair->side[1];
        pair->side[1] = side[p];
    }
    slots_compact(layer);
}

/* --- variances ----------------------------------------------------------------------- */

/* As declared, else the operator's default; 0: neither. */
static double eps_of(const struct dump_layer *layer, const struct ascend_op *op)
{
    static const char *const keys[] = {"eps", "epsilon", "variance_epsilon"};

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < layer->attribute_count; i++)
            if (strcmp(layer->attributes[i].key, keys[k]) == 0 &&
                layer->attributes[i].kind == ATTRIBUTE_NUMBER)
                return layer->attributes[i].number;
    return op == NULL ? 0 : op->default_eps;
}

static void mark_scatter(const struct layer_pair *layer, const struct ascend_op *const *op,
                         struct slot_pair *slot)
{
    const enum output_meaning r = meaning_of(op[0], slot->side[0]);
    const enum output_meaning c = meaning_of(op[1], slot->side[1]);

    slot->scatter = is_scatter(r) || is_scatter(c);
    if (!slot->scatter)
        return;
    const double declared = eps_of(layer->side[1], op[1]);
    slot->scatter_eps = declared > 0 ? declared : eps_of(layer->side[0], op[0]);
    if (is_scatter(r) && is_scatter(c) && r != c)
        slot->to_rstd = r == OUTPUT_VARIANCE ? TO_RSTD_REFERENCE : TO_RSTD_CANDIDATE;
}

enum nd_status nd_operators_apply(struct comparison *comparison, struct nd_error *err)
{
    (void)err;
    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair *layer = &comparison->layers[i];
        struct outputs outputs;
        if (layer->side[1] == NULL || layer->part_count > 0 ||
            layer->side[0]->direction == DIRECTION_BACKWARD)
            continue;
        const struct ascend_op *const op[2] = {nd_ascend_op_for(layer->side[0]->type),
                                               nd_ascend_op_for(layer->side[1]->type)};
        nd_operators_pair_inputs(comparison, layer, op);
        if ((op[0] == NULL && op[1] == NULL) || !outputs_of(layer, &outputs))
            continue;
        if (op[0] == NULL || op[1] == NULL || strcmp(op[0]->outputs, op[1]->outputs) != 0)
            outputs_pair(layer, &outputs, op);
        if (!outputs_of(layer, &outputs)) /* places have moved */
            continue;
        for (size_t p = 0; p < outputs.pairs; p++)
            if (outputs.pair[p]->side[0] != NULL && outputs.pair[p]->side[1] != NULL)
                mark_scatter(layer, op, outputs.pair[p]);
    }
    return ND_OK;
}

/* --- kinds --------------------------------------------------------------------------- */

/* Rows of the table that hold operators of more than one kind. */
static bool is_mixed_row(const char *name)
{
    static const char *const mixed[] = {"activation", "unbounded", "pooling",    "identity",
                                        "concat",     "relu",      "fused_norm", "embedding"};

    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        if (strcmp(mixed[i], name) == 0)
            return true;
    return false;
}

/* One operator under the names of Python's operators, of torch and of CANN. */
static const char *one_name(const char *plain)
{
    static const struct {
        const char *name, *other;
    } names[] = {
        {"truediv", "div"},  {"itruediv", "div"},   {"truedivide", "div"}, {"divide", "div"},
        {"realdiv", "div"},  {"cat", "concat"},     {"concatv2", "concat"}, {"concatd", "concat"},
        {"concatv2d", "concat"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, plain) == 0)
            return names[i].other;
    return plain;
}

bool nd_operator_family(const char *type, char *buf, size_t size)
{
    static const char *const before[] = {"npu", "aclnn", "fused"};
    const struct op *op = nd_op_for(type);
    char plain[128];
    const char *name = plain;

    if (op != NULL && !is_mixed_row(op->name)) {
        snprintf(buf, size, "%s", op->name);
        return true;
    }
    if (nd_type_plain(type, plain, sizeof plain) == 0)
        return false;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t len = strlen(before[i]);
        if (strncmp(name, before[i], len) == 0 && name[len] != '\0')
            name += len;
    }
    snprintf(buf, size, "%s", one_name(name));
    return true;
}

/* --- listing ------------------------------------------------------------------------- */

enum nd_status nd_operators_list(struct arena *arena, struct nd_listing *listing,
                                 struct nd_error *err)
{
    for (size_t i = 0; i < listing->layer_count; i++) {
        const struct nd_list_layer *layer = &listing->layers[i];
        const struct ascend_op *op = nd_ascend_op_for(layer->type);
        struct nd_list_slot *slots = (struct nd_list_slot *)(uintptr_t)layer->slots;
        if (op == NULL || strcmp(layer->direction, "forward") != 0)
            continue;
        for (size_t s = 0; s < layer->slot_count; s++) {
            struct ascend_output output;
            size_t number;
            if (!nd_slot_numbered(slots[s].name, "output.", MAX_OUTPUTS, &number) ||
                !nd_ascend_output(op, number, &output))
                continue;
            slots[s].meaning = nd_arena_string(arena, output.name);
            if (slots[s].meaning == NULL)
                return nd_fail_memory(err);
        }
    }
    return ND_OK;
}
