/*
 * The hot pass for one instruction set: included once for each row of isas.def, behind the
 * row's vectors (ops_*_tmpl.h).
 *
 * Parameters:
 *   TMPL_ISA       the word of the row (base, avx2 ...): the suffix of every name here
 *   TMPL_ID        its enum isa
 *   TMPL_WIDTH     doubles in a vector; floats are twice as many
 *   TMPL_TOGETHER  vectors of lanes added up at once, 1 or 2: so many that the accumulators
 *                  stay in registers
 *   TMPL_HALVES    1: the machine itself converts float16
 *
 * How it works.  A step is PAIR_STEP elements.  Types that floats hold exactly (all of 16
 * and 8 bits, and float32 itself) become floats, the others doubles; both are read from the
 * L1 cache by two passes.  The first finds the extremes, and whether values low enough to
 * be mask constants are there.  The second adds up.  A pass takes some of the 16 lanes over
 * the whole step, then the next ones: the order of additions within a lane is the same
 * whatever the width, so the sums are the same bits.
 *
 * The product of two floats is exact in a double: there, and only there, a fused
 * multiply-add gives the bits of a multiplication and an addition.
 *
 * Sums are read from one set of lanes and written to another.  What is not finite shows in
 * the sum of |e|; such a step (and one with masks, and a last step that is not full) is
 * dropped and done again as an odd one: copied with every position that does not count
 * replaced by what changes no sum.
 */
#define TMPL_INLINE __attribute__((always_inline)) static inline

/* --- decoding ------------------------------------------------------------------------- */

/* The machine itself converts float16: returns how many elements are done. */
TMPL_INLINE size_t TMPL(first_doubles)(enum nd_dtype dtype, const unsigned char *bytes,
                                       size_t n, double *ret)
{
    float room[MOMENTS_LANES];
    size_t i = 0;

    if (!TMPL_HALVES || dtype != ND_DTYPE_f16)
        return 0;
    for (; i + MOMENTS_LANES <= n; i += MOMENTS_LANES) {
        TMPL(floats_of_halves)(bytes + 2 * i, MOMENTS_LANES, room);
        for (size_t l = 0; l < MOMENTS_LANES; l++)
            ret[i + l] = (double)room[l];
    }
    return i;
}

#define ND_DTYPE(word, size, name, kind, digits, emax)                                     \
    TMPL_IF_##kind(static void TMPL(decode_##word)(const unsigned char *restrict bytes,    \
                                                   size_t n, double *restrict ret) {       \
        for (size_t i = TMPL(first_doubles)(ND_DTYPE_##word, bytes, n, ret); i < n; i++)   \
            ret[i] = load_##word(bytes, i);                                                \
    })
#include "tensor/dtypes.def"
#undef ND_DTYPE

#define TMPL_FLOATS(word)                                                                  \
    static void TMPL(floats_##word)(const unsigned char *restrict bytes,                   \
                                    float *restrict ret)                                   \
    {                                                                                      \
        for (size_t i = 0; i < PAIR_STEP; i++)                                             \
            ret[i] = (float)load_##word(bytes, i);                                         \
    }
TMPL_FLOATS(bf16)
TMPL_FLOATS(i16)
TMPL_FLOATS(i8)
TMPL_FLOATS(u16)
TMPL_FLOATS(u8)
TMPL_FLOATS(bool8)

static void TMPL(floats_f16)(const unsigned char *restrict bytes, float *restrict ret)
{
    TMPL(floats_of_halves)(bytes, PAIR_STEP, ret);
}

#if TMPL_HALVES
/* The upper byte of a float16 is an 8-bit float with 5 exponent bits. */
static void TMPL(floats_f8e5m2)(const unsigned char *restrict bytes, float *restrict ret)
{
    uint16_t halves[PAIR_STEP];

    for (size_t i = 0; i < PAIR_STEP; i++)
        halves[i] = (uint16_t)(bytes[i] << 8);
    TMPL(floats_of_halves)((const void *)halves, PAIR_STEP, ret);
}

/* One with 4 becomes, bit by bit, a float16 that is 2^8 times too small; the pattern for NaN
 * alone is no number there. */
static void TMPL(floats_f8e4m3fn)(const unsigned char *restrict bytes, float *restrict ret)
{
    uint16_t halves[PAIR_STEP];

    for (size_t i = 0; i < PAIR_STEP; i++)
        halves[i] = (uint16_t)((bytes[i] & 0x80) << 8 | (bytes[i] & 0x7f) << 7);
    TMPL(floats_of_halves)((const void *)halves, PAIR_STEP, ret);
    for (size_t i = 0; i < PAIR_STEP; i++)
        ret[i] = (bytes[i] & 0x7f) == 0x7f ? (float)NAN : ret[i] * 256.0F;
}
#else
TMPL_FLOATS(f8e4m3fn)
TMPL_FLOATS(f8e5m2)
#endif
#undef TMPL_FLOATS

/* Reads ahead of the passes: the first would wait for memory at every line, and the
 * hardware's own prefetching stops at the end of a page. */
TMPL_INLINE void TMPL(prefetch)(const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += LANES_LINE)
        __builtin_prefetch((const void *)((uintptr_t)bytes + LANES_AHEAD + at));
}

