/*
 * One walk over the layers in execution order, as the tests of a single layer see it.
 */
#ifndef ND_CHECKS_WALK_H
#define ND_CHECKS_WALK_H

#include "checks/origin.h"
#include "checks/producer.h"
#include "checks/update_data.h"
#include "checks/weights.h"

enum { WALK_RECENT = 10 }; /* layers that make the running level */

/* What was seen of one run: a step of a rank. */
struct walk_run {
    size_t produced; /* layers with outputs so far */
    size_t passed;   /* and layers without a partner */
    double worst;    /* largest relative error of an output so far */
    double recent[WALK_RECENT];
    bool is_bad;     /* NaN or infinity seen */
    bool is_tainted; /* an origin or a gap lies before */
};

struct walk {
    const struct diagnosis_input *input;
    const struct layer_facts *facts;
    struct arena *arena;
    struct origin *origin;
    struct producers producers;
    struct weights weights;
    struct step_index steps;
    unsigned updates_fitted; /* steps of the optimiser that rules were tried on */
    size_t update_slot;      /* the parameter that one of them moved differently */
    struct walk_run *runs, *run; /* all, and the current one */
    bool is_step_tainted;        /* an origin or a gap lies in this step */
    bool was_tainted;            /* in an earlier step */
};

/* Judges layer i on what the walk has seen: sets its role, kind and reason. */
void nd_walk_judge(struct walk *walk, size_t i);

/* The optimiser moved the layer's parameters differently: true, and the layer is said to be
 * the origin. */
bool nd_walk_judge_update(struct walk *walk, size_t i);

/* Gradients at a kink are nobody's fault: true, and the layer is said to inherit. */
bool nd_walk_judge_kink(struct walk *walk, size_t i);
/* How far the worst of a backward layer's gradients is over what `limit` allows the one that
 * it hands on. */
double nd_gradient_excess(const struct nd_layer *layer, const struct layer_facts *facts,
                          double limit);
/* Nothing but rounding residue makes the layer elevated. */
bool nd_is_residue_only(const struct nd_layer *layer);

#endif
