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
    bool known;
    uint32_t axis; /* channel: the axis it is an index of */
    uint64_t at;   /* channel: index along the axis; row: flat index of its first element */
    double drift;
};

/*
 * Channels run along axis 1 where there are four dimensions or more (NCHW), else along the
 * last; rows are the runs along the last axis.  Only the positions that the sums run over
 * count: finite and unmasked on both sides.
 *
 * The work is cut into parts of whole rows, by sizes alone; parts may be measured in any
 * order and at once, and are folded in theirs.
 */
struct slices {
    const struct kernel_set *set;
    const struct tensor_view *view[2];
    enum nd_dtype real[2];    /* what the two runs computed in */
    double floor;             /* of the mean square */
    uint32_t axis;
    uint64_t channel_count;
    uint64_t channel_stride;  /* elements from one channel to the next */
    uint64_t row_length;
    uint64_t part_length;     /* elements of a part; the last may be shorter */
    size_t part_count;        /* 0: there is nothing to measure */
    double *sums;             /* a part: squares of errors by channel, then of the reference */
    struct worst_slice *rows; /* a part's worst */
};

/* False: no memory.  No parts for complex views, fewer than 2 dimensions, or more elements
 * or channels than the caps in slices.c. */
bool nd_slices_init(struct slices *slices, const struct kernel_set *set,
                    const struct tensor_view *view, const enum nd_dtype *real, double rms_r);
void nd_slices_part(const struct slices *slices, size_t part);
/* Folds the parts; both are unknown where there were none. */
void nd_slices_end(const struct slices *slices, struct worst_slice *ret_channel,
                   struct worst_slice *ret_row);
void nd_slices_done(struct slices *slices);

#endif
