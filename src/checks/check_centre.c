/*
 * Is the mean subtracted?  LayerNorm and RMSNorm differ in nothing else.
 */
#include "checks/subject.h"

#include <math.h>

static void centre_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    const bool centre = subject->norm->centre;

    if (model == NULL || !subject->is_trusted) {
        finding->evidence = nd_phrase_plain("finding.centre.no_input");
        return;
    }
    struct norm_model flipped = *model;
    flipped.centre = !model->centre;
    const double residual = nd_propose_norm(
        subject, "mean_not_subtracted", &flipped, 0,
        (const struct nd_param[]){ND_WORD("expected", centre ? "yes" : "no"),
                                  ND_WORD("found", centre ? "no" : "yes")},
        2);
    const bool other =
        residual < 0.5 * subject->unexplained && residual < 4 * subject->floor;
    const bool follows = subject->unexplained < 4 * subject->floor;
    finding->recovered[!subject->side] = centre ? "mean subtracted" : "no mean subtracted";
    if (other)
        finding->recovered[subject->side] =
            centre ? "no mean subtracted" : "mean subtracted";
    else if (follows)
        finding->recovered[subject->side] = finding->recovered[!subject->side];
    finding->status = other ? ND_CHECK_MISMATCH : follows ? ND_CHECK_OK : ND_CHECK_UNKNOWN;
    finding->evidence = nd_phrase_plain(other     ? "finding.centre.differs"
                                        : follows ? "finding.centre.alike"
                                                  : "finding.centre.other_fault");
    if (other)
        finding->advice = nd_phrase_plain("advice.centre");
}

const struct check nd_check_centre = {
    .id = "centre", .is_line = true, .of_norms = true, .run = centre_run};
