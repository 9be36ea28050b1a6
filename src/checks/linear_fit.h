/*
 * Rows of a linear layer's or convolution's input, with the errors of its outputs there,
 * and the linear maps that explain those errors.
 */
#ifndef ND_CHECKS_LINEAR_FIT_H
#define ND_CHECKS_LINEAR_FIT_H

#include "checks/product.h"

/* Every fourth row is kept for the test of what the others are fitted by. */
struct linear_rows {
    uint64_t groups;          /* of a convolution; each has its own inputs */
    uint64_t count;           /* rows */
    uint64_t terms, channels; /* weights of a channel; channels in all */
    double *input;            /* [groups][count][terms] */
    double *error;            /* [channels][count]: actual less expected */
    double *plain; /* [channels][count]: the product without bias; NULL: unknown */
    double size;   /* rms of the actual outputs */
};

struct linear_fit {
    double residual; /* rms error of the rows tested, over the outputs' rms */
    double scale;    /* of nd_linear_scale: the factor less 1 */
    uint64_t terms;  /* weights that a sparse fit changed */
    double spread;   /* how much more than its own error a row's prediction is off by */
};

/* The wrong side's rows of a product with known weights; false: too few, nothing to free.
 */
bool nd_linear_of_product(const struct product *product, const struct layer_pair_view *pair,
                          int side, struct linear_rows *ret_rows);
/* Rows of a tensor that has as many as the outputs. */
bool nd_linear_of_views(const struct tensor_view *input, const struct nd_shape *shape,
                        const double *actual, const double *expected, uint64_t max_bytes,
                        struct linear_rows *ret_rows);
void nd_linear_done(struct linear_rows *rows);

double nd_linear_error(const struct linear_rows *rows);    /* with nothing explained */
double nd_linear_constant(const struct linear_rows *rows); /* with a constant a channel */
uint64_t nd_linear_wrong(const struct linear_rows *rows, double limit); /* channels */

/* One factor on all weights. */
void nd_linear_scale(const struct linear_rows *rows, struct linear_fit *ret_fit);
/* A few weights of each wrong channel; false: too many wrong channels to look at. */
bool nd_linear_sparse(const struct linear_rows *rows, double floor,
                      struct linear_fit *ret_fit);
/* Any weights; false: fewer rows than that takes, or too much work. */
bool nd_linear_full(const struct linear_rows *rows, struct linear_fit *ret_fit);

/*
 * How like the errors of like rows are: the slope of the errors' cosines over the inputs',
 * 1 where the error is some linear map of the input, whatever the map.  NAN: unknown.
 */
double nd_linear_gram(const struct linear_rows *rows, double *ret_error);

#endif
