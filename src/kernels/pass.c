/*
 * The hot pass a block at a time.
 */
#include "kernels/pass.h"

#include <math.h>

void nd_pass_begin(struct moments_pass *pass, const struct kernel_set *set,
                   const struct tensor_view *view, const enum nd_dtype *real,
                   const struct moments_pivot *pivot, const struct moments_policy *policy)
{
    pass->set = set;
    pass->has_largest = false;
    pass->largest = 0.0;
    pass->largest_at = 0;
    pass->run = (struct lanes_run){
        .pair = &pass->pair,
        .decode = {set->decode[view[0].dtype], set->decode[view[1].dtype]},
        .pivot = {pivot->r * policy->scale,   pivot->c * policy->scale  },
        .moments = &pass->moments,
    };
    nd_pair_init(&pass->pair, &view[0], &view[1], real[0], real[1], policy);
    nd_moments_init(&pass->moments);
    pass->moments.scale = policy->scale;
    pass->moments.bit_equal = view[0].dtype == view[1].dtype;
    nd_lanes_chunk_begin(&pass->run);
}

/* Takes the sums out of the moments. */
static struct moments_sums sums_take(struct nd_moments *moments)
{
    const struct moments_sums sums = {
        moments->sum_abs, moments->sum_ee,  moments->sum_r,   moments->sum_c,
        moments->sum_rr,  moments->sum_cc,  moments->sum_rc,  moments->sum_pr,
        moments->sum_pc,  moments->sum_prr, moments->sum_pcc, moments->sum_prc,
    };

    moments->sum_abs = moments->sum_ee = moments->sum_r = moments->sum_c = 0.0;
    moments->sum_rr = moments->sum_cc = moments->sum_rc = 0.0;
    moments->sum_pr = moments->sum_pc = 0.0;
    moments->sum_prr = moments->sum_pcc = moments->sum_prc = 0.0;
    return sums;
}

/*
 * What a block's |e| have to exceed.  One that stands before the largest so far wins where
 * it is as large: so a little less is asked of it, or nothing where all were equal.
 */
static void largest_ask(struct moments_pass *pass, uint64_t first)
{
    const bool before = pass->has_largest && first < pass->largest_at;

    pass->run.has_largest = pass->has_largest && !(before && pass->largest == 0.0);
    pass->moments.max_abs = before ? nextafter(pass->largest, 0.0) : pass->largest;
    pass->moments.max_abs_at = pass->largest_at;
}

/* The block's bytes will not stay: its largest |e| is found now. */
static void largest_keep(struct moments_pass *pass, bool had, double asked)
{
    struct nd_moments *const moments = &pass->moments;

    if (!pass->run.has_largest || (had && !(moments->max_abs > asked)))
        return;
    if (pass->run.place.n > 0)
        nd_lanes_find_largest(&pass->run);
    if (!pass->has_largest || moments->max_abs > pass->largest ||
        moments->max_abs_at < pass->largest_at) {
        pass->has_largest = true;
        pass->largest = moments->max_abs;
        pass->largest_at = moments->max_abs_at;
    }
}

void nd_pass_add(struct moments_pass *pass, const unsigned char *const *bytes,
                 uint64_t first, size_t count, struct moments_sums *ret)
{
    const struct moments_block block = {
        .set = pass->set,
        .run = &pass->run,
        .first = first,
        .count = count,
        .bytes = {bytes[0], bytes[1]}
    };

    largest_ask(pass, first);
    const bool had = pass->run.has_largest;
    const double asked = pass->moments.max_abs;
    nd_moments_block(&block);
    largest_keep(pass, had, asked);
    pass->moments.total += count;
    *ret = sums_take(&pass->moments);
}

void nd_pass_end(struct moments_pass *pass, struct nd_moments *ret)
{
    nd_lanes_chunk_end(&pass->run);
    pass->moments.max_abs = pass->largest;
    pass->moments.max_abs_at = pass->largest_at;
    *ret = pass->moments;
}

void nd_sums_add(const struct moments_sums *blocks, uint64_t count,
                 struct nd_moments *inout)
{
    enum { BLOCKS = MOMENTS_CHUNK / MOMENTS_BLOCK };

    for (uint64_t at = 0; at < count; at += BLOCKS) {
        struct nd_moments chunk;
        nd_moments_init(&chunk);
        chunk.scale = inout->scale;
        for (uint64_t i = at; i < count && i < at + BLOCKS; i++) {
            chunk.sum_abs += blocks[i].abs;
            chunk.sum_ee += blocks[i].ee;
            chunk.sum_r += blocks[i].r;
            chunk.sum_c += blocks[i].c;
            chunk.sum_rr += blocks[i].rr;
            chunk.sum_cc += blocks[i].cc;
            chunk.sum_rc += blocks[i].rc;
            chunk.sum_pr += blocks[i].pr;
            chunk.sum_pc += blocks[i].pc;
            chunk.sum_prr += blocks[i].prr;
            chunk.sum_pcc += blocks[i].pcc;
            chunk.sum_prc += blocks[i].prc;
        }
        nd_moments_fold(inout, &chunk);
    }
}
