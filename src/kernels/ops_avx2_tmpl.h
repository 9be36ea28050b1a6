/*
 * Vectors of the avx2 kernels: 4 doubles, 8 floats.  moments_tmpl.h says what each
 * operation is for.
 */
typedef __m256d TMPL(vd);
typedef __m256 TMPL(vs);
typedef __m256i TMPL(vcount);

static inline __m256d TMPL(vd_load)(const double *from)
{
    return _mm256_loadu_pd(from);
}

static inline void TMPL(vd_store)(double *to, __m256d v)
{
    _mm256_storeu_pd(to, v);
}

static inline __m256d TMPL(vd_widen)(const unsigned char *floats)
{
    return _mm256_cvtps_pd(_mm_loadu_ps((const void *)floats));
}

static inline __m256d TMPL(vd_set)(double value)
{
    return _mm256_set1_pd(value);
}

static inline __m256d TMPL(vd_abs)(__m256d v)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v);
}

static inline __m256d TMPL(vd_min)(__m256d a, __m256d b)
{
    return _mm256_min_pd(a, b);
}

static inline __m256d TMPL(vd_max)(__m256d a, __m256d b)
{
    return _mm256_max_pd(a, b);
}

/* As a product: the adders have enough to do, the multipliers have not. */
static inline __m256d TMPL(vd_add)(__m256d sum, __m256d v)
{
    return _mm256_fmadd_pd(v, _mm256_set1_pd(1.0), sum);
}

static inline __m256d TMPL(vd_add_exact)(__m256d sum, __m256d a, __m256d b)
{
    return _mm256_fmadd_pd(a, b, sum);
}

static inline __m256d TMPL(vd_add_unequal)(__m256d sum, __m256d a, __m256d b)
{
    const __m256d unequal = _mm256_cmp_pd(a, b, _CMP_NEQ_UQ);

    return _mm256_add_pd(sum, _mm256_and_pd(unequal, _mm256_set1_pd(1.0)));
}

static inline __m256d TMPL(vd_add_below)(__m256d sum, __m256d a, __m256d b)
{
    const __m256d below = _mm256_cmp_pd(a, b, _CMP_LT_OQ);

    return _mm256_add_pd(sum, _mm256_and_pd(below, _mm256_set1_pd(1.0)));
}

/* v, but 0 where a is. */
static inline __m256d TMPL(vd_unless_zero)(__m256d a, __m256d v)
{
    return _mm256_and_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NEQ_UQ), v);
}

/* Is any of a beyond b? */
static inline bool TMPL(vd_any_above)(__m256d a, __m256d b)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)) != 0;
}

/* NaN is not. */
static inline bool TMPL(vd_all_at_most)(__m256d a, __m256d b)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ)) == 0xf;
}

static inline bool TMPL(vs_any_at_most)(__m256 a, __m256 b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ)) != 0;
}

static inline __m256 TMPL(vs_load)(const void *floats)
{
    return _mm256_loadu_ps(floats);
}

static inline void TMPL(vs_store)(float *to, __m256 v)
{
    _mm256_storeu_ps(to, v);
}

static inline __m256 TMPL(vs_set)(float value)
{
    return _mm256_set1_ps(value);
}

static inline __m256 TMPL(vs_min)(__m256 a, __m256 b)
{
    return _mm256_min_ps(a, b);
}

static inline __m256 TMPL(vs_max)(__m256 a, __m256 b)
{
    return _mm256_max_ps(a, b);
}

static inline __m256i TMPL(vcount_zero)(void)
{
    return _mm256_setzero_si256();
}

static inline __m256i TMPL(vcount_unequal)(__m256i count, __m256 a, __m256 b)
{
    const __m256 unequal = _mm256_cmp_ps(a, b, _CMP_NEQ_UQ);

    return _mm256_sub_epi32(count, _mm256_castps_si256(unequal));
}

static inline void TMPL(vcount_add)(int32_t *to, __m256i count)
{
    _mm256_storeu_si256((void *)to,
                        _mm256_add_epi32(_mm256_loadu_si256((const void *)to), count));
}

/* n is a multiple of 8. */
static inline void TMPL(floats_of_halves)(const unsigned char *bytes, size_t n, float *ret)
{
    TMPL_UNROLL
    for (size_t i = 0; i < n; i += 8)
        _mm256_storeu_ps(ret + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const void *)(bytes + 2 * i))));
}

/* --- which elements of a vector ------------------------------------------------------- */

/* Integers, so that & | ~ work on them.  Nothing is equal to NaN, or at most it; pick: a
 * where it is so, else b. */
typedef __m256i TMPL(vs_where);
typedef __m256i TMPL(vd_where);

static inline __m256i TMPL(vs_equal)(__m256 a, __m256 b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

static inline __m256i TMPL(vs_at_most)(__m256 a, __m256 b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}

static inline bool TMPL(vs_any)(__m256i where)
{
    return _mm256_movemask_ps(_mm256_castsi256_ps(where)) != 0;
}

static inline unsigned TMPL(vs_count)(__m256i where)
{
    return (unsigned)__builtin_popcount(
        (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(where)));
}

static inline __m256 TMPL(vs_pick)(__m256i where, __m256 a, __m256 b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(where));
}

static inline __m256i TMPL(vd_equal)(__m256d a, __m256d b)
{
    return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_EQ_OQ));
}

static inline __m256i TMPL(vd_at_most)(__m256d a, __m256d b)
{
    return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}

static inline bool TMPL(vd_any)(__m256i where)
{
    return _mm256_movemask_pd(_mm256_castsi256_pd(where)) != 0;
}

static inline unsigned TMPL(vd_count)(__m256i where)
{
    return (unsigned)__builtin_popcount(
        (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(where)));
}

static inline __m256d TMPL(vd_pick)(__m256i where, __m256d a, __m256d b)
{
    return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(where));
}
