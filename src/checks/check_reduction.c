/*
 * Over which elements are the statistics taken?  Other groups, or padding counted in.
 */
#include "checks/subject.h"

#include <math.h>

/* Ascend kernels work on 16 channels at a time; what pads the last block must not count. */
enum { CHANNEL_BLOCK = 16 };

static double reduction_padding(struct subject *subject, const struct norm_model *model)
{
    const struct op_rows *rows = &subject->formula.sample.rows;
    const bool trailing = subject->norm->grouping == NORM_TRAILING;
    const bool groups = subject->norm->grouping == NORM_GROUPS;
    const uint64_t channels = trailing ? rows->row_len : rows->per_row;
    const uint64_t padded = (channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK * CHANNEL_BLOCK;
    struct norm_model counted = *model;

    if ((!trailing && !groups) || padded == channels || model->var != NULL)
        return (double)NAN;
    counted.padded = (double)padded / (double)channels;
    return nd_propose_norm(
        subject, "padding_counted", &counted, 0,
        (const struct nd_param[]){ND_NUMBER("channels", (double)channels),
                                  ND_NUMBER("padded", (double)padded)},
        2);
}

/* Every other number of groups that divides the channels. */
static double reduction_groups(struct subject *subject, const struct norm_model *model)
{
    const struct formula *formula = &subject->formula;
    const uint64_t channels = formula->sample.rows.channels;
    double best = (double)NAN;

    if (subject->norm->grouping != NORM_GROUPS || !formula->sample.whole ||
        channels > 1 << 16)
        return best;
    for (uint64_t groups = 1; groups <= channels; groups++) {
        struct op_rows rows;
        if (channels % groups != 0 || groups == formula->sample.rows.period ||
            !nd_norm_rows(formula->op, subject->pair->side[0], &formula->shape, groups,
                          &rows))
            continue;
        const double residual = nd_norm_misfit(subject, model, &rows);
        if (isnan(residual) || !(residual < 0.9 * subject->unexplained))
            continue;
        if (!(residual >= best))
            best = residual;
        const struct hypothesis other = {.id = "wrong_groups",
                                         .residual = residual,
                                         .penalty = 0.02,
                                         .side = nd_subject_side(subject)};
        ND_PROPOSE(subject, other,
                   ND_NUMBER("expected", (double)formula->sample.rows.period),
                   ND_NUMBER("found", (double)groups));
    }
    return best;
}

static void reduction_run(struct subject *subject, struct nd_finding *finding)
{
    const struct norm_model *model = nd_subject_model(subject);

    if (model == NULL || !subject->is_trusted) {
        finding->evidence = nd_phrase_plain("finding.reduction.no_input");
        return;
    }
    const double padding = reduction_padding(subject, model);
    const double groups = reduction_groups(subject, model);
    const double best = isnan(padding)  ? groups
                        : isnan(groups) ? padding
                                        : fmin(padding, groups);
    const bool other = best < 0.5 * subject->unexplained && best < 4 * subject->floor;
    const bool follows = subject->unexplained < 4 * subject->floor;
    finding->status = other ? ND_CHECK_MISMATCH : follows ? ND_CHECK_OK : ND_CHECK_UNKNOWN;
    finding->evidence = nd_phrase_plain(other     ? "finding.reduction.differs"
                                        : follows ? "finding.reduction.alike"
                                                  : "finding.reduction.other_fault");
    if (other)
        finding->advice = nd_phrase_plain("advice.reduction");
}

const struct check nd_check_reduction = {
    .id = "reduction", .is_line = true, .of_norms = true, .run = reduction_run};
