/*
 * Rows that lie far from zero for their spread lose digits when the mean is taken off: what
 * float32 arithmetic may make of a norm even without a fault.
 */
#ifndef ND_CHECKS_CONDITIONING_H
#define ND_CHECKS_CONDITIONING_H

#include "checks/sample.h"
#include "ops/norm.h"

/* Errors that need no explanation, relative to the output's rms. */
struct leeway {
    double rel;   /* of the whole: by arithmetic, */
    double fit;   /* and by parameters that were estimated */
    double local; /* of the worst element */
};

struct leeway nd_norm_conditioning(const struct sample *sample, int side,
                                   const struct norm_model *model);

#endif
