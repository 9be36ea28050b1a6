/*
 * Staging.
 */
#include "compare/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "compare/tiles.h"
#include "kernels/pass.h"
#include "tensor/gather_bundle.h"

enum {
    STAGE_LEAST = MOMENTS_BLOCK, /* less than that lies in the cache anyhow */
    STAGE_GOOD = 256 << 10,      /* bytes of one side: a part of a second-level cache */
    STAGE_MOST = 4 << 20,
    STAGE_BUDGET = 32 << 20, /* of all threads, so that many processors do not add up */
    CHUNK_BLOCKS = MOMENTS_CHUNK / MOMENTS_BLOCK
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool stage_alloc(const struct tensor_view *view, struct stage *stage)
{
    for (unsigned side = 0; side < 2; side++) {
        const unsigned size = nd_dtype_info(view[side].dtype)->size;
        if (nd_pair_in_place(&view[side]))
            continue;
        stage->bytes[side] = malloc((size_t)(stage->room + MOMENTS_BLOCK) * size);
        if (stage->bytes[side] == NULL)
            return false;
    }
    return true;
}

void nd_stage_init(const struct tensor_view *view, struct stage *ret)
{
    const uint64_t share = STAGE_BUDGET / nd_pool_processors();
    uint64_t reach = 1, size = 1;

    *ret = (struct stage){.room = 0};
    if ((view[0].contiguous && view[1].contiguous) || view[0].count < STAGE_LEAST)
        return;
    for (unsigned side = 0; side < 2; side++) {
        const uint64_t apart = nd_view_reach(&view[side]);
        const uint64_t bytes = nd_dtype_info(view[side].dtype)->size;
        reach = apart > reach ? apart : reach;
        size = bytes > size ? bytes : size;
    }
    ret->tiles = nd_tiles_new(view, share);
    if (ret->tiles != NULL)
        return;
    const uint64_t good = STAGE_GOOD / size, most = least(STAGE_MOST, share / 2) / size;
    ret->room = least(least(reach > good ? reach : good, most), view[0].count);
    if (!stage_alloc(view, ret))
        nd_stage_done(ret);
}

void nd_stage_done(struct stage *stage)
{
    nd_tiles_free(stage->tiles);
    free(stage->bytes[0]);
    free(stage->bytes[1]);
    *stage = (struct stage){.room = 0};
}

/* --- pieces in logical order --------------------------------------------------------- */

/* How far a run over the pieces is. */
struct pieces {
    const struct stage *stage;
    const struct tensor_view *view;
    struct moments_pass *pass;
    struct nd_moments *moments;
    uint64_t first; /* of the stage's bytes: a multiple of MOMENTS_BLOCK */
    uint64_t have;  /* they end here */
    struct gather_plan plan[2];
    struct bundles bundles[2];
    bool has_bundles[2]; /* of the sides that are not in order */
    struct moments_sums sums[CHUNK_BLOCKS];
};

static const unsigned char *pieces_bytes(const struct pieces *pieces, unsigned side,
                                         uint64_t at)
{
    const struct tensor_view *view = &pieces->view[side];
    const unsigned size = nd_dtype_info(view->dtype)->size;

    return pieces->stage->bytes[side] != NULL
               ? pieces->stage->bytes[side] + (at - pieces->first) * size
               : view->data + (view->base + at) * size;
}

/* While a block is measured, what is gathered next comes into the cache. */
static void pieces_ask(struct pieces *pieces, uint64_t at)
{
    const uint64_t next = pieces->have + (at - pieces->first);

    for (unsigned side = 0; side < 2; side++)
        pieces->pass->run.ahead[side] =
            pieces->has_bundles[side] && next < pieces->view[side].count
                ? nd_bundles_source(&pieces->bundles[side], next)
                : NULL;
}

/* Measures the blocks that are there; of all that is to come there is nothing else. */
static void pieces_measure(struct pieces *pieces, bool is_last)
{
    uint64_t at = pieces->first;

    while (pieces->have - at >= MOMENTS_BLOCK || (is_last && at < pieces->have)) {
        const unsigned char *const bytes[2] = {pieces_bytes(pieces, 0, at),
                                               pieces_bytes(pieces, 1, at)};
        const size_t n = (size_t)least(pieces->have - at, MOMENTS_BLOCK);
        const uint64_t block = at / MOMENTS_BLOCK % CHUNK_BLOCKS;
        pieces_ask(pieces, at);
        nd_pass_add(pieces->pass, bytes, at, n, &pieces->sums[block]);
        at += n;
        if (block + 1 == CHUNK_BLOCKS || (is_last && at == pieces->have))
            nd_sums_add(pieces->sums, block + 1, pieces->moments);
    }
    for (unsigned side = 0; side < 2; side++)
        if (pieces->stage->bytes[side] != NULL && at < pieces->have)
            memmove(pieces->stage->bytes[side], pieces_bytes(pieces, side, at),
                    (pieces->have - at) * nd_dtype_info(pieces->view[side].dtype)->size);
    pieces->first = at;
}

/* Fewer where that spares a side from loading lines again. */
static uint64_t pieces_next(const struct pieces *pieces, uint64_t end)
{
    const struct tensor_view *view = pieces->view;
    const uint64_t left = end - pieces->have;
    const unsigned side = nd_view_reach(&view[0]) > nd_view_reach(&view[1]) ? 0 : 1;

    return left <= pieces->stage->room
               ? left
               : nd_view_cut(&view[side], pieces->have, pieces->stage->room);
}

static void measure_pieces(const struct stage *stage, const struct tensor_view *view,
                           struct moments_pass *pass, uint64_t first, uint64_t count,
                           struct nd_moments *inout)
{
    struct pieces pieces = {.stage = stage,
                            .view = view,
                            .pass = pass,
                            .moments = inout,
                            .first = first,
                            .have = first};

