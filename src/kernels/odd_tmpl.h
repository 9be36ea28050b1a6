/*
 * Steps that hold positions that do not count: masked ones, infinities, NaN.  Behind
 * moments_tmpl.h, which names the parameters.
 *
 * What takes the place of such a position changes no sum: zeros, or for the sums about the
 * pivot the pivot.  Nothing here looks at single elements: scores under a causal mask are
 * half masks, and a run that failed is all NaN.
 */
#define SIFT(name)  TMPL(vs_##name)
#define SIFT_VECTOR TMPL(vs)
#define SIFT_NUMBER float
#define SIFT_WIDTH  TMPL(SINGLES)
#include "kernels/sift_tmpl.h"
#undef SIFT
#undef SIFT_VECTOR
#undef SIFT_NUMBER
#undef SIFT_WIDTH

#define SIFT(name)  TMPL(vd_##name)
#define SIFT_VECTOR TMPL(vd)
#define SIFT_NUMBER double
#define SIFT_WIDTH  TMPL_WIDTH
#include "kernels/sift_tmpl.h"
#undef SIFT
#undef SIFT_VECTOR
#undef SIFT_NUMBER
#undef SIFT_WIDTH

TMPL_INLINE void TMPL(vs_sift_keep)(const struct TMPL(vs_sift_ends) *found,
                                    struct lanes_ends *inout)
{
    struct TMPL(ends) ends = TMPL(ends_none)();

    for (int side = 0; side < 2; side++) {
        ends.min[side] = found->min[side];
        ends.max[side] = found->max[side];
    }
    TMPL(ends_keep)(&ends, inout); /* those that differ are counted apart */
}

/* A full step of floats, which lie in r and c; the rooms hold as many. */
static void TMPL(odd_floats)(struct lanes_run *run, const struct lanes_place *place,
                             const unsigned char *r, const unsigned char *c, float *room_r,
                             float *room_c)
{
    static const struct moments_pivot zeros = {0.0, 0.0};
    double largest[MOMENTS_LANES];
    struct TMPL(vs_sift_ends) found;
    struct lanes_sifted sifted;

    TMPL(vs_sift)(run->pair, r, c, PAIR_STEP, &zeros, true, room_r, room_c, &found,
                  &sifted);
    if (!nd_lanes_count_sifted(run, &sifted, place))
        return;
    TMPL(vs_sift_keep)(&found, &run->ends);
    if (TMPL(add_floats)((const void *)room_r, (const void *)room_c, sifted.left,
                         lanes_so_far(run), run->lanes, run->lanes, largest) &
        TMPL(LARGER))
        lanes_larger(run, largest, place);
}

/* Doubles up to a full group of lanes; returns how many there are then.  What is added is
 * masked, or agrees: nd_lanes_count_sifted() knows. */
static size_t TMPL(fill_group)(double *r, double *c, size_t n)
{
    const size_t full = (n + MOMENTS_LANES - 1) / MOMENTS_LANES * MOMENTS_LANES;

    for (size_t i = n; i < full; i++)
        r[i] = c[i] = -HUGE_VAL;
    return full;
}

/* A step of place->n doubles in r and c, which it overwrites. */
static void TMPL(odd_doubles)(struct lanes_run *run, const struct lanes_place *place,
                              double *r, double *c)
{
    static const struct moments_pivot zeros = {0.0, 0.0};
    const size_t n = TMPL(fill_group)(r, c, place->n);
    double largest[MOMENTS_LANES];
    struct TMPL(vd_sift_ends) found;
    struct lanes_sifted sifted;

    TMPL(vd_sift)(run->pair, r, c, n, &zeros, true, r, c, &found, &sifted);
    if (!nd_lanes_count_sifted(run, &sifted, place))
        return;
    for (int side = 0; side < 2; side++) {
        double *const min = run->extremes.min[side], *const max = run->extremes.max[side];
        TMPL(vd_store)(min, TMPL(vd_min)(found.min[side], TMPL(vd_load)(min)));
        TMPL(vd_store)(max, TMPL(vd_max)(found.max[side], TMPL(vd_load)(max)));
    }
    if (TMPL(add_doubles)(r, c, sifted.left / MOMENTS_LANES, lanes_so_far(run), run->lanes,
                          run->lanes, largest) &
        TMPL(LARGER))
        lanes_larger(run, largest, place);
}

static void TMPL(step_odd)(struct lanes_run *run, const unsigned char *bytes_r,
                           const unsigned char *bytes_c, size_t n, uint64_t at)
{
    const struct lanes_place place = {bytes_r, bytes_c, n, at, {NULL, NULL}};
    double r[PAIR_STEP], c[PAIR_STEP];

    run->decode[0](bytes_r, n, r);
    run->decode[1](bytes_c, n, c);
    TMPL(odd_doubles)(run, &place, r, c);
}

/* n <= PAIR_STEP pairs as doubles, and `instead` for all others up to PAIR_STEP; returns
 * how many count. */
static unsigned TMPL(read_sifted)(const struct pair *pair, const unsigned char *bytes_r,
                                  const unsigned char *bytes_c, size_t n,
                                  const struct moments_pivot *instead, double *ret_r,
                                  double *ret_c)
{
    struct TMPL(vd_sift_ends) ends;
    struct lanes_sifted sifted;

    TMPL(nd_kernels).decode[pair->view[0]->dtype](bytes_r, n, ret_r);
    TMPL(nd_kernels).decode[pair->view[1]->dtype](bytes_c, n, ret_c);
    const size_t full = TMPL(fill_group)(ret_r, ret_c, n);
    TMPL(vd_sift)(pair, ret_r, ret_c, full, instead, false, ret_r, ret_c, &ends, &sifted);
    for (size_t i = full; i < PAIR_STEP; i++) {
        ret_r[i] = instead->r;
        ret_c[i] = instead->c;
    }
    return sifted.total - sifted.masked - sifted.wild;
}
