/*
 * Are the statistics taken over the right axes?  Every other set of axes is tried.
 */
#include "checks/norm_recipe.h"

#include <math.h>
#include <stdlib.h>

enum { AXIS_MOST_RANK = 5, AXIS_MOST_ELEMENTS = 1 << 21 };

/* The tensors in logical order. */
struct axis_tensors {
    double *x, *y, *channel;
    uint64_t *label;       /* which group an element belongs to */
    double *sum, *squares; /* of each group: then its centre and its factor */
    uint64_t count;
};

static void axis_free(struct axis_tensors *tensors)
{
    free(tensors->x);
    free(tensors->y);
    free(tensors->channel);
    free(tensors->label);
    free(tensors->sum);
    free(tensors->squares);
}

static bool axis_allocate(struct axis_tensors *tensors)
{
    const uint64_t n = tensors->count;

    tensors->x = calloc(n, sizeof *tensors->x);
    tensors->y = calloc(n, sizeof *tensors->y);
    tensors->channel = calloc(n, sizeof *tensors->channel);
    tensors->label = calloc(n, sizeof *tensors->label);
    tensors->sum = calloc(n, sizeof *tensors->sum);
    tensors->squares = calloc(n, sizeof *tensors->squares);
    return tensors->x != NULL && tensors->y != NULL && tensors->channel != NULL &&
           tensors->label != NULL && tensors->sum != NULL && tensors->squares != NULL;
}

static bool axis_load(const struct subject *subject, struct axis_tensors *tensors)
{
    const struct formula *formula = &subject->formula;
    const struct op_rows *rows = &formula->sample.rows;
    double *of_row = malloc(rows->row_len * sizeof *of_row);

    if (of_row == NULL || !axis_allocate(tensors)) {
        free(of_row);
        return false;
    }
    for (uint64_t i = 0; i < formula->sample.count; i++) {
        const uint64_t row = formula->sample.row[i], at = i * rows->row_len;
        nd_rows_scatter(rows, &formula->shape, row,
                        formula->sample.in[subject->side][0] + at, tensors->x);
        nd_rows_scatter(rows, &formula->shape, row, formula->sample.out[subject->side] + at,
                        tensors->y);
        struct op_channel channel = nd_op_channel_first(rows, row);
        for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &channel))
            of_row[j] = (double)channel.at;
        nd_rows_scatter(rows, &formula->shape, row, of_row, tensors->channel);
    }
    free(of_row);
    return true;
}

/* Numbers the groups: the index along the axes that are not reduced. */
static uint64_t axis_label(const struct nd_shape *shape, unsigned reduced,
                           struct axis_tensors *tensors)
{
    uint64_t groups = 1, step[AXIS_MOST_RANK] = {0}, index[AXIS_MOST_RANK] = {0};
    uint64_t label = 0;

    for (uint32_t k = shape->rank; k-- > 0;)
        if ((reduced >> k & 1) == 0) {
            step[k] = groups;
            groups *= shape->dim[k];
        }
    for (uint64_t i = 0; i < tensors->count; i++) {
        tensors->label[i] = label;
        for (uint32_t k = shape->rank; k-- > 0;) {
            label += step[k];
            if (++index[k] < shape->dim[k])
                break;
            label -= step[k] * shape->dim[k];
            index[k] = 0;
        }
    }
    return groups;
}

static void axis_statistics(const struct norm_model *model, uint64_t groups,
                            struct axis_tensors *tensors)
{
    const double each = (double)(tensors->count / groups);

    for (uint64_t g = 0; g < groups; g++)
        tensors->sum[g] = tensors->squares[g] = 0;
    for (uint64_t i = 0; i < tensors->count && model->centre; i++)
        tensors->sum[tensors->label[i]] += tensors->x[i];
    for (uint64_t g = 0; g < groups; g++)
        tensors->sum[g] /= each;
    for (uint64_t i = 0; i < tensors->count; i++) {
        const double d = tensors->x[i] - tensors->sum[tensors->label[i]];
        tensors->squares[tensors->label[i]] += d * d;
    }
    for (uint64_t g = 0; g < groups; g++)
        tensors->squares[g] = nd_norm_scale(model, tensors->squares[g] / each);
}

