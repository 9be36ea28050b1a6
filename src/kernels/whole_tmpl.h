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
    const uintptr_t ahead_r = lanes_ahead(at, 0), ahead_c = lanes_ahead(at, 1);
    const size_t n = at->n;
    struct TMPL(ends) ends = TMPL(ends_none)();
    struct TMPL(sums) first = TMPL(sums_take)(in, 0);
    struct TMPL(sums) second = TMPL(sums_take)(in, TMPL_WIDTH);

    TMPL_KEEP_LOOP
    for (size_t i = 0; i < n; i += MOMENTS_LANES) {
        const TMPL(vs) x = TMPL(vs_of)(dtype_r, r, i), y = TMPL(vs_of)(dtype_c, c, i);
        __builtin_prefetch((const void *)(ahead_r + size_r * i));
        __builtin_prefetch((const void *)(ahead_c + size_c * i));
        TMPL(ends_add)(&ends, x, y);
        TMPL(sums_add)(&first, TMPL(vd_low)(x), TMPL(vd_low)(y), TMPL(PRODUCTS));
        TMPL(sums_add)(&second, TMPL(vd_upper)(dtype_r, r, i, x),
                       TMPL(vd_upper)(dtype_c, c, i, y), TMPL(PRODUCTS));
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

/* The least word of a side, as signed integers. */
static __m512i TMPL(halves_least)(const unsigned char *bytes, size_t size)
{
    __m512i least = _mm512_set1_epi16(INT16_MAX), other = least;

    for (size_t i = 0; i < size; i += 2 * sizeof least) {
        least = _mm512_min_epi16(least, _mm512_loadu_si512((const void *)(bytes + i)));
        other = _mm512_min_epi16(
            other, _mm512_loadu_si512((const void *)(bytes + i + sizeof least)));
    }
    return _mm512_min_epi16(least, other);
}

/* Both halves of a vector of words as floats. */
TMPL_INLINE void TMPL(halves_widen)(enum nd_dtype dtype, __m512i words, TMPL(vs) *ret)
{
    unsigned char bytes[sizeof words];

    memcpy(bytes, &words, sizeof words);
    ret[0] = TMPL(vs_of)(dtype, bytes, 0);
    ret[1] = TMPL(vs_of)(dtype, bytes, MOMENTS_LANES);
}

/* Of negative numbers the largest unsigned one is the least, and the least signed one the
 * largest: that one is looked for only where all numbers of a side have one sign. */
TMPL_INLINE struct TMPL(ends) TMPL(ends_of_halves)(enum nd_dtype dtype,
                                                   const struct lanes_place *at,
                                                   const struct TMPL(halves_ends) *ends)
{
    struct TMPL(ends) ret;

    for (int side = 0; side < 2; side++) {
        __m512i low = ends->top[side], high = ends->most[side];
        const bool has_negative = _mm512_movepi16_mask(low) != 0;
        const bool has_positive = ~_mm512_movepi16_mask(high) != 0;
        TMPL(vs) lows[2], highs[2];
        if (!has_negative)
            low = TMPL(halves_least)(side == 0 ? at->r : at->c, 2 * at->n);
        else if (!has_positive)
            high = TMPL(halves_least)(side == 0 ? at->r : at->c, 2 * at->n);
        TMPL(halves_widen)(dtype, low, lows);
        TMPL(halves_widen)(dtype, high, highs);
        ret.min[side] = TMPL(vs_min)(lows[0], lows[1]);
        ret.max[side] = TMPL(vs_max)(highs[0], highs[1]);
    }
    ret.differ = _mm512_madd_epi16(ends->differ, _mm512_set1_epi16(1));
    return ret;
}

TMPL_INLINE void TMPL(halves_sums)(enum nd_dtype dtype, unsigned exact,
                                   const unsigned char *r, const unsigned char *c,
                                   struct TMPL(sums) *first, struct TMPL(sums) *second)
{
    enum { NEXT = TMPL_WIDTH * 2 };

    if (dtype == ND_DTYPE_f16) {
        TMPL(sums_add)(first, TMPL(vd_of_halves)(r), TMPL(vd_of_halves)(c), exact);
        TMPL(sums_add)(second, TMPL(vd_of_halves)(r + NEXT), TMPL(vd_of_halves)(c + NEXT),
                       exact);
    } else {
        const __m256i x = TMPL(load_words)(r), y = TMPL(load_words)(c);
        TMPL(sums_add)(first, TMPL(vd_of_even)(x), TMPL(vd_of_even)(y), exact);
        TMPL(sums_add)(second, TMPL(vd_of_odd)(x), TMPL(vd_of_odd)(y), exact);
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

TMPL_INLINE unsigned TMPL(measure_halves)(enum nd_dtype dtype, unsigned exact,
                                          const struct lanes_place *at, double so_far,
                                          const struct lanes *in,
                                          struct TMPL(ends) *ret_ends, struct lanes *out,
                                          double *ret_largest)
{
    const unsigned char *const r = at->r, *const c = at->c;
    const uintptr_t ahead_r = lanes_ahead(at, 0), ahead_c = lanes_ahead(at, 1);
    const size_t size = 2 * at->n, group = 2 * MOMENTS_LANES;
    struct TMPL(halves_ends) ends = TMPL(halves_none)();
    struct TMPL(sums) first = TMPL(sums_take)(in, 0);
    struct TMPL(sums) second = TMPL(sums_take)(in, TMPL_WIDTH);

    if (dtype == ND_DTYPE_bf16)
        TMPL(halves_reorder)(&first, &second, TMPL(lanes_by_parity));
    TMPL_KEEP_LOOP
    for (size_t i = 0; i < size; i += 2 * group) {
        __builtin_prefetch((const void *)(ahead_r + i));
        __builtin_prefetch((const void *)(ahead_c + i));
        TMPL(halves_add)(&ends, r + i, c + i);
        TMPL(halves_sums)(dtype, exact, r + i, c + i, &first, &second);
        TMPL(halves_sums)(dtype, exact, r + i + group, c + i + group, &first, &second);
    }
    if (dtype == ND_DTYPE_bf16)
        TMPL(halves_reorder)(&first, &second, TMPL(lanes_in_order));
    const struct TMPL(halves_ends) found = ends; /* in memory; in the loop they were not */
    *ret_ends = TMPL(ends_of_halves)(dtype, at, &found);
    return TMPL(sums_give)(&first, 0, so_far, out, ret_largest) |
           TMPL(sums_give)(&second, TMPL_WIDTH, so_far, out, ret_largest);
}

static unsigned TMPL(measure_f16_f16)(const struct lanes_place *at, double so_far,
                                      const struct lanes *in, struct TMPL(ends) *ret_ends,
                                      struct lanes *out, double *ret_largest)
{
    /* Multiples of 2^-24 up to here have 26 bits, and their squares 52. */
    const double short_error = 4.0;
    unsigned seen;

    if (so_far <= short_error) {
        seen = TMPL(measure_halves)(ND_DTYPE_f16, TMPL(PRODUCTS) | TMPL(SQUARES), at, so_far,
                                    in, ret_ends, out, ret_largest);
        if (seen & TMPL(ODD) || !lanes_any_above(ret_largest, short_error))
            return seen;
    }
    return TMPL(measure_halves)(ND_DTYPE_f16, TMPL(PRODUCTS), at, so_far, in, ret_ends, out,
                                ret_largest);
}

static unsigned TMPL(measure_bf16_bf16)(const struct lanes_place *at, double so_far,
                                        const struct lanes *in, struct TMPL(ends) *ret_ends,
                                        struct lanes *out, double *ret_largest)
{
    return TMPL(measure_halves)(ND_DTYPE_bf16, TMPL(PRODUCTS), at, so_far, in, ret_ends, out,
                                ret_largest);
}

/* --- doubles ------------------------------------------------------------------------------ */

/* Extremes of both vectors together: their lanes mean nothing. */
struct TMPL(reach) {
    TMPL(vd) min[2], max[2], differ;
};

TMPL_INLINE void TMPL(reach_add)(struct TMPL(reach) *reach, TMPL(vd) x, TMPL(vd) y)
{
    reach->min[0] = TMPL(vd_min)(x, reach->min[0]);
    reach->max[0] = TMPL(vd_max)(x, reach->max[0]);
    reach->min[1] = TMPL(vd_min)(y, reach->min[1]);
    reach->max[1] = TMPL(vd_max)(y, reach->max[1]);
    reach->differ = TMPL(vd_add_unequal)(reach->differ, x, y);
}

/* Into extremes that hold no more than those of a start. */
TMPL_INLINE uint64_t TMPL(reach_give)(const struct TMPL(reach) *reach,
                                      struct lanes_extremes *ret)
{
    double counts[TMPL_WIDTH], differ = 0.0;

    lanes_extremes_init(ret);
    for (int side = 0; side < 2; side++) {
        TMPL(vd_store)(ret->min[side], reach->min[side]);
        TMPL(vd_store)(ret->max[side], reach->max[side]);
    }
    TMPL(vd_store)(counts, reach->differ);
    for (int l = 0; l < TMPL_WIDTH; l++)
        differ += counts[l];
    return (uint64_t)differ;
}

/* TMPL_WIDTH elements from element i, as doubles. */
TMPL_INLINE TMPL(vd) TMPL(vd_of)(enum nd_dtype dtype, const unsigned char *bytes, size_t i)
{
    return dtype == ND_DTYPE_f32   ? TMPL(vd_widen)(bytes + 4 * i)
           : dtype == ND_DTYPE_i32 ? TMPL(vd_of_i32)(bytes + 4 * i)
           : dtype == ND_DTYPE_u32 ? TMPL(vd_of_u32)(bytes + 4 * i)
           : dtype == ND_DTYPE_i64 ? TMPL(vd_of_i64)(bytes + 8 * i)
                                   : TMPL(vd_load)((const void *)(bytes + 8 * i));
}

TMPL_INLINE void TMPL(prefetch_group)(uintptr_t ahead, size_t size)
{
    for (size_t line = 0; line < MOMENTS_LANES * size; line += LANES_LINE)
        __builtin_prefetch((const void *)(ahead + line));
}

/* What a pass over doubles finds. */
struct TMPL(whole_found) {
    double largest[MOMENTS_LANES];
    struct lanes_extremes extremes;
    uint64_t differ;
};

TMPL_INLINE unsigned TMPL(measure_doubles)(enum nd_dtype dtype_r, enum nd_dtype dtype_c,
                                           const struct lanes_run *run,
                                           const struct lanes_place *at,
                                           struct TMPL(whole_found) *ret)
{
    const size_t size_r = dtype_r == ND_DTYPE_f64 || dtype_r == ND_DTYPE_i64 ? 8 : 4;
    const size_t size_c = dtype_c == ND_DTYPE_f64 || dtype_c == ND_DTYPE_i64 ? 8 : 4;
    const unsigned char *const r = at->r, *const c = at->c;
    const uintptr_t ahead_r = lanes_ahead(at, 0), ahead_c = lanes_ahead(at, 1);
    const TMPL(vd) high = TMPL(vd_set)(HUGE_VAL), low = TMPL(vd_set)(-HUGE_VAL);
    const size_t n = at->n;
    struct TMPL(reach) reach = {{high, high}, {low, low}, TMPL(vd_set)(0.0)};
    struct TMPL(sums) first = TMPL(sums_take)(run->lanes, 0);
    struct TMPL(sums) second = TMPL(sums_take)(run->lanes, TMPL_WIDTH);

    TMPL_KEEP_LOOP
    for (size_t i = 0; i < n; i += MOMENTS_LANES) {
        const TMPL(vd) x = TMPL(vd_of)(dtype_r, r, i), y = TMPL(vd_of)(dtype_c, c, i);
        const TMPL(vd) u = TMPL(vd_of)(dtype_r, r, i + TMPL_WIDTH);
        const TMPL(vd) v = TMPL(vd_of)(dtype_c, c, i + TMPL_WIDTH);
        TMPL(prefetch_group)(ahead_r + size_r * i, size_r);
        TMPL(prefetch_group)(ahead_c + size_c * i, size_c);
        TMPL(reach_add)(&reach, x, y);
        TMPL(reach_add)(&reach, u, v);
        TMPL(sums_add)(&first, x, y, 0);
        TMPL(sums_add)(&second, u, v, 0);
    }
    const double so_far = lanes_so_far(run);
    ret->differ = TMPL(reach_give)(&reach, &ret->extremes);
    return TMPL(sums_give)(&first, 0, so_far, run->spare, ret->largest) |
           TMPL(sums_give)(&second, TMPL_WIDTH, so_far, run->spare, ret->largest);
}

#define TMPL_MEASURE(r, c)                                                                 \
    static unsigned TMPL(doubles_##r##_##c)(const struct lanes_run *run,                   \
                                            const struct lanes_place *at,                  \
                                            struct TMPL(whole_found) *ret)                 \
    {                                                                                      \
        return TMPL(measure_doubles)(ND_DTYPE_##r, ND_DTYPE_##c, run, at, ret);            \
    }
TMPL_MEASURE(f64, f64)
TMPL_MEASURE(f64, f32)
TMPL_MEASURE(f32, f64)
TMPL_MEASURE(i32, i32)
TMPL_MEASURE(u32, u32)
TMPL_MEASURE(i64, i64)
#undef TMPL_MEASURE

/* A block of pairs that doubles hold; false: something is odd, and nothing was added. */
static bool TMPL(whole_doubles)(struct lanes_run *run, const struct lanes_place *block)
{
    static unsigned (*const measure[ND_DTYPE_COUNT][ND_DTYPE_COUNT])(
        const struct lanes_run *, const struct lanes_place *, struct TMPL(whole_found) *) = {
        [ND_DTYPE_f64] = {[ND_DTYPE_f64] = TMPL(doubles_f64_f64),
                          [ND_DTYPE_f32] = TMPL(doubles_f64_f32)},
        [ND_DTYPE_f32] = {[ND_DTYPE_f64] = TMPL(doubles_f32_f64)},
        [ND_DTYPE_i32] = {[ND_DTYPE_i32] = TMPL(doubles_i32_i32)},
        [ND_DTYPE_u32] = {[ND_DTYPE_u32] = TMPL(doubles_u32_u32)},
        [ND_DTYPE_i64] = {[ND_DTYPE_i64] = TMPL(doubles_i64_i64)},
    };
    const struct pair *const pair = run->pair;
    const enum nd_dtype r = pair->view[0]->dtype, c = pair->view[1]->dtype;
    struct TMPL(whole_found) found;

    if (measure[r][c] == NULL)
        return false;
    const unsigned seen = measure[r][c](run, block, &found);
    if (seen & TMPL(ODD) || lanes_may_hold_masks(pair, &found.extremes) ||
        (pair->is_wide && !lanes_are_exact(&found.extremes)))
        return false;
    lanes_swap(run);
    lanes_extremes_add(&run->extremes, &found.extremes);
    run->moments->n += block->n;
    run->moments->differ += found.differ;
    if (seen & TMPL(LARGER))
        lanes_larger(run, found.largest, block);
    return true;
}
