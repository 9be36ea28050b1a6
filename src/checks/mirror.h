/*
 * A norm whose weights are not dumped has them estimated on the reference.  If the
 * reference is the faulty side and its fault hides in them (no weight, no bias, a scale of
 * every channel), the formula has to be told from the candidate, and the reference tested.
 */
#ifndef ND_CHECKS_MIRROR_H
#define ND_CHECKS_MIRROR_H

#include "checks/subject.h"

/*
 * Runs the norms' checks with the sides exchanged, where nothing is confirmed as it is, and
 * puts forward what they confirm.
 */
void nd_mirror_run(struct subject *subject, const struct check *const *checks,
                   size_t check_count);

#endif
