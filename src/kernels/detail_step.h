/*
 * One step of the detail pass: what the kernels of an instruction set do for it.
 */
#ifndef ND_KERNELS_DETAIL_STEP_H
#define ND_KERNELS_DETAIL_STEP_H

#include "kernels/moments.h"
#include "kernels/pair.h"

/* Positions that count, close together; up to a full group of lanes the arrays hold 1, 1, 0. */
struct detail_values {
    unsigned n, padded;
    double r[PAIR_STEP], c[PAIR_STEP], abs[PAIR_STEP];
    uint16_t place[PAIR_STEP];    /* within the step */
    double low[2], top[2];        /* smallest and largest size of each side */
    double top_abs;
};

/* What one run of the pass knows beforehand. */
struct detail_terms {
    double rms_r, rel_floor;
    double ulp_least;             /* no spacing is taken at less */
    int ulp_digits, ulp_emin;     /* digits 0: no ulp */
    bool ulp_is_plain;            /* its factors are normal numbers */
    double least_normal[2];       /* of a side's dtype; 0, 0 where it is no float */
    double most[2];
};

/* What adds up over a chunk, by lanes. */
struct detail_lanes {
    double sum_rel[MOMENTS_LANES];
    double max_rel[MOMENTS_LANES], max_scaled[MOMENTS_LANES], max_ulp[MOMENTS_LANES];
};

/* Counts of one step. */
struct detail_counts {
    uint64_t within_1e3, within_5e3, scaled_fault, scaled_elevated;
};

struct detail_kernels {
    /* Reads n positions; false: some need to be looked at by the rules of pair.h. */
    bool (*read)(const struct pair *pair, const unsigned char *r, const unsigned char *c,
                 unsigned n, struct detail_values *ret);
    /* Reads n positions as doubles, `instead` where one does not count and behind them up
     * to PAIR_STEP; returns how many count.  Neither complex nor integers of 64 bits. */
    unsigned (*sifted)(const struct pair *pair, const unsigned char *r,
                       const unsigned char *c, size_t n,
                       const struct moments_pivot *instead, double *ret_r, double *ret_c);
    /* Fills in what the values' extremes are; padding is done. */
    void (*extremes)(struct detail_values *values);
    /* Relative and scaled errors; nothing may overflow. */
    void (*ratios)(const struct detail_terms *terms, const struct detail_values *values,
                   struct detail_lanes *lanes, struct detail_counts *ret);
    /* |e| in units of the last place; terms->ulp_is_plain. */
    void (*ulps)(const struct detail_terms *terms, const struct detail_values *values,
                 struct detail_lanes *lanes, double *ret);
    /* The bins of n numbers; DETAIL_BIN_OTHER: ask nd_detail_bin(). */
    void (*bins)(const double *values, unsigned n, int32_t *ret);
    /* How many sizes of one side are zero, below the least normal, and the largest. */
    void (*sizes)(const double *values, unsigned n, double least_normal, double most,
                  uint64_t *ret);
};

enum { DETAIL_BIN_OTHER = -1 };

/* Reads n positions; *inout_odd: the step before held some that do not count, and so will
 * this one, as a rule. */
void nd_detail_take(const struct detail_kernels *kernels, const struct pair *pair,
                    const unsigned char *r, const unsigned char *c, unsigned n,
                    bool *inout_odd, struct detail_values *ret);

#endif
