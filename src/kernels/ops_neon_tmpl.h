/*
 * Vectors of the aarch64 kernels: 2 doubles, 4 floats.  moments_tmpl.h says what each
 * operation is for.
 */
typedef float64x2_t TMPL(vd);
typedef float32x4_t TMPL(vs);
typedef uint32x4_t TMPL(vcount);

static inline float64x2_t TMPL(vd_load)(const double *from)
{
    return vld1q_f64(from);
}

static inline void TMPL(vd_store)(double *to, float64x2_t v)
{
    vst1q_f64(to, v);
}

static inline float64x2_t TMPL(vd_widen)(const unsigned char *floats)
{
    return vcvt_f64_f32(vreinterpret_f32_u8(vld1_u8(floats)));
}

static inline float64x2_t TMPL(vd_set)(double value)
{
    return vdupq_n_f64(value);
}

static inline float64x2_t TMPL(vd_abs)(float64x2_t v)
{
    return vabsq_f64(v);
}

static inline float64x2_t TMPL(vd_min)(float64x2_t a, float64x2_t b)
{
    return vminq_f64(a, b);
}

static inline float64x2_t TMPL(vd_max)(float64x2_t a, float64x2_t b)
{
    return vmaxq_f64(a, b);
}

static inline float64x2_t TMPL(vd_add)(float64x2_t sum, float64x2_t v)
{
    return vaddq_f64(sum, v);
}

static inline float64x2_t TMPL(vd_add_exact)(float64x2_t sum, float64x2_t a, float64x2_t b)
{
    return vfmaq_f64(sum, a, b);
}

static inline float64x2_t TMPL(vd_add_unequal)(float64x2_t sum, float64x2_t a, float64x2_t b)
{
    const uint64x2_t one = vreinterpretq_u64_f64(vdupq_n_f64(1.0));

    return vaddq_f64(sum, vreinterpretq_f64_u64(vbicq_u64(one, vceqq_f64(a, b))));
}

static inline float64x2_t TMPL(vd_add_below)(float64x2_t sum, float64x2_t a, float64x2_t b)
{
    const uint64x2_t one = vreinterpretq_u64_f64(vdupq_n_f64(1.0));

    return vaddq_f64(sum, vreinterpretq_f64_u64(vandq_u64(one, vcltq_f64(a, b))));
}

/* v, but 0 where a is. */
static inline float64x2_t TMPL(vd_unless_zero)(float64x2_t a, float64x2_t v)
{
    return vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(v), vceqzq_f64(a)));
}

/* Is any of a beyond b? */
static inline bool TMPL(vd_any_above)(float64x2_t a, float64x2_t b)
{
    return vmaxvq_u32(vreinterpretq_u32_u64(vcgtq_f64(a, b))) != 0;
}

/* NaN is not. */
static inline bool TMPL(vd_all_at_most)(float64x2_t a, float64x2_t b)
{
    return vminvq_u32(vreinterpretq_u32_u64(vcleq_f64(a, b))) != 0;
}

static inline bool TMPL(vs_any_at_most)(float32x4_t a, float32x4_t b)
{
    return vmaxvq_u32(vcleq_f32(a, b)) != 0;
}

static inline float32x4_t TMPL(vs_load)(const void *floats)
{
    return vreinterpretq_f32_u8(vld1q_u8(floats));
}

static inline void TMPL(vs_store)(float *to, float32x4_t v)
{
    vst1q_f32(to, v);
}

static inline float32x4_t TMPL(vs_set)(float value)
{
    return vdupq_n_f32(value);
}

static inline float32x4_t TMPL(vs_min)(float32x4_t a, float32x4_t b)
{
    return vminq_f32(a, b);
}

static inline float32x4_t TMPL(vs_max)(float32x4_t a, float32x4_t b)
{
    return vmaxq_f32(a, b);
}

static inline uint32x4_t TMPL(vcount_zero)(void)
{
    return vdupq_n_u32(0);
}

static inline uint32x4_t TMPL(vcount_unequal)(uint32x4_t count, float32x4_t a, float32x4_t b)
{
    return vsubq_u32(count, vmvnq_u32(vceqq_f32(a, b)));
}

static inline void TMPL(vcount_add)(int32_t *to, uint32x4_t count)
{
    vst1q_s32(to, vaddq_s32(vld1q_s32(to), vreinterpretq_s32_u32(count)));
}

/* n is a multiple of 4. */
static inline void TMPL(floats_of_halves)(const unsigned char *bytes, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i += 4)
        vst1q_f32(ret + i, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(bytes + 2 * i))));
}

/* --- which elements of a vector ------------------------------------------------------- */

/* Integers, so that & | ~ work on them.  Nothing is equal to NaN, or at most it; pick: a
 * where it is so, else b. */
typedef uint32x4_t TMPL(vs_where);
typedef uint64x2_t TMPL(vd_where);

static inline uint32x4_t TMPL(vs_equal)(float32x4_t a, float32x4_t b)
{
    return vceqq_f32(a, b);
}

static inline uint32x4_t TMPL(vs_at_most)(float32x4_t a, float32x4_t b)
{
    return vcleq_f32(a, b);
}

static inline bool TMPL(vs_any)(uint32x4_t where)
{
    return vmaxvq_u32(where) != 0;
}

static inline unsigned TMPL(vs_count)(uint32x4_t where)
{
    return vaddvq_u32(vshrq_n_u32(where, 31));
}

static inline float32x4_t TMPL(vs_pick)(uint32x4_t where, float32x4_t a, float32x4_t b)
{
    return vbslq_f32(where, a, b);
}

static inline uint64x2_t TMPL(vd_equal)(float64x2_t a, float64x2_t b)
{
    return vceqq_f64(a, b);
}

static inline uint64x2_t TMPL(vd_at_most)(float64x2_t a, float64x2_t b)
{
    return vcleq_f64(a, b);
}

static inline bool TMPL(vd_any)(uint64x2_t where)
{
    return vmaxvq_u32(vreinterpretq_u32_u64(where)) != 0;
}

static inline unsigned TMPL(vd_count)(uint64x2_t where)
{
    return (unsigned)vaddvq_u64(vshrq_n_u64(where, 63));
}

static inline float64x2_t TMPL(vd_pick)(uint64x2_t where, float64x2_t a, float64x2_t b)
{
    return vbslq_f64(where, a, b);
}
