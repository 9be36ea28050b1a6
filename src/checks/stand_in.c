/*
 * Proving which earlier outputs a layer was fed with.
 */
#include "checks/stand_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/replay.h"
#include "ops/norm.h"

static const char *const stand_in_names[OP_MAX_INPUTS] = {"input.0", "input.1"};

/* How far back, in layers: a branch of a residual block or an attention head. */
enum { UNARY_REACH = 14, PAIR_REACH = 40, PAIR_LAYERS = 20, PAIR_VALUES = 200 };
/* Elements that a first look takes; unknown groups show in whole tensors only. */
enum { LOOK = 1 << 13, LOOK_GROUPS = 1 << 16 };
/* Rows that fix the weights of all their channels, and channels that tell beforehand
 * whether it is worth the while. */
enum { LOOK_ROWS = 24, LOOK_CHANNELS = 8 };

static const struct slot_view *output_of(const struct layer_view *layer)
{
    const struct slot_view *slot =
        layer == NULL || layer->container ? NULL : nd_layer_slot(layer, "output.0");

    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? slot
               : NULL;
}

bool nd_stand_in_make(const struct diagnosis_input *input, size_t index, const size_t *from,
                      unsigned count, struct stand_in *ret)
{
    *ret = (struct stand_in){.count = count};
    for (unsigned k = 0; k < count; k++)
        ret->from[k] = from[k];
    for (int side = 0; side < 2; side++) {
        const struct layer_view *layer = nd_pair_of(input, index)->side[side];
        if (layer == NULL)
            continue; /* it has no partner */
        ret->slots[side] = calloc(layer->slot_count + count + 1, sizeof **ret->slots);
        if (ret->slots[side] == NULL) {
            nd_stand_in_done(ret);
            return false;
        }
        /* In front: one side may have inputs of its own, which prove nothing of the other. */
        if (layer->slot_count > 0)
            memcpy(ret->slots[side] + count, layer->slots,
                   layer->slot_count * sizeof *layer->slots);
        ret->side[side] = *layer;
        ret->side[side].slots = ret->slots[side];
        ret->side[side].slot_count += count;
        for (unsigned k = 0; k < count; k++) {
            const struct slot_view *slot = output_of(nd_pair_of(input, from[k])->side[side]);
            if (slot == NULL) {
                nd_stand_in_done(ret);
                return false;
            }
            struct slot_view *copy = &ret->slots[side][k];
            *copy = *slot;
            copy->name = stand_in_names[k];
        }
        ret->pair.side[side] = &ret->side[side];
    }
    return true;
}

void nd_stand_in_done(struct stand_in *stand_in)
{
    free(stand_in->slots[0]);
    free(stand_in->slots[1]);
    free(stand_in->own[0]);
    free(stand_in->own[1]);
    *stand_in = (struct stand_in){.count = 0};
}

/* A norm's channel is its normalised input's, scaled and shifted: r^2 of that over some
 * rows of a few channels.  Unrelated tensors reach a tenth by chance. */
static double norm_relation(const struct tensor_view *from, const struct tensor_view *to,
                            uint64_t n, double *row)
{
    const uint64_t rows = from->count / n;
    double h[LOOK_CHANNELS][LOOK_ROWS], y[LOOK_CHANNELS][LOOK_ROWS], sum = 0;

    for (uint64_t i = 0; i < LOOK_ROWS; i++) {
        const uint64_t at = i * rows / LOOK_ROWS;
        double mean, var;
        nd_view_decode(from, at * n, n, row);
        nd_norm_moments(row, n, &mean, &var);
        for (uint64_t c = 0; c < LOOK_CHANNELS; c++) {
            const uint64_t j = (2 * c + 1) * n / (2 * LOOK_CHANNELS);
            h[c][i] = var > 0 ? (row[j] - mean) / sqrt(var) : 0;
            y[c][i] = nd_view_at(to, at * n + j);
        }
    }
    for (int c = 0; c < LOOK_CHANNELS; c++) {
        double mh, vh, my, vy, cross = 0;
        nd_norm_moments(h[c], LOOK_ROWS, &mh, &vh);
        nd_norm_moments(y[c], LOOK_ROWS, &my, &vy);
        for (int i = 0; i < LOOK_ROWS; i++)
            cross += (h[c][i] - mh) * (y[c][i] - my) / LOOK_ROWS;
        sum += vh > 0 && vy > 0 ? cross * cross / (vh * vy) : 0;
    }
    return sum / LOOK_CHANNELS;
}

/* Long rows cost too much to be fitted to every tensor of their shape. */
static bool norm_is_likely(const struct stand_in *stand_in, const struct op *op)
{
    const struct slot_view *to = nd_layer_slot(&stand_in->side[0], "output.0");
    const struct slot_view *from = nd_layer_slot(&stand_in->side[0], "input.0");
    const uint32_t rank = to->tensor.shape.rank;
    const uint64_t n = rank == 0 ? 0 : to->tensor.shape.dim[rank - 1];

    if (op->norm == NULL || op->norm->grouping != NORM_TRAILING || rank < 2 ||
        n <= LOOK / LOOK_ROWS || to->tensor.count / n < LOOK_ROWS)
        return true;
    double *row = malloc(n * sizeof *row);
    const bool likely =
        row != NULL && norm_relation(&from->tensor, &to->tensor, n, row) > 0.5;
    free(row);
    return likely;
}

