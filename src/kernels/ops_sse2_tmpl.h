/*
 * Vectors of the base kernels on x86-64, which always has SSE2: 2 doubles, 4 floats.
 * moments_tmpl.h says what each operation is for.
 */
typedef __m128d TMPL(vd);
typedef __m128 TMPL(vs);
typedef __m128i TMPL(vcount);

static inline __m128d TMPL(vd_load)(const double *from)
{
    return _mm_loadu_pd(from);
}

static inline void TMPL(vd_store)(double *to, __m128d v)
{
    _mm_storeu_pd(to, v);
}

static inline __m128d TMPL(vd_widen)(const unsigned char *floats)
{
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const void *)floats)));
}

static inline __m128d TMPL(vd_set)(double value)
{
    return _mm_set1_pd(value);
}

static inline __m128d TMPL(vd_abs)(__m128d v)
{
    return _mm_andnot_pd(_mm_set1_pd(-0.0), v);
}

static inline __m128d TMPL(vd_min)(__m128d a, __m128d b)
{
    return _mm_min_pd(a, b);
}

static inline __m128d TMPL(vd_max)(__m128d a, __m128d b)
{
    return _mm_max_pd(a, b);
}

static inline __m128d TMPL(vd_add)(__m128d sum, __m128d v)
{
    return _mm_add_pd(sum, v);
}

static inline __m128d TMPL(vd_add_exact)(__m128d sum, __m128d a, __m128d b)
{
    return _mm_add_pd(sum, _mm_mul_pd(a, b));
}

static inline __m128d TMPL(vd_add_unequal)(__m128d sum, __m128d a, __m128d b)
{
    return _mm_add_pd(sum, _mm_and_pd(_mm_cmpneq_pd(a, b), _mm_set1_pd(1.0)));
}

static inline __m128d TMPL(vd_add_below)(__m128d sum, __m128d a, __m128d b)
{
    return _mm_add_pd(sum, _mm_and_pd(_mm_cmplt_pd(a, b), _mm_set1_pd(1.0)));
}

/* v, but 0 where a is. */
static inline __m128d TMPL(vd_unless_zero)(__m128d a, __m128d v)
{
    return _mm_and_pd(_mm_cmpneq_pd(a, _mm_setzero_pd()), v);
}

/* Is any of a beyond b? */
static inline bool TMPL(vd_any_above)(__m128d a, __m128d b)
{
    return _mm_movemask_pd(_mm_cmpgt_pd(a, b)) != 0;
}

/* NaN is not. */
static inline bool TMPL(vd_all_at_most)(__m128d a, __m128d b)
{
    return _mm_movemask_pd(_mm_cmple_pd(a, b)) == 3;
}

static inline bool TMPL(vs_any_at_most)(__m128 a, __m128 b)
{
    return _mm_movemask_ps(_mm_cmple_ps(a, b)) != 0;
}

static inline __m128 TMPL(vs_load)(const void *floats)
{
    return _mm_loadu_ps(floats);
}

static inline void TMPL(vs_store)(float *to, __m128 v)
{
    _mm_storeu_ps(to, v);
}

static inline __m128 TMPL(vs_set)(float value)
{
    return _mm_set1_ps(value);
}

static inline __m128 TMPL(vs_min)(__m128 a, __m128 b)
{
    return _mm_min_ps(a, b);
}

static inline __m128 TMPL(vs_max)(__m128 a, __m128 b)
{
    return _mm_max_ps(a, b);
}

static inline __m128i TMPL(vcount_zero)(void)
{
    return _mm_setzero_si128();
}

static inline __m128i TMPL(vcount_unequal)(__m128i count, __m128 a, __m128 b)
{
    return _mm_sub_epi32(count, _mm_castps_si128(_mm_cmpneq_ps(a, b)));
}

static inline void TMPL(vcount_add)(int32_t *to, __m128i count)
{
    _mm_storeu_si128((void *)to, _mm_add_epi32(_mm_loadu_si128((const void *)to), count));
}

static inline void TMPL(floats_of_halves)(const unsigned char *bytes, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (float)load_f16(bytes, i);
}

/* --- which elements of a vector ------------------------------------------------------- */

/* Integers, so that & | ~ work on them.  Nothing is equal to NaN, or at most it; pick: a
 * where it is so, else b. */
typedef __m128i TMPL(vs_where);
typedef __m128i TMPL(vd_where);

static inline __m128i TMPL(vs_equal)(__m128 a, __m128 b)
{
    return _mm_castps_si128(_mm_cmpeq_ps(a, b));
}

static inline __m128i TMPL(vs_at_most)(__m128 a, __m128 b)
{
    return _mm_castps_si128(_mm_cmple_ps(a, b));
}

static inline bool TMPL(vs_any)(__m128i where)
{
    return _mm_movemask_ps(_mm_castsi128_ps(where)) != 0;
}

static inline unsigned TMPL(vs_count)(__m128i where)
{
    /* How many bits are set in 0, 1, ... 15. */
    const unsigned bits = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(where));

    return (unsigned)(0x4332322132212110U >> 4 * bits & 7);
}

static inline __m128 TMPL(vs_pick)(__m128i where, __m128 a, __m128 b)
{
    const __m128 some = _mm_castsi128_ps(where);

    return _mm_or_ps(_mm_and_ps(some, a), _mm_andnot_ps(some, b));
}

static inline __m128i TMPL(vd_equal)(__m128d a, __m128d b)
{
    return _mm_castpd_si128(_mm_cmpeq_pd(a, b));
}

static inline __m128i TMPL(vd_at_most)(__m128d a, __m128d b)
{
    return _mm_castpd_si128(_mm_cmple_pd(a, b));
}

static inline bool TMPL(vd_any)(__m128i where)
{
    return _mm_movemask_pd(_mm_castsi128_pd(where)) != 0;
}

static inline unsigned TMPL(vd_count)(__m128i where)
{
    const unsigned bits = (unsigned)_mm_movemask_pd(_mm_castsi128_pd(where));

    return (bits & 1) + (bits >> 1);
}

static inline __m128d TMPL(vd_pick)(__m128i where, __m128d a, __m128d b)
{
    const __m128d some = _mm_castsi128_pd(where);

    return _mm_or_pd(_mm_and_pd(some, a), _mm_andnot_pd(some, b));
}
