/*
 * Following the residual stream through a dump of outputs only.
 */
#include "checks/sum_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/norm.h"
#include "tensor/round.h"

/* Rows that tell sums apart, and channels of them that are compared. */
enum { LOOK_ROWS = 24, LOOK_CHANNELS = 16, FEWEST_ROWS = 6 };
/* Outputs that are kept at hand, and layers that are gone through. */
enum { RECENT = 24, NEW_TERMS = 12, MAX_WALK = 8192, MAX_TERMS = 512 };
/* r^2 between a norm's output and its input, normalised: unrelated tensors reach a tenth,
 * half-precision rounding leaves 1e-4. */
static const double RELATED = 0.99;
/* From here on nothing can be better.  Below that the best of all counts: what one branch
 * adds to the stream may be little. */
static const double EXACT = 1 - 1e-7;
/* Elements that all looking together takes. */
static const double LOOK_BUDGET = 0x1p30;

/* A sum of outputs, or one of them: its rows, and the layers in the order of adding. */
struct term_sum {
    size_t term[MAX_TERMS];
    unsigned count;
    double *rows; /* LOOK_ROWS of them */
};

struct stream {
    const struct diagnosis_input *input;
    const struct layer_facts *facts;
    struct nd_shape shape;
    uint64_t n, count;        /* of a row; rows that are looked at */
    uint64_t total;           /* rows of the tensor */
    struct term_sum recent[RECENT];
    unsigned filled;          /* of recent, oldest first */
    struct term_sum known;    /* what the last norm read; count 0: not known */
    struct term_sum best;
    double *y;                /* rows of the norm in question */
    double budget;
};

static const struct slot_view *float_output(const struct diagnosis_input *input, size_t i,
                                            int side)
{
    const struct layer_view *layer = nd_pair_of(input, i)->side[side];
    const struct slot_view *slot =
        layer == NULL || layer->container ? NULL : nd_layer_slot(layer, "output.0");

    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? slot
               : NULL;
}

/* An output as it has the stream's shape: by itself, or with its channels moved last, as
 * norms over them are fed. */
static bool shaped_output(const struct stream *stream, size_t i, int side,
                          struct tensor_view *ret)
{
    static const uint32_t channels_last[] = {0, 2, 3, 1};
    const struct slot_view *slot = float_output(stream->input, i, side);

    if (slot == NULL)
        return false;
    *ret = slot->tensor;
    if (!nd_shape_equal(&ret->shape, &stream->shape) && ret->shape.rank == 4)
        nd_view_permute(ret, channels_last);
    return nd_shape_equal(&ret->shape, &stream->shape);
}

static bool read_rows(const struct stream *stream, size_t i, int side, double *ret)
{
    struct tensor_view view;

    if (!shaped_output(stream, i, side, &view))
        return false;
    for (uint64_t k = 0; k < stream->count; k++)
        nd_view_decode(&view, k * stream->total / stream->count * stream->n, stream->n,
                       ret + k * stream->n);
    return true;
}

/* The row's values at the channels that are looked at, over its deviation or its rms. */
static void normalised(const struct stream *stream, const double *row, bool centre,
                       double *ret)
{
    double mean, var;

    nd_norm_moments(row, stream->n, &mean, &var);
    const double size = sqrt(centre ? var : var + mean * mean);
    for (uint64_t c = 0; c < LOOK_CHANNELS; c++) {
        const uint64_t j = (2 * c + 1) * stream->n / (2 * LOOK_CHANNELS);
        ret[c] = size > 0 ? (row[j] - (centre ? mean : 0)) / size : 0;
    }
}

static double correlation(const double *h, const double *y, uint64_t count)
{
    double mean[2] = {0, 0}, square[2] = {0, 0}, cross = 0;

    for (uint64_t k = 0; k < count; k++) {
        mean[0] += h[k] / (double)count;
        mean[1] += y[k] / (double)count;
    }
    for (uint64_t k = 0; k < count; k++) {
        square[0] += (h[k] - mean[0]) * (h[k] - mean[0]);
        square[1] += (y[k] - mean[1]) * (y[k] - mean[1]);
        cross += (h[k] - mean[0]) * (y[k] - mean[1]);
    }
    return square[0] > 0 && square[1] > 0 ? cross * cross / (square[0] * square[1]) : 0;
}

/* How well a norm's output follows from these rows, whatever its weight and bias. */
static double relation(struct stream *stream, const double *rows, bool centre)
{
    double h[LOOK_ROWS][LOOK_CHANNELS], of[2][LOOK_ROWS], sum = 0;

    stream->budget -= 4 * (double)(stream->n * stream->count);
    for (uint64_t k = 0; k < stream->count; k++)
        normalised(stream, rows + k * stream->n, centre, h[k]);
    for (uint64_t c = 0; c < LOOK_CHANNELS; c++) {
        const uint64_t j = (2 * c + 1) * stream->n / (2 * LOOK_CHANNELS);
        for (uint64_t k = 0; k < stream->count; k++) {
            of[0][k] = h[k][c];
            of[1][k] = stream->y[k * stream->n + j];
        }
        sum += correlation(of[0], of[1], stream->count);
    }
    return sum / LOOK_CHANNELS;
}

