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
TMPL_MEASURE(f16, bf16)
TMPL_MEASURE(bf16, f32)
TMPL_MEASURE(bf16, f16)
#undef TMPL_MEASURE

/* --- both sides of the same 16-bit type ------------------------------------------------- */

/* One number of each kind. */
static void TMPL(halves_fold)(const struct TMPL(halves_ends) *ends, int side,
                              uint16_t *ret_low, uint16_t *ret_high)
{
    int16_t least[32], most[32];
    uint16_t top[32];

    memcpy(least, &ends->least[side], sizeof least);
    memcpy(most, &ends->most[side], sizeof most);
    memcpy(top, &ends->top[side], sizeof top);
    for (int half = 16; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            least[l] = least[l + half] < least[l] ? least[l + half] : least[l];
            most[l] = most[l + half] > most[l] ? most[l + half] : most[l];
            top[l] = top[l + half] > top[l] ? top[l + half] : top[l];
        }
    /* Of negative numbers the largest unsigned one is the least, and the least signed one
     * the largest. */
    *ret_low = top[0] > INT16_MAX ? top[0] : (uint16_t)least[0];
    *ret_high = most[0] >= 0 ? (uint16_t)most[0] : (uint16_t)least[0];
}

static struct TMPL(ends) TMPL(ends_of_halves)(enum nd_dtype dtype,
                                              const struct TMPL(halves_ends) *ends)
{
    uint16_t ends_as_bits[MOMENTS_LANES] = {0}; /* low, high; low, high */
    float value[MOMENTS_LANES];
    int16_t counts[32];
    int32_t differ[MOMENTS_LANES] = {0};
    struct TMPL(ends) ret;

    for (int side = 0; side < 2; side++)
        TMPL(halves_fold)(ends, side, &ends_as_bits[2 * side], &ends_as_bits[2 * side + 1]);
    TMPL(vs_store)(value, TMPL(vs_of)(dtype, (const void *)ends_as_bits, 0));
    for (int side = 0; side < 2; side++) {
        ret.min[side] = TMPL(vs_set)(value[2 * side]);
        ret.max[side] = TMPL(vs_set)(value[2 * side + 1]);
    }
    memcpy(counts, &ends->differ, sizeof counts);
    for (int l = 0; l < 32; l++)
        differ[l % MOMENTS_LANES] += counts[l];
    memcpy(&ret.differ, differ, sizeof ret.differ);
    return ret;
}

TMPL_INLINE void TMPL(halves_sums)(enum nd_dtype dtype, const unsigned char *r,
                                   const unsigned char *c, struct TMPL(sums) *first,
                                   struct TMPL(sums) *second)
{
    enum { NEXT = TMPL_WIDTH * 2 };

    if (dtype == ND_DTYPE_f16) {
        TMPL(sums_add)(first, TMPL(vd_of_halves)(r), TMPL(vd_of_halves)(c), true);
        TMPL(sums_add)(second, TMPL(vd_of_halves)(r + NEXT), TMPL(vd_of_halves)(c + NEXT),
                       true);
    } else {
        const __m256i x = TMPL(load_words)(r), y = TMPL(load_words)(c);
        TMPL(sums_add)(first, TMPL(vd_of_even)(x), TMPL(vd_of_even)(y), true);
        TMPL(sums_add)(second, TMPL(vd_of_odd)(x), TMPL(vd_of_odd)(y), true);
    }
}

/* bfloat16 are taken apart by parity: so are the lanes meanwhile. */
TMPL_INLINE void TMPL(halves_reorder)(struct TMPL(sums) *a, struct TMPL(sums) *b,
                                      void (*reorder)(TMPL(vd) *, TMPL(vd) *))
{
    reorder(&a->abs, &b->abs);
    reorder(&a->ee, &b->ee);
    reorder(&a->r, &b->r);
    reorder(&a->c, &b->c);
    reorder(&a->rr, &b->rr);
    reorder(&a->cc, &b->cc);
    reorder(&a->rc, &b->rc);
}

TMPL_INLINE unsigned TMPL(measure_halves)(enum nd_dtype dtype, const struct lanes_place *at,
                                          double so_far, const struct lanes *in,
                                          struct TMPL(ends) *ret_ends, struct lanes *out,
                                          double *ret_largest)
{
    const unsigned char *const r = at->r, *const c = at->c;
    const size_t size = 2 * at->n, group = 2 * MOMENTS_LANES;
    struct TMPL(halves_ends) ends = TMPL(halves_none)();
    struct TMPL(sums) first = TMPL(sums_take)(in, 0);
    struct TMPL(sums) second = TMPL(sums_take)(in, TMPL_WIDTH);

    if (dtype == ND_DTYPE_bf16)
        TMPL(halves_reorder)(&first, &second, TMPL(lanes_by_parity));
    TMPL_KEEP_LOOP
    for (size_t i = 0; i < size; i += 2 * group) {
        __builtin_prefetch((const void *)((uintptr_t)r + LANES_AHEAD + i));
        __builtin_prefetch((const void *)((uintptr_t)c + LANES_AHEAD + i));
        TMPL(halves_add)(&ends, r + i, c + i);
        TMPL(halves_sums)(dtype, r + i, c + i, &first, &second);
        TMPL(halves_sums)(dtype, r + i + group, c + i + group, &first, &second);
    }
    if (dtype == ND_DTYPE_bf16)
        TMPL(halves_reorder)(&first, &second, TMPL(lanes_in_order));
    const struct TMPL(halves_ends) found = ends; /* in memory; in the loop they were not */
    *ret_ends = TMPL(ends_of_halves)(dtype, &found);
    return TMPL(sums_give)(&first, 0, so_far, out, ret_largest) |
           TMPL(sums_give)(&second, TMPL_WIDTH, so_far, out, ret_largest);
}

static unsigned TMPL(measure_f16_f16)(const struct lanes_place *at, double so_far,
                                      const struct lanes *in, struct TMPL(ends) *ret_ends,
                                      struct lanes *out, double *ret_largest)
{
    return TMPL(measure_halves)(ND_DTYPE_f16, at, so_far, in, ret_ends, out, ret_largest);
}

static unsigned TMPL(measure_bf16_bf16)(const struct lanes_place *at, double so_far,
                                        const struct lanes *in, struct TMPL(ends) *ret_ends,
                                        struct lanes *out, double *ret_largest)
{
    return TMPL(measure_halves)(ND_DTYPE_bf16, at, so_far, in, ret_ends, out, ret_largest);
}
