/*
 * Do both sides use one eps?  Declared: the attribute under its names.  Recovered: the
 * value under which the formula comes closest to each side's own output, from its own
 * input.
 */
#include "checks/subject.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "checks/ascend_side.h"
#include "checks/eps_fit.h"
#include "checks/eps_profile.h"

struct eps_evidence {
    bool has[2];
    struct eps_fit fit[2];
    double declared[2]; /* NAN: not declared */
    bool is_relative;   /* only how far the sides' values lie apart is in the numbers */
};

/* An estimate that is too wide to tell neighbours apart by itself is a common value if it
 * lies within three standard errors. */
static double eps_snapped(const struct eps_fit *fit)
{
    if (fit->sigma < 0.003 * fit->eps)
        return fit->eps;
    for (size_t i = 0; i < nd_eps_common_count; i++)
        if (fabs(fit->eps - nd_eps_common[i]) <= 3 * fit->sigma)
            return nd_eps_common[i];
    return fit->eps;
}

/* --- recovery ------------------------------------------------------------------------ */

static void eps_recover(struct subject *subject, struct eps_evidence *evidence)
{
    struct formula *formula = &subject->formula;
    struct norm_study *study = &formula->study;
    const double before = study->model[0].eps;

    if (!subject->has_formula || study->mode == NORM_MODE_AFFINE)
        return;
    if (!study->weights_known) {
        struct eps_fit *own = &evidence->fit[study->fitted_on];
        /* A BatchNorm's weight takes up whatever eps makes of its one row. */
        if (subject->norm->grouping == NORM_CHANNEL)
            *own = (struct eps_fit){.eps = before,
                                    .sigma = HUGE_VAL,
                                    .upper = HUGE_VAL,
                                    .residual = study->residual[study->fitted_on].rel};
        else if (!nd_eps_of_reference(formula, own))
            return;
        evidence->has[study->fitted_on] = true;
        if (!own->identifiable && before <= own->upper)
            (void)nd_eps_profile(formula, before);
    }
    for (int side = 0; side < 2; side++)
        if (!evidence->has[side])
            evidence->has[side] = nd_eps_fit(&formula->sample, side, &study->model[side],
                                             subject->own->roundoff, &evidence->fit[side]);
    /* Where the best eps leaves more than rounding, something else is wrong too, and what
     * the fit makes of it is no eps. */
    for (int side = 0; side < 2; side++)
        if (!(evidence->fit[side].residual <= 4 * subject->floor))
            evidence->has[side] = false;
}

/* The interval of three standard errors; eps is never negative. */
static void eps_interval(const struct eps_fit *fit, double *ret_low, double *ret_high)
{
    *ret_low = fmax(fit->eps - 3 * fit->sigma, 0);
    *ret_high = fit->upper;
}

/* The two sides' values cannot be one. */
static bool eps_differ(const struct eps_evidence *evidence)
{
    double low[2], high[2];

    if (!evidence->has[0] || !evidence->has[1])
        return false;
    for (int side = 0; side < 2; side++)
        eps_interval(&evidence->fit[side], &low[side], &high[side]);
    const double one = fmax(evidence->fit[0].eps, evidence->fit[1].eps);
    return (low[0] > high[1] || low[1] > high[0]) &&
           fabs(evidence->fit[0].eps - evidence->fit[1].eps) > 0.01 * one;
}

/* Of all pairs of values that far apart, one whose second is in use: the first may be
 * anything up to its bound. */
static void eps_place(struct eps_evidence *evidence, int from, double assumed)
{
    struct eps_fit *other = &evidence->fit[!from];
    const double apart = other->eps - assumed;

    if (isnan(evidence->declared[from])) {
        for (size_t i = 0; i < nd_eps_common_count; i++)
            if (nd_eps_common[i] > apart - 3 * other->sigma &&
                nd_eps_common[i] < apart + fmin(evidence->fit[from].upper, assumed) &&
                fabs(nd_eps_common[i] - other->eps) < 0.2 * other->eps) {
                other->eps = nd_eps_common[i];
                break;
            }
        evidence->declared[from] = fmax(other->eps - apart, 0);
    }
}

/*
 * Weights that were estimated under an eps take up what another one would change: the value
 * is free, the difference between the sides is not.
 */
static bool eps_differ_relatively(const struct subject *subject,
                                  struct eps_evidence *evidence)
{
    const struct norm_study *study = &subject->formula.study;
    const int from = study->fitted_on;
    const struct eps_fit *other = &evidence->fit[!from];

