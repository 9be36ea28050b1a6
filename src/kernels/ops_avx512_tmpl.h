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