/* A step of one side as floats: where they lie, else in room. */
static const unsigned char *TMPL(floats)(enum nd_dtype dtype, const unsigned char *bytes,
                                         float *room)
{
    static void (*const convert[ND_DTYPE_COUNT])(const unsigned char *, float *) = {
        [ND_DTYPE_f16] = TMPL(floats_f16),         [ND_DTYPE_bf16] = TMPL(floats_bf16),
        [ND_DTYPE_f8e4m3fn] = TMPL(floats_f8e4m3fn), [ND_DTYPE_f8e5m2] = TMPL(floats_f8e5m2),
        [ND_DTYPE_i16] = TMPL(floats_i16),         [ND_DTYPE_i8] = TMPL(floats_i8),
        [ND_DTYPE_u16] = TMPL(floats_u16),         [ND_DTYPE_u8] = TMPL(floats_u8),
        [ND_DTYPE_bool8] = TMPL(floats_bool8),
    };

    TMPL(prefetch)(bytes, PAIR_STEP * nd_dtype_info(dtype)->size);
    if (convert[dtype] == NULL)
        return bytes; /* float32 */
    convert[dtype](bytes, room);
    return (const void *)room;
}

/* --- extremes ------------------------------------------------------------------------- */

enum { TMPL(SINGLES) = 2 * TMPL_WIDTH };

/* Of one step of floats: where they end, and how many differ. */
struct TMPL(ends) {
    TMPL(vs) min[2], max[2];
    TMPL(vcount) differ;
};

TMPL_INLINE struct TMPL(ends) TMPL(ends_none)(void)
{
    const TMPL(vs) high = TMPL(vs_set)(HUGE_VALF), low = TMPL(vs_set)(-HUGE_VALF);

    return (struct TMPL(ends)){{high, high}, {low, low}, TMPL(vcount_zero)()};
}

TMPL_INLINE void TMPL(ends_add)(struct TMPL(ends) *ends, TMPL(vs) x, TMPL(vs) y)
{
    ends->min[0] = TMPL(vs_min)(x, ends->min[0]);
    ends->max[0] = TMPL(vs_max)(x, ends->max[0]);
    ends->min[1] = TMPL(vs_min)(y, ends->min[1]);
    ends->max[1] = TMPL(vs_max)(y, ends->max[1]);
    ends->differ = TMPL(vcount_unequal)(ends->differ, x, y);
}

TMPL_INLINE struct TMPL(ends) TMPL(ends_of_pair)(const unsigned char *r, const unsigned char *c)
{
    struct TMPL(ends) ends = TMPL(ends_none)();

    TMPL_KEEP_LOOP
    for (size_t i = 0; i < PAIR_STEP * sizeof(float); i += TMPL(SINGLES) * sizeof(float))
        TMPL(ends_add)(&ends, TMPL(vs_load)(r + i), TMPL(vs_load)(c + i));
    return ends;
}