/* --- trying sums ---------------------------------------------------------------------- */

struct trial {
    struct stream *stream;
    bool centre;
    double *room; /* of a sum's rows */
    double score; /* of the best so far */
};

static void trial_sum(struct trial *trial, const struct term_sum *const *parts,
                      unsigned count)
{
    struct stream *stream = trial->stream;
    const uint64_t n = stream->n * stream->count;
    unsigned terms = 0;

    for (unsigned p = 0; p < count; p++)
        terms += parts[p]->count;
    if (terms > MAX_TERMS || stream->budget < 0)
        return;
    memcpy(trial->room, parts[0]->rows, n * sizeof *trial->room);
    for (unsigned p = 1; p < count; p++)
        for (uint64_t i = 0; i < n; i++)
            trial->room[i] += parts[p]->rows[i];
    const double score = relation(stream, trial->room, trial->centre);
    if (!(score > trial->score))
        return;
    trial->score = score;
    stream->best.count = 0;
    for (unsigned p = 0; p < count; p++)
        for (unsigned k = 0; k < parts[p]->count; k++)
            stream->best.term[stream->best.count++] = parts[p]->term[k];
    memcpy(stream->best.rows, trial->room, n * sizeof *trial->room);
}

/* What the last norm read, and one or two outputs that were made since. */
static void trial_known(struct trial *trial)
{
    struct stream *stream = trial->stream;
    const size_t last = stream->known.count == 0
                            ? 0
                            : stream->known.term[stream->known.count - 1];
    unsigned from = stream->filled;

    while (from > 0 && stream->recent[from - 1].term[0] > last &&
           stream->filled - from < NEW_TERMS)
        from--;
    for (unsigned a = from; a < stream->filled; a++)
        trial_sum(trial, (const struct term_sum *[]){&stream->known, &stream->recent[a]}, 2);
    for (unsigned a = from; a < stream->filled && trial->score < EXACT; a++)
        for (unsigned b = a + 1; b < stream->filled; b++)
            trial_sum(trial,
                      (const struct term_sum *[]){&stream->known, &stream->recent[a],
                                                  &stream->recent[b]},
                      3);
}

/* The sum that the rows y follow from best; its r^2. */
static double trial_all(struct stream *stream, bool centre, double *room)
{
    struct trial trial = {.stream = stream, .centre = centre, .room = room};

    for (unsigned a = stream->filled; a-- > 0 && trial.score < EXACT;)
        trial_sum(&trial, (const struct term_sum *[]){&stream->recent[a]}, 1);
    if (trial.score < EXACT && stream->known.count > 0)
        trial_known(&trial);
    for (unsigned b = stream->filled; b-- > 1 && trial.score < EXACT;)
        for (unsigned a = b; a-- > 0 && trial.score < EXACT;)
            trial_sum(&trial,
                      (const struct term_sum *[]){&stream->recent[a], &stream->recent[b]},
                      2);
    return trial.score;
}

/* --- the walk ------------------------------------------------------------------------- */

static void swap_sums(struct term_sum *a, struct term_sum *b)
{
    const struct term_sum first = *a;

    *a = *b;
    *b = first;
}

static void remember(struct stream *stream, size_t i)
{
    if (stream->filled == RECENT) {
        for (unsigned k = 0; k + 1 < RECENT; k++)
            swap_sums(&stream->recent[k], &stream->recent[k + 1]);
        stream->filled--;
    }
    struct term_sum *slot = &stream->recent[stream->filled];
    if (!read_rows(stream, i, 0, slot->rows))
        return;
    slot->term[0] = i;
    slot->count = 1;
    stream->filled++;
}

static bool is_row_norm(const struct layer_facts *facts)
{
    return facts->op != NULL && facts->op->norm != NULL &&
           facts->op->norm->grouping == NORM_TRAILING && facts->forward;
}

static void walk_to(struct stream *stream, const size_t *order, size_t count, double *room)
{
    for (size_t k = 0; k < count && stream->budget > 0; k++) {
        const struct layer_facts *facts = &stream->facts[order[k]];
        if (is_row_norm(facts) && read_rows(stream, order[k], 0, stream->y) &&
            trial_all(stream, facts->op->norm->centre, room) >= RELATED)
            swap_sums(&stream->known, &stream->best);
        remember(stream, order[k]);
    }
}

/* --- the sum itself ------------------------------------------------------------------- */

enum { BLOCK = 4096 };

/* Adds a term as the run did, rounding to its type each time. */
static bool add_term(const struct stream *stream, size_t i, int side, bool first,
                     float *sums)
{
    double block[BLOCK];
    struct tensor_view view;

    if (!shaped_output(stream, i, side, &view))
        return false;
    const enum nd_dtype real = float_output(stream->input, i, side)->real_dtype;
    for (uint64_t at = 0; at < view.count; at += BLOCK) {
        const uint64_t left = view.count - at, n = left < BLOCK ? left : BLOCK;
        nd_view_decode(&view, at, n, block);
        for (uint64_t k = 0; k < n; k++) {
            const float sum = first ? (float)block[k] : sums[at + k] + (float)block[k];
            sums[at + k] = (float)nd_dtype_round(real, (double)sum);
        }
    }
    return true;
}

