/*
 * How far the parameters of the two runs are apart, over the whole model: one layer's stand
 * out only against that.
 */
#ifndef ND_CHECKS_WEIGHTS_H
#define ND_CHECKS_WEIGHTS_H

#include "checks/facts.h"

struct weights {
    double median;   /* relative error of the layers' parameters */
    double limit;    /* a layer's stand out above it */
    bool has_parted; /* most layers' differ: the runs have been apart for some steps */
};

/* False without memory. */
/* Of the step that `layer` is in: a step moves all of them. False without memory. */
bool nd_weights_weigh(const struct diagnosis_input *input, const struct layer_facts *facts,
                      size_t layer, struct weights *ret_weights);

#endif