/* Only values as low as a mask constant on both sides can be masked.  The constants are of
 * the sides' own types, so floats hold them. */
TMPL_INLINE bool TMPL(ends_may_hold_masks)(const struct pair *pair,
                                           const struct TMPL(ends) *ends)
{
    const TMPL(vs) top_r = TMPL(vs_set)((float)pair->masks[0].top);
    const TMPL(vs) top_c = TMPL(vs_set)((float)pair->masks[1].top);

    return TMPL(vs_any_at_most)(ends->min[0], top_r) &&
           TMPL(vs_any_at_most)(ends->min[1], top_c);
}

TMPL_INLINE void TMPL(ends_keep)(const struct TMPL(ends) *step, struct lanes_ends *inout)
{
    for (int side = 0; side < 2; side++) {
        float *const min = inout->min[side], *const max = inout->max[side];
        TMPL(vs_store)(min, TMPL(vs_min)(step->min[side], TMPL(vs_load)(min)));
        TMPL(vs_store)(max, TMPL(vs_max)(step->max[side], TMPL(vs_load)(max)));
    }
    TMPL(vcount_add)(inout->differ, step->differ);
}

/* Of doubles, into extremes that hold earlier ones; returns how many differ. */
static uint64_t TMPL(extremes)(const double *r, const double *c, size_t groups,
                               struct lanes_extremes *inout)
{
    double counts[TMPL_WIDTH];
    TMPL(vd) count = TMPL(vd_set)(0.0);
    double unequal = 0.0;

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL(vd) min_r = TMPL(vd_load)(inout->min[0] + at);
        TMPL(vd) max_r = TMPL(vd_load)(inout->max[0] + at);
        TMPL(vd) min_c = TMPL(vd_load)(inout->min[1] + at);
        TMPL(vd) max_c = TMPL(vd_load)(inout->max[1] + at);
        for (size_t i = at; i < groups * MOMENTS_LANES; i += MOMENTS_LANES) {
            const TMPL(vd) x = TMPL(vd_load)(r + i), y = TMPL(vd_load)(c + i);
            min_r = TMPL(vd_min)(x, min_r);
            max_r = TMPL(vd_max)(x, max_r);
            min_c = TMPL(vd_min)(y, min_c);
            max_c = TMPL(vd_max)(y, max_c);
            count = TMPL(vd_add_unequal)(count, x, y);
        }
        TMPL(vd_store)(inout->min[0] + at, min_r);
        TMPL(vd_store)(inout->max[0] + at, max_r);
        TMPL(vd_store)(inout->min[1] + at, min_c);
        TMPL(vd_store)(inout->max[1] + at, max_c);
    }
    TMPL(vd_store)(counts, count);
    for (int l = 0; l < TMPL_WIDTH; l++)
        unequal += counts[l];
    return (uint64_t)unequal;
}

/* --- sums ----------------------------------------------------------------------------- */

struct TMPL(sums) {
    TMPL(vd) abs, ee, r, c, rr, cc, rc, largest;
};

TMPL_INLINE struct TMPL(sums) TMPL(sums_take)(const struct lanes *in, size_t at)
{
    return (struct TMPL(sums)){
        TMPL(vd_load)(in->sum[LANE_ABS] + at), TMPL(vd_load)(in->sum[LANE_EE] + at),
        TMPL(vd_load)(in->sum[LANE_R] + at),   TMPL(vd_load)(in->sum[LANE_C] + at),
        TMPL(vd_load)(in->sum[LANE_RR] + at),  TMPL(vd_load)(in->sum[LANE_CC] + at),
        TMPL(vd_load)(in->sum[LANE_RC] + at),  TMPL(vd_set)(0.0),
    };
}

/* What a pass saw by the way. */
enum { TMPL(ODD) = 1, TMPL(LARGER) = 2 };

