/*
 * Damage in an output of which the checks see a part (see window.h): it lies somewhere
 * else.
 */
#ifndef ND_CHECKS_DAMAGE_SURVEY_H
#define ND_CHECKS_DAMAGE_SURVEY_H

#include "checks/subject.h"

/* Proposes what the whole output shows; false: nothing stands out there. */
bool nd_damage_survey(struct subject *subject, struct nd_finding *finding);

#endif
