/*
 * One raw element to double, by dtype: load_<word>(bytes, i) reads element i of a packed,
 * unaligned, little-endian array.  Every conversion is exact, save that of 64-bit integers
 * beyond 2^53 (rounded to nearest; pair.c has the exact path).  Written without branches
 * and without subnormal operands, so that loops over them become vector code that is as
 * fast for tiny values as for others.
 */
#ifndef ND_KERNELS_LOAD_H
#define ND_KERNELS_LOAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* load_raw_T(bytes, i): element i as the C type of the same size. */
#define LOAD_RAW(type, word)                                                               \
    static inline type load_raw_##word(const unsigned char *bytes, size_t i)               \
    {                                                                                      \
        type value;                                                                        \
        memcpy(&value, bytes + i * sizeof value, sizeof value);                            \
        return value;                                                                      \
    }
LOAD_RAW(double, f64)
LOAD_RAW(float, f32)
LOAD_RAW(int64_t, i64)
LOAD_RAW(int32_t, i32)
LOAD_RAW(int16_t, i16)
LOAD_RAW(uint64_t, u64)
LOAD_RAW(uint32_t, u32)
LOAD_RAW(uint16_t, u16)
#undef LOAD_RAW

static inline float load_float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/*
 * A float of at most 16 bits as float32: `mantissa` stored bits below the exponent field,
 * `top` the exponent field's largest value, `bias` the exponent's.  The significand becomes
 * an integer and is multiplied by the power of two of its last place: exact, and no operand
 * is subnormal.  Whether the largest exponent means infinity and NaN is the caller's
 * matter.
 */
static inline float load_small(uint32_t magnitude, unsigned mantissa, uint32_t bias)
{
    const uint32_t exponent = magnitude >> mantissa;
    const uint32_t hidden = exponent != 0 ? 1U << mantissa : 0;
    const uint32_t place = (exponent != 0 ? exponent : 1U) + 127U - bias - mantissa;
    const int32_t digits = (int32_t)((magnitude & ((1U << mantissa) - 1U)) | hidden);

    return (float)digits * load_float_of(place << 23);
}

static inline uint32_t load_bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double load_f64(const unsigned char *bytes, size_t i)
{
    return load_raw_f64(bytes, i);
}

static inline double load_f32(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_f32(bytes, i);
}

static inline double load_f16(const unsigned char *bytes, size_t i)
{
    const uint32_t raw = load_raw_u16(bytes, i);
    const uint32_t magnitude = raw & 0x7fffU;
    const uint32_t finite = load_bits_of(load_small(magnitude, 10, 15));
    const uint32_t special = 0x7f800000U | (magnitude & 0x3ffU) << 13;

    return (double)load_float_of((magnitude >= 0x7c00U ? special : finite) | (raw & 0x8000U)
                                                                                 << 16);
}

static inline double load_bf16(const unsigned char *bytes, size_t i)
{
    return (double)load_float_of((uint32_t)load_raw_u16(bytes, i) << 16);
}

/* No infinities; all mantissa bits set under the largest exponent is the only NaN. */
static inline double load_f8e4m3fn(const unsigned char *bytes, size_t i)
{
    const uint32_t raw = bytes[i];
    const uint32_t magnitude = raw & 0x7fU;
    const uint32_t finite = load_bits_of(load_small(magnitude, 3, 7));

    return (double)load_float_of((magnitude == 0x7fU ? 0x7fc00000U : finite) | (raw & 0x80U)
                                                                                   << 24);
}

static inline double load_f8e5m2(const unsigned char *bytes, size_t i)
{
    const uint32_t raw = bytes[i];
    const uint32_t magnitude = raw & 0x7fU;
    const uint32_t finite = load_bits_of(load_small(magnitude, 2, 15));
    const uint32_t special = 0x7f800000U | (magnitude & 3U) << 21;

    return (double)load_float_of((magnitude >= 0x7cU ? special : finite) | (raw & 0x80U)
                                                                               << 24);
}

static inline double load_i64(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_i64(bytes, i);
}

static inline double load_i32(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_i32(bytes, i);
}

static inline double load_i16(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_i16(bytes, i);
}

static inline double load_i8(const unsigned char *bytes, size_t i)
{
    return (double)(signed char)bytes[i];
}

static inline double load_u64(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_u64(bytes, i);
}

static inline double load_u32(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_u32(bytes, i);
}

static inline double load_u16(const unsigned char *bytes, size_t i)
{
    return (double)load_raw_u16(bytes, i);
}

static inline double load_u8(const unsigned char *bytes, size_t i)
{
    return (double)bytes[i];
}

/* Any non-zero byte is true. */
static inline double load_bool8(const unsigned char *bytes, size_t i)
{
    return bytes[i] != 0 ? 1.0 : 0.0;
}

#endif
