/*
 * Staging.
 */
#include "compare/stage.h"

#include <stdlib.h>

#include "base/pool.h"

enum {
    STAGE_LEAST = MOMENTS_BLOCK, /* less than that lies in the cache anyhow */
    STAGE_MOST = 8 << 20, /* bytes of one side: as far as loading a line again costs more */
    STAGE_BUDGET = 32 << 20 /* of all threads, so that many processors do not add up */
};

/* Chunks that share enough cache lines to be gathered at once. */
static uint64_t stage_chunks(const struct tensor_view *view)
{
    const uint64_t share = STAGE_BUDGET / 2 / nd_pool_processors();
    const uint64_t most = (share < STAGE_MOST ? share : STAGE_MOST) / MOMENTS_CHUNK /
                          nd_dtype_info(view->dtype)->size;
    const uint64_t reach = (nd_view_reach(view) - 1) / MOMENTS_CHUNK + 1;

    return reach < most ? reach : most > 0 ? most : 1;
}

void nd_stage_init(const struct tensor_view *view, struct stage *ret)
{
    ret->chunks = 1;
    for (unsigned side = 0; side < 2; side++) {
        const uint64_t chunks = view[side].contiguous ? 1 : stage_chunks(&view[side]);
        ret->chunks = chunks > ret->chunks ? chunks : ret->chunks;
    }
    const uint64_t room = ret->chunks * MOMENTS_CHUNK;
    for (unsigned side = 0; side < 2; side++) {
        const uint64_t n = view[side].count < room ? view[side].count : room;
        ret->bytes[side] = view[side].contiguous || n < STAGE_LEAST
                               ? NULL
                               : malloc((size_t)n * nd_dtype_info(view[side].dtype)->size);
    }
}

void nd_stage_done(struct stage *stage)
{
    free(stage->bytes[0]);
    free(stage->bytes[1]);
    *stage = (struct stage){.chunks = 1};
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
    struct tensor_view seen[2] = {view[0], view[1]};
    const uint64_t room = stage->chunks * MOMENTS_CHUNK;

    for (uint64_t at = 0; at < count; at += MOMENTS_CHUNK) {
        const uint64_t left = count - at;
        const uint64_t n = left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK;
        struct nd_moments chunk;
        for (unsigned side = 0; at % room == 0 && side < 2; side++)
            if (stage->bytes[side] != NULL)
                seen[side] = stage_fill(&view[side], stage->bytes[side], first + at,
                                        left < room ? left : room);
        nd_moments_measure(kernels, &seen[0], &seen[1], real[0], real[1], first + at, n,
                           pivot, policy, &chunk);
        nd_moments_fold(inout, &chunk);
    }
}
