/*
 * The whole of an output that the checks see a part of: one pass in pieces that finds where
 * the sides disagree by more than the tensor's usual error, wherever that is.
 */
#ifndef ND_CHECKS_SURVEY_H
#define ND_CHECKS_SURVEY_H

#include "tensor/view.h"

struct survey {
    struct nd_shape shape;
    uint64_t count; /* elements of the tensor */
    double floor;   /* relative error that is usual: half of the elements stay below */
    double rms;     /* of the expected values */
    uint64_t bad;   /* elements that are further off, */
    uint64_t first, last;                         /* the first and last of them, */
    uint64_t low[ND_MAX_RANK], high[ND_MAX_RANK]; /* and the box around them */
    uint64_t zeros;     /* zeros among the actual values from the first bad one on */
    double all;         /* ||y - z|| / ||z|| of everything, */
    double before;      /* of what lies before the first bad element, */
    double outside;     /* of what lies before the first and behind the last, */
    double good;        /* of what is not bad, */
    double off_channel; /* and of all channels but the worst */
    uint64_t channel, channels;
};

/*
 * Surveys two views of one shape; axis: of the channels.  floor: the least to assume.
 * False without memory, or where nothing is bad.
 */
bool nd_survey(const struct tensor_view *actual, const struct tensor_view *expected,
               uint32_t axis, double floor, unsigned jobs, struct survey *ret_survey);

#endif