bool nd_stand_in_proved(const struct stand_in *stand_in, const struct op *op,
                        double roundoff, size_t index)
{
    const bool grouped = op->norm != NULL && op->norm->grouping == NORM_GROUPS;
    const bool trailing = op->norm != NULL && op->norm->grouping == NORM_TRAILING;
    const struct replay_limits limits = {.elements = grouped ? LOOK_GROUPS : LOOK,
                                         .rows = trailing ? LOOK_ROWS : 0,
                                         .row = 1u << 22,
                                         .seed = index};
    struct formula formula;

    if (!norm_is_likely(stand_in, op))
        return false;
    if (!nd_formula_open(&stand_in->pair, op, roundoff, &limits, NULL, &formula))
        return false;
    /* Another tensor is off by about its own size; a norm of rows far from zero by more
     * than rounding. */
    const double enough =
        fmax(fmax(4 * roundoff, 3e-6), fmin(4 * formula.leeway.rel, 1e-3));
    bool proved = false;
    for (int side = 0; side < 2 && formula.leeway.fit <= 2 * enough; side++) {
        const struct residual *residual = &formula.residual[side];
        proved = proved || (residual->n > 0 && residual->mismatches == 0 &&
                            residual->rel <= enough);
    }
    nd_formula_close(&formula);
    return proved;
}

static bool same_shape(const struct diagnosis_input *input, size_t a, size_t b)
{
    const struct slot_view *left = output_of(nd_pair_of(input, a)->side[0]);
    const struct slot_view *right = output_of(nd_pair_of(input, b)->side[0]);

    return left != NULL && right != NULL &&
           output_of(nd_pair_of(input, b)->side[1]) != NULL &&
           nd_shape_equal(&left->tensor.shape, &right->tensor.shape);
}

static bool find_unary(const struct diagnosis_input *input, size_t index,
                       const struct op *op, double roundoff, struct stand_in *ret)
{
    size_t from = nd_before(input, index);

    for (int back = 0; back < UNARY_REACH && from != ND_NO_INDEX;
         back++, from = nd_before(input, from)) {
        if (!same_shape(input, index, from) ||
            !nd_stand_in_make(input, index, &from, 1, ret))
            continue;
        if (nd_stand_in_proved(ret, op, roundoff, index))
            return true;
        nd_stand_in_done(ret);
    }
    return false;
}

/* A few hundred values of a layer's output, evenly spaced. */
static void pair_values(const struct diagnosis_input *input, size_t index, double *ret)
{
    const struct tensor_view *view = &output_of(nd_pair_of(input, index)->side[0])->tensor;

    for (uint64_t i = 0; i < PAIR_VALUES; i++)
        ret[i] = nd_view_at(view, i * view->count / PAIR_VALUES);
}

static bool pair_fits(const struct op *op, const double *a, const double *b,
                      const double *y, double roundoff)
{
    const struct op_call call = {0};
    const double *const inputs[OP_MAX_INPUTS] = {a, b};
    double z[PAIR_VALUES], error = 0, size = 0;

    op->row(&call, inputs, PAIR_VALUES, z);
    for (int i = 0; i < PAIR_VALUES; i++) {
        error += (y[i] - z[i]) * (y[i] - z[i]);
        size += y[i] * y[i];
    }
    return size > 0 && error <= 16 * roundoff * roundoff * size;
}

static bool find_pair(const struct diagnosis_input *input, size_t index,
                      const struct op *op, double roundoff, struct stand_in *ret)
{
    double(*values)[PAIR_VALUES] = malloc((PAIR_LAYERS + 1) * sizeof *values);
    size_t from[PAIR_LAYERS], count = 0;
    bool found = false;

    if (values == NULL)
        return false;
    size_t behind = nd_before(input, index);
    for (int back = 0; back < PAIR_REACH && behind != ND_NO_INDEX && count < PAIR_LAYERS;
         back++, behind = nd_before(input, behind))
        if (same_shape(input, index, behind)) {
            pair_values(input, behind, values[count]);
            from[count++] = behind;
        }
    if (count > 0)
        pair_values(input, index, values[PAIR_LAYERS]);
    for (size_t a = 0; a < count && !found; a++)
        for (size_t b = a + 1; b < count && !found; b++) {
            const size_t both[] = {from[b], from[a]};
            found = pair_fits(op, values[b], values[a], values[PAIR_LAYERS], roundoff) &&
                    nd_stand_in_make(input, index, both, 2, ret);
            if (found && !nd_stand_in_proved(ret, op, roundoff, index)) {
                nd_stand_in_done(ret);
                found = false;
            }
        }
    free(values);
    return found;
}

bool nd_stand_in_find(const struct diagnosis_input *input, size_t index,
                      const struct op *op, double roundoff, struct stand_in *ret)
{
    if (output_of(nd_pair_of(input, index)->side[0]) == NULL ||
        output_of(nd_pair_of(input, index)->side[1]) == NULL)
        return false;
    if (op->norm != NULL || op->inputs == 1)
        return find_unary(input, index, op, roundoff, ret);
    return op->inputs == 2 && find_pair(input, index, op, roundoff, ret);
}
