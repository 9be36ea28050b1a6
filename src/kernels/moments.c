/*
 * The hot pass over a chunk of two views.
 */
#include "kernels/moments.h"

#include <math.h>
#include <string.h>

#include "kernels/pass.h"

/* Gathered bytes stay in the L1 cache with room for the doubles made of them. */
enum { MOMENTS_GATHER = 2 * PAIR_STEP };

/* The first of n positions that counts. */
static bool moments_first_kept(const struct pair *pair, const unsigned char *r,
                               const unsigned char *c, unsigned n,
                               struct moments_pivot *ret)
{
    struct pair_values values;

    nd_pair_read(pair, r, c, n, &values);
    for (unsigned i = 0; i < n; i++) {
        if (values.state[i] == PAIR_KEPT) {
            *ret = (struct moments_pivot){values.r[i], values.c[i]};
            return true;
        }
    }
    return false;
}

/* Do these hold none that counts?  Behind one such step there may be gigabytes: a run that
 * failed is all NaN. */
static bool moments_none_kept(const struct kernel_set *set, const struct pair *pair,
                              const unsigned char *r, const unsigned char *c, unsigned n)
{
    static const struct moments_pivot zeros = {0.0, 0.0};
    double room[2][PAIR_STEP];

    return !pair->is_wide &&
           set->detail.sifted(pair, r, c, n, &zeros, room[0], room[1]) == 0;
}

struct moments_pivot nd_moments_pivot(const struct kernel_set *set,
                                      const struct tensor_view *r,
                                      const struct tensor_view *c, enum nd_dtype real_r,
                                      enum nd_dtype real_c)
{
    const struct moments_policy policy = {.nan_strict = false, .scale = 1.0};
    unsigned char buffer[2][PAIR_STEP * PAIR_ELEMENT_MAX];
    struct moments_pivot pivot = {0.0, 0.0};
    struct pair pair;

    nd_pair_init(&pair, r, c, real_r, real_c, &policy);
    for (uint64_t at = 0; !pair.is_complex && at < r->count; at += PAIR_STEP) {
        const uint64_t left = r->count - at;
        const unsigned n = left < PAIR_STEP ? (unsigned)left : PAIR_STEP;
        const unsigned char *const from_r = nd_pair_bytes(r, at, n, buffer[0]);
        const unsigned char *const from_c = nd_pair_bytes(c, at, n, buffer[1]);
        if (at > 0 && moments_none_kept(set, &pair, from_r, from_c, n))
            continue;
        if (moments_first_kept(&pair, from_r, from_c, n, &pivot))
            break;
    }
    return pivot;
}

/* Does it with all of a block's bytes. */
static void block_each(const struct moments_block *block, kernel_add add)
{
    const struct pair *const pair = block->run->pair;
    unsigned char buffer[2][MOMENTS_GATHER * PAIR_ELEMENT_MAX];

    if (block->bytes[0] != NULL && block->bytes[1] != NULL) {
        add(block->run, block->bytes[0], block->bytes[1], block->count, block->first);
        return;
    }
    for (size_t done = 0; done < block->count; done += MOMENTS_GATHER) {
        const size_t left = block->count - done;
        const size_t n = left < MOMENTS_GATHER ? left : MOMENTS_GATHER;
        const uint64_t at = block->first + done;
        const unsigned char *r = nd_pair_bytes(pair->view[0], at, n, buffer[0]);
        const unsigned char *c = nd_pair_bytes(pair->view[1], at, n, buffer[1]);

        if (block->run->moments->bit_equal)
            block->run->moments->bit_equal = memcmp(r, c, n * pair->size[0]) == 0;
        add(block->run, r, c, n, at);
        if (block->run->place.n > 0) /* before the buffers hold other bytes */
            nd_lanes_find_largest(block->run);
    }
}

/* Equal bytes cost little more than reading them.  True: the block was added. */
static bool block_same(const struct moments_block *block)
{
    const struct pair *const pair = block->run->pair;
    struct nd_moments *const moments = block->run->moments;
    const struct lanes_place place = {block->bytes[0], block->bytes[1], block->count,
                                      block->first, {NULL, NULL}};

    if (place.r == NULL || place.c == NULL || pair->view[0]->dtype != pair->view[1]->dtype)
        return false;
    if (block->set->same != NULL && block->set->same(block->run, &place))
        return true;
    if (moments->bit_equal)
        moments->bit_equal = memcmp(place.r, place.c, place.n * pair->size[0]) == 0;
    return false;
}

void nd_moments_block(const struct moments_block *block)
{
    struct lanes_run *const run = block->run;

    nd_lanes_block_begin(run);
    if (!block_same(block))
        block_each(block, block->set->add);
    if (!nd_lanes_block_end(run)) {
        block_each(block, block->set->pivot);
        nd_lanes_pivot_end(run);
    }
}

