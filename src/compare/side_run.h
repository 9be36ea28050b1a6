/*
 * Side runs: dumps given as evidence beside the pair (--rerun-*, --golden, --fp32-*), each
 * compared by the same rules and laid beside the layers of the main comparison.
 */
#ifndef ND_COMPARE_SIDE_RUN_H
#define ND_COMPARE_SIDE_RUN_H

#include "compare/compare.h"

struct side_run {
    bool          given;
    size_t        compared;  /* layers that were */
    bool          bit_equal; /* every compared slot */
    const double *drift;     /* one a layer of the main comparison; NAN: not there */
    double        worst;     /* largest drift of a judged layer */
    const char   *first_over; /* name of the first elevated layer; NULL: none */
    size_t        over;       /* layers that are elevated or worse */
};

/*
 * Compares dump `from` (as the reference of drift) with dump `to`.  anchor says which of
 * the two is side `anchored` of the main comparison, so that drifts find their layers:
 * 0: from, 1: to, 2: neither (drift stays NAN everywhere).
 */
enum nd_status nd_side_run(const struct comparison *comparison, const struct dump *from,
                           const struct dump *to, unsigned anchor, unsigned anchored,
                           struct side_run *ret, struct nd_error *err);

#endif
