/*
 * Does a BatchNorm use running statistics that are not those of its state?  The initial
 * ones (0 and 1), or those of another step.
 */
#include "checks/norm_recipe.h"

#include <math.h>

static void running_initial(struct subject *subject)
{
    const struct norm_study *study = &subject->formula.study;
    struct norm_model model = *nd_subject_model(subject);

    model.mean = study->zero;
    model.var = study->one;
    (void)nd_propose_norm(subject, "running_vs_batch", &model, 0.01,
                          (const struct nd_param[]){ND_WORD("expected", "running"),
                                                    ND_WORD("used", "initial")},
                          2);
}

/* Another step's are any scale and shift per channel: that fits too easily to be proved. */
static void running_other(struct subject *subject)
{
    const struct hypothesis other = {.id = "running_vs_batch",
                                     .residual = nd_norm_free_misfit(subject),
                                     .penalty = 0.5,
                                     .is_free = true,
                                     .side = nd_subject_side(subject)};
    if (!isnan(other.residual))
        ND_PROPOSE(subject, other, ND_WORD("expected", "running"), ND_WORD("used", "other"));
}

static void running_run(struct subject *subject, struct nd_finding *finding)
{
    struct recipe_bench bench;

    (void)finding;
    if (!nd_recipe_bench(subject, &bench) ||
        subject->formula.study.mode != NORM_MODE_RUNNING)
        return;
    running_initial(subject);
    running_other(subject);
}

const struct check nd_check_running = {
    .id = "running", .of_norms = true, .run = running_run};
