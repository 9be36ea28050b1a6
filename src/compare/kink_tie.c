/*
 * A maximum hands its gradient to the largest value of its window.  Where two are equal but
 * for rounding, one side hands it to the one and the other side to the other: two elements
 * are off by the same, with opposite signs.
 */
#include "compare/kink_tie.h"

#include <math.h>

/* Two values of one window are no further apart than this, in rows and columns. */
static const uint64_t WINDOW = 16;
/* What the two errors may differ by: the gradient itself differs a little. */
static const double ALIKE = 0.05;

enum { LOOKS = 64 }; /* elements behind one that are looked at */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t rows, uint64_t columns)
{
    const uint64_t plane = rows * columns;

    return a / plane == b / plane &&
           distance(a % plane / columns, b % plane / columns) < WINDOW &&
           distance(a % columns, b % columns) < WINDOW;
}

/* On one side the first is the larger, on the other the second, and by next to nothing. */
static bool is_tie(const struct off_element *a, const struct off_element *b, double reach)
{
    const double gap[2] = {a->value[0] - b->value[0], a->value[1] - b->value[1]};

    return fabs(gap[0]) <= 2 * reach && fabs(gap[1]) <= 2 * reach && gap[0] * gap[1] <= 0 &&
           fabs(a->error + b->error) <= ALIKE * fabs(a->error);
}

bool nd_ties_explain(struct off_element *off, uint64_t count, const struct nd_shape *shape,
                     double reach)
{
    if (shape->rank < 2 || shape->dim[shape->rank - 1] == 0 || shape->dim[shape->rank - 2] == 0)
        return false;
    const uint64_t rows = shape->dim[shape->rank - 2], columns = shape->dim[shape->rank - 1];
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t k = i + 1; k < count && k <= i + LOOKS && !off[i].is_explained; k++)
            if (!off[k].is_explained && is_near(off[i].index, off[k].index, rows, columns) &&
                is_tie(&off[i], &off[k], reach))
                off[i].is_explained = off[k].is_explained = true;
        if (!off[i].is_explained)
            return false;
    }
    return true;
}
