/*
 * A BatchNorm whose parameters were not dumped is a scale and a shift per channel of its
 * input.  The table holds both, of both sides, and how well they are known.
 */
#ifndef ND_CHECKS_CHANNEL_TABLE_H
#define ND_CHECKS_CHANNEL_TABLE_H

#include "checks/sample.h"

struct channel {
    double mean, deviation;  /* of the reference's input over the batch */
    double scale[2];         /* by side: y = level + scale (x - mean) */
    double level[2];         /* the output where the input is the channel's mean */
    double noise;            /* of a scale, relative, and of a level over scale deviation */
};

struct channel_table {
    struct channel *channels;
    uint64_t count;     /* of channels that vary */
    double values;      /* of a channel */
    double residual[2]; /* of a side under its own scales and levels */
};

enum { CHANNEL_LEAST = 4 }; /* values of a channel: two of them are fitted */

/*
 * The sample's rows are channels.  False without memory, or where the channels are too
 * short to tell.  Allocates ret_table->channels, which the caller frees.
 */
bool nd_channel_table_make(const struct sample *sample, double roundoff,
                           struct channel_table *ret_table);

#endif