    if (study->weights_known || !evidence->has[0] || !evidence->has[1] ||
        evidence->fit[from].identifiable)
        return false;
    const double assumed = study->model[from].eps;
    const double apart = fabs(other->eps - assumed);
    if (!(apart > 3 * other->sigma) || !(apart > 0.01 * fmax(other->eps, assumed)) ||
        !(other->residual < 0.5 * subject->unexplained))
        return false;
    evidence->is_relative = true;
    eps_place(evidence, from, assumed);
    return true;
}

/* --- the cause ------------------------------------------------------------------------ */

/* A side's eps as far as it is known: measured, else declared; NAN: neither. */
static double eps_value(const struct eps_evidence *evidence, int side, bool trust_declared)
{
    if (evidence->has[side] && evidence->fit[side].identifiable)
        return eps_snapped(&evidence->fit[side]);
    return trust_declared ? evidence->declared[side] : (double)NAN;
}

static void eps_propose(struct subject *subject, const struct eps_evidence *evidence,
                        bool is_declared)
{
    static const char *const names[] = {"reference", "candidate"};
    const int side = subject->side;
    const bool measured = evidence->has[side];
    const struct eps_fit *fit = &evidence->fit[side];
    struct nd_param params[8];
    size_t count = 0;

    for (int k = 0; k < 2; k++) {
        /* What the wrong side declares is in doubt, unless the declarations are the cause.
         */
        const double value = eps_value(evidence, k, k != side || is_declared || !measured);
        if (!isnan(value))
            params[count++] = (struct nd_param)ND_NUMBER(names[k], value);
    }
    if (measured) {
        params[count++] = (struct nd_param)ND_NUMBER("uncertainty", 3 * fit->sigma);
        params[count++] = (struct nd_param)ND_NUMBER("upper", fit->upper);
    }
    const size_t said = count;
    if (measured && evidence->has[!side] && isnan(eps_value(evidence, !side, true)))
        params[count++] = (struct nd_param)ND_WORD(
            names[!side],
            nd_arena_format(subject->arena, "<= %.1e", evidence->fit[!side].upper));
    params[count++] =
        (struct nd_param)ND_NUMBER("residual", measured ? fit->residual : (double)NAN);
    params[count++] = (struct nd_param)ND_NUMBER("is_candidate", side);
    const char *id = evidence->is_relative ? "summary.eps.relative"
                     : !measured           ? "summary.eps.declared"
                     : fit->identifiable ? "summary.eps"
                     : side == 1         ? "summary.eps.bound"
                                         : "summary.eps.bound.reference";
    nd_propose(subject, &(struct hypothesis){
                            .id = "eps",
                            .residual = measured ? fit->residual : (double)NAN,
                            .penalty = 0.03,
                            .is_declared = is_declared,
                            .side = nd_subject_side(subject),
                            .params = params,
                            .param_count = said,
                            .summary = nd_phrase_make(subject->arena, id, params, count)});
}

/* --- the line ------------------------------------------------------------------------ */

static const char *eps_text(const struct subject *subject,
                            const struct eps_evidence *evidence, int side)
{
    const struct eps_fit *fit = &evidence->fit[side];

    if (!evidence->has[side])
        return NULL;
    if (fit->identifiable)
        return nd_say_number(subject, eps_snapped(fit));
    if (!(fit->upper < 1))
        return NULL;
    return nd_arena_format(subject->arena, "<= %.1e", fit->upper);
}

static void eps_say(const struct subject *subject, const struct eps_evidence *evidence,
                    struct nd_finding *finding)
{
    const struct eps_fit *fit = evidence->fit;
    const double bound = 3 * fmax(fit[0].sigma, fit[1].sigma);

    if (!subject->has_formula) {
        finding->evidence = nd_phrase_plain("finding.eps.no_input");
    } else if (!evidence->has[0] || !evidence->has[1] || !isfinite(bound)) {
        finding->evidence = nd_phrase_plain(evidence->has[0] || evidence->has[1]
                                                ? "finding.eps.other_fault"
                                                : "finding.eps.no_formula");
    } else if (fit[0].identifiable || fit[1].identifiable) {
        const int side = !fit[0].identifiable ? 0 : !fit[1].identifiable ? 1 : 2;
        finding->evidence = ND_PHRASE(
            subject->arena, side == 2 ? "finding.eps.recovered" : "finding.eps.one",
            ND_NUMBER("uncertainty", bound), ND_NUMBER("is_candidate", side));
    } else {
        finding->evidence =
            ND_PHRASE(subject->arena, "finding.eps.hidden",
                      ND_NUMBER("variance", fit[1].typical_var), ND_NUMBER("bound", bound));
    }
}

