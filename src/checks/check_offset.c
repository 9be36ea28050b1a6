/*
 * Is every value a few places off?  Element i holds what belongs to i + k.  A run of values
 * that occurs once is looked up in the expected output; the distance is then tried on all.
 */
#include <math.h>
#include <stdlib.h>

#include "checks/flat.h"

enum { OFFSET_RUN = 12, OFFSET_PLACES = 5 };

struct offset {
    double rms, floor;
};

static bool offset_run_fits(const struct subject *subject, const struct offset *of,
                            uint64_t at, uint64_t from)
{
    for (uint64_t j = 0; j < OFFSET_RUN; j++)
        if (nd_flat_differs(of->floor, of->rms, subject->actual[at + j],
                            subject->expected[from + j]))
            return false;
    return true;
}

/* Zeros and constants lie everywhere. */
static bool offset_run_tells(const struct subject *subject, const struct offset *of,
                             uint64_t at)
{
    unsigned distinct = 0;

    for (uint64_t j = 1; j < OFFSET_RUN; j++)
        distinct += isfinite(subject->actual[at + j]) &&
                    nd_flat_differs(2 * of->floor, of->rms, subject->actual[at + j],
                                    subject->actual[at + j - 1]);
    return distinct >= OFFSET_RUN / 2;
}

/* The places where the run at `at` is expected: the only one, or none. */
static bool offset_look_up(const struct subject *subject, const struct offset *of,
                           uint64_t at, int64_t *ret_distance)
{
    unsigned found = 0;

    for (uint64_t from = 0; from + OFFSET_RUN <= subject->count && found < 2; from++)
        if (offset_run_fits(subject, of, at, from)) {
            *ret_distance = (int64_t)from - (int64_t)at;
            found++;
        }
    return found == 1;
}

/* A distance that two runs of different parts of the tensor agree on. */
static bool offset_find(const struct subject *subject, const struct offset *of,
                        int64_t *ret_distance)
{
    const uint64_t most = subject->count / (2 * OFFSET_RUN);
    const uint64_t places = most < OFFSET_PLACES ? most : OFFSET_PLACES;
    int64_t distances[OFFSET_PLACES];
    unsigned count = 0;

    for (uint64_t place = 0; place < places; place++) {
        /* From the middle of each part on, where it is long enough. */
        const uint64_t end = (place + 1) * subject->count / places;
        uint64_t at = (2 * place + 1) * subject->count / (2 * places);
        if (at + 2 * OFFSET_RUN > end)
            at = place * subject->count / places;
        while (at + OFFSET_RUN < end && !offset_run_tells(subject, of, at))
            at += OFFSET_RUN / 2;
        if (at + OFFSET_RUN >= end || !offset_look_up(subject, of, at, &distances[count]))
            continue;
        for (unsigned k = 0; k < count; k++)
            if (distances[k] == distances[count]) {
                *ret_distance = distances[k];
                return *ret_distance != 0;
            }
        count++;
    }
    return false;
}

/* Fills where the values came from; what came from outside is not kept. */
static void offset_apply(const struct subject *subject, int64_t distance, double *moved,
                         bool *keep)
{
    for (uint64_t i = 0; i < subject->count; i++) {
        const int64_t from = (int64_t)i + distance;
        const int64_t count = (int64_t)subject->count;
        keep[i] = from >= 0 && from < count;
        moved[i] = subject->expected[(from % count + count) % count];
    }
}

static void offset_try(struct subject *subject, int64_t distance, double *moved, bool *keep)
{
    const uint64_t size = (uint64_t)(distance < 0 ? -distance : distance);
    const double share = (double)size / (double)subject->count;
    const uint64_t first = nd_flat_inner(&subject->shape, 0);

    if (share > 0.25)
        return;
    offset_apply(subject, distance, moved, keep);
    const double residual = nd_flat_distance(subject->actual, moved, keep, subject->count);
    const double wrapped = nd_flat_distance(subject->actual, moved, NULL, subject->count);
    const bool wraps = wrapped < 2 * fmax(residual, subject->floor);
    /* Whole samples that moved round are a permutation. */
    if (wraps && size % first == 0 && subject->shape.rank > 1)
        return;
    if (!(residual < 0.25 * subject->unexplained))
        return;
    const struct hypothesis offset = {.id = "offset",
                                      .residual = residual,
                                      .penalty = wraps ? -0.3 : 2 * share - 0.3,
                                      .side = nd_subject_side(subject)};
    ND_PROPOSE(subject, offset, ND_NUMBER("distance", (double)distance),
               ND_NUMBER("count", (double)subject->count));
}

static void offset_run(struct subject *subject, struct nd_finding *finding)
{
    int64_t distance = 0;

    (void)finding;
    if (!nd_flat_asked(subject) || subject->count < 4 * OFFSET_RUN ||
        !(subject->unexplained > 1e-3))
        return;
    const struct offset of = {.rms = nd_flat_rms(subject->expected, subject->count),
                              .floor = fmax(fmin(subject->floor, 1e-2), 1e-7)};
    if (!offset_find(subject, &of, &distance))
        return;
    double *moved = malloc(subject->count * sizeof *moved);
    bool *keep = malloc(subject->count * sizeof *keep);
    if (moved != NULL && keep != NULL)
        offset_try(subject, distance, moved, keep);
    free(moved);
    free(keep);
}

const struct check nd_check_offset = {.id = "offset", .run = offset_run};
