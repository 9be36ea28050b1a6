/*
 * Hypotheses and their ranking.  A cause is confirmed when the formula under it reproduces
 * the wrong side down to rounding, supported when it halves the error, possible otherwise.
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/affine_fit.h"

static const double CONFIRMED_FACTOR =
    2.5; /* honest layers stay under 1.9 times the floor */
static const double SUPPORTED_SHARE = 0.5;
static const double SUPPORTED_LIMIT = 0.25; /* half of a wreck is still a wreck */
static const double TIE = 1.3; /* two hypotheses this close: the numbers cannot tell */

void nd_propose(struct subject *subject, const struct hypothesis *hypothesis)
{
    if (subject->hypothesis_count == MAX_HYPOTHESES)
        return;
    struct hypothesis *copy = &subject->hypotheses[subject->hypothesis_count++];
    *copy = *hypothesis;
    copy->params =
        nd_params_copy(subject->arena, hypothesis->params, hypothesis->param_count);
    if (copy->params == NULL)
        copy->param_count = 0;
}

void nd_propose_with(struct subject *subject, const struct hypothesis *hypothesis,
                     const struct nd_param *params, size_t param_count)
{
    struct hypothesis with = *hypothesis;

    with.params = params;
    with.param_count = param_count;
    nd_propose(subject, &with);
}

struct misfit {
    const struct sample *sample;
    const struct norm_model *model;
    int side;
};

static void misfit_row(const void *user, uint64_t i, double *out)
{
    const struct misfit *of = user;
    const struct op_rows *rows = &of->sample->rows;

    nd_norm_row(of->model, rows, of->sample->row[i],
                of->sample->in[of->side][0] + i * rows->row_len, out);
}

double nd_norm_misfit(const struct subject *subject, const struct norm_model *model,
                      const struct op_rows *rows)
{
    struct sample sample = subject->formula.sample;
    struct misfit of = {&sample, model, subject->side};
    struct residual residual;
    uint64_t *every = NULL;

    if (rows != NULL) { /* the whole tensor, cut into other rows */
        every = malloc(rows->rows * sizeof *every);
        if (every == NULL)
            return (double)NAN;
        for (uint64_t i = 0; i < rows->rows; i++)
            every[i] = i;
        sample.rows = *rows;
        sample.row = every;
        sample.count = rows->rows;
    }
    const bool good =
        nd_residual_measure(&sample, sample.out[subject->side], misfit_row, &of, &residual);
    free(every);
    if (!good || residual.mismatches > subject->formula.residual[subject->side].mismatches)
        return (double)NAN;
    return residual.rel;
}

double nd_norm_free_misfit(const struct subject *subject)
{
    const struct norm_study *study = &subject->formula.study;
    struct norm_model model = {.centre = true, .mean = study->zero, .var = study->one};
    double *weight = nd_arena_alloc(subject->arena, study->channels, sizeof *weight);
    double *bias = nd_arena_alloc(subject->arena, study->channels, sizeof *bias);

    if (weight == NULL || bias == NULL ||
        !nd_affine_fit(&subject->formula.sample, subject->side, &model, weight, bias))
        return (double)NAN;
    model.weight = weight;
    model.bias = bias;
    return nd_norm_misfit(subject, &model, NULL);
}

double nd_propose_norm(struct subject *subject, const char *id,
                       const struct norm_model *model, double penalty,
                       const struct nd_param *params, size_t param_count)
{
    const double residual = nd_norm_misfit(subject, model, NULL);

    if (!isnan(residual))
        nd_propose(subject, &(struct hypothesis){.id = id,
                                                 .residual = residual,
                                                 .penalty = penalty,
                                                 .side = nd_subject_side(subject),
                                                 .params = params,
                                                 .param_count = param_count});
    return residual;
}

/* --- ranking ------------------------------------------------------------------------- */

struct ranked {
    const struct hypothesis *hypothesis;
    enum nd_cause_status status;
    double score; /* less is better */
};

static enum nd_cause_status status_of(const struct subject *subject,
                                      const struct hypothesis *h)
{
    const double floor = h->floor > 0 ? h->floor : subject->floor;
    const double half = SUPPORTED_SHARE * subject->unexplained;

    if (h->is_certain)
        return ND_CAUSE_CONFIRMED;
    if (h->is_weak)
        return ND_CAUSE_POSSIBLE;
    if (isnan(h->residual))
        return h->is_declared || h->is_fingerprint ? ND_CAUSE_SUPPORTED : ND_CAUSE_POSSIBLE;
    if (h->residual <= CONFIRMED_FACTOR * floor && !h->is_free && h->residual < half)
        return ND_CAUSE_CONFIRMED;
    return h->residual < half && h->residual < SUPPORTED_LIMIT ? ND_CAUSE_SUPPORTED
                                                               : ND_CAUSE_POSSIBLE;
}

bool nd_has_confirmed(const struct subject *subject, const char *except)
{
    for (size_t i = 0; i < subject->hypothesis_count; i++)
        if (status_of(subject, &subject->hypotheses[i]) == ND_CAUSE_CONFIRMED &&
            strstr(except, subject->hypotheses[i].id) == NULL)
            return true;
    return false;
}

static double score_of(const struct hypothesis *h)
{
    if (h->is_certain)
        return -100 + h->penalty;
    const double residual = isnan(h->residual) ? 1 : fmax(h->residual, 1e-9);
    return log(residual) + h->penalty - (h->is_declared ? log(TIE) : 0);
}

