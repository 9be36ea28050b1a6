/*
 * Gradients of a pooling maximum that two values share but for rounding.
 */
#ifndef ND_COMPARE_KINK_TIE_H
#define ND_COMPARE_KINK_TIE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/shape.h"

/* An element of a gradient that is off, and the forward values there. */
struct off_element {
    uint64_t index; /* flat, ascending */
    double   error; /* candidate - reference */
    double   value[2];
    bool     is_explained;
};

enum { MAX_OFF = 1 << 14 };

/*
 * Every element that is not explained yet gave its gradient to a neighbour, or took one's, and
 * the two values lie no further apart than `reach`.  The last two axes are the image's.
 */
bool nd_ties_explain(struct off_element *off, uint64_t count, const struct nd_shape *shape,
                     double reach);

#endif
