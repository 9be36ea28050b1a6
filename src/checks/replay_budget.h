/*
 * How much of a dump is recomputed, so that the diagnosis takes no longer than comparing.
 */
#ifndef ND_CHECKS_REPLAY_BUDGET_H
#define ND_CHECKS_REPLAY_BUDGET_H

#include "normdiff/result.h"

/* What one layer may take; the same for all, so that it does not depend on their order. */
struct replay_budget {
    uint64_t norm;  /* elements of a norm's replay, */
    uint64_t other; /* of another formula's, */
    uint64_t terms; /* and multiply-adds of a product's */
};

struct replay_budget nd_replay_budget(const struct nd_result *result);

#endif
