/*
 * Which statistics does a norm divide by?  Those of the batch or running ones (BatchNorm),
 * the biased variance or the unbiased one.
 */
#include "checks/subject.h"

#include <math.h>

#include "base/text.h"

static const char *mode_word(double training)
{
    return isnan(training) ? NULL : training != 0 ? "batch" : "running";
}

/* The study's model for one side with the other kind of statistics. */
static bool mode_model(const struct norm_study *study, int side, enum norm_mode mode,
                       struct norm_model *ret)
{
    const int from = study->mean[side] != NULL && study->var[side] != NULL ? side : !side;

    *ret = study->model[side];
    ret->mean = ret->var = NULL;
    if (mode == NORM_MODE_BATCH)
        return study->mode != NORM_MODE_AFFINE;
    ret->mean = study->mean[from];
    ret->var = study->var[from];
    return study->running_known && study->weights_known;
}

/* Recovers a side's mode: the one that leaves far less error; NULL: neither does. */
static const char *mode_recover(const struct subject *subject, int side)
{
    const struct norm_study *study = &subject->formula.study;
    double rel[2] = {HUGE_VAL, HUGE_VAL};
    static const char *const words[] = {"batch", "running"};

    for (int mode = 0; mode < 2; mode++) {
        struct norm_model model;
        struct residual residual;
        if (mode_model(study, side, mode == 0 ? NORM_MODE_BATCH : NORM_MODE_RUNNING,
                       &model) &&
            nd_norm_residual(&subject->formula.sample, side, &model, &residual))
            rel[mode] = residual.rel;
    }
    if (isinf(rel[0]) || isinf(rel[1]))
        return NULL; /* with one of them alone there is no choice */
    const int best = rel[1] < rel[0];
    return rel[best] < 0.5 * rel[!best] && rel[best] < 0.1 ? words[best] : NULL;
}

/* The wrong side as any scale and shift per channel of its input: what running statistics
 * look like when they are not dumped.  It fits every fault of that kind. */
static void mode_propose_free(struct subject *subject)
{
    const struct hypothesis free_fit = {
        .id = "running_vs_batch",
        .residual = nd_norm_free_misfit(subject),
        .penalty = 0.5,
        .is_free = true,
        .side = nd_subject_side(subject),
        .summary = nd_phrase_plain("summary.running_vs_batch.free")};
    if (!isnan(free_fit.residual))
        nd_propose(subject, &free_fit);
}

static void mode_propose(struct subject *subject, bool is_declared)
{
    const struct norm_study *study = &subject->formula.study;
    const bool batch = study->mode == NORM_MODE_BATCH;
    struct norm_model model;

    if (!subject->has_formula || !subject->is_trusted) {
        const struct hypothesis stated = {
            .id = "running_vs_batch",
            .residual = (double)NAN,
            .is_declared = true,
            .side = nd_subject_side(subject),
            .summary = nd_phrase_plain("summary.running_vs_batch.declared")};
        if (is_declared)
            nd_propose(subject, &stated);
        return;
    }
    if (!mode_model(study, subject->side, batch ? NORM_MODE_RUNNING : NORM_MODE_BATCH,
                    &model)) {
        if (!nd_norm_study_is_table(study))
            mode_propose_free(subject);
        return;
    }
    const double residual = nd_norm_misfit(subject, &model, NULL);
    const struct hypothesis other = {.id = "running_vs_batch",
                                     .residual = residual,
                                     .is_declared = is_declared,
                                     .side = nd_subject_side(subject)};
    if (!isnan(residual))
        ND_PROPOSE(subject, other, ND_WORD("expected", batch ? "batch" : "running"),
                   ND_WORD("used", batch ? "running" : "batch"));
}

