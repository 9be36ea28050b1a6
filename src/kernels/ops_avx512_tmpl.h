/*
 * Vectors of the avx512 kernels: 8 doubles, 16 floats.  moments_tmpl.h says what each
 * operation is for.
 */
typedef __m512d TMPL(vd);
typedef __m512 TMPL(vs);
typedef __m512i TMPL(vcount);

static inline __m512d TMPL(vd_load)(const double *from)
{
    return _mm512_loadu_pd(from);
}

static inline void TMPL(vd_store)(double *to, __m512d v)
{
    _mm512_storeu_pd(to, v);
}

/* clang 14 takes what is loaded here apart and converts it piece by piece, unless it is told
 * the instruction. */
#if defined(__clang__)
#define TMPL_CONVERT(instruction, type, bytes, otherwise)                                  \
    type converted;                                                                        \
    __asm__(instruction " %1, %0"                                                          \
            : "=v"(converted)                                                              \
            : "m"(*(const unsigned char(*)[32])(bytes)));                                  \
    return converted
#else
#define TMPL_CONVERT(instruction, type, bytes, otherwise) return otherwise
#endif

static inline __m512d TMPL(vd_widen)(const unsigned char *floats)
{
    TMPL_CONVERT("vcvtps2pd", __m512d, floats,
                 _mm512_cvtps_pd(_mm256_loadu_ps((const void *)floats)));
}

static inline __m512d TMPL(vd_of_i32)(const unsigned char *bytes)
{
    return _mm512_cvtepi32_pd(_mm256_loadu_si256((const void *)bytes));
}

static inline __m512d TMPL(vd_of_u32)(const unsigned char *bytes)
{
    return _mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)bytes));
}

static inline __m512d TMPL(vd_of_i64)(const unsigned char *bytes)
{
    return _mm512_cvtepi64_pd(_mm512_loadu_si512((const void *)bytes));
}

static inline __m512d TMPL(vd_set)(double value)
{
    return _mm512_set1_pd(value);
}

static inline __m512d TMPL(vd_abs)(__m512d v)
{
    return _mm512_abs_pd(v);
}

static inline __m512d TMPL(vd_min)(__m512d a, __m512d b)
{
    return _mm512_min_pd(a, b);
}

static inline __m512d TMPL(vd_max)(__m512d a, __m512d b)
{
    return _mm512_max_pd(a, b);
}

/* As a product: the adders have enough to do, the multipliers have not. */
static inline __m512d TMPL(vd_add)(__m512d sum, __m512d v)
{
    return _mm512_fmadd_pd(v, _mm512_set1_pd(1.0), sum);
}

static inline __m512d TMPL(vd_add_exact)(__m512d sum, __m512d a, __m512d b)
{
    return _mm512_fmadd_pd(a, b, sum);
}

static inline __m512d TMPL(vd_add_unequal)(__m512d sum, __m512d a, __m512d b)
{
    const __mmask8 unequal = _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ);

    return _mm512_mask_add_pd(sum, unequal, sum, _mm512_set1_pd(1.0));
}

static inline __m512d TMPL(vd_add_below)(__m512d sum, __m512d a, __m512d b)
{
    const __mmask8 below = _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ);

    return _mm512_mask_add_pd(sum, below, sum, _mm512_set1_pd(1.0));
}

/* v, but 0 where a is. */
static inline __m512d TMPL(vd_unless_zero)(__m512d a, __m512d v)
{
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_NEQ_UQ), v);
}

/* Is any of a beyond b? */
static inline bool TMPL(vd_any_above)(__m512d a, __m512d b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0;
}

/* NaN is not. */
static inline bool TMPL(vd_all_at_most)(__m512d a, __m512d b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ) == 0xff;
}

static inline bool TMPL(vs_any_at_most)(__m512 a, __m512 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ) != 0;
}

static inline __m512 TMPL(vs_load)(const void *floats)
{
    return _mm512_loadu_ps(floats);
}

static inline __m512 TMPL(vs_of_halves)(const unsigned char *halves)
{
    TMPL_CONVERT("vcvtph2ps", __m512, halves,
                 _mm512_cvtph_ps(_mm256_loadu_si256((const void *)halves)));
}

static inline __m512 TMPL(vs_of_brains)(const unsigned char *brains)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)brains));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline __m512d TMPL(vd_low)(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}

static inline __m512d TMPL(vd_high)(__m512 v)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

static inline void TMPL(vs_store)(float *to, __m512 v)
{
    _mm512_storeu_ps(to, v);
}

static inline __m512 TMPL(vs_set)(float value)
{
    return _mm512_set1_ps(value);
}

static inline __m512 TMPL(vs_min)(__m512 a, __m512 b)
{
    return _mm512_min_ps(a, b);
}

static inline __m512 TMPL(vs_max)(__m512 a, __m512 b)
{
    return _mm512_max_ps(a, b);
}

static inline __m512i TMPL(vcount_zero)(void)
{
    return _mm512_setzero_si512();
}

