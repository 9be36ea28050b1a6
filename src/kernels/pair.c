/*
 * The rules for one position of a pair, element by element: masks, agreement of what is
 * not finite, and differences that stay exact beyond 2^53.
 */
#include "kernels/pair.h"

#include <math.h>
#include <string.h>

#include "kernels/kernel_set.h"
#include "kernels/load.h"
#include "kernels/pair_c64.h"

__extension__ typedef __int128 pair_wide;
__extension__ typedef unsigned __int128 pair_wide_magnitude;

/* What the common model codes add to masked scores. */
static const double pair_mask_constants[] = {
    -HUGE_VAL,
    -1e4,
    -65504.0, /* finfo.min of float16 */
    -1e9,
    -0x1.fep127,             /* finfo.min of bfloat16 */
    -0x1.fffffep127,         /* finfo.min of float32 */
    -0x1.fffffffffffffp1023, /* finfo.min of float64 */
};

static bool pair_dtype_is_float(enum nd_dtype dtype)
{
    return nd_dtype_info(dtype)->kind == ND_KIND_FLOAT;
}

static void pair_masks_add(struct pair_masks *masks, double value)
{
    for (unsigned i = 0; i < masks->count; i++)
        if (masks->value[i] == value)
            return;
    masks->value[masks->count++] = value;
    if (value > masks->top)
        masks->top = value;
}

static double pair_mask_rounded(enum nd_dtype dtype, double constant)
{
    const double rounded = nd_dtype_round(dtype, constant);

    /* A dtype without infinity saturates: its largest value is no mask. */
    return fabs(constant) <= nd_dtype_max(dtype) ? rounded : -HUGE_VAL;
}

/* A constant lies in the bytes as the run's dtype rounded it, or as the dump's did. */
static void pair_masks_init(struct pair_masks *masks, enum nd_dtype real,
                            enum nd_dtype stored)
{
    masks->count = 0;
    masks->top = -HUGE_VAL;
    for (size_t i = 0; i < sizeof pair_mask_constants / sizeof *pair_mask_constants; i++) {
        const double constant = pair_mask_constants[i];
        pair_masks_add(masks, pair_mask_rounded(stored, constant));
        if (real != stored)
            pair_masks_add(masks,
                           pair_mask_rounded(stored, pair_mask_rounded(real, constant)));
    }
}

static bool pair_dtype_is_single(enum nd_dtype dtype)
{
    const struct dtype_info *const info = nd_dtype_info(dtype);

    return info->kind == ND_KIND_FLOAT ? info->size <= sizeof(float)
                                       : info->kind != ND_KIND_COMPLEX && info->size <= 2;
}

static bool pair_dtype_is_wide(enum nd_dtype dtype)
{
    return dtype == ND_DTYPE_i64 || dtype == ND_DTYPE_u64;
}

void nd_pair_init(struct pair *pair, const struct tensor_view *r,
                  const struct tensor_view *c, enum nd_dtype real_r, enum nd_dtype real_c,
                  const struct moments_policy *policy)
{
    const struct tensor_view *const view[2] = {r, c};
    const enum nd_dtype real[2] = {real_r, real_c};
    bool maskable = !policy->no_masks;

    memset(pair, 0, sizeof *pair);
    pair->nan_strict = policy->nan_strict;
    pair->scale = policy->scale;
    for (int side = 0; side < 2; side++) {
        const enum nd_dtype stored = view[side]->dtype;
        const enum nd_dtype meant = real[side] < ND_DTYPE_COUNT ? real[side] : stored;
        pair->view[side] = view[side];
        pair->size[side] = nd_dtype_info(stored)->size;
        pair->is_complex |= nd_dtype_info(stored)->kind == ND_KIND_COMPLEX;
        pair->is_wide |= pair_dtype_is_wide(stored);
        pair->is_single = (side == 0 || pair->is_single) && pair_dtype_is_single(stored);
        pair->is_short = (side == 0 || pair->is_short) && pair_dtype_is_single(stored) &&
                         !pair_dtype_is_float(stored);
        pair->masks[side].top = -HUGE_VAL;
        if (pair_dtype_is_float(stored) && pair_dtype_is_float(meant))
            pair_masks_init(&pair->masks[side], meant, stored);
        else
            maskable = false;
    }
    if (!maskable)
        for (int side = 0; side < 2; side++)
            pair->masks[side] = (struct pair_masks){.count = 0, .top = -HUGE_VAL};
}

