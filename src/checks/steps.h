/*
 * The four steps of a precision hunt: rule out randomness, rule out precision, compare the
 * layers, look into the norm.  Which are done, and the command for each that is open.
 */
#ifndef ND_CHECKS_STEPS_H
#define ND_CHECKS_STEPS_H

#include "checks/subject.h"

/* subject: the first diverging layer, NULL where there is none. */
enum nd_status nd_steps_make(const struct diagnosis_input *input,
                             const struct subject *subject, const struct layer_facts *facts,
                             struct arena *arena, struct diagnosis *ret,
                             struct nd_error *err);

#endif
