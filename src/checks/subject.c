/*
 * Loading the first diverging layer.
 */
#include "checks/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "checks/flat.h"
#include "checks/product_replay.h"
#include "checks/sum_input.h"

enum nd_side nd_subject_side(const struct subject *subject)
{
    return subject->side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE;
}

const struct norm_model *nd_subject_model(const struct subject *subject)
{
    return subject->has_formula && subject->norm != NULL
               ? &subject->formula.study.model[subject->side]
               : NULL;
}

const char *nd_say_number(const struct subject *subject, double value)
{
    const char *text = nd_arena_format(subject->arena, "%.3e", value);

    return text == NULL ? "" : text;
}

/* --- the part that is looked at ------------------------------------------------------ */

/* Most elements of a tensor that every check reads again, some of them a dozen times: four
 * million take all of them a second. */
enum { WINDOW_LIMIT = 1 << 21, WINDOW_WHOLE = 1 << 22 };

static const uint64_t *subject_worst(const struct subject *subject)
{
    return subject->slot != NULL ? nd_slot_worst(subject->slot) : NULL;
}

static void subject_window(struct subject *subject)
{
    const uint64_t room = subject->input->max_mem / 16 / sizeof(double);
    const uint64_t whole = room < WINDOW_WHOLE ? room : WINDOW_WHOLE;

    if (subject->slot == NULL || !subject->own->pair ||
        !nd_window_is_large(subject->pair, whole) ||
        !nd_window_open(subject->pair, subject->own->op, subject->slot->name,
                        subject_worst(subject), whole < WINDOW_LIMIT ? whole : WINDOW_LIMIT,
                        &subject->window))
        return;
    subject->pair = &subject->window.pair;
}

/* --- the formula ---------------------------------------------------------------------- */

static void subject_formula(struct subject *subject)
{
    const struct layer_facts *own = subject->own;
    const uint64_t room = subject->input->max_mem / 4 / nd_sample_bytes(OP_MAX_INPUTS, 1);
    /* Sixteen multiply-adds an element and side: 2^26 for one test of a norm. */
    const struct replay_limits limits = {
        .elements = room < 1u << 22 ? room : 1u << 22, .row = room, .seed = subject->index};
    const uint64_t *worst = subject_worst(subject);
    const bool shown = worst != NULL && !subject->window.is &&
                       strcmp(subject->slot->name, "output.0") == 0;

    if (!own->pair || !own->forward ||
        !nd_formula_open(subject->pair, own->op, own->roundoff, &limits,
                         shown ? worst : NULL, &subject->formula))
        return;
    struct replay judged = {.done = true};
    subject->has_formula = true;
    judged.residual[0] = subject->formula.residual[0];
    judged.residual[1] = subject->formula.residual[1];
    judged.fitted = own->replay.fitted;
    judged.fitted_on = subject->formula.study.fitted_on;
    nd_replay_judge(&judged, own->roundoff, subject->formula.leeway);
    subject->is_trusted = judged.trusted;
    subject->side = judged.trusted ? judged.side : 1;
}

/* --- whole tensors ------------------------------------------------------------------- */

static const struct tensor_view *output_view(const struct subject *subject, int side)
{
    const struct slot_view *slot;

    if (subject->slot == NULL || subject->pair->side[side] == NULL)
        return NULL;
    slot = nd_layer_slot(subject->pair->side[side], subject->slot->name);
    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? &slot->tensor
               : NULL;
}

const struct tensor_view *nd_subject_like_output(const struct subject *subject, int side,
                                                 const char *name)
{
    const struct slot_view *slot = nd_layer_slot(subject->pair->side[side], name);

    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT &&
                   nd_shape_equal(&slot->tensor.shape, &subject->shape)
               ? &slot->tensor
               : NULL;
}

/* A product that was proved to be one of them is recomputed whole where it is small. */
static bool subject_product(struct subject *subject)
{
    const struct layer_facts *own = subject->own;

    return own->op != NULL && own->op->product && own->replay.done && own->replay.trusted &&
           strcmp(subject->slot->name, "output.0") == 0 &&
           nd_product_expected(subject->pair, own->roundoff, subject->side,
                               subject->input->max_mem, subject->index,
                               subject->expected);
}

static bool subject_replayed(struct subject *subject)
{
    const struct formula *formula = &subject->formula;
    double *row;

    if (subject_product(subject))
        return true;
    if (!subject->has_formula || !subject->is_trusted || !formula->sample.whole ||
        strcmp(subject->slot->name, "output.0") != 0)
        return false;
    row = malloc(formula->sample.rows.row_len * sizeof *row);
    if (row == NULL)
        return false;
    for (uint64_t i = 0; i < formula->sample.count; i++) {
        nd_formula_row(formula, subject->side, i, row);
        nd_rows_scatter(&formula->sample.rows, &formula->shape, formula->sample.row[i], row,
                        subject->expected);
    }
    free(row);
    return true;
}

static void subject_flat(struct subject *subject)
{
    const struct tensor_view *actual = output_view(subject, subject->side);
    const struct tensor_view *other = output_view(subject, !subject->side);
    const uint64_t room = subject->input->max_mem / 8 / sizeof(double);

    if (actual == NULL || other == NULL || !nd_shape_equal(&actual->shape, &other->shape) ||
        actual->count == 0 || actual->count > room)
        return;
    subject->actual = nd_room_take(actual->count, sizeof *subject->actual);
    subject->expected = nd_room_take(actual->count, sizeof *subject->expected);
    if (subject->actual == NULL || subject->expected == NULL) {
        nd_room_give(subject->actual);
        nd_room_give(subject->expected);
        subject->actual = subject->expected = NULL;
        return;
    }
    subject->count = actual->count;
    subject->shape = actual->shape;
    nd_view_decode(actual, 0, actual->count, subject->actual);
    subject->is_replayed = subject_replayed(subject);
    if (!subject->is_replayed)
        nd_view_decode(other, 0, other->count, subject->expected);
}

