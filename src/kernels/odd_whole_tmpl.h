/*
 * Whole blocks that hold positions that do not count, for vectors so wide that two of
 * doubles are all lanes: sifted and added up in one loop.  Behind whole_tmpl.h and
 * odd_tmpl.h.
 */

/* Into the lanes themselves: nothing has to be done again. */
TMPL_INLINE unsigned TMPL(measure_kept)(enum nd_dtype dtype_r, enum nd_dtype dtype_c,
                                        const struct lanes_run *run,
                                        const struct lanes_place *at,
                                        struct TMPL(vs_sift_ends) *ret_ends,
                                        struct lanes_sifted *ret, double *ret_largest)
{
    const size_t size_r = dtype_r == ND_DTYPE_f32 ? 4 : 2;
    const size_t size_c = dtype_c == ND_DTYPE_f32 ? 4 : 2;
    const uintptr_t ahead_r = lanes_ahead(at, 0), ahead_c = lanes_ahead(at, 1);
    const TMPL(vs) zeros[2] = {TMPL(vs_set)(0.0F), TMPL(vs_set)(0.0F)};
    struct TMPL(vs_sift_ends) ends = TMPL(vs_sift_none)();
    struct TMPL(sums) first = TMPL(sums_take)(run->lanes, 0);
    struct TMPL(sums) second = TMPL(sums_take)(run->lanes, TMPL_WIDTH);
    struct lanes_sifted sifted = {.total = (unsigned)at->n};
    struct TMPL(vs_sieve) sieve;

    TMPL(vs_sieve_of)(run->pair, &sieve);
    TMPL_KEEP_LOOP
    for (size_t i = 0; i < at->n; i += MOMENTS_LANES) {
        const TMPL(vs) x = TMPL(vs_of)(dtype_r, at->r, i);
        const TMPL(vs) y = TMPL(vs_of)(dtype_c, at->c, i);
        struct TMPL(vs_sift_pair) here = {{x, y}, {x, y}, {x, y}, TMPL(vs_equal)(x, y)};
        __builtin_prefetch((const void *)(ahead_r + size_r * i));
        __builtin_prefetch((const void *)(ahead_c + size_c * i));
        if (!TMPL(vs_sift_one)(&sieve, x, y, zeros, &here, &sifted))
            continue;
        TMPL(vs_ends_add_pair)(&ends, &here);
        sifted.equal += TMPL(vs_count)(here.equal);
        TMPL(sums_add)(&first, TMPL(vd_low)(here.to[0]), TMPL(vd_low)(here.to[1]),
                       TMPL(PRODUCTS));
        TMPL(sums_add)(&second, TMPL(vd_high)(here.to[0]), TMPL(vd_high)(here.to[1]),
                       TMPL(PRODUCTS));
    }
    *ret_ends = ends;
    *ret = sifted;
    return TMPL(sums_give)(&first, 0, lanes_so_far(run), run->lanes, ret_largest) |
           TMPL(sums_give)(&second, TMPL_WIDTH, lanes_so_far(run), run->lanes, ret_largest);
}

typedef unsigned (*TMPL(kernel_kept))(const struct lanes_run *, const struct lanes_place *,
                                      struct TMPL(vs_sift_ends) *, struct lanes_sifted *,
                                      double *);

#define TMPL_KEPT(r, c)                                                                    \
    static unsigned TMPL(kept_##r##_##c)(                                                  \
        const struct lanes_run *run, const struct lanes_place *at,                         \
        struct TMPL(vs_sift_ends) *ret_ends, struct lanes_sifted *ret,                     \
        double *ret_largest)                                                               \
    {                                                                                      \
        return TMPL(measure_kept)(ND_DTYPE_##r, ND_DTYPE_##c, run, at, ret_ends, ret,      \
                                  ret_largest);                                            \
    }
TMPL_KEPT(f32, f32)
TMPL_KEPT(f32, f16)
TMPL_KEPT(f32, bf16)
TMPL_KEPT(f16, f32)
TMPL_KEPT(f16, f16)
TMPL_KEPT(f16, bf16)
TMPL_KEPT(bf16, f32)
TMPL_KEPT(bf16, f16)
TMPL_KEPT(bf16, bf16)
#undef TMPL_KEPT

/* False: not of these types; nothing was added. */
static bool TMPL(odd_whole)(struct lanes_run *run, const struct lanes_place *block)
{
    static const TMPL(kernel_kept) measure[ND_DTYPE_COUNT][ND_DTYPE_COUNT] = {
        [ND_DTYPE_f32] = {[ND_DTYPE_f32] = TMPL(kept_f32_f32),
                          [ND_DTYPE_f16] = TMPL(kept_f32_f16),
                          [ND_DTYPE_bf16] = TMPL(kept_f32_bf16)},
        [ND_DTYPE_f16] = {[ND_DTYPE_f32] = TMPL(kept_f16_f32),
                          [ND_DTYPE_f16] = TMPL(kept_f16_f16),
                          [ND_DTYPE_bf16] = TMPL(kept_f16_bf16)},
        [ND_DTYPE_bf16] = {[ND_DTYPE_f32] = TMPL(kept_bf16_f32),
                           [ND_DTYPE_f16] = TMPL(kept_bf16_f16),
                           [ND_DTYPE_bf16] = TMPL(kept_bf16_bf16)},
    };
    const TMPL(kernel_kept) kept =
        measure[run->pair->view[0]->dtype][run->pair->view[1]->dtype];
    struct TMPL(vs_sift_ends) found;
    struct lanes_sifted sifted;
    double largest[MOMENTS_LANES];

    if (kept == NULL)
        return false;
    const unsigned seen = kept(run, block, &found, &sifted, largest);
    if (nd_lanes_count_sifted(run, &sifted, block)) {
        TMPL(vs_sift_keep)(&found, &run->ends);
        if (seen & TMPL(LARGER))
            lanes_larger(run, largest, block);
    }
    return true;
}
