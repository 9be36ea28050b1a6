/*
 * The subject turned round: one more study of the same tensors.
 */
#include "checks/mirror.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Is there anything to turn: a fault of a norm that was measured with estimated weights? */
static bool mirror_applies(const struct subject *subject)
{
    return subject->norm != NULL && subject->has_formula && subject->is_trusted &&
           nd_subject_is_own(subject) &&
           (!subject->formula.study.weights_known ||
            subject->formula.study.mode == NORM_MODE_AFFINE) &&
           subject->unexplained > 2 * subject->floor && !nd_has_confirmed(subject, "");
}

static bool mirror_open(const struct subject *subject, const struct layer_pair_view *turned,
                        struct subject *mirror)
{
    const struct sample *sample = &subject->formula.sample;
    const uint64_t elements = nd_sample_elements(sample);
    const struct replay_limits limits = {
        .elements = elements, .row = elements, .seed = subject->index};
    struct replay judged = {.done = true, .fitted = true, .fitted_on = 0};

    *mirror = *subject;
    mirror->hypothesis_count = 0;
    mirror->pair = turned;
    mirror->has_formula = nd_formula_open(turned, subject->own->op, subject->own->roundoff,
                                          &limits, NULL, &mirror->formula);
    if (!mirror->has_formula)
        return false;
    judged.residual[0] = mirror->formula.residual[0];
    judged.residual[1] = mirror->formula.residual[1];
    judged.fitted_on = mirror->formula.study.fitted_on;
    nd_replay_judge(&judged, subject->own->roundoff, mirror->formula.leeway);
    mirror->is_trusted = judged.trusted;
    mirror->side = 1;
    mirror->unexplained = mirror->formula.residual[1].rel;
    mirror->floor = subject->floor;
    return judged.trusted && judged.side == 1 && mirror->formula.study.fitted_on == 0;
}

/* --- turning back --------------------------------------------------------------------- */

static const char *turned_key(const char *key)
{
    static const char *const pairs[][2] = {
        {"reference", "candidate"}, {"reference_variance", "candidate_variance"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int k = 0; k < 2; k++)
            if (strcmp(key, pairs[i][k]) == 0)
                return pairs[i][!k];
    return key;
}

static const struct nd_param *turned_params(const struct subject *subject,
                                            const struct nd_param *params, size_t count)
{
    struct nd_param *turned = nd_arena_alloc(subject->arena, count + 1, sizeof *turned);

    if (turned == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        turned[i] = params[i];
        turned[i].key = turned_key(params[i].key);
        if (strcmp(params[i].key, "is_candidate") == 0)
            turned[i].number = params[i].number == 0;
    }
    return turned;
}

static void mirror_tell(struct subject *subject, const struct subject *mirror,
                        const struct hypothesis *found)
{
    struct hypothesis told = *found;
    const double floor = fmax(found->floor, mirror->floor);

    const double error = fmin(mirror->unexplained, subject->unexplained);
    const bool is_exact = found->residual <= 2.5 * floor && found->residual < 0.5 * error;
    /* Not quite rounding, but next to nothing of the error. */
    const bool is_close = found->residual <= 0.02 * error && found->residual <= 16 * floor;

    if (found->is_free || found->is_certain || found->is_weak || found->is_declared ||
        !(is_exact || is_close))
        return;
    told.floor = floor;
    told.side = found->side == ND_SIDE_CANDIDATE   ? ND_SIDE_REFERENCE
                : found->side == ND_SIDE_REFERENCE ? ND_SIDE_CANDIDATE
                                                   : found->side;
    told.params = turned_params(subject, found->params, found->param_count);
    told.summary.params =
        turned_params(subject, found->summary.params, found->summary.param_count);
    if (told.params == NULL || told.summary.params == NULL)
        return;
    nd_propose(subject, &told);
}

void nd_mirror_run(struct subject *subject, const struct check *const *checks,
                   size_t check_count)
{
    struct layer_pair_view turned = *subject->pair;
    struct subject *mirror;

    if (!mirror_applies(subject))
        return;
    mirror = malloc(sizeof *mirror);
    if (mirror == NULL)
        return;
    turned.side[0] = subject->pair->side[1];
    turned.side[1] = subject->pair->side[0];
    if (mirror_open(subject, &turned, mirror))
        for (size_t i = 0; i < check_count; i++) {
            struct nd_finding finding = {.id = checks[i]->id};
            if (checks[i]->of_norms)
                checks[i]->run(mirror, &finding);
        }
    if (mirror->has_formula)
        nd_formula_close(&mirror->formula);
    for (size_t i = 0; i < mirror->hypothesis_count; i++)
        mirror_tell(subject, mirror, &mirror->hypotheses[i]);
    free(mirror);
}
