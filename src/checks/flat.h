/*
 * Whole outputs as flat arrays: what the checks of misplaced and damaged values share.
 */
#ifndef ND_CHECKS_FLAT_H
#define ND_CHECKS_FLAT_H

#include "checks/subject.h"

/* Both sides' values are at hand, and neither the input nor a gap explains the layer. */
bool nd_flat_asked(const struct subject *subject);

/* The layer's inputs or weights explain it by themselves. */
bool nd_flat_outside(const struct subject *subject);

/* Root mean square of the finite values; 0: none. */
double nd_flat_rms(const double *values, uint64_t count);

/* The largest error of one element that the floor allows where `rms` is the tensor's. */
double nd_flat_allowed(double floor, double rms, double value);

/* One element is further off than that, or NaN or infinite where the other is not. */
bool nd_flat_differs(double floor, double rms, double y, double z);

/* The relative error that half of the elements stay below, and the subject's own floor at
 * least: what is wrong in a part only is told from that. */
double nd_flat_floor(const struct subject *subject);

/* ||y - z|| / ||z||; infinite where one is finite and the other not, or NaN or infinities
 * differ.  keep NULL: all. */
double nd_flat_distance(const double *y, const double *z, const bool *keep, uint64_t count);

/*
 * The axis that channels lie on: 1 of images and of what norms over channels see, else the
 * last.
 */
uint32_t nd_flat_channel_axis(const struct subject *subject);

/* Length of what follows one index of an axis in memory. */
uint64_t nd_flat_inner(const struct nd_shape *shape, uint32_t axis);

#endif
