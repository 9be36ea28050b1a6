/*
 * Element types: one table (dtypes.def), their spellings in each ecosystem, and the
 * decoding of raw elements to double.
 */
#ifndef ND_TENSOR_DTYPE_H
#define ND_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nd_kind { ND_KIND_FLOAT, ND_KIND_INT, ND_KIND_BOOL, ND_KIND_COMPLEX };

enum nd_dtype {
#define ND_DTYPE(word, size, name, kind, digits, emax) ND_DTYPE_##word,
#include "tensor/dtypes.def"
#undef ND_DTYPE
    ND_DTYPE_COUNT,
    ND_DTYPE_NONE = ND_DTYPE_COUNT
};

struct dtype_info {
    const char  *word;
    const char  *name;
    unsigned     size;   /* bytes per element */
    enum nd_kind kind;
    int          digits; /* significant bits, hidden one included */
    int          emax;   /* of a finite float */
};

const struct dtype_info *nd_dtype_info(enum nd_dtype dtype); /* not for NONE */

/*
 * By name as any ecosystem spells it: float32, torch.float32, Float, FLOAT, DT_FLOAT,
 * F32, <f4, float, half, bf16 ... any case; ND_DTYPE_NONE if unknown.
 */
enum nd_dtype nd_dtype_by_name(const char *name, size_t len);

/* Unit roundoff 2^-digits of a float or complex type; 0 for integers. */
double nd_dtype_roundoff(enum nd_dtype dtype);
/* The largest finite value of a float type; 0 for others. */
double nd_dtype_max(enum nd_dtype dtype);
/* The coarser (fewer digits) of two float types; the float one if only one is. */
enum nd_dtype nd_dtype_coarser(enum nd_dtype a, enum nd_dtype b);

/*
 * Decodes n contiguous elements to double; src need not be aligned; swapped means the
 * bytes of each element are in big-endian order.  64-bit integers round to nearest;
 * complex elements give two doubles each, real then imaginary.  Signalling NaNs stay NaN.
 */
void nd_dtype_decode(enum nd_dtype dtype, bool swapped, const void *src, size_t n, double *dst);

/* Rounds a double to the nearest value of a float type (ties to even), as double. */
double nd_dtype_round(enum nd_dtype dtype, double value);

#endif
