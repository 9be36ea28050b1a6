/*
 * A norm's weight and bias estimated from the reference alone: least squares per channel of
 * its output on the normalised input.
 */
#ifndef ND_CHECKS_AFFINE_FIT_H
#define ND_CHECKS_AFFINE_FIT_H

#include "checks/sample.h"
#include "ops/norm.h"

/* Fits on one side (0: the reference); `model` says how to normalise (its own weight and
 * bias are not used; without `centre` no bias is fitted).  False without memory. */
bool nd_affine_fit(const struct sample *sample, int side, const struct norm_model *model,
                   double *ret_weight, double *ret_bias);

/* Fits on the reference, but on both sides for a channel that hardly varies there while the
 * candidate does. */
bool nd_affine_fit_pair(const struct sample *sample, const struct norm_model *model,
                        double *ret_weight, double *ret_bias);

/* The shift of each channel alone, the model's weight kept. */
bool nd_affine_shift(const struct sample *sample, int side, const struct norm_model *model,
                     double *ret_bias);

/*
 * The error that such parameters make when they predict the candidate, relative to the
 * output: s_c^2 (1 + 1/n + mean (h' - mean h)^2 / S_hh) summed over the channels, s_c being
 * the fit's own residual.  Infinite for up to three values a channel: a line fits those
 * too easily.
 */
bool nd_affine_predict(const struct sample *sample, const struct norm_model *model,
                       double roundoff, double *ret_error);

#endif
