/*
 * What one pass over a pair of tensors measures.  Kernels measure and never judge:
 * metrics are pure functions of these sums.
 *
 * Every sum is made of 16 fixed lanes folded in a fixed tree, per block of
 * MOMENTS_BLOCK elements; block totals are added in index order within a chunk of
 * MOMENTS_CHUNK elements and chunk totals in index order.  So a result depends on the
 * data alone: not on the CPU, the compiler, or the number of threads.
 *
 * The sums about the pivot of a block follow from its other sums and its count, in the order
 * of operations of lanes.c, where that loses at most six bits; else they have lanes too.
 */
#ifndef ND_KERNELS_MOMENTS_H
#define ND_KERNELS_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/view.h"

enum { MOMENTS_LANES = 16, MOMENTS_BLOCK = 4096, MOMENTS_CHUNK = 262144 };

struct side_counts {
    uint64_t nan, pos_inf, neg_inf; /* positions; a masked -inf is not counted */
};

/*
 * r reference, c candidate, e = c - r in float64; all sums over the positions finite and
 * unmasked on both sides, n of them.
 *
 * Masked: both sides hold a mask constant, whichever.  Such a position is nowhere but in
 * `masked` (and `masks_differ`): it is not in `differ`, and its -inf not in neg_inf.
 *
 * 64-bit integers: e is exact before it is rounded to a double, and so is `differ`.
 * Complex elements: r, c and e stand for their moduli everywhere, but for sum_rc, which is
 * the real part of r * conj(c); the sums about the pivot stay 0.
 *
 * `scale` is 1, or the power of two by which the values of a float64 pair were multiplied
 * because squares would have left the range of a double.  Then sums of first powers and
 * max_abs are `scale` times the true ones, sums of products scale^2 times; min and max are
 * true.  So ratios of like sums need no care, and all else is divided by the scale last:
 * a true value beyond float64 comes out as infinity.
 */
struct nd_moments {
    uint64_t total;        /* positions seen */
    uint64_t n;            /* finite and unmasked on both sides */
    uint64_t differ;       /* finite and r != c, or a nonfinite mismatch; +0 equals -0 */
    uint64_t mismatches;   /* nonfinite, and not the same (strict: NaN never is) */
    uint64_t masked;       /* both sides hold a mask constant */
    uint64_t masks_differ; /* masked positions whose two constants differ */
    bool bit_equal;        /* same dtype and the same bits everywhere */
    struct side_counts side[2];
    double sum_abs, sum_ee;        /* |e|, e^2 */
    double sum_r, sum_c;           /* values */
    double sum_rr, sum_cc, sum_rc; /* products */
    double sum_pr, sum_pc;         /* r - pivot_r, c - pivot_c */
    double sum_prr, sum_pcc, sum_prc;
    double max_abs;
    uint64_t max_abs_at;   /* flat logical index of its first occurrence */
    double min[2], max[2]; /* +inf/-inf while n is 0; never a negative zero */
    double scale;
};

struct moments_pivot {
    double r, c; /* the first jointly finite, unmasked pair; 0, 0 if there is none */
};

struct moments_policy {
    bool nan_strict;
    bool no_masks; /* mask constants are values like others: statistics of one tensor */
    double scale;  /* 1, or what nd_moments_rescale() said */
};

enum isa { ISA_BASE, ISA_AVX2, ISA_AVX512, ISA_NEON, ISA_COUNT };

struct kernel_set; /* the kernels of one instruction set */

/* By --isa word: base, avx2, avx512, neon; ISA_COUNT if unknown. */
enum isa nd_isa_by_name(const char *name);
const char *nd_isa_name(enum isa isa);
/* The best set this machine has; NORMDIFF_ISA restricts it. */
enum isa nd_isa_best(void);
bool nd_isa_available(enum isa isa);
const struct kernel_set *nd_kernel_set_for(enum isa isa); /* NULL: not on this machine */

/* The pivot of a pair of equally shaped views: scans from the start. */
struct moments_pivot nd_moments_pivot(const struct kernel_set *set,
                                      const struct tensor_view *r,
                                      const struct tensor_view *c, enum nd_dtype real_r,
                                      enum nd_dtype real_c);

/*
 * Measures positions [first, first + count) of two views of one logical shape; count is
 * at most MOMENTS_CHUNK and first a multiple of it.  real_* are the dtypes the runs
 * computed in (mask constants are rounded as they round).  An empty pair is measured once
 * with count 0: that sets bit_equal.
 */
