/*
 * Does one side drop out?  A share p of the values is zero at places that follow no order,
 * and all others are larger by 1 / (1 - p).
 */
#include <math.h>

#include "base/room.h"
#include "checks/flat.h"

/* One factor on eight values is no accident; fewer than three zeros tell no share. */
enum { DROPOUT_KEPT = 8, DROPOUT_ZEROS = 3 };

struct dropout {
    uint64_t dropped, kept;
    double scale;
};

/* Zeros where the other side has none, and the factor on the rest. */
static bool dropout_measure(const double *y, const double *z, uint64_t count,
                            struct dropout *ret)
{
    double product = 0, square = 0;

    *ret = (struct dropout){.scale = 1};
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(y[i]) || !isfinite(z[i]) || z[i] == 0)
            continue;
        if (y[i] == 0) {
            ret->dropped++;
            continue;
        }
        ret->kept++;
        product += y[i] * z[i];
        square += z[i] * z[i];
    }
    if (ret->dropped < DROPOUT_ZEROS || ret->kept < DROPOUT_KEPT || !(square > 0))
        return false;
    ret->scale = product / square;
    return ret->scale > 1;
}

/* The share of zeros is the p that the factor says, within what chance allows. */
static bool dropout_agrees(const struct dropout *of)
{
    const double n = (double)(of->dropped + of->kept), p = 1 - 1 / of->scale;

    return p > 0.005 && p < 0.96 &&
           fabs((double)of->dropped / n - p) < 5 * sqrt(p * (1 - p) / n) + 1e-3;
}

static void dropout_try(struct subject *subject, int side, const double *y, const double *z)
{
    struct dropout of;

    if (!dropout_measure(y, z, subject->count, &of) || !dropout_agrees(&of))
        return;
    double *dropped = nd_room_take(subject->count, sizeof *dropped);
    if (dropped == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++)
        dropped[i] = y[i] == 0 ? 0 : z[i] * of.scale;
    const struct hypothesis dropout = {
        .id = "dropout",
        .residual = nd_flat_distance(y, dropped, NULL, subject->count),
        .penalty = -0.3,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};
    nd_room_give(dropped);
    ND_PROPOSE(subject, dropout, ND_NUMBER("p", 1 - 1 / of.scale),
               ND_NUMBER("share",
                         (double)of.dropped / (double)(of.dropped + of.kept)));
}

/*
 * Both sides drop out, by other random numbers: values that neither dropped agree, and each
 * side has as many zeros that the other has not.
 */
static void dropout_of_both(struct subject *subject)
{
    const double *y = subject->actual, *z = subject->expected;
    bool *keep = nd_room_take(subject->count, sizeof *keep);
    double zeros[2] = {0, 0}, kept = 0;

    if (keep == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++) {
        keep[i] = y[i] != 0 && z[i] != 0;
        zeros[0] += z[i] == 0 && y[i] != 0;
        zeros[1] += y[i] == 0 && z[i] != 0;
        kept += keep[i];
    }
    const double residual = nd_flat_distance(y, z, keep, subject->count);
    nd_room_give(keep);
    if (fmin(zeros[0], zeros[1]) < DROPOUT_ZEROS || kept < DROPOUT_KEPT ||
        fabs(zeros[0] - zeros[1]) > 5 * sqrt(zeros[0] + zeros[1]) ||
        !(residual <= 4 * fmax(subject->own->in.rel, subject->floor)))
        return;
    const struct nd_param params[] = {ND_NUMBER("p", zeros[1] / (zeros[1] + kept)),
                                      ND_NUMBER("residual", residual)};
    const struct hypothesis random = {
        .id = "random_source",
        .residual = residual,
        .penalty = -0.3,
        .params = params,
        .param_count = 2,
        .side = nd_subject_side(subject),
        .summary =
            nd_phrase_make(subject->arena, "summary.random_source.masks", params, 2)};
    nd_propose(subject, &random);
}

static void dropout_run(struct subject *subject, struct nd_finding *finding)
{
    (void)finding;
    if (!nd_flat_asked(subject))
        return;
    dropout_of_both(subject);
    dropout_try(subject, subject->side, subject->actual, subject->expected);
    if (!subject->is_replayed)
        dropout_try(subject, !subject->side, subject->expected, subject->actual);
}

const struct check nd_check_dropout = {.id = "dropout", .run = dropout_run};