double nd_flat_misfit(const struct subject *subject, const double *expected,
                      const bool *keep)
{
    double error = 0, size = 0;

    if (subject->actual == NULL)
        return (double)NAN;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = subject->actual[i], z = expected[i];
        if ((keep != NULL && !keep[i]) || !isfinite(y) || !isfinite(z))
            continue;
        error += (y - z) * (y - z);
        size += z * z;
    }
    return size > 0 ? sqrt(error / size) : error > 0 ? HUGE_VAL : 0;
}

/* --- levels -------------------------------------------------------------------------- */

/*
 * What has to be explained, and what need not be: against a replay that is the other side's
 * own residual; against the other side's output everything that the inputs brought with
 * them.
 */
static void subject_levels(struct subject *subject)
{
    const struct layer_facts *own = subject->own;
    const double rounding = 0.4247 * own->roundoff;

    if (subject->has_formula && subject->is_trusted) {
        subject->unexplained = subject->formula.residual[subject->side].rel;
        subject->floor = fmax(subject->formula.residual[!subject->side].rel, rounding);
        subject->floor = fmax(subject->floor, hypot(subject->formula.leeway.rel,
                                                    subject->formula.leeway.fit));
        /* What a fitted formula leaves of the side that it was fitted to is no measure of
         * the other's arithmetic: statistics and root in float32 cost a unit or so. */
        if (subject->norm != NULL)
            subject->floor = fmax(subject->floor, 0.9 * 0x1p-24);
        return;
    }
    if (subject->is_replayed) { /* a product */
        subject->unexplained = nd_flat_misfit(subject, subject->expected, NULL);
        subject->floor = fmax(own->replay.residual[!subject->side].rel, rounding);
        return;
    }
    subject->unexplained = own->out.rel;
    if (subject->window.is && subject->actual != NULL) /* as much as this part has */
        subject->unexplained = nd_flat_misfit(subject, subject->expected, NULL);
    subject->floor = fmax(own->floor, own->in.count > 0 ? own->in.rel : 0);
    size_t behind = nd_before(subject->input, subject->index);
    for (int k = 0; k < 10 && behind != ND_NO_INDEX && own->in.count == 0; k++) {
        subject->floor = fmax(subject->floor, subject->facts[behind].out.rel);
        behind = nd_before(subject->input, behind);
    }
}

/* No formula tells which side is wrong: the golden dump does. */
static void subject_golden(struct subject *subject)
{
    const struct side_evidence *golden = subject->input->golden;

    if (subject->is_trusted || !golden[0].given || !golden[1].given ||
        golden[0].drift == NULL || golden[1].drift == NULL)
        return;
    if (golden[0].drift[subject->index] > 4 * golden[1].drift[subject->index])
        subject->side = 0;
}

/* Short of memory: a layer of which nothing is known. */
static const struct layer_view layer_nothing = {
    .name = "", .type = "", .direction = "forward"};
static const struct layer_pair_view subject_nothing = {{&layer_nothing, &layer_nothing}};

void nd_subject_open(struct subject *subject, const struct diagnosis_input *input,
                     const struct layer_facts *facts, const struct origin *origin,
                     size_t index, struct arena *arena)
{
    *subject = (struct subject){.input = input,
                                .facts = facts,
                                .origin = origin,
                                .arena = arena,
                                .index = index,
                                .kind = origin->kinds[index],
                                .layer = &input->result->layers[index],
                                .own = &facts[index],
                                .pair = &subject_nothing,
                                .side = 1};
    if (subject->own->out.worst != ND_NO_INDEX)
        subject->slot = &subject->layer->slots[subject->own->out.worst];
    if (subject->own->op != NULL)
        subject->norm = subject->own->op->norm;
    /* A copy: checks look at many other layers beside it. */
    if ((subject->own->stand_ins > 0 &&
         nd_stand_in_make(input, index, subject->own->stand_in, subject->own->stand_ins,
                          &subject->stand_in)) ||
        nd_sum_input_find(input, facts, index, &subject->stand_in) ||
        nd_stand_in_make(input, index, NULL, 0, &subject->stand_in))
        subject->pair = &subject->stand_in.pair;
    subject->whole = subject->pair;
    subject_window(subject);
    subject_formula(subject);
    if (subject->own->replay.done && subject->own->replay.trusted && !subject->has_formula)
        subject->side = subject->own->replay.side;
    subject_golden(subject);
    if (subject->own->pair)
        subject_flat(subject);
    subject_levels(subject);
    if (subject->actual != NULL)
        subject->flat_floor = nd_flat_floor(subject);
}

void nd_subject_done(struct subject *subject)
{
    if (subject->has_formula)
        nd_formula_close(&subject->formula);
    nd_window_done(&subject->window);
    nd_stand_in_done(&subject->stand_in);
    nd_room_give(subject->actual);
    nd_room_give(subject->expected);
    subject->actual = subject->expected = NULL;
    subject->has_formula = false;
}