static bool pair_is_mask(const struct pair_masks *masks, double value)
{
    for (unsigned i = 0; i < masks->count; i++)
        if (masks->value[i] == value)
            return true;
    return false;
}

enum pair_state nd_pair_state(const struct pair *pair, double r, double c)
{
    if (r <= pair->masks[0].top && c <= pair->masks[1].top &&
        pair_is_mask(&pair->masks[0], r) && pair_is_mask(&pair->masks[1], c))
        return PAIR_MASKED;
    if (fabs(r) <= DBL_MAX && fabs(c) <= DBL_MAX)
        return PAIR_KEPT;
    if (isnan(r) && isnan(c))
        return pair->nan_strict ? PAIR_MISMATCHES : PAIR_AGREES;
    return r == c ? PAIR_AGREES : PAIR_MISMATCHES;
}

const unsigned char *nd_pair_bytes(const struct tensor_view *view, uint64_t first,
                                   uint64_t count, unsigned char *buffer)
{
    if (nd_pair_in_place(view))
        return view->data + (view->base + first) * nd_dtype_info(view->dtype)->size;
    nd_view_gather(view, first, count, buffer);
    return buffer;
}

/* --- complex elements ------------------------------------------------------------ */

static void pair_complex_at(enum nd_dtype dtype, const unsigned char *bytes, unsigned i,
                            double *ret_re, double *ret_im)
{
    *ret_im = 0.0;
    if (dtype == ND_DTYPE_c64) {
        *ret_re = load_f32(bytes, 2 * (size_t)i);
        *ret_im = load_f32(bytes, 2 * (size_t)i + 1);
    } else if (dtype == ND_DTYPE_c128) {
        *ret_re = load_f64(bytes, 2 * (size_t)i);
        *ret_im = load_f64(bytes, 2 * (size_t)i + 1);
    } else {
        const size_t size = nd_dtype_info(dtype)->size;
        nd_kernels_base.decode[dtype](bytes + i * size, 1, ret_re);
    }
}

/* Not hypot(): its last bit differs between C libraries. */
static double pair_modulus(double re, double im)
{
    const double a = fabs(re), b = fabs(im);
    const double largest = a > b ? a : b;

    if (isnan(re) || isnan(im))
        return (double)NAN;
    if (largest == 0.0 || largest > DBL_MAX)
        return largest;
    if (largest >= 0x1p-500 && largest <= 0x1p500)
        return sqrt(a * a + b * b);

    const double to_middle = largest > 1.0 ? 0x1p-600 : 0x1p600;
    const double x = a * to_middle, y = b * to_middle;
    const double modulus = sqrt(x * x + y * y) / to_middle;
    return modulus <= DBL_MAX ? modulus : DBL_MAX;
}

static void pair_read_complex(const struct pair *pair, const unsigned char *r,
                              const unsigned char *c, struct pair_values *values)
{
    const double scale = pair->scale;

    for (unsigned i = 0; i < values->n; i++) {
        double a, b, x, y;
        pair_complex_at(pair->view[0]->dtype, r, i, &a, &b);
        pair_complex_at(pair->view[1]->dtype, c, i, &x, &y);
        values->r[i] = pair_modulus(a, b);
        values->c[i] = pair_modulus(x, y);
        enum pair_state state = nd_pair_state(pair, values->r[i], values->c[i]);
        if (state == PAIR_AGREES && !isnan(values->r[i]) && (a != x || b != y))
            state = PAIR_MISMATCHES; /* both infinite, in different directions */
        values->state[i] = (unsigned char)state;
        values->differs[i] = a != x || b != y;
        a *= scale, b *= scale, x *= scale, y *= scale;
        values->abs[i] = pair_modulus(x - a, y - b);
        values->product[i] = a * x + b * y;
    }
}

/* --- integers of 64 bits ----------------------------------------------------------- */

static pair_wide pair_integer_at(enum nd_dtype dtype, const unsigned char *bytes,
                                 unsigned i, double decoded)
{
    if (dtype == ND_DTYPE_i64)
        return load_raw_i64(bytes, i);
    if (dtype == ND_DTYPE_u64)
        return load_raw_u64(bytes, i);
    return (int64_t)decoded;
}

/* a + b, and what rounding took from it (Knuth's two-sum). */
static double pair_two_sum(double a, double b, double *ret_lost)
{
    const double sum = a + b;
    const double back = sum - a;

    *ret_lost = (a - (sum - back)) + (b - back);
    return sum;
}

