/*
 * The rule of an optimiser, recovered from one step of one parameter: SGD with or without
 * momentum, Adam and AdamW.
 */
#ifndef ND_CHECKS_UPDATE_FIT_H
#define ND_CHECKS_UPDATE_FIT_H

#include "checks/update_data.h"

enum update_kind {
    UPDATE_NONE,
    UPDATE_SGD,   /* d = -lr (g + decay p) + momentum d' (d': the step before) */
    UPDATE_ADAMW, /* d = -lr m / (sqrt(v) + eps) - lr decay p */
    UPDATE_ADAM   /* the same of g + decay p, and nothing added afterwards */
};

struct update_rule {
    enum update_kind kind;
    double lr, decay, momentum, eps;
    double beta[2];
    bool has_decay,
        has_momentum; /* what was recovered; else their share is under rounding */
    bool has_eps, has_betas;
    bool is_inside;  /* sqrt(v + eps) */
    bool is_raw;     /* m and v without the correction for their start at zero */
    double residual; /* ||d - rule|| / ||d|| */
    double floor;    /* what rounding leaves of it */
};

/* The rule that a side follows; false, and kind UPDATE_NONE, where none fits to rounding.
 */
bool nd_update_fit(const struct update *update, int side, struct update_rule *ret_rule);

/* What is left of a side's step under a rule that may be the other side's. */
double nd_update_misfit(const struct update *update, int side,
                        const struct update_rule *rule);

/* What rounding of the parameter and of the arithmetic leaves of a side's step. */
double nd_update_floor(const struct update *update, int side);

/* The step of one element under a rule. */
double nd_update_step(const struct update *update, int side, const struct update_rule *rule,
                      uint64_t i);

/* Two rules that fit their own sides, and not the other. */
bool nd_update_rules_differ(const struct update *update, const struct update_rule rule[2]);

/* One side's rule moves most values of the other side too: the rest were damaged by
 * something else than an optimiser. */
bool nd_update_is_damage(const struct update *update, const bool fits[2],
                         const struct update_rule rule[2]);

/* Fits to rounding. */
bool nd_update_fits(double residual, double floor);

#endif