/* ODD: something was not finite; LARGER: an |e| is beyond the largest so far. */
TMPL_INLINE unsigned TMPL(sums_give)(const struct TMPL(sums) *sums, size_t at, double so_far,
                                     struct lanes *out, double *ret_largest)
{
    const bool finite = TMPL(vd_all_at_most)(sums->abs, TMPL(vd_set)(DBL_MAX));
    const bool larger = TMPL(vd_any_above)(sums->largest, TMPL(vd_set)(so_far));

    TMPL(vd_store)(out->sum[LANE_ABS] + at, sums->abs);
    TMPL(vd_store)(out->sum[LANE_EE] + at, sums->ee);
    TMPL(vd_store)(out->sum[LANE_R] + at, sums->r);
    TMPL(vd_store)(out->sum[LANE_C] + at, sums->c);
    TMPL(vd_store)(out->sum[LANE_RR] + at, sums->rr);
    TMPL(vd_store)(out->sum[LANE_CC] + at, sums->cc);
    TMPL(vd_store)(out->sum[LANE_RC] + at, sums->rc);
    TMPL(vd_store)(ret_largest + at, sums->largest);
    return (finite ? 0U : TMPL(ODD)) | (larger ? TMPL(LARGER) : 0U);
}

/* Which products a double holds exactly: only they can be fused with their sums. */
enum { TMPL(PRODUCTS) = 1, TMPL(SQUARES) = 2 }; /* of values; of errors */

TMPL_INLINE void TMPL(sums_add)(struct TMPL(sums) *sums, TMPL(vd) x, TMPL(vd) y,
                                unsigned exact)
{
    const TMPL(vd) e = y - x, d = TMPL(vd_abs)(e);

    sums->abs = TMPL(vd_add)(sums->abs, d);
    if (exact & TMPL(SQUARES))
        sums->ee = TMPL(vd_add_exact)(sums->ee, e, e);
    else
        sums->ee = sums->ee + e * e;
    sums->r = TMPL(vd_add)(sums->r, x);
    sums->c = TMPL(vd_add)(sums->c, y);
    if (exact & TMPL(PRODUCTS)) {
        sums->rr = TMPL(vd_add_exact)(sums->rr, x, x);
        sums->cc = TMPL(vd_add_exact)(sums->cc, y, y);
        sums->rc = TMPL(vd_add_exact)(sums->rc, x, y);
    } else {
        sums->rr = sums->rr + x * x;
        sums->cc = sums->cc + y * y;
        sums->rc = sums->rc + x * y;
    }
    sums->largest = TMPL(vd_max)(d, sums->largest);
}

/* One step of floats, from one set of lanes to another. */
TMPL_INLINE unsigned TMPL(add_floats)(const unsigned char *r, const unsigned char *c,
                                      size_t n, double so_far, const struct lanes *in,
                                      struct lanes *out, double *ret_largest)
{
    enum { GROUP = MOMENTS_LANES * sizeof(float), NEXT = TMPL_WIDTH * sizeof(float) };
    unsigned seen = 0;

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH * TMPL_TOGETHER) {
        struct TMPL(sums) first = TMPL(sums_take)(in, at);
        struct TMPL(sums) second = first;
        if (TMPL_TOGETHER == 2)
            second = TMPL(sums_take)(in, at + TMPL_WIDTH);
        TMPL_KEEP_LOOP
        for (size_t i = at * sizeof(float); i < n * sizeof(float); i += GROUP) {
            TMPL(sums_add)(&first, TMPL(vd_widen)(r + i), TMPL(vd_widen)(c + i),
                           TMPL(PRODUCTS));
            if (TMPL_TOGETHER == 2)
                TMPL(sums_add)(&second, TMPL(vd_widen)(r + i + NEXT),
                               TMPL(vd_widen)(c + i + NEXT), TMPL(PRODUCTS));
        }
        seen |= TMPL(sums_give)(&first, at, so_far, out, ret_largest);
        if (TMPL_TOGETHER == 2)
            seen |= TMPL(sums_give)(&second, at + TMPL_WIDTH, so_far, out, ret_largest);
    }
    return seen;
}