static bool is_narrow(const struct slot_view *slot)
{
    return slot->real_dtype == ND_DTYPE_f32 || slot->real_dtype == ND_DTYPE_bf16 ||
           slot->real_dtype == ND_DTYPE_f16;
}

static bool attach(const struct stream *stream, size_t index, struct stand_in *ret)
{
    for (int side = 0; side < 2; side++) {
        const struct slot_view *view = float_output(stream->input, index, side);
        if (view == NULL || !is_narrow(view))
            return false;
        const struct slot_view out = *view; /* many other layers are looked at */
        float *sums = malloc(out.tensor.count * sizeof *sums);
        ret->own[side] = sums;
        for (unsigned k = 0; k < stream->best.count; k++)
            if (sums == NULL ||
                !add_term(stream, stream->best.term[k], side, k == 0, sums))
                return false;
        struct slot_view *slot = &ret->slots[side][ret->side[side].slot_count++];
        *slot = (struct slot_view){.name = "input.0", .real_dtype = out.real_dtype,
                                   .has_tensor = true};
        nd_view_contiguous(&slot->tensor, sums, out.tensor.count * sizeof *sums,
                           ND_DTYPE_f32, &stream->shape);
    }
    return true;
}

static bool stream_open(struct stream *stream, size_t index, double **ret_room)
{
    const struct slot_view *out = float_output(stream->input, index, 0);
    const struct nd_shape *shape = out == NULL ? NULL : &out->tensor.shape;

    if (shape == NULL || shape->rank < 2 || shape->dim[shape->rank - 1] < LOOK_CHANNELS)
        return false;
    stream->shape = *shape;
    stream->n = shape->dim[shape->rank - 1];
    stream->total = out->tensor.count / stream->n;
    stream->count = stream->total < LOOK_ROWS ? stream->total : LOOK_ROWS;
    if (stream->count < FEWEST_ROWS ||
        out->tensor.count > stream->input->max_mem / 8 / sizeof(float) ||
        stream->n * LOOK_ROWS * (RECENT + 4) > stream->input->max_mem / 4 / sizeof(double))
        return false;
    const uint64_t each = stream->n * stream->count;
    double *room = calloc((RECENT + 4) * each, sizeof *room);
    *ret_room = room;
    if (room == NULL)
        return false;
    for (unsigned k = 0; k < RECENT; k++)
        stream->recent[k].rows = room + k * each;
    stream->known.rows = room + RECENT * each;
    stream->best.rows = room + (RECENT + 1) * each;
    stream->y = room + (RECENT + 2) * each;
    return true;
}

/* The layers of the run before this one, in order; NULL without memory. */
static size_t *layers_before(const struct diagnosis_input *input, size_t index,
                             size_t *ret_count)
{
    size_t count = 0;

    for (size_t i = nd_before(input, index); i != ND_NO_INDEX && count < MAX_WALK;
         i = nd_before(input, i))
        count++;
    size_t *order = malloc((count + 1) * sizeof *order);
    *ret_count = count;
    for (size_t i = nd_before(input, index); order != NULL && count > 0;
         i = nd_before(input, i))
        order[--count] = i;
    return order;
}

/* Tries what either side's own output follows from: one of them is wrong. */
static bool find_in(struct stream *stream, size_t index, double *room, struct stand_in *ret)
{
    const struct layer_facts *own = &stream->facts[index];
    size_t count;
    size_t *order = layers_before(stream->input, index, &count);

    if (order == NULL)
        return false;
    stream->budget = LOOK_BUDGET;
    walk_to(stream, order, count, room);
    free(order);
    for (int side = 0; side < 2; side++) {
        stream->budget = fmax(stream->budget, LOOK_BUDGET / 16);
        if (!read_rows(stream, index, side, stream->y) ||
            trial_all(stream, own->op->norm->centre, room) < RELATED ||
            !nd_stand_in_make(stream->input, index, NULL, 0, ret))
            continue;
        if (attach(stream, index, ret) &&
            nd_stand_in_proved(ret, own->op, own->roundoff, index))
            return true;
        nd_stand_in_done(ret);
    }
    return false;
}

bool nd_sum_input_find(const struct diagnosis_input *input, const struct layer_facts *facts,
                       size_t index, struct stand_in *ret)
{
    struct stream *stream;
    double *room = NULL;

    if (!is_row_norm(&facts[index]) || facts[index].in.seen > 0 ||
        facts[index].stand_ins > 0 ||
        input->result->dump[input->result->order_borrowed].order == ND_ORDER_NAME)
        return false;
    stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return false;
    stream->input = input;
    stream->facts = facts;
    const bool found = stream_open(stream, index, &room) &&
                       find_in(stream, index, room + (RECENT + 3) * stream->n * stream->count,
                               ret);
    free(room);
    free(stream);
    return found;
}
