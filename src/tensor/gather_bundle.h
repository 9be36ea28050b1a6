/*
 * Gathering by bundles.
 */
#ifndef ND_TENSOR_GATHER_BUNDLE_H
#define ND_TENSOR_GATHER_BUNDLE_H

#include "tensor/gather_plan.h"

struct bundles {
    const struct gather_plan *plan;
    uint32_t line;       /* the axis whose elements lie side by side */
    uint64_t dim, block; /* its elements; so many of them lie side by side */
    uint64_t tail;       /* elements of the axes behind it: of a row */
    bool across;   /* beside a bundle lies the one of the next index before the line */
    int64_t ahead; /* bytes from a position to what will be wanted soon */
};

/* False: the view has none. */
bool nd_bundles_make(const struct gather_plan *plan, struct bundles *ret);
/* Elements [first, first + count) in logical order. */
void nd_bundles_gather(const struct bundles *bundles, uint64_t first, uint64_t count,
                       unsigned char *out);

/* How many elements a piece of the view should have, so that no line is loaded for several
 * of them; and how many of at most `most` one from `first` on had best have. */
uint64_t nd_bundles_reach(const struct bundles *bundles);
uint64_t nd_bundles_cut(const struct bundles *bundles, uint64_t first, uint64_t most);

/* Rows of one bundle, without what lies before `from` in the first of them and from `to` on
 * in the last. */
struct bundle {
    uint64_t row, rows; /* counted through the view */
    uint64_t from, to;
    uint64_t count; /* of elements */
};

/* Of at most so many rows and elements, from flat index `first` on. */
struct bundle nd_bundle_from(const struct bundles *bundles, uint64_t first, uint64_t count,
                             uint64_t rows);
/* The positions [low, high) of the bundle's rows.  Position `low` of its row i goes to
 * out + i * pitch; what it is without is not written. */
void nd_bundle_gather(const struct bundles *bundles, const struct bundle *bundle,
                      uint64_t low, uint64_t high, unsigned char *out, uint64_t pitch);
/* Bundles one behind the other, each in the order of memory: where the element number `at`
 * lies, and behind it more that follow; NULL: there, nothing follows. */
const unsigned char *nd_bundles_source(const struct bundles *bundles, uint64_t at);

#endif
