/*
 * The worst slices of a pair: which channel and which row carry the largest error beside
 * the reference's size there.  Part of the detail pass.
 */
#ifndef ND_KERNELS_SLICES_H
#define ND_KERNELS_SLICES_H

#include "kernels/moments.h"

/*
 * A slice's drift is ||e|| / max(||r||, floor) over the slice, with floor 1e-3 of the
 * tensor's rms times the root of the slice's length, so that a dead channel does not win.
 */
struct worst_slice {
    bool     known;
    uint32_t axis;  /* channel: the axis it is an index of */
    uint64_t at;    /* channel: index along the axis; row: flat index of its first element */
    double   drift;
};

/*
 * Channels run along axis 1 where there are four dimensions or more (NCHW), else along the
 * last; rows are the runs along the last axis.  Only the positions that the sums run over
 * count: finite and unmasked on both sides.  real is what the two runs computed in.  Leaves both unknown for complex views, fewer than 2 dimensions, or more
 * elements or slices than the caps in slices.c.
 */
void nd_slices_measure(const struct tensor_view *r, const struct tensor_view *c,
                       const enum nd_dtype *real, double rms_r,
                       struct worst_slice *ret_channel, struct worst_slice *ret_row);

#endif
