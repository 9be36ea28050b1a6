/*
 * The grid test, on the bits of the values.
 */
#include "checks/grid.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/round.h"

struct grid_row {
    const char *name;
    int digits;          /* significant bits, hidden one included */
    enum nd_dtype dtype; /* NONE: a format of the matrix units, range of float32 */
};

/* TF32: NVIDIA, 10 stored mantissa bits; HF32: Ascend cube unit, 11 stored bits. */
static const struct grid_row grid_rows[GRID_COUNT] = {
    [GRID_BF16] = {"bfloat16", 8,  ND_DTYPE_bf16},
    [GRID_F16] = {"float16",  11, ND_DTYPE_f16 },
    [GRID_TF32] = {"TF32",     11, ND_DTYPE_NONE},
    [GRID_HF32] = {"HF32",     12, ND_DTYPE_NONE},
    [GRID_F32] = {"float32",  24, ND_DTYPE_f32 },
};

const char *nd_grid_name(enum grid grid)
{
    return grid < GRID_COUNT ? grid_rows[grid].name : "";
}

double nd_grid_roundoff(enum grid grid)
{
    return grid < GRID_COUNT ? ldexp(1, -grid_rows[grid].digits) : 0;
}

double nd_grid_round(enum grid grid, double value)
{
    int exponent;

    if (grid_rows[grid].dtype != ND_DTYPE_NONE)
        return nd_dtype_round(grid_rows[grid].dtype, value);
    if (isnormal(value))
        return nd_round_digits(value, grid_rows[grid].digits);
    if (!isfinite(value) || value == 0)
        return value;
    const double mantissa = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, grid_rows[grid].digits)),
                 exponent - grid_rows[grid].digits);
}

/* Trailing zero bits of a float32's stored mantissa show the narrower formats of its range.
 */
static void grid_count(double value, uint64_t *hits)
{
    uint32_t bits;

    if (fabs(value) > (double)FLT_MAX || (double)(float)value != value)
        return;
    const float narrow = (float)value;
    memcpy(&bits, &narrow, sizeof bits);
    hits[GRID_F32]++;
    hits[GRID_BF16] += (bits & 0xffffu) == 0;
    hits[GRID_TF32] += (bits & 0x1fffu) == 0;
    hits[GRID_HF32] += (bits & 0xfffu) == 0;
    if ((bits & 0x1fffu) == 0)
        hits[GRID_F16] += nd_dtype_round(ND_DTYPE_f16, value) == value;
}

enum { GRID_BLOCK = 1024 };

void nd_grid_shares(const struct tensor_view *view, uint64_t budget,
                    struct grid_shares *ret)
{
    double block[GRID_BLOCK], last = 0;
    uint64_t hits[GRID_COUNT] = {0};
    const uint64_t blocks = (view->count + GRID_BLOCK - 1) / GRID_BLOCK;
    const uint64_t wanted = budget / GRID_BLOCK < 1 ? 1 : budget / GRID_BLOCK;
    const uint64_t taken = blocks < wanted ? blocks : wanted;

    *ret = (struct grid_shares){.whole = taken == blocks};
    if (nd_dtype_info(view->dtype)->kind != ND_KIND_FLOAT)
        return; /* a complex element decodes to two values, and no grid holds an integer */
    for (uint64_t i = 0; i < taken; i++) {
        const uint64_t first = (i * blocks / taken) * GRID_BLOCK;
        const uint64_t left = view->count - first;
        const uint64_t n = left < GRID_BLOCK ? left : GRID_BLOCK;
        nd_view_decode(view, first, n, block);
        for (uint64_t k = 0; k < n; k++) {
            /* A value that repeats the last one is no further evidence: a constant tensor of
             * ones lies on every grid and was computed in none. */
            if (!isfinite(block[k]) || block[k] == 0 || block[k] == last)
                continue;
            last = block[k];
            ret->counted++;
            grid_count(block[k], hits);
        }
    }
    for (int grid = 0; grid < GRID_COUNT && ret->counted > 0; grid++)
        ret->share[grid] = (double)hits[grid] / (double)ret->counted;
}

enum grid nd_grid_of(const struct grid_shares *shares, enum nd_dtype dtype)
{
    const struct dtype_info *info = dtype == ND_DTYPE_NONE ? NULL : nd_dtype_info(dtype);

    if (info == NULL || info->kind != ND_KIND_FLOAT || shares->counted < 16)
        return GRID_NONE;
    for (int grid = 0; grid < GRID_COUNT; grid++)
        if (grid_rows[grid].digits < info->digits && shares->share[grid] > 0.999)
            return (enum grid)grid;
    return GRID_NONE;
}
