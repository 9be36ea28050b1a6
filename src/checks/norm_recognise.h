/*
 * What a layer of unknown type does: a class called RMS, or MyNorm, that normalises its
 * rows is a norm whatever its name.
 */
#ifndef ND_CHECKS_NORM_RECOGNISE_H
#define ND_CHECKS_NORM_RECOGNISE_H

#include "checks/replay.h"

/* The operator whose formula the layer follows on a few rows of one of the sides; NULL:
 * none of those that are tried. */
const struct op *nd_recognise(const struct layer_pair_view *pair, double roundoff);

#endif
