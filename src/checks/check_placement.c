/*
 * Are the right values in the wrong places?  Other places leave the extremes and the norm
 * of a tensor as they are.
 */
#include "checks/subject.h"

#include <math.h>

static bool placement_same_values(const struct nd_slot *slot)
{
    static const char *const keys[] = {"min", "max", "norm"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const double a = nd_slot_number(slot, keys[i], 0),
                     b = nd_slot_number(slot, keys[i], 1);
        if (!(fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b))))
            return false;
    }
    return true;
}

static void placement_run(struct subject *subject, struct nd_finding *finding)
{
    if (subject->slot == NULL || subject->slot->evidence != ND_EVIDENCE_VALUES ||
        subject->slot->fails == ND_FAIL_SHAPE) {
        finding->evidence = nd_phrase_plain("finding.placement.no_values");
        return;
    }
    if (subject->own->out.rel > 0.1 && placement_same_values(subject->slot)) {
        finding->status = ND_CHECK_SUSPECT;
        finding->evidence = nd_phrase_plain("finding.placement.moved");
        finding->advice = nd_phrase_plain("advice.placement");
        return;
    }
    finding->status = ND_CHECK_OK;
    finding->evidence = nd_phrase_plain("finding.placement.ok");
}

const struct check nd_check_placement = {
    .id = "placement", .is_line = true, .of_norms = true, .run = placement_run};
