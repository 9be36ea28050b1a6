/*
 * The order that medians and percentiles want of doubles, for qsort().  NaN has no place in
 * it: leave it out before sorting.
 */
#ifndef ND_BASE_ASCENDING_H
#define ND_BASE_ASCENDING_H

static inline int ascending(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

#endif
