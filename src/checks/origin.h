/*
 * Where the drift entered: every layer judged on its own inputs, in execution order.
 */
#ifndef ND_CHECKS_ORIGIN_H
#define ND_CHECKS_ORIGIN_H

#include "checks/facts.h"

/* How a layer was found to be the place where drift entered. */
enum origin_kind {
    ORIGIN_NONE,
    ORIGIN_NONFINITE, /* NaN or infinity appears here first */
    ORIGIN_INPUT,     /* the model's own input differs */
    ORIGIN_GAP,       /* its input differs, but no layer that was compared made it differ */
    ORIGIN_WEIGHTS,   /* its parameters differ, and stand out */
    ORIGIN_UPDATE,    /* the optimiser moved them differently */
    ORIGIN_REPLAY,    /* its output does not follow from its input */
    ORIGIN_BOUND,     /* its output is further off than its input can explain */
    ORIGIN_GROWTH,    /* no inputs dumped: far above the layers before it */
    ORIGIN_AFTER      /* only what it leaves behind (running statistics) is off */
};

struct origin {
    enum nd_role *roles;
    enum nd_tristate *expected;
    struct nd_phrase *why;   /* one a layer */
    enum origin_kind *kinds; /* one a layer */
    size_t first;            /* ND_NO_INDEX: nowhere */
    size_t slot;             /* of it */
    bool weights_parted;     /* most layers' weights differ, evenly: see nd_origin_weigh() */
    double weights_median;
};

/* Looks at the weights of the step that `layer` is in; false without memory. */
bool nd_origin_weigh(const struct diagnosis_input *input, const struct layer_facts *facts,
                     size_t layer, struct origin *origin);

enum nd_status nd_origin_find(const struct diagnosis_input *input,
                              const struct layer_facts *facts, struct arena *arena,
                              struct origin *ret_origin, struct nd_error *err);

#endif
