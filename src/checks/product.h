/*
 * Products recomputed in float64: linear layers, convolutions, products of two inputs.
 * Single outputs are computed, one in each of equal slices, so that any size is affordable.
 */
#ifndef ND_CHECKS_PRODUCT_H
#define ND_CHECKS_PRODUCT_H

#include "checks/grid.h"
#include "tensor/view.h"

enum product_form {
    PRODUCT_LINEAR,        /* x [.., K] times w [N, K] */
    PRODUCT_LINEAR_TURNED, /* x [.., K] times w [K, N] */
    PRODUCT_CONV,          /* x [B, C, H, W] with w [N, C / groups, h, w] */
    PRODUCT_TIMES,         /* a [.., M, K] times b [.., K, N] */
    PRODUCT_SCORES,        /* a [.., M, K] times b [.., N, K] turned */
    PRODUCT_FORMS
};

struct conv_facts {
    uint64_t stride[2], pad[2], dilation[2], groups;
};

struct product {
    enum product_form form;
    struct conv_facts conv;
    uint64_t terms; /* K */
    struct nd_shape left_shape, right_shape, out_shape;
    double *left[2], *right[2], *bias[2]; /* whole; bias NULL: none */
    uint64_t left_count, right_count, channels;
    double *rounded[2]; /* operands of one side on a grid */
    uint64_t *at;       /* flat indices of the outputs taken, */
    uint64_t count;     /* ascending */
    bool is_whole;      /* all of them */
    double *out[2];     /* what was dumped there */
    double *values;     /* room for as many */
    double *plain[2];   /* each side's nd_product_plain on no grid; NULL: not computed */
    double scale[2];    /* of a product of two inputs: fitted to each side; else 1 */
    double residual[2];
};

/*
 * Finds the form that reproduces the reference, or the candidate, to `gate`.  max_bytes
 * bounds what is allocated.  False: not recomputable, nothing to close.
 */
bool nd_product_open(const struct layer_pair_view *pair, double gate, uint64_t max_bytes,
                     uint64_t seed, struct product *ret_product);
/* The same with at most about so many multiply-adds a pass. */
bool nd_product_open_within(const struct layer_pair_view *pair, double gate,
                            uint64_t max_bytes, uint64_t seed, uint64_t terms,
                            struct product *ret_product);
void nd_product_close(struct product *product);

/* The layer's shapes allow product->form; fills its terms and geometry. */
bool nd_product_fits(const struct layer_view *layer, struct product *product);

/* What one side's outputs should be with its operands rounded to a grid (GRID_NONE: as they
 * are): without scale and bias in ret_plain, which has room for `count`. */
void nd_product_plain(struct product *product, int side, enum grid grid, double *ret_plain);
/* The bias that belongs to the i-th output taken; 0 if there is none. */
double nd_product_bias(const struct product *product, int side, uint64_t i);
/* One output of a side, wherever it lies; `scale` is of a product of two inputs. */
double nd_product_at(const struct product *product, int side, double scale, uint64_t flat);
/* A finite value that no mask hides. */
bool nd_product_counts(double y);
/* The operands that one output sums over, `terms` of them; its sum with the weights of its
 * channel; the channel's bias. */
void nd_product_operands(const struct product *product, int side, uint64_t flat,
                         double *ret_operands);
double nd_product_weigh(const struct product *product, int side, uint64_t channel,
                        const double *operands);
/* A sum of products of numbers that lie side by side. */
double nd_product_dot(const double *a, const double *b, uint64_t terms);
double nd_product_bias_at(const struct product *product, int side, uint64_t channel);
/* ||y - (scale * plain + bias)|| / ||that||, over what is finite and not masked. */
double nd_product_misfit(const struct product *product, int side, const double *plain,
                         double scale);

#endif
