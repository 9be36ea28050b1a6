/*
 * The five norms as one engine: a norm is rows of elements that share their statistics
 * (struct op_rows), and a handful of parameters.  Every variant of a formula (another eps,
 * no mean, n - 1, running statistics ...) is another set of parameters, never other code.
 */
#ifndef ND_OPS_NORM_H
#define ND_OPS_NORM_H

#include "ops/op.h"

struct norm_model {
    double eps;
    bool eps_outside; /* 1 / (sqrt(var) + eps) */
    bool centre;      /* subtract the mean */
    bool unbiased;    /* divide by n - 1 */
    double plus;      /* 1 for formulas that scale by (1 + weight) */
    double padded;    /* row length with padding zeros counted, over the real one; or 0 */
    const double *mean,
        *var; /* per channel, of one channel a row; NULL: of the row itself */
    const double *weight, *bias; /* per channel; NULL: 1 and 0 */
};

/*
 * Rows of a norm over a tensor of this shape.  groups: of GroupNorm (0: as the attributes
 * say).  False where the shape does not fit the operator or the groups are unknown.
 */
bool nd_norm_rows(const struct op *op, const struct layer_view *layer,
                  const struct nd_shape *shape, uint64_t groups, struct op_rows *ret_rows);

/* Mean and biased variance of a row; two passes, so that a large mean costs no digits. */
void nd_norm_moments(const double *x, uint64_t n, double *ret_mean, double *ret_var);

/* What `model` uses for row g: the value to subtract, and the variance. */
void nd_norm_statistics(const struct norm_model *model, const struct op_rows *rows,
                        uint64_t row, const double *x, double *ret_centre, double *ret_var);

/* The factor that a variance makes. */
double nd_norm_scale(const struct norm_model *model, double var);

/* The replay of one row. */
void nd_norm_row(const struct norm_model *model, const struct op_rows *rows, uint64_t row,
                 const double *x, double *out);

/* Weight that applies to a channel, with the model's `plus`. */
static inline double nd_norm_weight(const struct norm_model *model, uint64_t channel)
{
    return model->weight == NULL ? 1.0 : model->plus + model->weight[channel];
}

static inline double nd_norm_bias(const struct norm_model *model, uint64_t channel)
{
    return model->bias == NULL ? 0.0 : model->bias[channel];
}

#endif
