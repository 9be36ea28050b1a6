/*
 * Element types: the table, spellings, and decoding to double.
 */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

#include "tensor/round.h"

static const struct dtype_info infos[ND_DTYPE_COUNT] = {
#define ND_DTYPE(word, size, name, kind, digits, emax)                                   \
    [ND_DTYPE_##word] = {#word, name, size, kind, digits, emax},
#include "tensor/dtypes.def"
#undef ND_DTYPE
};

const struct dtype_info *nd_dtype_info(enum nd_dtype dtype)
{
    return &infos[dtype];
}

/* Other spellings, lower case, after a "torch." or "mindspore." or "dt_" in front is taken
 * off.  Sources: torch (repr, .type()), numpy (descr), safetensors, ONNX/CANN (DT_*),
 * MindSpore (Float32, BFloat16). */
static const struct {
    const char   *name;
    enum nd_dtype dtype;
} spellings[] = {
    {"double", ND_DTYPE_f64},       {"fp64", ND_DTYPE_f64},        {"f8", ND_DTYPE_f64},
    {"float", ND_DTYPE_f32},        {"fp32", ND_DTYPE_f32},        {"f4", ND_DTYPE_f32},
    {"half", ND_DTYPE_f16},         {"fp16", ND_DTYPE_f16},        {"f2", ND_DTYPE_f16},
    {"bf16", ND_DTYPE_bf16},        {"f8_e4m3", ND_DTYPE_f8e4m3fn}, {"f8_e5m2", ND_DTYPE_f8e5m2},
    {"float8_e4m3", ND_DTYPE_f8e4m3fn},                            {"f8_e4m3fn", ND_DTYPE_f8e4m3fn},
    {"long", ND_DTYPE_i64},
    {"int", ND_DTYPE_i32},          {"short", ND_DTYPE_i16},       {"char", ND_DTYPE_i8},
    {"byte", ND_DTYPE_u8},          {"boolean", ND_DTYPE_bool8},   {"cfloat", ND_DTYPE_c64},
    {"complexfloat", ND_DTYPE_c64}, {"cdouble", ND_DTYPE_c128},    {"complexdouble", ND_DTYPE_c128},
};

static bool name_is(const char *name, size_t len, const char *word)
{
    for (size_t i = 0; i < len; i++) {
        const char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
        if (word[i] == '\0' || c != word[i])
            return false;
    }
    return word[len] == '\0';
}

static bool name_drop(const char **name, size_t *len, const char *prefix)
{
    const size_t n = strlen(prefix);

    if (*len <= n || !name_is(*name, n, prefix))
        return false;
    *name += n;
    *len -= n;
    return true;
}

enum nd_dtype nd_dtype_by_name(const char *name, size_t len)
{
    for (int i = 0; i < ND_DTYPE_COUNT; i++) /* most askers have a name from here */
        if (name == infos[i].name && name[len] == '\0')
            return (enum nd_dtype)i;
    if (!name_drop(&name, &len, "torch.") && !name_drop(&name, &len, "mindspore."))
        (void)name_drop(&name, &len, "dt_");
    const char first = len == 0 ? '\0' : (char)(*name | 0x20); /* most rows begin unlike it */
    for (int i = 0; i < ND_DTYPE_COUNT; i++)
        if ((*infos[i].name == first && name_is(name, len, infos[i].name)) ||
            (*infos[i].word == first && name_is(name, len, infos[i].word)))
            return (enum nd_dtype)i;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (*spellings[i].name == first && name_is(name, len, spellings[i].name))
            return spellings[i].dtype;
    return ND_DTYPE_NONE;
}

double nd_dtype_roundoff(enum nd_dtype dtype)
{
    if (dtype == ND_DTYPE_NONE)
        return 0;
    const enum nd_kind kind = infos[dtype].kind;
    return kind == ND_KIND_FLOAT || kind == ND_KIND_COMPLEX ? ldexp(1.0, -infos[dtype].digits) : 0;
}

double nd_dtype_max(enum nd_dtype dtype)
{
    if (dtype == ND_DTYPE_NONE || infos[dtype].kind != ND_KIND_FLOAT)
        return 0;
    if (dtype == ND_DTYPE_f8e4m3fn)
        return 448; /* 1.75 * 2^8: the all-ones significand there is NaN */
    return (2.0 - nd_round_power(1 - infos[dtype].digits)) * nd_round_power(infos[dtype].emax);
}

enum nd_dtype nd_dtype_coarser(enum nd_dtype a, enum nd_dtype b)
{
    const double u_a = nd_dtype_roundoff(a), u_b = nd_dtype_roundoff(b);

    return u_b > u_a ? b : a;
}

double nd_dtype_round(enum nd_dtype dtype, double value)
{
    if (dtype == ND_DTYPE_NONE || infos[dtype].kind != ND_KIND_FLOAT || !isfinite(value) ||
        value == 0 || dtype == ND_DTYPE_f64)
        return value;
    if (dtype == ND_DTYPE_f32)
        return (double)(float)value;
    const int    digits = infos[dtype].digits;
    const int    emin = dtype == ND_DTYPE_f8e4m3fn ? -6 : 1 - infos[dtype].emax;
    const double rounded = fabs(value) >= nd_round_power(emin)
                               ? nd_round_digits(value, digits)
                               : nd_round_to_unit(value, nd_round_power(emin - digits + 1));
    if (fabs(rounded) <= nd_dtype_max(dtype))
        return rounded;
    return dtype == ND_DTYPE_f8e4m3fn ? (double)NAN : copysign((double)INFINITY, value);
}

/* --- decoding ---------------------------------------------------------------------- */

static inline uint16_t load_16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load_32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load_64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline double decode_f64(const unsigned char *p)
{
    double v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline double decode_f32(const unsigned char *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return (double)v;
}

static inline double decode_bf16(const unsigned char *p)
{
    const uint32_t bits = (uint32_t)load_16(p) << 16;
    float          v;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

/* A small float: `exponent_bits` and `fraction_bits`, IEEE style with infinities. */
static double decode_small(unsigned bits, int exponent_bits, int fraction_bits)
{
    const unsigned fraction = bits & ((1u << fraction_bits) - 1);
    const unsigned field = bits >> fraction_bits & ((1u << exponent_bits) - 1);
    const int      bias = (1 << (exponent_bits - 1)) - 1;
    const bool     negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0;
    double         value;

    if (field == (1u << exponent_bits) - 1)
        value = fraction == 0 ? INFINITY : NAN;
    else if (field == 0)
        value = ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = ldexp((double)(fraction + (1u << fraction_bits)), (int)field - bias - fraction_bits);
    return negative ? -value : value;
}

/* Branch-free for the common path: the significand is moved into a float32 and scaled. */
static inline double decode_f16(const unsigned char *p)
{
    const uint32_t half = load_16(p);
    const uint32_t magnitude = (half & 0x7fff) << 13;
    uint32_t       bits = magnitude;
    float          v;

    if (magnitude >= 0x0f800000) /* infinity or NaN */
        bits |= 0x7f800000;
    memcpy(&v, &bits, sizeof v);
    if (magnitude < 0x0f800000)
        v *= 0x1p112f; /* rebias 15 to 127; exact, subnormals included */
    memcpy(&bits, &v, sizeof bits);
    bits |= (half & 0x8000) << 16;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

/* OCP 8-bit: no infinities, S.1111.111 is NaN. */
static inline double decode_f8e4m3fn(const unsigned char *p)
{
    if ((*p & 0x7f) == 0x7f)
        return *p & 0x80 ? -NAN : NAN;
    const unsigned fraction = *p & 7, field = *p >> 3 & 15;
    const double   value = field == 0 ? ldexp(fraction, -9) : ldexp((double)(fraction + 8), (int)field - 10);
    return *p & 0x80 ? -value : value;
}

static inline double decode_f8e5m2(const unsigned char *p)
{
    return decode_small(*p, 5, 2);
}

static inline double decode_i64(const unsigned char *p) { return (double)(int64_t)load_64(p); }
static inline double decode_i32(const unsigned char *p) { return (double)(int32_t)load_32(p); }
static inline double decode_i16(const unsigned char *p) { return (double)(int16_t)load_16(p); }
static inline double decode_i8(const unsigned char *p) { return (double)(int8_t)*p; }
static inline double decode_u64(const unsigned char *p) { return (double)load_64(p); }
static inline double decode_u32(const unsigned char *p) { return (double)load_32(p); }
static inline double decode_u16(const unsigned char *p) { return (double)load_16(p); }
static inline double decode_u8(const unsigned char *p) { return (double)*p; }
static inline double decode_bool8(const unsigned char *p) { return *p != 0; }

#define DECODE_LOOP(word, step)                                                          \
    for (size_t i = 0; i < n; i++)                                                       \
        dst[i] = decode_##word(in + i * (step));

static void decode_native(enum nd_dtype dtype, const unsigned char *in, size_t n, double *dst)
{
    switch (dtype) {
    case ND_DTYPE_f64: DECODE_LOOP(f64, 8) break;
    case ND_DTYPE_f32: DECODE_LOOP(f32, 4) break;
    case ND_DTYPE_f16: DECODE_LOOP(f16, 2) break;
    case ND_DTYPE_bf16: DECODE_LOOP(bf16, 2) break;
    case ND_DTYPE_f8e4m3fn: DECODE_LOOP(f8e4m3fn, 1) break;
    case ND_DTYPE_f8e5m2: DECODE_LOOP(f8e5m2, 1) break;
    case ND_DTYPE_i64: DECODE_LOOP(i64, 8) break;
    case ND_DTYPE_i32: DECODE_LOOP(i32, 4) break;
    case ND_DTYPE_i16: DECODE_LOOP(i16, 2) break;
    case ND_DTYPE_i8: DECODE_LOOP(i8, 1) break;
    case ND_DTYPE_u64: DECODE_LOOP(u64, 8) break;
    case ND_DTYPE_u32: DECODE_LOOP(u32, 4) break;
    case ND_DTYPE_u16: DECODE_LOOP(u16, 2) break;
    case ND_DTYPE_u8: DECODE_LOOP(u8, 1) break;
    case ND_DTYPE_bool8: DECODE_LOOP(bool8, 1) break;
    case ND_DTYPE_c64: n *= 2; DECODE_LOOP(f32, 4) break;
    case ND_DTYPE_c128: n *= 2; DECODE_LOOP(f64, 8) break;
    case ND_DTYPE_NONE: break;
    }
}

void nd_dtype_decode(enum nd_dtype dtype, bool swapped, const void *src, size_t n, double *dst)
{
    if (!swapped || dtype == ND_DTYPE_NONE || infos[dtype].size == 1) {
        decode_native(dtype, src, n, dst);
        return;
    }
    const bool     complex_type = infos[dtype].kind == ND_KIND_COMPLEX;
    const unsigned size = infos[dtype].size, part = complex_type ? size / 2 : size;
    const unsigned char *in = src;
    for (size_t i = 0; i < n; i++) {
        unsigned char turned[16];
        for (unsigned k = 0; k < size; k++)
            turned[k] = in[i * size + k / part * part + (part - 1 - k % part)];
        decode_native(dtype, turned, 1, dst + (complex_type ? 2 * i : i));
    }
}
