/*
 * Staging.
 */
#include "compare/stage.h"

#include <stdlib.h>

enum { STAGE_LEAST = MOMENTS_BLOCK }; /* less than that lies in the cache anyhow */

void nd_stage_init(const struct tensor_view *view, struct stage *ret)
{
    for (unsigned side = 0; side < 2; side++) {
        const uint64_t n =
            view[side].count < MOMENTS_CHUNK ? view[side].count : MOMENTS_CHUNK;
        ret->bytes[side] = view[side].contiguous || n < STAGE_LEAST
                               ? NULL
                               : malloc((size_t)n * nd_dtype_info(view[side].dtype)->size);
    }
}

void nd_stage_done(struct stage *stage)
{
    free(stage->bytes[0]);
    free(stage->bytes[1]);
    *stage = (struct stage){
        {NULL, NULL}
    };
}

/* The chunk as a view whose index `first` is the stage's beginning: positions keep their
 * numbers.  base + first wraps to 0, as unsigned numbers do. */
static struct tensor_view stage_fill(const struct tensor_view *view, unsigned char *bytes,
                                     uint64_t first, uint64_t count)
{
    struct tensor_view staged = *view;

    nd_view_gather(view, first, count, bytes);
    staged.data = bytes;
    staged.data_size = count * nd_dtype_info(view->dtype)->size;
    staged.base = 0 - first;
    staged.link = (struct axis_link){.is = false};
    staged.swapped = false;
    staged.contiguous = true;
    return staged;
}

void nd_stage_measure(struct stage *stage, const struct kernel_set *kernels,
                      const struct tensor_view *view, const enum nd_dtype *real,
                      uint64_t first, uint64_t count, const struct moments_pivot *pivot,
                      const struct moments_policy *policy, struct nd_moments *inout)
{
    for (uint64_t at = 0; at < count; at += MOMENTS_CHUNK) {
        const uint64_t n = count - at < MOMENTS_CHUNK ? count - at : MOMENTS_CHUNK;
        struct tensor_view seen[2] = {view[0], view[1]};
        struct nd_moments chunk;
        for (unsigned side = 0; side < 2; side++)
            if (stage->bytes[side] != NULL)
                seen[side] = stage_fill(&view[side], stage->bytes[side], first + at, n);
        nd_moments_measure(kernels, &seen[0], &seen[1], real[0], real[1], first + at, n,
                           pivot, policy, &chunk);
        nd_moments_fold(inout, &chunk);
    }
}
