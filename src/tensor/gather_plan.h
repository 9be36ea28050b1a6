/*
 * How a view is read in logical order: what gathering by rows and by slabs share.
 */
#ifndef ND_TENSOR_GATHER_PLAN_H
#define ND_TENSOR_GATHER_PLAN_H

#include "tensor/view.h"

/* The view with its axes of size 1 gone and neighbours of one stride made one. */
struct gather_plan {
    uint32_t rank;
    uint64_t dim[ND_MAX_RANK];
    struct axis_map axis[ND_MAX_RANK];
    const struct axis_link *link; /* NULL: none; then `from` and `to` count plan's axes */
    uint32_t from, to;
    const unsigned char *data; /* of index 0 */
    unsigned size;             /* of an element */
};

void nd_plan_make(const struct tensor_view *view, struct gather_plan *ret_plan);

/* How many elements of logical order one step along an axis makes. */
uint64_t nd_plan_tail(const struct gather_plan *plan, uint32_t axis);
/* The axis whose elements lie side by side; plan->rank: none. */
uint32_t nd_plan_side_by_side(const struct gather_plan *plan);

#endif
