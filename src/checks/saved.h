/*
 * A backward pass computes with what the forward pass saved.
 */
#ifndef ND_CHECKS_SAVED_H
#define ND_CHECKS_SAVED_H

#include "checks/facts.h"

/* Sets `saved` of every backward layer.  False without memory. */
bool nd_saved_gather(const struct nd_result *result, struct layer_facts *facts);

#endif
