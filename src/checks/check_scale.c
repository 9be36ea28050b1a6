/*
 * A BatchNorm of which neither weights nor running statistics were dumped is a scale and a
 * shift per channel.  Any fault of it is another scale and shift; what the figures of the
 * two sides have to do with each other tells the faults apart.
 */
#include "checks/channel_story.h"
#include "checks/eps_fit.h"
#include "checks/norm_recipe.h"

#include <math.h>
#include <stdlib.h>

/* Stories this close in likelihood are one answer: together they are the set to print. */
static const double SAME = 3;

struct story_row {
    const char *id, *summary;
};

static const struct story_row story_rows[STORY_COUNT] = {
    [STORY_FREE] = {"running_vs_batch", "summary.running_vs_batch.free"},
    [STORY_INITIAL] = {"running_vs_batch", "summary.running_vs_batch.initial"},
    [STORY_BIAS] = {"bias_dropped", "summary.bias_dropped.free"},
    [STORY_MEAN] = {"mean_not_subtracted", "summary.mean_not_subtracted.free"},
    [STORY_WEIGHT] = {"weight_dropped", "summary.weight_dropped.free"},
    [STORY_PLUS] = {"one_plus_weight", "summary.one_plus_weight.free"},
    [STORY_EPS] = {"eps", "summary.eps.scales"},
    [STORY_EPS_OUTSIDE] = {"eps_outside_sqrt", "summary.eps_outside_sqrt.free"},
    [STORY_RSTD] = {"rstd_rounded", "summary.rstd_rounded.free"},
};

/* --- statistics of the batch ---------------------------------------------------------- */

/* With them nothing is free: the formula under the fault has to give the values. */
static void scale_batch_try(struct subject *subject, const char *id,
                            const struct norm_model *model)
{
    const struct hypothesis batch = {.id = id,
                                     .residual = nd_norm_misfit(subject, model, NULL),
                                     .side = nd_subject_side(subject)};

    if (batch.residual <= 4 * subject->floor && batch.residual < 0.5 * subject->unexplained)
        nd_propose(subject, &batch);
}

static void scale_batch_eps(struct subject *subject, const struct norm_model *model)
{
    struct eps_fit fit;

    if (!nd_eps_fit(&subject->formula.sample, subject->side, model, subject->own->roundoff,
                    &fit) ||
        !(fit.residual <= 4 * subject->floor) ||
        !(fit.residual < 0.5 * subject->unexplained))
        return;
    const double found = fit.identifiable ? fit.eps : fit.upper;
    const struct nd_param params[] = {
        ND_NUMBER(subject->side == 1 ? "reference" : "candidate", model->eps),
        ND_NUMBER(subject->side == 1 ? "candidate" : "reference", found),
        ND_NUMBER("uncertainty", 3 * fit.sigma), ND_NUMBER("upper", fit.upper),
        ND_NUMBER("residual", fit.residual), ND_NUMBER("is_candidate", subject->side)};
    const char *const id = fit.identifiable     ? "summary.eps"
                           : subject->side == 1 ? "summary.eps.bound"
                                                : "summary.eps.bound.reference";
    nd_propose(subject, &(struct hypothesis){
                            .id = "eps",
                            .residual = fit.residual,
                            .penalty = 0.03,
                            .side = nd_subject_side(subject),
                            .params = params,
                            .param_count = 4,
                            .summary = nd_phrase_make(subject->arena, id, params, 6)});
}

static void scale_batch(struct subject *subject, const struct norm_model *model)
{
    struct norm_model other = *model;

    scale_batch_eps(subject, model);
    other.eps_outside = true;
    scale_batch_try(subject, "eps_outside_sqrt", &other);
    other = *model;
    other.centre = false;
    scale_batch_try(subject, "mean_not_subtracted", &other);
    other = *model;
    other.weight = NULL;
    scale_batch_try(subject, "weight_dropped", &other);
    for (int plus = -1; plus <= 1; plus += 2) {
        other = *model;
        other.plus = plus;
        scale_batch_try(subject, "one_plus_weight", &other);
    }
    other = *model;
    other.bias = NULL;
    scale_batch_try(subject, "bias_dropped", &other);
}

/* --- stories -------------------------------------------------------------------------- */

/*
 * Two numbers a channel always fit best.  What has no free number and leaves next to
 * nothing of the error is the better answer, if not much more is left than rounding.
 */
static double scale_penalty(const struct subject *subject, double left)
{
    const double next_to_nothing = 0.02 * subject->unexplained;

    return subject->own->roundoff > 0x1p-24
               ? 0.02
               : fmin(fmax(log(next_to_nothing / fmax(left, 1e-9)), 0.02), 3.5);
}

/* The story as a hypothesis; `behind` is how much less likely it is than the first. */
static void scale_tell(struct subject *subject, const struct channel_table *table,
                       const struct told *told, double behind)
{
    const struct story_row *row = &story_rows[told->story];
    /* A factor within one rounding, and other statistics, look alike from either side. */
    const bool is_even = told->story == STORY_RSTD || told->story == STORY_FREE;
    const bool is_candidate = (is_even ? subject->side : told->wrong) == 1;
    const enum grid grid = told->roundoff > 0x1p-10 ? GRID_BF16 : GRID_F16;
    const struct nd_param params[] = {
        ND_NUMBER("channels", (double)table->count),
        ND_NUMBER("smaller", told->eps[1] < told->eps[0]),
        ND_NUMBER("is_candidate", is_candidate),
        ND_WORD("dtype", nd_grid_name(grid)),
        ND_NUMBER("residual", table->residual[subject->side])};

    nd_propose(subject,
               &(struct hypothesis){
                   .id = row->id,
                   .residual = table->residual[subject->side],
                   .penalty = scale_penalty(subject, table->residual[subject->side]) +
                              fmin(behind, 100) / 100,
                   .is_free = true,
                   .is_weak = behind > SAME,
                   .side = is_candidate ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
                   .params = &params[3],
                   .param_count = told->story == STORY_RSTD,
                   .summary = nd_phrase_make(subject->arena, row->summary, params,
                                             sizeof params / sizeof *params)});
}

enum { TOLD = 4 }; /* as many as anybody reads */

static void scale_run(struct subject *subject, struct nd_finding *finding)
{
    struct channel_table table;
    struct told told[STORY_COUNT];

    (void)finding;
    if (nd_subject_model(subject) == NULL || !subject->is_trusted ||
        !nd_norm_study_is_table(&subject->formula.study))
        return;
    const struct norm_model *batch = nd_recipe_batch_model(subject);
    if (batch != NULL)
        scale_batch(subject, batch);
    if (!nd_channel_table_make(&subject->formula.sample, subject->own->roundoff, &table))
        return;
    /* What scales and shifts leave over is another fault. */
    const double left = table.residual[subject->side];
    if (left <= 4 * subject->floor && left < 0.5 * subject->unexplained &&
        nd_channel_stories(&table, told)) {
        for (int i = 0; i < TOLD; i++)
            scale_tell(subject, &table, &told[i], told[0].score - told[i].score);
        subject->is_one_sided =
            told[0].story == STORY_EPS || told[0].story == STORY_EPS_OUTSIDE;
    }
    free(table.channels);
}

const struct check nd_check_scale = {.id = "scale", .of_norms = true, .run = scale_run};
