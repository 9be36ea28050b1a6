/*
 * The strongest test of a layer: recompute it in float64 from the candidate's own input.
 * If the output follows, the layer is innocent, whatever its input was.
 */
#ifndef ND_CHECKS_REPLAY_H
#define ND_CHECKS_REPLAY_H

#include "checks/norm_study.h"
#include "checks/residual.h"
#include "ops/op.h"

enum replay_flag {
    REPLAY_FOLLOWS,
    REPLAY_NONFINITE, /* NaN or infinity that the formula does not give */
    REPLAY_RESIDUAL,  /* further off than rounding */
    REPLAY_LOCAL,     /* a few elements far off */
    REPLAY_SLOPE      /* a small factor on everything, below the rounding of one element */
};

struct replay {
    bool done;    /* recomputed on both sides */
    bool trusted; /* the formula reproduces the reference (or the candidate) */
    bool whole;   /* all elements, or a sample of whole rows */
    bool fitted;  /* parameters were estimated from one side: */
    int fitted_on;
    double floor; /* what rounding alone would leave */
    struct residual residual[2];
    enum replay_flag flag;
    int side; /* that does not follow: 1 candidate, 0 reference */
};

/* Most elements that a replay looks at, but `rows` of them in any case, and the most that
 * one row may have. */
struct replay_limits {
    uint64_t elements, rows, row;
    uint64_t seed;
};

/* A layer's formula with the tensors it is measured on. */
struct formula {
    const struct op *op;
    struct op_call call;
    struct nd_shape shape; /* of the tensors */
    struct sample sample;
    struct norm_study study; /* of norms; op NULL: none */
    struct residual residual[2];
    struct leeway leeway; /* what estimated parameters add to a residual */
};

/*
 * Loads rows of both sides and finds the formula that the reference follows.  roundoff: of
 * the output's type.  worst: a logical multi-index that must be looked at, or NULL.  False
 * where the layer cannot be recomputed; then there is nothing to close.
 */
bool nd_formula_open(const struct layer_pair_view *pair, const struct op *op,
                     double roundoff, const struct replay_limits *limits,
                     const uint64_t *worst, struct formula *ret_formula);
void nd_formula_close(struct formula *formula);

/* What one side's output should be on the i-th row of the sample, from its own input. */
void nd_formula_row(const struct formula *formula, int side, uint64_t i, double *out);

/* Opens, judges and closes. */
void nd_replay_layer(const struct layer_pair_view *pair, const struct op *op,
                     double roundoff, const struct replay_limits *limits,
                     const uint64_t *worst, struct replay *ret_replay);

/* Compares the residuals of both sides; fills trusted, floor, flag and side. */
void nd_replay_judge(struct replay *replay, double roundoff, struct leeway leeway);

#endif
