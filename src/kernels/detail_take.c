/*
 * Which positions of a step the detail pass goes over: those that count, moved together.
 */
#include <math.h>

#include "kernels/detail_step.h"

/* One by one. */
static void take_exact(const struct pair *pair, const unsigned char *r,
                       const unsigned char *c, unsigned n, struct detail_values *ret)
{
    struct pair_values all;

    nd_pair_read(pair, r, c, n, &all);
    ret->n = 0;
    for (unsigned i = 0; i < n; i++) {
        if (all.state[i] != PAIR_KEPT)
            continue;
        ret->r[ret->n] = all.r[i];
        ret->c[ret->n] = all.c[i];
        ret->abs[ret->n] = all.abs[i];
        ret->place[ret->n++] = (uint16_t)i;
    }
}

/* Without branches: which count is not to be foreseen. */
static void take_sifted(const struct detail_kernels *kernels, const struct pair *pair,
                        const unsigned char *r, const unsigned char *c, unsigned n,
                        struct detail_values *ret)
{
    static const struct moments_pivot nan = {(double)NAN, (double)NAN};
    double from_r[PAIR_STEP], from_c[PAIR_STEP];
    unsigned kept = 0;

    ret->n = kernels->sifted(pair, r, c, n, &nan, from_r, from_c);
    for (unsigned i = 0; kept < ret->n; i++) {
        ret->r[kept] = from_r[i];
        ret->c[kept] = from_c[i];
        ret->abs[kept] = fabs(from_c[i] - from_r[i]);
        ret->place[kept] = (uint16_t)i;
        kept += isnan(from_r[i]) ? 0 : 1;
    }
}

void nd_detail_take(const struct detail_kernels *kernels, const struct pair *pair,
                    const unsigned char *r, const unsigned char *c, unsigned n,
                    bool *inout_odd, struct detail_values *ret)
{
    if (pair->is_complex || pair->is_wide) {
        take_exact(pair, r, c, n, ret);
    } else if (*inout_odd || !kernels->read(pair, r, c, n, ret)) {
        take_sifted(kernels, pair, r, c, n, ret);
        *inout_odd = ret->n < n;
    }
}
