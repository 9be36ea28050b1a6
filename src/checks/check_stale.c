/*
 * Is the output that of another layer?  A buffer that was handed out before its new values
 * were written holds the bytes of an earlier output; a sum that lost one operand holds the
 * bytes of the other.  Where all layers after it agree, only the dump holds another tensor.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/flat.h"

enum { STALE_BLOCK = 256, STALE_LEAST = 16 };

static const struct tensor_view *stale_view(const struct layer_view *layer,
                                            const char *name)
{
    const struct slot_view *slot = layer == NULL ? NULL : nd_layer_slot(layer, name);

    return slot != NULL && slot->has_tensor &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? &slot->tensor
               : NULL;
}

/* Every value the same; mostly the first block tells them apart. */
static bool stale_equal(const struct tensor_view *a, const struct tensor_view *b)
{
    double left[STALE_BLOCK], right[STALE_BLOCK];

    if (a == NULL || b == NULL || a->count != b->count || a->count < STALE_LEAST)
        return false;
    for (uint64_t at = 0; at < a->count; at += STALE_BLOCK) {
        const uint64_t n = a->count - at < STALE_BLOCK ? a->count - at : STALE_BLOCK;
        nd_view_decode(a, at, n, left);
        nd_view_decode(b, at, n, right);
        for (uint64_t i = 0; i < n; i++)
            if (left[i] != right[i] && !(isnan(left[i]) && isnan(right[i])))
                return false;
    }
    return true;
}

/* All zeros, or one value: equal without meaning anything. */
static bool stale_is_plain(const struct tensor_view *view)
{
    double values[STALE_BLOCK];

    for (uint64_t at = 0; at < view->count; at += STALE_BLOCK) {
        const uint64_t n = view->count - at < STALE_BLOCK ? view->count - at : STALE_BLOCK;
        nd_view_decode(view, at, n, values);
        for (uint64_t i = 0; i < n; i++)
            if (values[i] != values[0] && values[i] != 0)
                return false;
    }
    return true;
}

/* The layers after this one that use its output, or those between it and its use. */
enum { STALE_USERS = 10 };
static const double STALE_SHARE = 0.05; /* of the error that would show in one of them */

/* They agree: what was computed was right. */
static bool stale_is_dump_only(const struct subject *subject)
{
    const size_t layers = subject->input->result->layer_count;
    size_t seen = 0;

    for (size_t i = subject->index + 1; i < layers && seen < STALE_USERS; i++) {
        const struct layer_facts *facts = &subject->facts[i];
        if (facts->container || facts->out.count == 0 ||
            subject->input->runs->run[i] != subject->input->runs->run[subject->index])
            continue;
        if (facts->out.mismatches > 0 ||
            !(facts->out.rel <= STALE_SHARE * subject->own->out.rel))
            return false;
        seen++;
    }
    return seen > 0;
}

static void stale_propose(struct subject *subject, const char *id, int side,
                          const char *layer)
{
    /* Before "nonfinite": the old values bring their infinities with them. */
    const struct hypothesis stale = {
        .id = stale_is_dump_only(subject) ? "not_same_tensor" : id,
        .residual = 0,
        .is_certain = true,
        .penalty = -6,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};

    ND_PROPOSE(subject, stale, ND_WORD("source", layer));
}

/* The other operand is missing: input.0 or input.1 of a sum, dumped or proved. */
static bool stale_operand(struct subject *subject, int side, const struct tensor_view *out)
{
    static const char *const names[] = {"input.0", "input.1"};

    for (size_t k = 0; k < 2; k++) {
        const struct tensor_view *in = stale_view(subject->whole->side[side], names[k]);
        const struct tensor_view *other =
            stale_view(subject->whole->side[side], names[!k]);
        /* x + 0 is x. */
        if (!stale_equal(out, in) || other == NULL || stale_is_plain(other))
            continue;
        stale_propose(subject, "residual_missing", side, names[k]);
        return true;
    }
    return false;
}

/* The layers right after it whose output the other side has in this slot: an activation or
 * a norm that was folded into it. */
enum { STALE_AHEAD = 3 };

