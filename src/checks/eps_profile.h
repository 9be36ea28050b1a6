/*
 * Recovering eps where the weights are unknown too: they are fitted anew for each value.
 */
#ifndef ND_CHECKS_EPS_PROFILE_H
#define ND_CHECKS_EPS_PROFILE_H

#include "checks/eps_fit.h"
#include "checks/replay.h"

/* Values that frameworks use, ascending. */
extern const double nd_eps_common[];
extern const size_t nd_eps_common_count;

/* Residual of the side that the weights come from under an eps, with them fitted anew; the
 * model is left there. */
double nd_eps_profile(struct formula *formula, double eps);

/* That side's eps, searched on a part of the rows where they are many; leaves the model at
 * the value that was chosen.  False without memory. */
bool nd_eps_of_reference(struct formula *formula, struct eps_fit *ret);

#endif
