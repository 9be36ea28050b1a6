/*
 * What an operator is: one row of facts (ops.def, op_<word>.c) and, where it can be
 * recomputed cheaply, a float64 replay.  A replay recomputes the operator's output from
 * dumped inputs and parameters; it never judges.
 */
#ifndef ND_OPS_OP_H
#define ND_OPS_OP_H

#include <stddef.h>

#include "tensor/view.h"

enum { OP_MAX_INPUTS = 2 };

/* What the error of the inputs can do to the output. */
enum op_bound {
    BOUND_RELATIVE, /* at most `gain` times the relative error */
    BOUND_ABSOLUTE, /* the absolute errors add up; cancellation can magnify the relative one
                     */
    BOUND_NORM,     /* absolute error times max|weight| / sigma of the row */
    BOUND_NONE /* no useful limit (exp, division, a mean): only equal inputs prove a thing
                */
};

/*
 * How a tensor falls into rows that can be replayed one by one: its axes reordered by
 * `order`, row g is the elements [g * row_len, (g + 1) * row_len) of that.  For a norm a
 * row is one group of elements that share their statistics.  Parameters are per channel:
 * the channel of element j of row g is (g % period) * per_row + j / span.
 */
struct op_rows {
    uint32_t rank;
    uint32_t order[ND_MAX_RANK];
    uint64_t rows, row_len;
    uint64_t period, per_row, span, channels;
};

static inline uint64_t nd_op_channel(const struct op_rows *rows, uint64_t row, uint64_t at)
{
    return (row % rows->period) * rows->per_row + at / rows->span;
}

/* The channel of one element after the other, without a division each. */
struct op_channel {
    uint64_t at, left;
};

static inline struct op_channel nd_op_channel_first(const struct op_rows *rows,
                                                    uint64_t row)
{
    return (struct op_channel){.at = (row % rows->period) * rows->per_row,
                               .left = rows->span};
}

static inline void nd_op_channel_next(const struct op_rows *rows,
                                      struct op_channel *channel)
{
    if (--channel->left == 0) {
        channel->at++;
        channel->left = rows->span;
    }
}

/* Which elements a norm takes its statistics over. */
enum norm_grouping { NORM_TRAILING, NORM_CHANNEL, NORM_GROUPS, NORM_INSTANCE };

struct norm_facts {
    enum norm_grouping grouping;
    bool centre;        /* subtracts the mean */
    bool running;       /* may use running statistics instead of the batch's */
    double default_eps; /* of the framework that the layer type comes from */
    double one_plus;    /* 1: scales by 1 + weight */
};

/* Constants of one layer's replay, read from its attributes. */
struct op_call {
    unsigned variant;
    double number[2];
};

struct op {
    const char *name;
    const char *types; /* globs separated by blanks; see nd_op_for() */
    enum op_bound bound;
    double gain;                   /* of BOUND_RELATIVE */
    const struct norm_facts *norm; /* NULL: no norm */
    bool product;                  /* matrix product or convolution */
    bool bias;                     /* may add a bias per channel to it */
    unsigned inputs;               /* that a replay reads; 0: no replay (norms: norm.h) */
    unsigned variants;             /* formulas of this name; the reference tells which */
    /* Rows for a tensor of this shape, and the call's constants; false: cannot be replayed.
     */
    bool (*plan)(const struct layer_view *layer, const struct nd_shape *shape,
                 struct op_rows *ret_rows, struct op_call *ret_call);
    void (*row)(const struct op_call *call, const double *const *inputs, uint64_t n,
                double *out);
};

/*
 * The operator of a layer, by its type's name ("LayerNorm", "LlamaRMSNorm", "layer_norm",
 * "BatchNorm2d", "npu_rms_norm" ...); NULL: not in the table.  Globs match the name in
 * lower case without '_', '.', ':' and blanks; the first row of ops.def that matches wins.
 */
const struct op *nd_op_for(const char *type);

/* A number or boolean attribute under any of the blank-separated keys; `otherwise` if none.
 */
double nd_op_number(const struct layer_view *layer, const char *keys, double otherwise);

/* Rows of the innermost axis (planes of a 4-D tensor): for operators that work elementwise.
 */
bool nd_op_plan_elementwise(const struct layer_view *layer, const struct nd_shape *shape,
                            struct op_rows *ret_rows, struct op_call *ret_call);

#endif