static void stale_ahead(struct subject *subject)
{
    double *later = malloc(subject->count * sizeof *later);

    for (size_t k = 1; k <= STALE_AHEAD && later != NULL; k++) {
        const size_t i = subject->index + k;
        const struct tensor_view *view =
            i >= subject->input->result->layer_count || subject->facts[i].container
                ? NULL
                : stale_view(nd_pair_of(subject->input, i)->side[!subject->side], "output.0");
        if (view == NULL || !nd_shape_equal(&view->shape, &subject->shape))
            continue;
        nd_view_decode(view, 0, view->count, later);
        const double floor = fmax(subject->floor, subject->facts[i].out.rel);
        const double residual =
            nd_flat_distance(subject->actual, later, NULL, subject->count);
        const struct hypothesis folded = {.id = "not_same_tensor",
                                          .residual = residual,
                                          .floor = floor,
                                          .penalty = -0.3,
                                          .side = nd_subject_side(subject)};
        if (floor < 0.1 * subject->unexplained && residual <= 4 * floor)
            ND_PROPOSE(subject, folded,
                       ND_WORD("source", subject->input->result->layers[i].name));
    }
    free(later);
}

/*
 * What one side's sum lacks is an earlier output: the operand that was left out, where the
 * other one (a parameter, a slice) was not dumped.
 */
enum { STALE_BEHIND = 12 };

static void stale_difference(struct subject *subject, int side, const double *y,
                             const double *z)
{
    double *values = malloc(2 * subject->count * sizeof *values);
    double *sum = values == NULL ? NULL : values + subject->count;

    size_t i = nd_before(subject->input, subject->index);
    for (int back = 0; back < STALE_BEHIND && i != ND_NO_INDEX && values != NULL;
         back++, i = nd_before(subject->input, i)) {
        const struct tensor_view *view =
            subject->facts[i].container
                ? NULL
                : stale_view(nd_pair_of(subject->input, i)->side[side], "output.0");
        if (view == NULL || !nd_shape_equal(&view->shape, &subject->shape) ||
            stale_is_plain(view))
            continue;
        nd_view_decode(view, 0, view->count, values);
        for (uint64_t k = 0; k < subject->count; k++)
            sum[k] = y[k] + values[k];
        const double floor = fmax(subject->floor, subject->facts[i].out.rel);
        const struct hypothesis missing = {
            .id = "residual_missing",
            .residual = nd_flat_distance(sum, z, NULL, subject->count),
            .floor = floor,
            .penalty = -0.3,
            .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};
        if (missing.residual <= 4 * floor && floor < 0.1 * subject->unexplained)
            ND_PROPOSE(subject, missing,
                       ND_WORD("source", subject->input->result->layers[i].name));
    }
    free(values);
}

/* The line through one channel of the expected output that comes nearest to the actual. */
static void stale_fit_channel(const struct subject *subject, uint64_t channel,
                              uint64_t inner, double *ret_folded)
{
    const uint64_t step = subject->shape.dim[1] * inner;
    const double n = (double)(subject->count / subject->shape.dim[1]);
    double z = 0, y = 0, zz = 0, zy = 0;

    for (uint64_t i = channel * inner; i < subject->count; i += step)
        for (uint64_t k = i; k < i + inner; k++) {
            z += subject->expected[k] / n;
            y += subject->actual[k] / n;
        }
    for (uint64_t i = channel * inner; i < subject->count; i += step)
        for (uint64_t k = i; k < i + inner; k++) {
            zz += (subject->expected[k] - z) * (subject->expected[k] - z);
            zy += (subject->expected[k] - z) * subject->actual[k];
        }
    for (uint64_t i = channel * inner; i < subject->count; i += step)
        for (uint64_t k = i; k < i + inner; k++)
            ret_folded[k] = y + (zz > 0 ? zy / zz : 0) * (subject->expected[k] - z);
}

/* A norm that was folded into the layer scales and shifts each channel by its own numbers,
 * and what comes after agrees: everything was computed, in one step. */
