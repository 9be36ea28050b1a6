/*
 * A side that ran Ascend's operators: which one a layer was, and the eps that it takes where
 * none is passed.
 */
#ifndef ND_CHECKS_ASCEND_SIDE_H
#define ND_CHECKS_ASCEND_SIDE_H

#include "checks/subject.h"
#include "ops/ascend_op.h"

/* The row of a side's operator; NULL: the layer is none of Ascend's, as a framework's module
 * of the same name is not. */
const struct ascend_op *nd_ascend_side_op(const struct subject *subject, int side);

struct ascend_default {
    const char *operator_name;
    double eps;
    bool is_measured; /* the values prove it; else the side declares none */
};

/*
 * Was a side's eps left at the operator's default?  `measured` is what its values say, to
 * within `uncertainty`, `declared` what the dump says; NAN: nothing.
 */
bool nd_ascend_side_default(const struct subject *subject, int side, double measured,
                            double uncertainty, double declared,
                            struct ascend_default *ret);

/* "1e-5", as operators' pages write it; text in the arena. */
const char *nd_ascend_eps_text(const struct subject *subject, double eps);

#endif
