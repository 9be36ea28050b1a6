/*
 * Do a few channels of a product stand far above all others?  In 16 bits the error that
 * came in hides a wrong channel's in the sum over all, but honest errors are alike from
 * channel to channel: among 500 layers of honest pairs no gap in their sorted row was wider
 * than 3.3.
 */
#ifndef ND_CHECKS_CHANNEL_GAP_H
#define ND_CHECKS_CHANNEL_GAP_H

#include "tensor/view.h"

#define CHANNEL_GAP 8.0

struct channel_gap {
    double ratio;     /* of the last channel above the gap to the first below it; 0: none */
    double error;     /* relative, of that last one */
    uint64_t wrong;   /* channels above the gap */
    uint64_t channel; /* the worst */
    uint64_t channels;
};

/* Looks at rows of both sides' output.0, up to a few ten thousand elements. */
void nd_channel_gap(const struct layer_pair_view *pair, struct channel_gap *ret_gap);

/* The gap is wider than honest ones, and what is above it no rounding. */
static inline bool nd_channel_stands_out(const struct channel_gap *gap)
{
    return gap->ratio > CHANNEL_GAP && gap->error > 0.1;
}

/* The relative error of one of so many channels; 0 where the layer has others. */
double nd_channel_error(const struct layer_pair_view *pair, uint64_t channels,
                        uint64_t channel);

#endif