/* The default that one side's eps was left at, where the other side has another one. */
static bool eps_left_at(const struct subject *subject, const struct eps_evidence *evidence,
                        int side, struct ascend_default *ret, double *ret_other)
{
    const struct eps_fit *fit = &evidence->fit[side];
    const bool measured = evidence->has[side] && fit->identifiable;

    *ret_other = eps_value(evidence, !side, true);
    if (fabs(evidence->declared[!side] - *ret_other) <= 0.01 * *ret_other)
        *ret_other = evidence->declared[!side]; /* what was meant, in few digits */
    return nd_ascend_side_default(subject, side, measured ? eps_snapped(fit) : (double)NAN,
                                  3 * fit->sigma, evidence->declared[side], ret) &&
           !(fabs(ret->eps - *ret_other) <= 0.01 * ret->eps);
}

/* Names an eps that nobody passed to Ascend's operator. */
static void eps_say_default(struct subject *subject, const struct eps_evidence *evidence,
                            bool differ, struct nd_finding *finding)
{
    struct ascend_default left;
    double other;
    int side = 1;

    if (!eps_left_at(subject, evidence, side, &left, &other))
        side = 0;
    if (side == 0 && !eps_left_at(subject, evidence, side, &left, &other))
        return;
    if (left.is_measured && !differ)
        return; /* both sides have it */
    const struct nd_param params[] = {
        ND_WORD("operator", left.operator_name),
        ND_WORD("eps", nd_ascend_eps_text(subject, left.eps)),
        ND_NUMBER("is_candidate", side),
        ND_WORD("other", nd_ascend_eps_text(subject, other)),
        ND_NUMBER("uncertainty", 3 * evidence->fit[side].sigma)};
    const size_t count = sizeof params / sizeof *params;
    finding->evidence = nd_phrase_make(subject->arena,
                                       left.is_measured ? "finding.eps.left"
                                       : isnan(other)   ? "finding.eps.unpassed"
                                                        : "finding.eps.unpassed.other",
                                       params, count);
    if (isnan(other))
        return;
    finding->advice = nd_phrase_make(subject->arena, "advice.eps.left", params, count);
    if (left.is_measured || differ)
        return;
    finding->status = ND_CHECK_SUSPECT;
    nd_propose(subject, &(struct hypothesis){
                            .id = "eps",
                            .residual = (double)NAN,
                            .penalty = 1,
                            .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
                            .summary = nd_phrase_make(subject->arena, "summary.eps.unpassed",
                                                      params, count)});
}

static void eps_run(struct subject *subject, struct nd_finding *finding)
{
    struct eps_evidence evidence = {
        .declared = {(double)NAN, (double)NAN}
    };
    char buf[32];

    for (int side = 0; side < 2; side++) {
        if (subject->pair->side[side] == NULL)
            continue;
        evidence.declared[side] = nd_declared_eps(subject->pair->side[side]);
        if (!isnan(evidence.declared[side]))
            finding->declared[side] = nd_arena_string(
                subject->arena, nd_number_text(evidence.declared[side], buf));
    }
    const bool declared = !isnan(evidence.declared[0]) && !isnan(evidence.declared[1]);
    /* One of them may have been kept in float32. */
    const bool unlike =
        declared && (float)evidence.declared[0] != (float)evidence.declared[1];
    eps_recover(subject, &evidence);
    const bool differ =
        eps_differ(&evidence) ||
        (subject->has_formula && eps_differ_relatively(subject, &evidence));
    for (int side = 0; side < 2; side++)
        finding->recovered[side] = eps_text(subject, &evidence, side);
    eps_say(subject, &evidence, finding);
    if (differ || unlike) {
        finding->status = ND_CHECK_MISMATCH;
        if (!differ)
            finding->evidence = nd_phrase_plain("finding.eps.declared");
        finding->advice = nd_phrase_plain("advice.eps");
        eps_propose(subject, &evidence, unlike);
    } else if (evidence.has[0] && evidence.has[1] && evidence.fit[0].identifiable &&
               evidence.fit[1].identifiable) {
        finding->status = ND_CHECK_OK;
    } else if (declared) {
        finding->status = ND_CHECK_OK;
    }
    eps_say_default(subject, &evidence, differ || unlike, finding);
    const struct norm_model *model = nd_subject_model(subject);
    if (model == NULL || !subject->is_trusted)
        return;
    struct norm_model outside = *model;
    outside.eps_outside = true;
    (void)nd_propose_norm(subject, "eps_outside_sqrt", &outside, 0.02,
                          (const struct nd_param[]){ND_NUMBER("eps", model->eps)}, 1);
}

const struct check nd_check_eps = {
    .id = "eps", .is_line = true, .of_norms = true, .run = eps_run};
