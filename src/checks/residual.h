/*
 * How far an output is from what was expected of it, measured so that rounding, one wrong
 * element and a small coherent factor can be told apart (diagnosis by replay).
 */
#ifndef ND_CHECKS_RESIDUAL_H
#define ND_CHECKS_RESIDUAL_H

#include "checks/sample.h"

struct residual {
    uint64_t n;          /* positions finite on both */
    uint64_t mismatches; /* non-finite on one of them, or infinities that differ */
    double rel;          /* ||y - z|| / ||z|| */
    double local;        /* max |y - z| / (|z| + rms(y)): large values round by more */
    double slope;        /* <y, z> / <z, z> - 1 */
    double slope_z;      /* |slope| over its standard error, allowing for unequal noise */
    double channel_t; /* t of the channels' slopes: a few loud channels count once each */
    double sum_ee, sum_zz;
};

/* Writes the expected values of the i-th row of a sample. */
typedef void residual_fn(const void *user, uint64_t i, double *out);

/* False without memory. */
bool nd_residual_measure(const struct sample *sample, const double *out,
                         residual_fn *expected, const void *user, struct residual *ret);

/* What is summed over a channel: <y - z, z> and <z, z>. */
struct channel_slope {
    double ez, zz;
};

/* Mean of the channels' slopes and its standard error; false below eight channels, which is
 * no evidence. */
bool nd_channel_slopes(const struct channel_slope *channels, uint64_t count,
                       double *ret_mean, double *ret_error);

/* Root mean square of the finite values; 0 if there is none. */
double nd_finite_rms(const double *values, uint64_t n);

#endif
