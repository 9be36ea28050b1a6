/*
 * Are gradients multiplied by one number?  A loss scale that was not taken out again, a
 * mean over ranks that is a sum on the other side.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/flat.h"

/* Scales that are made on purpose: powers of two, and counts of ranks or micro-batches. */
static bool gradient_is_plain(double scale)
{
    const double size = scale < 1 ? 1 / scale : scale;

    return size <= 1024 ? fabs(size - nearbyint(size)) < 1e-3 * size
                        : fabs(log2(size) - nearbyint(log2(size))) < 1e-3;
}

static void gradient_run(struct subject *subject, struct nd_finding *finding)
{
    double product = 0, square = 0;

    (void)finding;
    if (!nd_flat_asked(subject) || strcmp(subject->layer->direction, "backward") != 0)
        return;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = subject->actual[i], z = subject->expected[i];
        if (isfinite(y) && isfinite(z)) {
            product += y * z;
            square += z * z;
        }
    }
    const double scale = square > 0 ? product / square : 0;
    if (!(scale > 0) || fabs(scale - 1) < 4 * subject->floor)
        return;
    double *scaled = malloc(subject->count * sizeof *scaled);
    if (scaled == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++)
        scaled[i] = subject->expected[i] * scale;
    const struct hypothesis hypothesis = {
        .id = "gradient_scale",
        .residual = nd_flat_distance(subject->actual, scaled, NULL, subject->count),
        .is_free = !gradient_is_plain(scale),
        .side = nd_subject_side(subject)};
    free(scaled);
    ND_PROPOSE(subject, hypothesis, ND_NUMBER("scale", scale));
}

const struct check nd_check_gradient = {.id = "gradient", .run = gradient_run};