static unsigned TMPL(add_doubles)(const double *r, const double *c, size_t groups,
                                  double so_far, const struct lanes *in, struct lanes *out,
                                  double *ret_largest)
{
    unsigned seen = 0;

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH * TMPL_TOGETHER) {
        struct TMPL(sums) first = TMPL(sums_take)(in, at);
        struct TMPL(sums) second = first;
        if (TMPL_TOGETHER == 2)
            second = TMPL(sums_take)(in, at + TMPL_WIDTH);
        TMPL_KEEP_LOOP
        for (size_t i = at; i < groups * MOMENTS_LANES; i += MOMENTS_LANES) {
            TMPL(sums_add)(&first, TMPL(vd_load)(r + i), TMPL(vd_load)(c + i), 0);
            if (TMPL_TOGETHER == 2)
                TMPL(sums_add)(&second, TMPL(vd_load)(r + i + TMPL_WIDTH),
                               TMPL(vd_load)(c + i + TMPL_WIDTH), 0);
        }
        seen |= TMPL(sums_give)(&first, at, so_far, out, ret_largest);
        if (TMPL_TOGETHER == 2)
            seen |= TMPL(sums_give)(&second, at + TMPL_WIDTH, so_far, out, ret_largest);
    }
    return seen;
}

/* Full steps whose errors and products were worked out before. */
static unsigned TMPL(add_terms)(const double *r, const double *c, const double *abs,
                                const double *product, double so_far, struct lanes *inout,
                                double *ret_largest)
{
    unsigned seen = 0;

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        struct TMPL(sums) sums = TMPL(sums_take)(inout, at);
        TMPL_KEEP_LOOP
        for (size_t i = at; i < PAIR_STEP; i += MOMENTS_LANES) {
            const TMPL(vd) x = TMPL(vd_load)(r + i), y = TMPL(vd_load)(c + i);
            const TMPL(vd) d = TMPL(vd_load)(abs + i);
            sums.abs = sums.abs + d;
            sums.ee = sums.ee + d * d;
            sums.r = sums.r + x;
            sums.c = sums.c + y;
            sums.rr = sums.rr + x * x;
            sums.cc = sums.cc + y * y;
            sums.rc = sums.rc + TMPL(vd_load)(product + i);
            sums.largest = TMPL(vd_max)(d, sums.largest);
        }
        seen |= TMPL(sums_give)(&sums, at, so_far, inout, ret_largest);
    }
    return seen;
}

/* The sums about the pivot. */
static void TMPL(add_pivoted)(const double *r, const double *c, struct moments_pivot pivot,
                              double (*inout)[MOMENTS_LANES])
{
    const TMPL(vd) p = TMPL(vd_set)(pivot.r), q = TMPL(vd_set)(pivot.c);

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL(vd) sum_r = TMPL(vd_load)(inout[PIVOT_R] + at);
        TMPL(vd) sum_c = TMPL(vd_load)(inout[PIVOT_C] + at);
        TMPL(vd) sum_rr = TMPL(vd_load)(inout[PIVOT_RR] + at);
        TMPL(vd) sum_cc = TMPL(vd_load)(inout[PIVOT_CC] + at);
        TMPL(vd) sum_rc = TMPL(vd_load)(inout[PIVOT_RC] + at);
        for (size_t i = at; i < PAIR_STEP; i += MOMENTS_LANES) {
            const TMPL(vd) u = TMPL(vd_load)(r + i) - p, v = TMPL(vd_load)(c + i) - q;
            sum_r = sum_r + u;
            sum_c = sum_c + v;
            sum_rr = sum_rr + u * u;
            sum_cc = sum_cc + v * v;
            sum_rc = sum_rc + u * v;
        }
        TMPL(vd_store)(inout[PIVOT_R] + at, sum_r);
        TMPL(vd_store)(inout[PIVOT_C] + at, sum_c);
        TMPL(vd_store)(inout[PIVOT_RR] + at, sum_rr);
        TMPL(vd_store)(inout[PIVOT_CC] + at, sum_cc);
        TMPL(vd_store)(inout[PIVOT_RC] + at, sum_rc);
    }
}
