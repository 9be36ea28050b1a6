/*
 * Gathering by slabs.
 */
#include <string.h>

#include "tensor/gather_plan.h"

bool nd_slab_make(const struct gather_plan *plan, struct slab *slab)
{
    slab->axis = nd_plan_side_by_side(plan);
    if (plan->link != NULL || slab->axis + 1 >= plan->rank)
        return false;
    slab->block = plan->axis[slab->axis].block == 1 ? plan->dim[slab->axis]
                                                    : plan->axis[slab->axis].block;
    slab->tail = nd_plan_tail(plan, slab->axis);
    if (slab->block < 4 || slab->tail > SLAB_TAIL)
        return false;
    for (uint64_t t = 0; t < slab->tail; t++) {
        uint64_t rest = t;
        slab->step[t] = 0;
        for (uint32_t k = plan->rank; k-- > slab->axis + 1; rest /= plan->dim[k])
            slab->step[t] += nd_axis_offset(&plan->axis[k], rest % plan->dim[k]);
    }
    return true;
}

#define SLAB_COPY(type)                                                                    \
    for (uint64_t t = 0; t < slab->tail; t++) {                                            \
        const unsigned char *in = at + slab->step[t] * (int64_t)sizeof(type);              \
        for (uint64_t i = 0; i < n; i++)                                                   \
            memcpy(out + (i * slab->tail + t) * sizeof(type), in + i * sizeof(type),       \
                   sizeof(type));                                                          \
    }

/* Whole steps of the slab's axis, n of them within one block. */
static void slab_copy(const struct slab *slab, const unsigned char *at, uint64_t n,
                      unsigned size, unsigned char *out)
{
    switch (size) {
    case 1:
        SLAB_COPY(uint8_t) break;
    case 2:
        SLAB_COPY(uint16_t) break;
    case 4:
        SLAB_COPY(uint32_t) break;
    default:
        SLAB_COPY(uint64_t)
    }
}

uint64_t nd_slabs_gather(const struct gather_plan *plan, const struct slab *slab,
                         uint64_t *index, uint64_t count, unsigned char *out)
{
    uint64_t done = 0;

    for (;;) {
        const uint64_t here = index[slab->axis], dim = plan->dim[slab->axis];
        uint64_t n = slab->block - here % slab->block;
        n = n < dim - here ? n : dim - here;
        n = n < (count - done) / slab->tail ? n : (count - done) / slab->tail;
        if (n == 0)
            return done;
        int64_t offset = 0;
        for (uint32_t k = 0; k <= slab->axis; k++)
            offset += nd_axis_offset(&plan->axis[k], index[k]);
        slab_copy(slab, plan->data + offset * (int64_t)plan->size, n, plan->size,
                  out + done * plan->size);
        done += n * slab->tail;
        index[slab->axis] += n;
        for (uint32_t k = slab->axis; k > 0 && index[k] == plan->dim[k]; k--) {
            index[k] = 0;
            index[k - 1]++;
        }
    }
}
