/*
 * Do the two slots hold the same tensor of the model?  A formula that reproduces one side
 * from its own input proves that side; the other one is measured against it.
 */
#include "checks/subject.h"

static void alignment_run(struct subject *subject, struct nd_finding *finding)
{
    if (subject->is_trusted) {
        finding->status = ND_CHECK_OK;
        finding->evidence = ND_PHRASE(subject->arena, "finding.alignment.replayed",
                                      ND_NUMBER("residual", subject->floor));
        return;
    }
    finding->evidence = nd_phrase_plain("finding.alignment.unknown");
    finding->advice = nd_phrase_plain("advice.alignment");
}

const struct check nd_check_alignment = {
    .id = "alignment", .is_line = true, .of_norms = true, .run = alignment_run};
