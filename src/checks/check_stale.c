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
        if (facts->container || facts->out.count == 0)
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
        const struct tensor_view *in = stale_view(subject->pair->side[side], names[k]);
        const struct tensor_view *other =
            stale_view(subject->pair->side[side], names[!k]);
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
                : stale_view(subject->input->layers[i].side[!subject->side], "output.0");
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

/* The latest earlier output of either side that is equal; NULL: none. */
static const char *stale_source(const struct subject *subject, int side,
                                const struct tensor_view *out)
{
    for (size_t i = subject->index; i-- > 0;)
        for (int from = 0; from < 2; from++) {
            const int of = from == 0 ? side : !side;
            const struct layer_view *layer = subject->input->layers[i].side[of];
            if (layer == NULL || layer->container)
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
        stale_view(subject->pair->side[side], subject->slot->name);
    const bool is_sum = op != NULL && strcmp(op->name, "add") == 0;

    if (out == NULL || stale_is_plain(out) ||
        (is_sum && stale_operand(subject, side, out)))
        return;
    const char *source = stale_source(subject, side, out);
    const struct tensor_view *other =
        stale_view(subject->pair->side[!side], subject->slot->name);
    /* What hands on its input by nature does so on both sides. */
    if (source != NULL && !(other != NULL && stale_source(subject, !side, other) != NULL))
        stale_propose(subject, is_sum ? "residual_missing" : "stale_buffer", side, source);
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
    if (nd_flat_asked(subject))
        stale_ahead(subject);
}

const struct check nd_check_stale = {.id = "stale", .run = stale_run};