static double axis_misfit(const struct norm_model *model,
                          const struct axis_tensors *tensors, uint64_t allowed)
{
    double error = 0, size = 0;
    uint64_t mismatches = 0;

    for (uint64_t i = 0; i < tensors->count; i++) {
        const uint64_t channel = (uint64_t)tensors->channel[i], g = tensors->label[i];
        const double z = (tensors->x[i] - tensors->sum[g]) * tensors->squares[g] *
                             nd_norm_weight(model, channel) +
                         nd_norm_bias(model, channel);
        if (!isfinite(z) || !isfinite(tensors->y[i])) {
            mismatches += isfinite(z) != isfinite(tensors->y[i]);
            continue;
        }
        error += (tensors->y[i] - z) * (tensors->y[i] - z);
        size += z * z;
    }
    return mismatches <= allowed && size > 0 ? sqrt(error / size) : (double)NAN;
}

static const char *axis_names(const struct subject *subject, unsigned axes)
{
    const char *text = "";

    for (unsigned k = 0; k < AXIS_MOST_RANK && text != NULL; k++)
        if ((axes >> k & 1) != 0)
            text = nd_arena_format(subject->arena, "%s%s%u", text,
                                   text[0] == '\0' ? "" : ",", k);
    return text == NULL ? "" : text;
}

/* One group, or a group a channel: the line about groups says so. */
static bool axis_is_groups(const struct subject *subject, unsigned reduced)
{
    const unsigned all = (1u << subject->formula.shape.rank) - 1;

    return subject->norm->grouping == NORM_GROUPS && (reduced | 2u) == (all & ~1u);
}

static void axis_try(struct subject *subject, const struct norm_model *model,
                     struct axis_tensors *tensors)
{
    const struct nd_shape *shape = &subject->formula.shape;
    const uint64_t allowed = subject->formula.residual[subject->side].mismatches;

    for (unsigned reduced = 1; reduced < 1u << shape->rank; reduced++) {
        bool twin = axis_is_groups(subject, reduced);
        /* An axis of length 1 changes nothing. */
        for (uint32_t k = 0; k < shape->rank; k++)
            twin = twin || ((reduced >> k & 1) != 0 && shape->dim[k] < 2);
        if (twin)
            continue;
        const uint64_t groups = axis_label(shape, reduced, tensors);
        axis_statistics(model, groups, tensors);
        const struct hypothesis other = {.id = "wrong_axis",
                                         .residual = axis_misfit(model, tensors, allowed),
                                         .side = nd_subject_side(subject)};
        if (other.residual < 0.5 * subject->unexplained)
            ND_PROPOSE(subject, other, ND_WORD("axes", axis_names(subject, reduced)),
                       ND_NUMBER("elements", (double)(tensors->count / groups)));
    }
}

static void axis_run(struct subject *subject, struct nd_finding *finding)
{
    struct recipe_bench bench;
    struct axis_tensors tensors = {.count = 0};

    (void)finding;
    if (!nd_recipe_bench(subject, &bench) || !subject->formula.sample.whole ||
        bench.model->var != NULL || subject->formula.shape.rank > AXIS_MOST_RANK)
        return;
    tensors.count = nd_sample_elements(&subject->formula.sample);
    if (tensors.count <= AXIS_MOST_ELEMENTS &&
        tensors.count <= subject->input->max_mem / 8 / (6 * sizeof(double)) && axis_load(subject, &tensors))
        axis_try(subject, bench.model, &tensors);
    axis_free(&tensors);
}

const struct check nd_check_axis = {.id = "axis", .of_norms = true, .run = axis_run};
