/*
 * Does an index run over?  From 2^15 or 2^16 elements (or 65536 rows) on, values are those
 * of the start again, or were never written; up to there everything agrees.
 */
#include <math.h>

#include "checks/flat.h"

/* What 16 bits count, signed and unsigned; also the blocks of a launch. */
static const uint64_t INDEX_SIGNED = 1u << 15, INDEX_UNSIGNED = 1u << 16;

enum index_content { INDEX_WRAPPED, INDEX_ZERO };

/* One side's values y against what was expected of it. */
struct index_pair {
    int side;
    const double *y, *z;
};

/* What stands at a place if the index runs over at `limit`. */
static double index_moved(const double *z, uint64_t i, uint64_t limit,
                          enum index_content content)
{
    return i < limit ? z[i] : content == INDEX_WRAPPED ? z[i % limit] : 0;
}

/* Squares of all that the output would hold. */
static double index_size(const double *z, uint64_t count, uint64_t limit,
                         enum index_content content)
{
    double all = 0, rest = 0;

    for (uint64_t i = 0; i < limit; i++) {
        const double square = isfinite(z[i]) ? z[i] * z[i] : 0;
        all += square;
        rest += i < count % limit ? square : 0;
    }
    return content == INDEX_WRAPPED ? all * (double)(count / limit) + rest : all;
}

/* As nd_flat_distance() of y and what is moved; infinite as soon as it is over `most`. */
static double index_distance(const struct index_pair *of, uint64_t count, uint64_t limit,
                             enum index_content content, double most)
{
    const double enough = 2 * most * most * index_size(of->z, count, limit, content);
    double error = 0, size = 0;

    for (uint64_t i = 0; i < count; i++) {
        const double y = of->y[i], z = index_moved(of->z, i, limit, content);
        if (isfinite(y) && isfinite(z)) {
            error += (y - z) * (y - z);
            size += z * z;
            if (error > enough)
                return HUGE_VAL;
        } else if (!(isnan(y) ? isnan(z) : y == z)) {
            return HUGE_VAL;
        }
    }
    return size > 0 ? sqrt(error / size) : error > 0 ? HUGE_VAL : 0;
}

static void index_try(struct subject *subject, const struct index_pair *of, uint64_t limit)
{
    static const char *const names[] = {"wrapped", "zeros"};

    if (limit >= subject->count)
        return;
    for (int content = INDEX_WRAPPED; content <= INDEX_ZERO; content++) {
        const double residual =
            index_distance(of, subject->count, limit, (enum index_content)content,
                           0.25 * subject->unexplained);
        if (!(residual < 0.25 * subject->unexplained))
            continue;
        const double floor = nd_flat_floor(subject);
        const struct hypothesis overflow = {
            .id = "index_overflow",
            .residual = residual,
            .floor = floor,
            /* The start once more, from just this place on: no tail does that. */
            .is_certain = content == INDEX_WRAPPED && subject->count - limit >= 64 &&
                          residual <= 2.5 * floor,
            .penalty = -0.3,
            .side = of->side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};
        ND_PROPOSE(subject, overflow, ND_NUMBER("limit", (double)limit),
                   ND_NUMBER("count", (double)subject->count),
                   ND_WORD("content", names[content]));
    }
}

static void index_side(struct subject *subject, const struct index_pair *of)
{
    index_try(subject, of, INDEX_SIGNED);
    index_try(subject, of, INDEX_UNSIGNED);
    if (subject->shape.rank > 1 && subject->shape.dim[0] > INDEX_UNSIGNED)
        index_try(subject, of, INDEX_UNSIGNED * nd_flat_inner(&subject->shape, 0));
}

static void index_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    /* Flat indices of a part are none of the tensor. */
    if (!nd_flat_asked(subject) || subject->count <= INDEX_SIGNED || subject->window.is)
        return;
    index_side(subject, &(struct index_pair){subject->side, subject->actual,
                                             subject->expected});
    if (!subject->is_replayed)
        index_side(subject, &(struct index_pair){!subject->side, subject->expected,
                                                 subject->actual});
}

const struct check nd_check_index = {.id = "index", .run = index_run};
