/*
 * The runs of the model that a result holds: a step of a rank is one.  Ranks stand side by
 * side in a result, so that what came before a layer is not what stands above it.
 */
#ifndef ND_CHECKS_RUNS_H
#define ND_CHECKS_RUNS_H

#include "normdiff/result.h"

struct run_index {
    size_t *run;    /* of each layer: 0 ... count - 1 */
    size_t *before; /* each layer's predecessor in its run; ND_NO_INDEX: it is the first */
    size_t count;
};

/* False without memory. */
bool nd_runs_index(const struct nd_result *result, struct run_index *ret_runs);
void nd_runs_done(struct run_index *runs);

#endif
