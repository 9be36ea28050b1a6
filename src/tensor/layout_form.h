/*
 * One row of layouts.def laid over one pair of shapes: its digits with their sizes.  Inside
 * src/tensor only.
 */
#ifndef ND_TENSOR_LAYOUT_FORM_H
#define ND_TENSOR_LAYOUT_FORM_H

#include "tensor/layout.h"

enum { FORM_LETTERS = 128, FORM_BLOCK = 16 /* the cube unit's edge: M0 and N0 */ };

struct digit {
    char letter;     /* '*': a batch axis */
    char part;       /* 0 whole, '/' quotient, '%' remainder */
    uint32_t stored; /* which stored dimension it lies in */
    uint64_t size;
    int64_t stride; /* in elements */
};

struct form {
    const struct layout *layout;
    const char *letters; /* logical axes behind the batch axes */
    uint32_t lead;       /* batch axes */
    uint32_t rank;       /* logical */
    uint32_t stored;     /* stored dimensions */
    struct digit digit[2 * ND_MAX_RANK];
    uint32_t count;
    uint64_t dim[FORM_LETTERS];   /* by letter; 1 for axes that are not there */
    uint64_t block[FORM_LETTERS]; /* 1: not blocked */
    uint64_t groups, merged;      /* of a convolution; how many share their blocks */
    uint64_t inner[2];            /* channels in and out of one group */
};

/* Reads the row for a tensor of this logical shape; false: it takes another rank. */
bool nd_form_read(const struct layout *layout, const struct nd_shape *logical,
                  uint64_t groups, struct form *ret_form);
/* Sizes of all digits, once the blocks are known; NULL or what contradicts. */
const char *nd_form_measure(struct form *form);
/* The form that fits both shapes; NULL, and *ret_form is filled, or why none does. */
const char *nd_form_fit(const struct layout *layout, const struct nd_shape *storage,
                        const struct nd_shape *logical, uint64_t groups,
                        struct form *ret_form);
/* The stored dimension that the digits in it make; false on overflow. */
bool nd_form_stored(const struct form *form, uint32_t stored, uint64_t *ret_dim);

#endif