static inline __m512i TMPL(vcount_unequal)(__m512i count, __m512 a, __m512 b)
{
    const __mmask16 unequal = _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ);

    return _mm512_mask_sub_epi32(count, unequal, count, _mm512_set1_epi32(-1));
}

static inline void TMPL(vcount_add)(int32_t *to, __m512i count)
{
    _mm512_storeu_si512((void *)to, _mm512_add_epi32(_mm512_loadu_si512((void *)to), count));
}

/* n is a multiple of 16. */
static inline void TMPL(floats_of_halves)(const unsigned char *bytes, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i += 16)
        _mm512_storeu_ps(ret + i, TMPL(vs_of_halves)(bytes + 2 * i));
}

/* --- 16-bit floats: ends and differences without conversion ------------------------------ */

/* As integers with a sign bit, negative ones in reverse. */
struct TMPL(halves_ends) {
    __m512i most[2]; /* as signed integers */
    __m512i top[2];  /* as unsigned ones */
    __m512i differ;  /* counts */
};

static inline struct TMPL(halves_ends) TMPL(halves_none)(void)
{
    const __m512i low = _mm512_set1_epi16(INT16_MIN), zero = _mm512_setzero_si512();

    return (struct TMPL(halves_ends)){{low, low}, {zero, zero}, zero};
}

/* 32 pairs; zeros of both signs are equal. */
static inline void TMPL(halves_add)(struct TMPL(halves_ends) *ends, const unsigned char *r,
                                    const unsigned char *c)
{
    const __m512i x = _mm512_loadu_si512((const void *)r);
    const __m512i y = _mm512_loadu_si512((const void *)c);
    const __mmask32 unequal =
        _mm512_mask_test_epi16_mask(_mm512_cmpneq_epi16_mask(x, y), _mm512_or_si512(x, y),
                                    _mm512_set1_epi16(INT16_MAX));

    ends->most[0] = _mm512_max_epi16(x, ends->most[0]);
    ends->top[0] = _mm512_max_epu16(x, ends->top[0]);
    ends->most[1] = _mm512_max_epi16(y, ends->most[1]);
    ends->top[1] = _mm512_max_epu16(y, ends->top[1]);
    ends->differ =
        _mm512_mask_sub_epi16(ends->differ, unequal, ends->differ, _mm512_set1_epi16(-1));
}

/* 8 elements from anywhere, as doubles. */
static inline __m512d TMPL(vd_of_halves)(const unsigned char *halves)
{
    return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const void *)halves)));
}

static inline __m256i TMPL(load_words)(const unsigned char *bytes)
{
#if defined(__clang__)
    __m256i words;
    __asm__("vmovdqu %1, %0" : "=x"(words) : "m"(*(const unsigned char(*)[32])bytes));
    return words;
#else
    return _mm256_loadu_si256((const void *)bytes);
#endif
}

/* Of 16 bfloat16 those with even and with odd places: the lower and upper halves of words. */
static inline __m512d TMPL(vd_of_even)(__m256i words)
{
    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
}

static inline __m512d TMPL(vd_of_odd)(__m256i words)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);

    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_and_si256(words, upper)));
}

/* a and b hold lanes 0-7 and 8-15: makes them even and odd lanes, and back. */
static inline void TMPL(lanes_by_parity)(__m512d *a, __m512d *b)
{
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512d first = *a, second = *b;

    *a = _mm512_permutex2var_pd(first, even, second);
    *b = _mm512_permutex2var_pd(first, odd, second);
}

static inline void TMPL(lanes_in_order)(__m512d *a, __m512d *b)
{
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const __m512d even = *a, odd = *b;

    *a = _mm512_permutex2var_pd(even, low, odd);
    *b = _mm512_permutex2var_pd(even, high, odd);
}

/* --- which elements of a vector ------------------------------------------------------- */

/* Integers, so that & | ~ work on them.  Nothing is equal to NaN, or at most it; pick: a
 * where it is so, else b. */
typedef __mmask16 TMPL(vs_where);
typedef __mmask8 TMPL(vd_where);

static inline __mmask16 TMPL(vs_equal)(__m512 a, __m512 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline __mmask16 TMPL(vs_at_most)(__m512 a, __m512 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

static inline bool TMPL(vs_any)(__mmask16 where)
{
    return where != 0;
}

static inline unsigned TMPL(vs_count)(__mmask16 where)
{
    return (unsigned)__builtin_popcount(where);
}

static inline __m512 TMPL(vs_pick)(__mmask16 where, __m512 a, __m512 b)
{
    return _mm512_mask_mov_ps(b, where, a);
}

static inline __mmask8 TMPL(vd_equal)(__m512d a, __m512d b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
}

static inline __mmask8 TMPL(vd_at_most)(__m512d a, __m512d b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
}

static inline bool TMPL(vd_any)(__mmask8 where)
{
    return where != 0;
}

static inline unsigned TMPL(vd_count)(__mmask8 where)
{
    return (unsigned)__builtin_popcount(where);
}

static inline __m512d TMPL(vd_pick)(__mmask8 where, __m512d a, __m512d b)
{
    return _mm512_mask_mov_pd(b, where, a);
}
