/*
 * Are the right slices in another order?  Along each axis every slice of the output is
 * matched with the expected slice that is nearest to it; a permutation that leaves nothing
 * but rounding is one: rows, tokens or samples of a batch, or channels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "checks/flat.h"

enum {
    PERMUTED_WIDTH = 12,       /* numbers that stand for a slice */
    PERMUTED_MOST = 2048,      /* slices that are matched each with each */
    PERMUTED_LEAST_LENGTH = 4, /* elements of a slice: fewer match by chance, */
    PERMUTED_EXACT_LENGTH = 2, /* unless they have to match closely, */
    PERMUTED_MANY = 16         /* or many do */
};
/* How closely, in floors of rounding: the nearest of many short slices leaves a tenth. */
static const double PERMUTED_CLOSE = 4;

/* One axis, seen as [outer][slices][inner]. */
struct permuted {
    uint64_t outer, slices, inner;
    uint32_t axis;
    double *mark[2]; /* PERMUTED_WIDTH a slice: expected, actual */
    uint64_t *from;  /* expected slice of each actual one */
    bool *taken;
};

/* Random bits, one for each sum, for the element `at` of a slice. */
static uint64_t permuted_bits(uint64_t at)
{
    return mix64(at * MIX_STEP);
}

/* Sums with random signs: they are as far apart as the slices are, up to a factor. */
static void permuted_mark(const struct permuted *of, const double *values, double *mark)
{
    memset(mark, 0, of->slices * PERMUTED_WIDTH * sizeof *mark);
    for (uint64_t o = 0, i = 0; o < of->outer; o++)
        for (uint64_t s = 0; s < of->slices; s++)
            for (uint64_t j = 0; j < of->inner; j++, i++) {
                const uint64_t bits = permuted_bits(o * of->inner + j);
                const double value = isfinite(values[i]) ? values[i] : 0;
                double *sums = mark + s * PERMUTED_WIDTH;
                for (unsigned k = 0; k < PERMUTED_WIDTH; k++)
                    sums[k] += (bits >> k & 1) != 0 ? value : -value;
            }
}

static double permuted_gap(const struct permuted *of, uint64_t actual, uint64_t expected)
{
    const double *a = of->mark[1] + actual * PERMUTED_WIDTH;
    const double *e = of->mark[0] + expected * PERMUTED_WIDTH;
    double sum = 0;

    for (unsigned k = 0; k < PERMUTED_WIDTH; k++)
        sum += (a[k] - e[k]) * (a[k] - e[k]);
    return sum;
}

/* The nearest expected slice that is still free; slices that are alike (zeros, padding)
 * stay where they are. */
static uint64_t permuted_match(const struct permuted *of)
{
    uint64_t moved = 0;

    memset(of->taken, 0, of->slices * sizeof *of->taken);
    for (uint64_t s = 0; s < of->slices; s++) {
        const double own = of->taken[s] ? HUGE_VAL : permuted_gap(of, s, s);
        double best = HUGE_VAL;
        of->from[s] = s;
        for (uint64_t k = 0; k < of->slices; k++) {
            if (of->taken[k])
                continue;
            const double gap = permuted_gap(of, s, k);
            if (gap < best || of->taken[of->from[s]]) {
                of->from[s] = k;
                best = gap;
            }
        }
        if (own <= 4 * best && !of->taken[s])
            of->from[s] = s;
        of->taken[of->from[s]] = true;
        moved += of->from[s] != s;
    }
    return moved;
}

static void permuted_apply(const struct permuted *of, const double *expected, double *moved)
{
    for (uint64_t o = 0; o < of->outer; o++)
        for (uint64_t s = 0; s < of->slices; s++)
            memcpy(moved + (o * of->slices + s) * of->inner,
                   expected + (o * of->slices + of->from[s]) * of->inner,
                   of->inner * sizeof *moved);
}

/* Between images an activation or a pooling has the channels of what stands before it; the
 * second axis of attention's tensors are heads. */
static bool is_between_images(const struct subject *subject)
{
    const struct op *op = subject->own->op;

    return subject->shape.rank == 4 && op != NULL &&
           (strcmp(op->name, "relu") == 0 || strcmp(op->name, "silu") == 0 ||
            strcmp(op->name, "gelu") == 0 || strcmp(op->name, "activation") == 0 ||
            strcmp(op->name, "pooling") == 0);
}

static void permuted_propose(struct subject *subject, const struct permuted *of,
                             uint64_t moved, double residual)
{
    const uint32_t channels =
        is_between_images(subject) ? 1 : nd_flat_channel_axis(subject);
    const bool of_channels = subject->shape.rank > 1 && of->axis == channels;
    const struct hypothesis permuted = {
        .id = of_channels ? "channels_permuted" : "batch_permuted",
        .residual = residual,
        .penalty = -0.3,
        .side = nd_subject_side(subject)};

    ND_PROPOSE(subject, permuted, ND_NUMBER("axis", (double)of->axis),
               ND_NUMBER("moved", (double)moved), ND_NUMBER("count", (double)of->slices));
}

static void permuted_axis(struct subject *subject, struct permuted *of, double *moved_to)
{
    permuted_mark(of, subject->expected, of->mark[0]);
    permuted_mark(of, subject->actual, of->mark[1]);
    const uint64_t moved = permuted_match(of);
    if (moved == 0)
        return;
    permuted_apply(of, subject->expected, moved_to);
    const double residual =
        nd_flat_distance(subject->actual, moved_to, NULL, subject->count);
    const bool is_short = subject->count / of->slices < PERMUTED_LEAST_LENGTH;
    if (is_short && subject->floor >= 1e-4 && residual > PERMUTED_CLOSE * subject->floor)
        return;
    if (residual < 0.25 * subject->unexplained)
        permuted_propose(subject, of, moved, residual);
}

static void permuted_run(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_shape *shape = &subject->shape;

    (void)finding;
    /* Slices that differ are about as far apart as they are long. */
    if (!nd_flat_asked(subject) || !(subject->unexplained > 1e-3))
        return;
    double *moved_to = malloc(subject->count * sizeof *moved_to);
    for (uint32_t axis = 0; moved_to != NULL && axis < shape->rank; axis++) {
        struct permuted of = {.slices = shape->dim[axis],
                              .inner = nd_flat_inner(shape, axis),
                              .axis = axis};
        const uint64_t least = subject->floor < 1e-4 || of.slices >= PERMUTED_MANY
                                   ? PERMUTED_EXACT_LENGTH
                                   : PERMUTED_LEAST_LENGTH;
        if (of.slices < 2 || of.slices > PERMUTED_MOST ||
            subject->count / of.slices < least)
            continue;
        of.outer = subject->count / of.slices / of.inner;
        for (int k = 0; k < 2; k++)
            of.mark[k] = malloc(of.slices * PERMUTED_WIDTH * sizeof *of.mark[k]);
        of.from = malloc(of.slices * sizeof *of.from);
        of.taken = malloc(of.slices * sizeof *of.taken);
        if (of.mark[0] != NULL && of.mark[1] != NULL && of.from != NULL && of.taken != NULL)
            permuted_axis(subject, &of, moved_to);
        free(of.mark[0]);
        free(of.mark[1]);
        free(of.from);
        free(of.taken);
    }
    free(moved_to);
}

const struct check nd_check_permuted = {.id = "permuted", .run = permuted_run};
