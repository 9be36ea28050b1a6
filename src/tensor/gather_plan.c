/*
 * Making a plan of a view.
 */
#include "tensor/gather_plan.h"

/* Blocks that follow each other as their elements do are none. */
static struct axis_map plan_even(const struct axis_map *axis)
{
    int64_t step;

    if (axis->block > 1 &&
        !__builtin_mul_overflow((int64_t)axis->block, axis->inner, &step) &&
        step == axis->outer)
        return (struct axis_map){.block = 1, .outer = axis->inner};
    return *axis;
}

static bool plan_merges(const struct gather_plan *plan, const struct axis_map *axis,
                        uint64_t dim)
{
    const struct axis_map *before = &plan->axis[plan->rank - 1];
    int64_t step;

    return before->block == 1 && axis->block == 1 &&
           !__builtin_mul_overflow((int64_t)dim, axis->outer, &step) &&
           step == before->outer;
}

void nd_plan_make(const struct tensor_view *view, struct gather_plan *ret_plan)
{
    const struct axis_link *link = view->link.is ? &view->link : NULL;

    ret_plan->rank = 0;
    ret_plan->link = link;
    ret_plan->from = ret_plan->to = ND_NO_AXIS;
    ret_plan->size = nd_dtype_info(view->dtype)->size;
    ret_plan->data = view->data + view->base * ret_plan->size;
    for (uint32_t k = 0; k < view->shape.rank; k++) {
        const bool linked = link != NULL && (link->from == k || link->to == k);
        const uint64_t dim = view->shape.dim[k];
        const struct axis_map axis = plan_even(&view->axis[k]);
        if (dim == 1)
            continue;
        if (!linked && ret_plan->rank > 0 && ret_plan->from != ret_plan->rank - 1 &&
            ret_plan->to != ret_plan->rank - 1 &&
            plan_merges(ret_plan, &axis, dim)) {
            ret_plan->dim[ret_plan->rank - 1] *= dim;
            ret_plan->axis[ret_plan->rank - 1].outer = axis.outer;
            continue;
        }
        if (linked)
            *(link->from == k ? &ret_plan->from : &ret_plan->to) = ret_plan->rank;
        ret_plan->dim[ret_plan->rank] = dim;
        ret_plan->axis[ret_plan->rank++] = axis;
    }
    if (ret_plan->rank == 0) {
        ret_plan->dim[ret_plan->rank] = 1;
        ret_plan->axis[ret_plan->rank++] = (struct axis_map){.block = 1};
    }
}

uint64_t nd_plan_tail(const struct gather_plan *plan, uint32_t axis)
{
    uint64_t tail = 1;

    for (uint32_t k = axis + 1; k < plan->rank; k++)
        tail *= plan->dim[k];
    return tail;
}

uint32_t nd_plan_side_by_side(const struct gather_plan *plan)
{
    uint32_t k = 0;

    while (k < plan->rank &&
           (plan->axis[k].block == 1 ? plan->axis[k].outer : plan->axis[k].inner) != 1)
        k++;
    return k;
}
