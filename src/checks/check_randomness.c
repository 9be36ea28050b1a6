/*
 * Would a second run give the same?  One pair of dumps cannot tell.
 */
#include "checks/subject.h"

static void randomness_run(struct subject *subject, struct nd_finding *finding)
{
    (void)subject;
    finding->evidence = nd_phrase_plain("finding.randomness.unknown");
    finding->advice = nd_phrase_plain("advice.randomness");
}

const struct check nd_check_randomness = {
    .id = "randomness", .is_line = true, .run = randomness_run};
