/*
 * The hot pass over whole blocks, for vectors so wide that two of doubles are all lanes: both
 * passes in one loop, straight from the tensors' bytes.  Behind moments_tmpl.h.
 */

/* 16 elements from element i, as floats.  dtype is a constant where this is inlined. */
TMPL_INLINE TMPL(vs) TMPL(vs_of)(enum nd_dtype dtype, const unsigned char *bytes, size_t i)
{
    return dtype == ND_DTYPE_f16    ? TMPL(vs_of_halves)(bytes + 2 * i)
           : dtype == ND_DTYPE_bf16 ? TMPL(vs_of_brains)(bytes + 2 * i)
                                    : TMPL(vs_load)(bytes + 4 * i);
}

/* The upper half: float32 is loaded again, which costs less than taking vectors apart. */
TMPL_INLINE TMPL(vd) TMPL(vd_upper)(enum nd_dtype dtype, const unsigned char *bytes, size_t i,
                                    TMPL(vs) all)
{
    return dtype == ND_DTYPE_f32 ? TMPL(vd_widen)(bytes + 4 * (i + TMPL_WIDTH))
                                 : TMPL(vd_high)(all);
}

TMPL_INLINE unsigned TMPL(measure)(enum nd_dtype dtype_r, enum nd_dtype dtype_c,
                                   const struct lanes_place *at, double so_far,
                                   const struct lanes *in, struct TMPL(ends) *ret_ends,
                                   struct lanes *out, double *ret_largest)
{
    const size_t size_r = dtype_r == ND_DTYPE_f32 ? 4 : 2;
    const size_t size_c = dtype_c == ND_DTYPE_f32 ? 4 : 2;
    const unsigned char *const r = at->r, *const c = at->c;
    const size_t n = at->n;
    struct TMPL(ends) ends = TMPL(ends_none)();
    struct TMPL(sums) first = TMPL(sums_take)(in, 0);
    struct TMPL(sums) second = TMPL(sums_take)(in, TMPL_WIDTH);

    TMPL_KEEP_LOOP
    for (size_t i = 0; i < n; i += MOMENTS_LANES) {
        const TMPL(vs) x = TMPL(vs_of)(dtype_r, r, i), y = TMPL(vs_of)(dtype_c, c, i);
        __builtin_prefetch((const void *)((uintptr_t)r + LANES_AHEAD + size_r * i));
        __builtin_prefetch((const void *)((uintptr_t)c + LANES_AHEAD + size_c * i));
        TMPL(ends_add)(&ends, x, y);
        TMPL(sums_add)(&first, TMPL(vd_low)(x), TMPL(vd_low)(y), true);
        TMPL(sums_add)(&second, TMPL(vd_upper)(dtype_r, r, i, x),
                       TMPL(vd_upper)(dtype_c, c, i, y), true);
    }
    *ret_ends = ends;
    return TMPL(sums_give)(&first, 0, so_far, out, ret_largest) |
           TMPL(sums_give)(&second, TMPL_WIDTH, so_far, out, ret_largest);
}

#define TMPL_MEASURE(r, c)                                                                 \
    static unsigned TMPL(measure_##r##_##c)(const struct lanes_place *at, double so_far,   \
                                            const struct lanes *in,                        \
                                            struct TMPL(ends) *ret_ends, struct lanes *out, \
                                            double *ret_largest)                           \
    {                                                                                      \
        return TMPL(measure)(ND_DTYPE_##r, ND_DTYPE_##c, at, so_far, in, ret_ends, out,    \
                             ret_largest);                                                 \
    }
TMPL_MEASURE(f32, f32)
TMPL_MEASURE(f32, f16)
TMPL_MEASURE(f32, bf16)
TMPL_MEASURE(f16, f32)
TMPL_MEASURE(f16, f16)
TMPL_MEASURE(f16, bf16)
TMPL_MEASURE(bf16, f32)
TMPL_MEASURE(bf16, f16)
TMPL_MEASURE(bf16, bf16)
#undef TMPL_MEASURE