static void stale_folded(struct subject *subject)
{
    const struct op *op = subject->own->op;
    const uint64_t channels = subject->shape.rank < 3 ? 0 : subject->shape.dim[1];

    if (op == NULL || !op->product || !op->bias || channels == 0 ||
        subject->count / channels < 4 || subject->count < 64 ||
        !stale_is_dump_only(subject))
        return;
    double *folded = malloc(subject->count * sizeof *folded);
    if (folded == NULL)
        return;
    for (uint64_t c = 0; c < channels; c++)
        stale_fit_channel(subject, c, nd_flat_inner(&subject->shape, 1), folded);
    const double residual = nd_flat_distance(subject->actual, folded, NULL, subject->count);
    free(folded);
    const struct nd_param params[] = {
        ND_NUMBER("is_candidate", nd_subject_side(subject) == ND_SIDE_CANDIDATE),
        ND_NUMBER("residual", residual)};
    const struct hypothesis other = {
        .id = "not_same_tensor",
        .residual = residual,
        .penalty = -0.3,
        .is_free = true, /* two numbers a channel */
        .side = nd_subject_side(subject),
        .summary = nd_phrase_make(subject->arena, "summary.not_same_tensor.folded", params,
                                  sizeof params / sizeof *params)};
    if (residual <= 8 * fmax(subject->floor, subject->own->floor))
        nd_propose(subject, &other);
}

/* Runs over one batch in several steps repeat themselves: only the side that is thought to
 * be wrong may hold what an earlier step left. */
static bool stale_is_repeat(const struct subject *subject, int side, size_t i)
{
    const struct nd_layer *layer = &subject->input->result->layers[i];

    return side != subject->side &&
           (layer->step != subject->layer->step || layer->rank != subject->layer->rank);
}

/* The latest earlier output of either side that is equal; NULL: none. */
static const char *stale_source(const struct subject *subject, int side,
                                const struct tensor_view *out)
{
    for (size_t i = subject->index; i-- > 0;)
        for (int from = 0; from < 2; from++) {
            const int of = from == 0 ? side : !side;
            const struct layer_view *layer = nd_pair_of(subject->input, i)->side[of];
            if (layer == NULL || layer->container || stale_is_repeat(subject, side, i))
                continue;
            if (stale_equal(out, stale_view(layer, subject->slot->name)) ||
                (strcmp(subject->slot->name, "output.0") != 0 &&
                 stale_equal(out, stale_view(layer, "output.0"))))
                return subject->input->result->layers[i].name;
        }
    return NULL;
}

static void stale_side(struct subject *subject, int side)
{
    const struct op *op = subject->own->op;
    const struct tensor_view *out =
        stale_view(subject->whole->side[side], subject->slot->name);
    const bool is_sum = op != NULL && strcmp(op->name, "add") == 0;

    if (out == NULL || stale_is_plain(out) ||
        (is_sum && stale_operand(subject, side, out)))
        return;
    const char *source = stale_source(subject, side, out);
    const struct tensor_view *other =
        stale_view(subject->whole->side[!side], subject->slot->name);
    /* What hands on its input by nature does so on both sides. */
    if (source != NULL && !(other != NULL && stale_source(subject, !side, other) != NULL))
        stale_propose(subject, is_sum ? "residual_missing" : "stale_buffer", side, source);
    else if (source == NULL && is_sum && nd_flat_asked(subject) && !subject->is_replayed)
        stale_difference(subject, side,
                         side == subject->side ? subject->actual : subject->expected,
                         side == subject->side ? subject->expected : subject->actual);
}

static void stale_run(struct subject *subject, struct nd_finding *finding)
{
    const struct op *op = subject->own->op;
    const bool passes_on = op != NULL && (strcmp(op->name, "dropout") == 0 ||
                                          strcmp(op->name, "identity") == 0);

    (void)finding;
    if (subject->slot == NULL || !subject->own->pair || nd_flat_outside(subject) ||
        passes_on)
        return;
    stale_side(subject, subject->side);
    stale_side(subject, !subject->side);
    if (nd_flat_asked(subject)) {
        stale_ahead(subject);
        stale_folded(subject);
    }
}

const struct check nd_check_stale = {.id = "stale", .run = stale_run};