void nd_moments_measure(const struct kernel_set *set, const struct tensor_view *r,
                        const struct tensor_view *c, enum nd_dtype real_r,
                        enum nd_dtype real_c, uint64_t first, uint64_t count,
                        const struct moments_pivot *pivot,
                        const struct moments_policy *policy, struct nd_moments *ret)
{
    const struct tensor_view *const view[2] = {r, c};
    struct pair pair;
    struct lanes_run run = {
        .pair = &pair,
        .decode = {set->decode[r->dtype], set->decode[c->dtype]},
        .pivot = {pivot->r * policy->scale, pivot->c * policy->scale},
        .moments = ret,
    };
    struct moments_block block = {.set = set, .run = &run};

    nd_pair_init(&pair, r, c, real_r, real_c, policy);
    nd_moments_init(ret);
    ret->scale = policy->scale;
    ret->total = count;
    ret->bit_equal = r->dtype == c->dtype;
    nd_lanes_chunk_begin(&run);
    for (uint64_t done = 0; done < count; done += MOMENTS_BLOCK) {
        const uint64_t left = count - done;
        block.first = first + done;
        block.count = left < MOMENTS_BLOCK ? (size_t)left : MOMENTS_BLOCK;
        for (int side = 0; side < 2; side++)
            block.bytes[side] =
                nd_pair_in_place(view[side])
                    ? view[side]->data + (view[side]->base + block.first) * pair.size[side]
                    : NULL;
        nd_moments_block(&block);
    }
    nd_lanes_chunk_end(&run);
}

void nd_moments_init(struct nd_moments *moments)
{
    memset(moments, 0, sizeof *moments);
    moments->bit_equal = true;
    moments->scale = 1.0;
    for (int side = 0; side < 2; side++) {
        moments->min[side] = HUGE_VAL;
        moments->max[side] = -HUGE_VAL;
    }
}

static void moments_fold_counts(struct nd_moments *into, const struct nd_moments *next)
{
    into->total += next->total;
    into->n += next->n;
    into->differ += next->differ;
    into->mismatches += next->mismatches;
    into->masked += next->masked;
    into->masks_differ += next->masks_differ;
    into->bit_equal = into->bit_equal && next->bit_equal;
    for (int side = 0; side < 2; side++) {
        into->side[side].nan += next->side[side].nan;
        into->side[side].pos_inf += next->side[side].pos_inf;
        into->side[side].neg_inf += next->side[side].neg_inf;
    }
}

void nd_moments_fold(struct nd_moments *into, const struct nd_moments *next)
{
    if (next->n != 0 && (into->n == 0 || next->max_abs > into->max_abs)) {
        into->max_abs = next->max_abs;
        into->max_abs_at = next->max_abs_at;
    }
    moments_fold_counts(into, next);
    into->scale = next->scale;
    into->sum_abs += next->sum_abs;
    into->sum_ee += next->sum_ee;
    into->sum_r += next->sum_r;
    into->sum_c += next->sum_c;
    into->sum_rr += next->sum_rr;
    into->sum_cc += next->sum_cc;
    into->sum_rc += next->sum_rc;
    into->sum_pr += next->sum_pr;
    into->sum_pc += next->sum_pc;
    into->sum_prr += next->sum_prr;
    into->sum_pcc += next->sum_pcc;
    into->sum_prc += next->sum_prc;
    for (int side = 0; side < 2; side++) {
        if (next->min[side] < into->min[side])
            into->min[side] = next->min[side];
        if (next->max[side] > into->max[side])
            into->max[side] = next->max[side];
    }
}

/* Squares outside [1e-290, 1e290] have lost digits, or come close to it. */
static bool moments_is_out_of_range(double sum, double largest)
{
    return largest > 0.0 && !(sum >= 1e-290 && sum <= 1e290);
}

static double moments_largest(const struct nd_moments *moments, int side)
{
    const double low = fabs(moments->min[side]), high = fabs(moments->max[side]);

    return low > high ? low : high;
}

/*
 * The largest value is brought near 2^440: then 2^63 squares of errors stay below
 * 4 * 2^880 * 2^63 < 1e290, and errors 2^-900 times as large still have squares that are
 * no subnormals.  The exponent is bounded so that the factor and its inverse are normal.
 */
double nd_moments_rescale(const struct nd_moments *moments)
{
    const double largest_r = moments_largest(moments, 0);
    const double largest_c = moments_largest(moments, 1);
    const double largest = largest_r > largest_c ? largest_r : largest_c;
    int exponent;

    if (moments->n == 0 || moments->scale != 1.0 ||
        !(moments_is_out_of_range(moments->sum_ee, moments->max_abs) ||
          moments_is_out_of_range(moments->sum_rr, largest_r) ||
          moments_is_out_of_range(moments->sum_cc, largest_c)))
        return 1.0;
    frexp(largest, &exponent);
    return ldexp(1.0, 440 - exponent < 1000 ? 440 - exponent : 1000);
}
