/*
 * Densities are those of Student's t with four degrees of freedom, so that a few odd
 * channels spoil nothing.  A spread is a grid of values, the best one taken.
 */
#include "checks/channel_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_ARRAYS = 9, VIEW_MOST = 512 };

bool nd_channel_view_open(const struct channel_table *table, struct channel_view *view)
{
    const uint64_t count = table->count < VIEW_MOST ? table->count : VIEW_MOST;
    double **const arrays[VIEW_ARRAYS] = {
        &view->gain,      &view->lift,  &view->level,    &view->offset, &view->scale,
        &view->deviation, &view->noise, &view->residual, &view->unit};
    double *room = calloc(count * VIEW_ARRAYS, sizeof *room);

    view->count = count;
    view->is_turned = calloc(count, sizeof *view->is_turned);
    if (room == NULL || view->is_turned == NULL) {
        free(room);
        free(view->is_turned);
        return false;
    }
    for (int i = 0; i < VIEW_ARRAYS; i++)
        *arrays[i] = room + (uint64_t)i * count;
    return true;
}

void nd_channel_view_close(struct channel_view *view)
{
    free(view->gain); /* the first of the arrays holds the room of all */
    free(view->is_turned);
}

void nd_channel_view_fill(const struct channel_table *table, int wrong,
                          struct channel_view *view)
{
    for (uint64_t c = 0; c < view->count; c++) {
        const struct channel *at = &table->channels[c * table->count / view->count];
        const double size = at->scale[!wrong] * at->deviation;
        view->gain[c] = log(fabs(at->scale[wrong] / at->scale[!wrong]));
        view->lift[c] = (at->level[wrong] - at->level[!wrong]) / size;
        view->level[c] = at->level[wrong] / size;
        view->offset[c] = at->mean / at->deviation;
        view->scale[c] = at->scale[!wrong];
        view->deviation[c] = at->deviation;
        view->noise[c] = at->noise;
        view->is_turned[c] = (at->scale[0] > 0) != (at->scale[1] > 0);
    }
}

double nd_channel_density(double x, double sigma)
{
    const double level = -0.98083; /* log of 3/8, the density in the middle */
    const double q = x / sigma;

    return level - log(sigma) - 2.5 * log1p(q * q / 4);
}

double nd_channel_spread(const struct channel_view *view, const double *x,
                         const double *unit, double least, double most)
{
    double best = -HUGE_VAL;

    for (double spread = most; spread >= least; spread = spread > 0 ? spread / 2 : -1) {
        double score = 0;
        for (uint64_t c = 0; c < view->count; c++)
            score += nd_channel_density(
                x[c], hypot(view->noise[c], spread * (unit == NULL ? 1 : unit[c])));
        best = fmax(best, score);
    }
    return best;
}

static int middle_compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

double nd_channel_middle(const struct channel_view *view, const double *x)
{
    double sorted[VIEW_MOST];

    memcpy(sorted, x, view->count * sizeof *sorted);
    qsort(sorted, view->count, sizeof *sorted, middle_compare);
    return sorted[view->count / 2];
}
