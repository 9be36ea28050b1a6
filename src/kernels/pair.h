/*
 * A pair of views as both passes see it: which positions count, and what the error is.
 * This is the plain-spoken form of the rules; moments_tmpl.h does the same to whole
 * vectors and is held to it by tests.
 */
#ifndef ND_KERNELS_PAIR_H
#define ND_KERNELS_PAIR_H

#include <float.h>
#include <math.h>

#include "kernels/moments.h"

/* PAIR_STEP elements are read at a time; PAIR_MASKS constants suffice for any dtype. */
enum { PAIR_STEP = 512, PAIR_MASKS = 24, PAIR_ELEMENT_MAX = 16 };

/* The constants that models add to scores where attention is masked, in one dtype. */
struct pair_masks {
    double value[PAIR_MASKS];
    unsigned count;
    double top; /* no constant is larger; -inf where there are none */
};

struct pair {
    const struct tensor_view *view[2]; /* reference, candidate */
    struct pair_masks masks[2];
    bool nan_strict;
    bool is_complex; /* either side */
    bool is_wide;    /* a 64-bit integer on either side */
    bool is_single;  /* float32 holds every value of both sides */
    bool is_short;   /* integers of at most 16 bits on both sides: a block's sums are exact */
    double scale;
    unsigned size[2]; /* bytes of an element */
};

/* What becomes of a position. */
enum pair_state {
    PAIR_KEPT,       /* finite and unmasked on both sides: in the sums */
    PAIR_AGREES,     /* not finite, in the same way on both sides */
    PAIR_MISMATCHES, /* not finite, and different */
    PAIR_MASKED
};

/*
 * Up to PAIR_STEP positions.  Complex elements are moduli in r, c and abs.  r and c are as
 * stored; abs and product carry the pair's scale (product its square).
 */
struct pair_values {
    unsigned n;
    double r[PAIR_STEP], c[PAIR_STEP];
    double abs[PAIR_STEP];          /* |c - r|, rounded once */
    double product[PAIR_STEP];      /* r * c, or the real part of r * conj(c) */
    unsigned char state[PAIR_STEP]; /* enum pair_state */
    bool differs[PAIR_STEP];        /* of kept and masked positions: r != c */
};

void nd_pair_init(struct pair *pair, const struct tensor_view *r,
                  const struct tensor_view *c, enum nd_dtype real_r, enum nd_dtype real_c,
                  const struct moments_policy *policy);

/* Most positions are ordinary; two tests tell. */
static inline bool pair_is_ordinary(const struct pair *pair, double r, double c)
{
    return fabs(r) <= DBL_MAX && fabs(c) <= DBL_MAX &&
           !(r <= pair->masks[0].top && c <= pair->masks[1].top);
}

enum pair_state nd_pair_state(const struct pair *pair, double r, double c);

/*
 * The packed little-endian bytes of positions [first, first + count) of one side: in place
 * where the view allows it, else gathered into buffer (count elements' worth).
 */
const unsigned char *nd_pair_bytes(const struct tensor_view *view, uint64_t first,
                                   uint64_t count, unsigned char *buffer);

/* Does a side's memory hold its elements packed, in order, little-endian? */
static inline bool nd_pair_in_place(const struct tensor_view *view)
{
    return view->contiguous && !view->swapped;
}

/* Reads n <= PAIR_STEP positions from packed bytes. */
void nd_pair_read(const struct pair *pair, const unsigned char *r, const unsigned char *c,
                  unsigned n, struct pair_values *ret);

#endif