static void statistics_running(struct subject *subject, struct nd_finding *finding)
{
    double declared[2] = {(double)NAN, (double)NAN};

    for (int side = 0; side < 2; side++) {
        if (subject->pair->side[side] != NULL)
            declared[side] = nd_declared_mode(subject->pair->side[side]);
        finding->declared[side] = mode_word(declared[side]);
        if (subject->has_formula)
            finding->recovered[side] = mode_recover(subject, side);
    }
    const bool unlike =
        !isnan(declared[0]) && !isnan(declared[1]) && declared[0] != declared[1];
    const bool recovered = finding->recovered[0] != NULL && finding->recovered[1] != NULL;
    const bool differ = recovered && finding->recovered[0] != finding->recovered[1];
    mode_propose(subject, unlike);
    if (differ || unlike) {
        finding->status = ND_CHECK_MISMATCH;
        finding->evidence = nd_phrase_plain(differ ? "finding.statistics.recovered"
                                                   : "finding.statistics.declared");
        finding->advice = nd_phrase_plain("advice.statistics");
    } else if (recovered) {
        finding->status = ND_CHECK_OK;
        finding->evidence = ND_PHRASE(subject->arena, "finding.statistics.alike",
                                      ND_WORD("mode", finding->recovered[0]));
    } else if (!isnan(declared[0]) && !isnan(declared[1])) {
        finding->status = ND_CHECK_OK;
        finding->evidence = nd_phrase_plain(finding->recovered[!subject->side] != NULL
                                                ? "finding.statistics.other_fault"
                                                : "finding.statistics.declared_alike");
    } else {
        finding->evidence = nd_phrase_plain("finding.statistics.unknown");
    }
}

static void statistics_unbiased(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);
    const double n =
        subject->has_formula ? (double)subject->formula.sample.rows.row_len : 0;

    if (model == NULL || !subject->is_trusted || model->var != NULL) {
        if (!subject->norm->running)
            finding->evidence = nd_phrase_plain("finding.statistics.no_input");
        return;
    }
    if (!subject->norm->centre)
        return;
    struct norm_model unbiased = *model;
    unbiased.unbiased = true;
    const double residual =
        nd_propose_norm(subject, "unbiased_variance", &unbiased, 0,
                        (const struct nd_param[]){ND_NUMBER("n", n)}, 1);
    if (subject->norm->running)
        return;
    const bool other =
        residual < 0.5 * subject->unexplained && residual < 4 * subject->floor;
    finding->recovered[!subject->side] = "biased";
    finding->recovered[subject->side] = other ? "unbiased"
                                        : subject->unexplained < 4 * subject->floor
                                            ? "biased"
                                            : NULL;
    finding->status = other                                       ? ND_CHECK_MISMATCH
                      : finding->recovered[subject->side] != NULL ? ND_CHECK_OK
                                                                  : ND_CHECK_UNKNOWN;
    finding->evidence = nd_phrase_plain(other ? "finding.statistics.unbiased"
                                        : finding->recovered[subject->side] != NULL
                                            ? "finding.statistics.biased"
                                            : "finding.statistics.other_fault");
    if (other)
        finding->advice = nd_phrase_plain("advice.unbiased");
}

enum { FEW_ELEMENTS = 32 };

/* What a row's own statistics make of noise that is even over the input: over the row's
 * deviation it is as much larger as the deviation is smaller than the whole input's. */
static double statistics_magnify(const struct sample *sample, double eps)
{
    const uint64_t n = sample->rows.row_len;
    double squares = 0, least = HUGE_VAL;

    for (uint64_t i = 0; i < sample->count; i++) {
        double mean, var;
        nd_norm_moments(sample->in[1][0] + i * n, n, &mean, &var);
        squares += var / (double)sample->count;
        least = fmin(least, var);
    }
    return sqrt((squares + eps) / (least + eps));
}

/* Statistics of few elements: chance makes some of them small. */
static void statistics_few(const struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);

    if (model == NULL || model->var != NULL || finding->advice.id != NULL ||
        subject->formula.sample.rows.row_len > FEW_ELEMENTS)
        return;
    const double factor = statistics_magnify(&subject->formula.sample, model->eps);
    if (factor > 1.5 && isfinite(factor))
        finding->advice = ND_PHRASE(
            subject->arena, "advice.statistics.few",
            ND_NUMBER("n", (double)subject->formula.sample.rows.row_len),
            ND_NUMBER("factor", factor),
            ND_NUMBER("spread",
                      sqrt(2 / fmax((double)subject->formula.sample.rows.row_len - 1, 1))));
}

static void statistics_run(struct subject *subject, struct nd_finding *finding)
{
    if (subject->norm->running)
        statistics_running(subject, finding);
    else if (!subject->norm->centre) {
        finding->status = subject->is_trusted ? ND_CHECK_OK : ND_CHECK_UNKNOWN;
        finding->evidence =
            nd_phrase_plain(subject->is_trusted ? "finding.statistics.mean_square"
                                                : "finding.statistics.no_input");
    }
    statistics_unbiased(subject, finding);
    statistics_few(subject, finding);
}

const struct check nd_check_statistics = {
    .id = "statistics", .is_line = true, .of_norms = true, .run = statistics_run};