void nd_moments_measure(const struct kernel_set *set, const struct tensor_view *r,
                        const struct tensor_view *c, enum nd_dtype real_r,
                        enum nd_dtype real_c, uint64_t first, uint64_t count,
                        const struct moments_pivot *pivot,
                        const struct moments_policy *policy, struct nd_moments *ret);

void nd_moments_init(struct nd_moments *moments);
/* Adds the chunk that follows; chunks must be folded in index order. */
void nd_moments_fold(struct nd_moments *into, const struct nd_moments *next);
/*
 * 1 if the folded moments are sound.  Else squares left [1e-290, 1e290] (float64 data
 * only): the whole pair is to be measured again with the power of two that this returns as
 * policy.scale, and those moments are final.
 */
double nd_moments_rescale(const struct nd_moments *moments);

/* --- the detail pass: read again with rms known --------------------------------------- */

enum {
    DETAIL_BINS = 256 * 16, /* float32 exponent and 4 mantissa bits */
    DETAIL_WORST = 64
};

struct worst_element {
    double abs; /* |e| */
    uint64_t at;
    double r, c;
};

struct detail_params {
    double rms_r;            /* of the reference over its n positions */
    double rel_floor;        /* denominator floor of relative errors */
    enum nd_dtype ulp_dtype; /* the dtype with fewer mantissa bits; NONE: no ulp */
    unsigned worst;          /* how many to keep, <= DETAIL_WORST */
    bool nan_strict;
    enum nd_dtype real[2];
};

/* About the n positions of the hot pass: finite and unmasked on both sides. */
struct nd_detail {
    uint64_t n;
    double max_rel, sum_rel;                /* |e| / max(|r|, rel_floor); 0/0 is 0 */
    uint64_t within_1e3, within_5e3;        /* relative error under 1e-3, 5e-3 */
    double max_scaled;                      /* max of s = |e| / (|r| + rms_r) */
    uint64_t scaled_fault, scaled_elevated; /* s >= 0.1; 0.01 <= s < 0.1 */
    bool has_ulp;                           /* max_ulp and p99_ulp mean something */
    double max_ulp;
    /* Per side, in the dtype the run computed in; 0 where it is no float. */
    uint64_t zeros[2], subnormals[2], saturated[2];
    double p50, p90, p99, p999, p99_ulp; /* quantiles of the bins, once settled */
    unsigned worst_count;
    unsigned worst_wanted; /* the largest params->worst seen */
    /* By |e| descending, then index.  Last: what is kept of a pair that is done ends after
     * worst_count of them. */
    struct worst_element worst[DETAIL_WORST];
};

/* While a pair is measured.  The bins are thirty times the rest, so that only the rest is
 * kept of a pair that is done. */
struct nd_detail_sums {
    struct nd_detail detail;
    uint64_t abs_bins[DETAIL_BINS + 2]; /* [0]: |e| = 0; [last]: beyond float32 */
    uint64_t ulp_bins[DETAIL_BINS + 2];
};

void nd_detail_init(struct nd_detail_sums *sums);
/*
 * Adds positions [first, first + count); first is a multiple of MOMENTS_CHUNK.  Either one
 * detail takes all of a tensor in order, or each chunk has one of its own and they are
 * folded in index order: both give the same bits.
 */
void nd_detail_measure(const struct kernel_set *set, const struct tensor_view *r,
                       const struct tensor_view *c, const struct detail_params *params,
                       uint64_t first, uint64_t count, struct nd_detail_sums *sums);
void nd_detail_fold(struct nd_detail_sums *into, const struct nd_detail_sums *next);
/* All is in: reads the quantiles off the bins. */
void nd_detail_settle(struct nd_detail_sums *sums);
/*
 * The bin of a number >= 0.  Bin 1 + k holds [edge(k), edge(k + 1)), where edge(k) is the
 * float32 whose bits are k << 19: 16 bins to a power of two, and 16 more evenly from 0 to
 * the least normal float32.  A double is put there as it is, not rounded to float32.
 */
unsigned nd_detail_bin(double value);
/* Nearest-rank quantile q of the bins (upper edge of the bin); 0 for the zero bin, infinity
 * for the last.  q is taken in thousandths; n is the bins' total. */
double nd_detail_quantile(const uint64_t *bins, uint64_t n, double q);

#endif