    for (unsigned side = 0; side < 2; side++) {
        if (stage->bytes[side] == NULL)
            continue;
        nd_plan_make(&view[side], &pieces.plan[side]);
        pieces.has_bundles[side] =
            nd_bundles_make(&pieces.plan[side], &pieces.bundles[side]);
    }
    while (pieces.have < first + count) {
        const uint64_t n = pieces_next(&pieces, first + count);
        for (unsigned side = 0; side < 2; side++)
            if (stage->bytes[side] != NULL)
                nd_view_gather(&view[side], pieces.have, n,
                               stage->bytes[side] +
                                   (pieces.have - pieces.first) *
                                       nd_dtype_info(view[side].dtype)->size);
        pieces.have += n;
        pieces_measure(&pieces, pieces.have == first + count);
    }
}

/* --- all of it ----------------------------------------------------------------------- */

bool nd_stage_wants_more(const struct tensor_view *view, uint64_t part)
{
    return nd_view_reach(&view[0]) > part / 2 || nd_view_reach(&view[1]) > part / 2;
}

void nd_stage_measure_parts(struct stage *stage, const struct kernel_set *kernels,
                            const struct tensor_view *view, const enum nd_dtype *real,
                            uint64_t first, uint64_t count, uint64_t part,
                            const struct moments_pivot *pivot,
                            const struct moments_policy *policy, struct nd_moments *inout)
{
    struct moments_pass pass;
    struct nd_moments found;

    if (stage->tiles == NULL) {
        for (uint64_t at = 0; at < count; at += part, inout++)
            nd_stage_measure(stage, kernels, view, real, first + at,
                             least(count - at, part), pivot, policy, inout);
        return;
    }
    for (uint64_t at = 0; at < count; at += part)
        inout[at / part].scale = policy->scale;
    nd_pass_begin(&pass, kernels, view, real, pivot, policy);
    nd_tiles_measure(stage->tiles, &pass, first, count, part, inout);
    nd_pass_end(&pass, &found);
    nd_moments_fold(inout, &found);
}

void nd_stage_measure(struct stage *stage, const struct kernel_set *kernels,
                      const struct tensor_view *view, const enum nd_dtype *real,
                      uint64_t first, uint64_t count, const struct moments_pivot *pivot,
                      const struct moments_policy *policy, struct nd_moments *inout)
{
    struct moments_pass pass;
    struct nd_moments found;

    if (stage->tiles != NULL) {
        nd_stage_measure_parts(stage, kernels, view, real, first, count, UINT64_MAX, pivot,
                               policy, inout);
        return;
    }
    if (stage->room == 0) {
        for (uint64_t at = 0; at < count; at += MOMENTS_CHUNK) {
            nd_moments_measure(kernels, &view[0], &view[1], real[0], real[1], first + at,
                               least(count - at, MOMENTS_CHUNK), pivot, policy, &found);
            nd_moments_fold(inout, &found);
        }
        return;
    }
    nd_pass_begin(&pass, kernels, view, real, pivot, policy);
    inout->scale = policy->scale;
    measure_pieces(stage, view, &pass, first, count, inout);
    nd_pass_end(&pass, &found);
    nd_moments_fold(inout, &found);
}