/* Of the two doubles around value + lost (lost != 0) the one whose last bit is set:
 * rounding the result again is then the same as rounding once. */
static double pair_to_odd(double value, double lost)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 1) == 0)
        bits = (lost > 0.0) == (value > 0.0) ? bits + 1 : bits - 1;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* number - integer, rounded once. */
static double pair_minus_integer(double number, pair_wide integer)
{
    const double high = (double)integer;
    const double low = (double)(integer - (pair_wide)high);
    double lost, rest_lost;
    const double sum = pair_two_sum(number, -high, &lost);
    const double rest = pair_two_sum(lost, -low, &rest_lost);

    return sum + (rest_lost != 0.0 ? pair_to_odd(rest, rest_lost) : rest);
}

static double pair_wide_abs(const struct pair *pair, const unsigned char *r,
                            const unsigned char *c, unsigned i, double decoded_r,
                            double decoded_c)
{
    const enum nd_dtype dtype_r = pair->view[0]->dtype, dtype_c = pair->view[1]->dtype;

    if (pair_dtype_is_float(dtype_r))
        return fabs(
            pair_minus_integer(decoded_r, pair_integer_at(dtype_c, c, i, decoded_c)));
    if (pair_dtype_is_float(dtype_c))
        return fabs(
            pair_minus_integer(decoded_c, pair_integer_at(dtype_r, r, i, decoded_r)));

    const pair_wide error = pair_integer_at(dtype_c, c, i, decoded_c) -
                            pair_integer_at(dtype_r, r, i, decoded_r);
    return (double)(pair_wide_magnitude)(error < 0 ? -error : error);
}

/* The upper and the lower half are exact, so that their sum is rounded once; and no branch
 * waits for the sign bit. */
static double pair_double_of(uint64_t value)
{
    return (double)(int64_t)(value >> 32) * 0x1p32 + (double)(int64_t)(value & 0xffffffffU);
}

/* Two of the same type: the difference of the larger and the smaller fits 64 bits. */
static void pair_wide_errors(const struct pair *pair, const unsigned char *restrict r,
                             const unsigned char *restrict c, struct pair_values *restrict ret)
{
    const uint64_t sign = pair->view[0]->dtype == ND_DTYPE_i64 ? 1ull << 63 : 0;

    for (size_t i = 0; i < ret->n; i++) {
        /* With the sign bit turned, signed integers are in the order of unsigned ones. */
        const uint64_t x = load_raw_u64(r, i) ^ sign, y = load_raw_u64(c, i) ^ sign;
        const double error = pair_double_of(y > x ? y - x : x - y);
        ret->differs[i] = x != y;
        ret->abs[i] = error * pair->scale;
    }
}

static void pair_read_real(const struct pair *pair, const unsigned char *r,
                           const unsigned char *c, struct pair_values *values)
{
    const bool same_type = pair->view[0]->dtype == pair->view[1]->dtype;
    const double scale = pair->scale;

    nd_kernels_base.decode[pair->view[0]->dtype](r, values->n, values->r);
    nd_kernels_base.decode[pair->view[1]->dtype](c, values->n, values->c);
    for (unsigned i = 0; i < values->n; i++) {
        const double x = values->r[i], y = values->c[i];
        const enum pair_state state =
            pair_is_ordinary(pair, x, y) ? PAIR_KEPT : nd_pair_state(pair, x, y);
        values->state[i] = (unsigned char)state;
        values->differs[i] = x != y;
        values->abs[i] = fabs(y * scale - x * scale);
        values->product[i] = (x * scale) * (y * scale);
        if (pair->is_wide && !same_type && state == PAIR_KEPT) {
            const double exact = pair_wide_abs(pair, r, c, i, x, y);
            values->differs[i] = exact != 0.0;
            values->abs[i] = exact * scale;
        }
    }
    if (pair->is_wide && same_type)
        pair_wide_errors(pair, r, c, values);
}

void nd_pair_read(const struct pair *pair, const unsigned char *r, const unsigned char *c,
                  unsigned n, struct pair_values *ret)
{
    ret->n = n;
    if (pair_is_c64(pair))
        pair_c64_read(pair, r, c, n, ret);
    else if (pair->is_complex)
        pair_read_complex(pair, r, c, ret);
    else
        pair_read_real(pair, r, c, ret);
}
