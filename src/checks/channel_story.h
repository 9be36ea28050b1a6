/*
 * What may have become of a BatchNorm of which only scales and levels per channel are
 * known.  Each story says which figures of the two sides have to agree, and how widely
 * running statistics may lie about those of one batch; the likelier story has the fewer
 * accidents.
 */
#ifndef ND_CHECKS_CHANNEL_STORY_H
#define ND_CHECKS_CHANNEL_STORY_H

#include "checks/channel_table.h"

enum story {
    STORY_FREE,   /* two numbers a channel that nothing connects: other statistics */
    STORY_INITIAL, /* running statistics that were never updated */
    STORY_BIAS,   /* no bias: the output is zero where the input is the mean */
    STORY_MEAN,   /* the mean is kept: the level moves by scale times mean */
    STORY_WEIGHT, /* no weight: scale times deviation is 1 */
    STORY_PLUS,   /* 1 + weight: scale times deviation grows by 1 */
    STORY_EPS,    /* the scale follows another eps */
    STORY_EPS_OUTSIDE,
    STORY_RSTD, /* factors within one rounding of a narrow type */
    STORY_COUNT
};

struct told {
    enum story story;
    int wrong;        /* the side that it is about */
    double score;     /* log likelihood less a charge for each parameter */
    double eps[2];    /* STORY_EPS: of the right side, as assumed, and of the wrong one */
    double roundoff;  /* STORY_RSTD */
};

/* Tells every story about both sides; the best of each, likeliest first.  False without
 * memory, or where only a channel or two moved: that is no matter of statistics. */
bool nd_channel_stories(const struct channel_table *table,
                        struct told ret_told[STORY_COUNT]);

#endif