static int rank_compare(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;

    if (left->status != right->status)
        return left->status < right->status ? -1 : 1;
    if (left->score != right->score)
        return left->score < right->score ? -1 : 1;
    return left->hypothesis < right->hypothesis ? -1 : left->hypothesis > right->hypothesis;
}

/* Keeps the best of each id, and drops what explains next to nothing. */
static size_t rank_select(const struct subject *subject, struct ranked *ranked)
{
    size_t count = 0;

    for (size_t i = 0; i < subject->hypothesis_count; i++) {
        const struct hypothesis *h = &subject->hypotheses[i];
        const struct ranked one = {h, status_of(subject, h), score_of(h)};
        size_t k = 0;
        if (one.status == ND_CAUSE_POSSIBLE && h->residual > 0.9 * subject->unexplained &&
            !h->is_declared)
            continue;
        while (k < count && strcmp(ranked[k].hypothesis->id, h->id) != 0)
            k++;
        if (k == count)
            ranked[count++] = one;
        else if (rank_compare(&one, &ranked[k]) < 0)
            ranked[k] = one;
    }
    qsort(ranked, count, sizeof *ranked, rank_compare);
    return count;
}

/* Where a second hypothesis fits as well as the first, neither is confirmed: the set is the
 * answer.  What the dumps declare, or the comparison proves, breaks the tie. */
static void rank_ties(struct ranked *ranked, size_t count)
{
    if (count < 2 || ranked[0].status != ND_CAUSE_CONFIRMED ||
        ranked[0].hypothesis->is_certain || ranked[0].hypothesis->is_declared)
        return;
    const double best = ranked[0].hypothesis->residual;
    size_t tied = 1;
    while (tied < count && ranked[tied].status == ND_CAUSE_CONFIRMED &&
           ranked[tied].hypothesis->residual <= TIE * best)
        tied++;
    for (size_t i = 0; i < tied && tied > 1; i++)
        ranked[i].status = ND_CAUSE_SUPPORTED;
}

static double explains(const struct subject *subject, const struct hypothesis *h)
{
    if (h->is_certain && isnan(h->residual))
        return 1;
    if (isnan(h->residual) || !(subject->unexplained > 0))
        return 0;
    if (isinf(subject->unexplained))
        return isfinite(h->residual) ? 1 : 0;
    return fmin(fmax(1 - h->residual / subject->unexplained, 0), 1);
}

/*
 * One confirmed cause that leaves nothing over: what explains the same less well is no
 * second cause, and what only has the looks of one is not said at all.
 */
static size_t rank_settle(const struct subject *subject, struct ranked *ranked,
                          size_t count)
{
    size_t kept = 1;

    if (count == 0 || ranked[0].status != ND_CAUSE_CONFIRMED ||
        !(explains(subject, ranked[0].hypothesis) > 0.5))
        return count;
    for (size_t i = 1; i < count; i++) {
        const struct hypothesis *h = ranked[i].hypothesis;
        if (isnan(h->residual) && !h->is_certain && !h->is_declared)
            continue;
        if (ranked[i].status == ND_CAUSE_SUPPORTED && !h->is_declared)
            ranked[i].status = ND_CAUSE_POSSIBLE;
        ranked[kept++] = ranked[i];
    }
    return kept;
}

static struct nd_phrase summary_of(const struct subject *subject,
                                   const struct hypothesis *h)
{
    const char *id;

    if (h->summary.id != NULL)
        return h->summary;
    id = nd_arena_format(subject->arena, "summary.%s", h->id);
    struct nd_param *params =
        nd_arena_alloc(subject->arena, h->param_count + 3, sizeof *params);
    if (id == NULL || params == NULL)
        return nd_phrase_plain(NULL);
    if (h->param_count > 0)
        memcpy(params, h->params, h->param_count * sizeof *params);
    params[h->param_count] =
        (struct nd_param)ND_NUMBER("is_candidate", h->side != ND_SIDE_REFERENCE);
    params[h->param_count + 1] = (struct nd_param)ND_NUMBER("residual", h->residual);
    params[h->param_count + 2] = (struct nd_param)ND_NUMBER("floor", subject->floor);
    return (struct nd_phrase){
        .id = id, .params = params, .param_count = h->param_count + 3};
}

enum { MAX_CAUSES = 6 };

enum nd_status nd_rank_causes(const struct subject *subject, struct nd_cause **ret_causes,
                              size_t *ret_count, struct nd_error *err)
{
    struct ranked ranked[MAX_HYPOTHESES];
    size_t count = rank_select(subject, ranked);
    struct nd_cause *causes = nd_arena_alloc(subject->arena, MAX_CAUSES, sizeof *causes);

    if (causes == NULL)
        return nd_fail_memory(err);
    rank_ties(ranked, count);
    count = rank_settle(subject, ranked, count);
    if (count > MAX_CAUSES)
        count = MAX_CAUSES;
    for (size_t i = 0; i < count; i++) {
        const struct hypothesis *h = ranked[i].hypothesis;
        causes[i] = (struct nd_cause){.id = h->id,
                                      .status = ranked[i].status,
                                      .side = h->side,
                                      .explains = explains(subject, h),
                                      .params = h->params,
                                      .param_count = h->param_count,
                                      .summary = summary_of(subject, h)};
    }
    *ret_causes = causes;
    *ret_count = count;
    return ND_OK;
}
