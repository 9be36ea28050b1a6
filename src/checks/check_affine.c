/*
 * Are weight and bias applied, and as they are meant?  Dropped, or scaled by (1 + weight).
 */
#include "checks/subject.h"

#include <math.h>

struct affine_try {
    const char       *id, *found;
    struct norm_model model;
};

static size_t affine_tries(const struct norm_model *model, struct affine_try *ret)
{
    size_t count = 0;

    if (model->weight != NULL) {
        ret[count] = (struct affine_try){"weight_dropped", "no weight", *model};
        ret[count++].model.weight = NULL;
        ret[count] = (struct affine_try){"one_plus_weight",
                                         model->plus == 0 ? "1 + weight" : "weight", *model};
        ret[count++].model.plus = 1 - model->plus;
    }
    if (model->bias != NULL) {
        ret[count] = (struct affine_try){"bias_dropped", "no bias", *model};
        ret[count++].model.bias = NULL;
    }
    return count;
}

static void affine_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    struct affine_try        tries[3];
    const char              *found = NULL;
    double                   best = HUGE_VAL;

    if (model == NULL || !subject->is_trusted) {
        finding->evidence = nd_phrase_plain("finding.affine.no_input");
        return;
    }
    const size_t count = affine_tries(model, tries);
    for (size_t i = 0; i < count; i++) {
        const double residual = nd_propose_norm(subject, tries[i].id, &tries[i].model, 0, NULL, 0);
        if (residual < best) {
            best = residual;
            found = tries[i].found;
        }
    }
    const bool other = best < 0.5 * subject->unexplained && best < 4 * subject->floor;
    const bool follows = subject->unexplained < 4 * subject->floor;
    if (other)
        finding->recovered[subject->side] = found;
    finding->status = other ? ND_CHECK_MISMATCH : follows ? ND_CHECK_OK : ND_CHECK_UNKNOWN;
    finding->evidence = nd_phrase_plain(other     ? "finding.affine.differs"
                                        : follows ? "finding.affine.alike"
                                                  : "finding.affine.other_fault");
    if (other)
        finding->advice = nd_phrase_plain("advice.affine");
}

const struct check nd_check_affine = {
    .id = "affine", .is_line = true, .of_norms = true, .run = affine_run};
