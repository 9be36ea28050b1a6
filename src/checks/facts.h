/*
 * What the comparison says about each layer pair, boiled down to what locating a fault
 * needs: the error of its outputs, of its inputs and of its parameters, and the precision
 * that it was computed in.
 */
#ifndef ND_CHECKS_FACTS_H
#define ND_CHECKS_FACTS_H

#include "checks/check.h"
#include "checks/channel_gap.h"
#include "checks/grid.h"
#include "checks/replay.h"

/* One kind of slot of one layer, all slots of it taken together. */
struct slot_group {
    size_t seen;         /* slots that were compared at all */
    size_t count;        /* slots with a measured drift */
    size_t worst;        /* the one with the largest, ND_NO_INDEX: none */
    double rel;          /* its relative error */
    double abs;          /* rms errors of all slots added */
    double rms;          /* of the reference, of the worst slot */
    bool equal;          /* no position differs in any slot */
    bool is_integer;     /* an integer slot differs */
    uint64_t mismatches; /* NaN or infinity on one side only */
    uint64_t n;          /* elements of the worst slot */
};

struct layer_facts {
    const struct op *op; /* NULL: unknown */
    bool pair, container, forward;
    struct slot_group out, in, params, after; /* after: state_after */
    double roundoff;                          /* of the coarser side's output type */
    double floor;      /* what one rounding and another summation order explain */
    double saved;      /* error of what a backward layer's forward pass saw and made */
    double noise;      /* what a side's second run differs by here; 0: equal, or unknown */
    enum grid grid[2]; /* narrower grid that a side's output lies on */
    bool layout_found; /* an output agrees only after its axes were reordered */
    bool input_found;
    struct replay replay;
    struct channel_gap gap; /* of products whose replay does not settle them */
    size_t stand_in[OP_MAX_INPUTS]; /* layers whose outputs are its inputs, */
    unsigned stand_ins;             /* proved by replay where none are dumped */
};

/*
 * Fills one entry per layer, on input->jobs threads; replays included.
 */
void nd_facts_gather(const struct diagnosis_input *input, struct layer_facts *ret_facts);

/* A metric of a slot; NAN where it was not measured.  side: of a pair metric. */
double nd_slot_number(const struct nd_slot *slot, const char *key, int side);
/* Where a slot's error is largest, as a multi-index; NULL: not known. */
const uint64_t *nd_slot_worst(const struct nd_slot *slot);
/* Relative L2 error of a slot, whatever metric the tiers use; NAN: none. */
double nd_slot_rel(const struct nd_slot *slot);
bool nd_slot_found(const struct nd_slot *slot); /* equal under a layout that was found */
bool nd_slot_is_integer(const struct nd_slot *slot);
double nd_slot_roundoff(const struct nd_slot *slot); /* of the coarser side's type */
bool nd_slot_is(const struct nd_slot *slot, const char *kind); /* "input", "output" ... */
/* A slot with floating-point values or statistics that was compared. */
bool nd_slot_measured(const struct nd_slot *slot);

/* Floor of one layer's relative error for a type of this roundoff. */
double nd_floor(double roundoff);

#endif
