/*
 * The steps of one instruction set, made of the passes of moments_tmpl.h (which names the
 * parameters).
 */

/* values * scale where they count, else `instead`. */
static void TMPL(replace)(const double *restrict values, const double *restrict kept,
                          size_t n, double scale, double instead, double *restrict ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = kept[i] != 0.0 ? values[i] * scale : instead;
    for (size_t i = n; i < PAIR_STEP; i++) /* up to the next full group of lanes */
        ret[i] = instead;
}

/* Flags the positions that count, and counts all.  Most are ordinary, and most others
 * masked by -infinity on both sides; the rest is looked at one by one. */
static void TMPL(sort_out)(struct lanes_run *run, const double *restrict r,
                           const double *restrict c, size_t n, struct lanes_kept *restrict ret)
{
    const struct pair *const pair = run->pair;
    const double top_r = pair->masks[0].top, top_c = pair->masks[1].top;
    const double mask = pair->masks[0].count > 0 ? -HUGE_VAL : (double)NAN; /* NaN: no value */
    int64_t ordinary = 0, masked = 0;

    for (size_t i = 0; i < n; i++) {
        const bool low = (r[i] <= top_r) & (c[i] <= top_c);
        const bool kept = (fabs(r[i]) <= DBL_MAX) & (fabs(c[i]) <= DBL_MAX) & !low;
        ret->flag[i] = kept ? 1.0 : 0.0;
        ordinary += kept ? 1 : 0;
        masked += ((r[i] == mask) & (c[i] == mask)) ? 1 : 0;
    }
    if ((size_t)(ordinary + masked) == n)
        run->moments->masked += (uint64_t)masked;
    else
        nd_lanes_sort_rest(run, r, c, n, ret);
}

/* Counts, once the flags are right; returns the first position that counts, or n. */
static size_t TMPL(count_kept)(struct lanes_run *run, const double *r, const double *c,
                               size_t n, const struct lanes_kept *kept)
{
    int64_t count = 0, differ = 0;
    size_t first = 0;

    for (size_t i = 0; i < n; i++) {
        count += kept->flag[i] != 0.0 ? 1 : 0;
        differ += ((kept->flag[i] != 0.0) & (r[i] != c[i])) ? 1 : 0;
    }
    run->moments->n += (uint64_t)count;
    run->moments->differ += (uint64_t)differ;
    while (first < n && kept->flag[first] == 0.0)
        first++;
    return first;
}

/*
 * What takes the place of a position that does not count: for the extremes the first pair
 * that does, for the sums a pair of zeros.
 */
static void TMPL(step_odd)(struct lanes_run *run, const unsigned char *bytes_r,
                           const unsigned char *bytes_c, size_t n, uint64_t at)
{
    const size_t groups = (n + MOMENTS_LANES - 1) / MOMENTS_LANES;
    const double scale = run->pair->scale;
    double r[PAIR_STEP], c[PAIR_STEP], x[PAIR_STEP], y[PAIR_STEP], largest[MOMENTS_LANES];
    struct lanes_kept kept;

    run->decode[0](bytes_r, n, r);
    run->decode[1](bytes_c, n, c);
    lanes_mark_odd(run, at);
    TMPL(sort_out)(run, r, c, n, &kept);
    const size_t first = TMPL(count_kept)(run, r, c, n, &kept);
    if (first == n)
        return;
    TMPL(replace)(r, kept.flag, n, 1.0, r[first], x);
    TMPL(replace)(c, kept.flag, n, 1.0, c[first], y);
    TMPL(extremes)(x, y, groups, &run->extremes);
    TMPL(replace)(r, kept.flag, n, scale, 0.0, x);
    TMPL(replace)(c, kept.flag, n, scale, 0.0, y);
    if (TMPL(add_doubles)(x, y, groups, lanes_so_far(run), run->lanes, run->lanes, largest) &
        TMPL(LARGER))
        lanes_largest(run, largest, x, y, kept.flag, n, at);
}

/* What a pass found becomes the block's; false: something is odd. */
TMPL_INLINE bool TMPL(keep_floats)(struct lanes_run *run, const struct lanes_place *place,
                                   unsigned seen, const struct TMPL(ends) *ends,
                                   const double *largest)
{
    if (seen & TMPL(ODD) || TMPL(ends_may_hold_masks)(run->pair, ends))
        return false;
    lanes_swap(run);
    TMPL(ends_keep)(ends, &run->ends);
    run->moments->n += place->n;
    if (seen & TMPL(LARGER)) {
        run->has_largest = true;
        run->moments->max_abs = lanes_greatest(largest);
        run->place = *place;
    }
    return true;
}

static void TMPL(step_floats)(struct lanes_run *run, const unsigned char *bytes_r,
                              const unsigned char *bytes_c, uint64_t at)
{
    const struct pair *const pair = run->pair;
    float room_r[PAIR_STEP], room_c[PAIR_STEP];
    const unsigned char *const r = TMPL(floats)(pair->view[0]->dtype, bytes_r, room_r);
    const unsigned char *const c = TMPL(floats)(pair->view[1]->dtype, bytes_c, room_c);
    const struct lanes_place place = {bytes_r, bytes_c, PAIR_STEP, at};
    const double so_far = lanes_so_far(run);
    double largest[MOMENTS_LANES];
    struct TMPL(ends) ends;
    unsigned seen = TMPL(ODD);

#if TMPL_WIDTH == 8
    const struct lanes_place floats = {r, c, PAIR_STEP, at};
    seen = TMPL(measure_f32_f32)(&floats, so_far, run->lanes, &ends, run->spare, largest);
#else
    ends = TMPL(ends_of_pair)(r, c);
    if (!TMPL(ends_may_hold_masks)(pair, &ends))
        seen = TMPL(add_floats)(r, c, so_far, run->lanes, run->spare, largest);
#endif
    if (!TMPL(keep_floats)(run, &place, seen, &ends, largest))
        TMPL(step_odd)(run, bytes_r, bytes_c, PAIR_STEP, at);
}

#if TMPL_WIDTH == 8
/* All of a block at once: false if it has to go step by step, as after one that had to. */
static bool TMPL(whole)(struct lanes_run *run, const struct lanes_place *block)
{
    static unsigned (*const measure[ND_DTYPE_COUNT][ND_DTYPE_COUNT])(const struct lanes_place *, double,
                                               const struct lanes *, struct TMPL(ends) *,
                                               struct lanes *, double *) = {
        [ND_DTYPE_f32] = {[ND_DTYPE_f32] = TMPL(measure_f32_f32),
                          [ND_DTYPE_f16] = TMPL(measure_f32_f16),
                          [ND_DTYPE_bf16] = TMPL(measure_f32_bf16)},
        [ND_DTYPE_f16] = {[ND_DTYPE_f32] = TMPL(measure_f16_f32),
                          [ND_DTYPE_f16] = TMPL(measure_f16_f16),
                          [ND_DTYPE_bf16] = TMPL(measure_f16_bf16)},
        [ND_DTYPE_bf16] = {[ND_DTYPE_f32] = TMPL(measure_bf16_f32),
                           [ND_DTYPE_f16] = TMPL(measure_bf16_f16),
                           [ND_DTYPE_bf16] = TMPL(measure_bf16_bf16)},
    };
    const enum nd_dtype r = run->pair->view[0]->dtype, c = run->pair->view[1]->dtype;
    double largest[MOMENTS_LANES];
    struct TMPL(ends) ends;

    if (block->n < MOMENTS_BLOCK || run->odd_before || run->pair->scale != 1.0 ||
        measure[r][c] == NULL)
        return false;
    const unsigned seen =
        measure[r][c](block, lanes_so_far(run), run->lanes, &ends, run->spare, largest);
    return TMPL(keep_floats)(run, block, seen, &ends, largest);
}
#endif

/* Complex elements, and 64-bit integers beyond 2^53: read by the rules of pair.h. */
static void TMPL(step_terms)(struct lanes_run *run, const unsigned char *bytes_r,
                             const unsigned char *bytes_c, size_t n, uint64_t at)
{
    const double scale = run->pair->scale;
    double x[PAIR_STEP], y[PAIR_STEP], largest[MOMENTS_LANES];
    struct pair_values values;
    unsigned odd = 0, differ = 0;

    nd_pair_read(run->pair, bytes_r, bytes_c, (unsigned)n, &values);
    for (size_t i = 0; i < n; i++) {
        odd |= values.state[i]; /* PAIR_KEPT is 0 */
        differ += values.differs[i] ? 1 : 0;
    }
    if (odd != 0 || n < PAIR_STEP) {
        lanes_mark_odd(run, at);
        nd_lanes_add_values(run, &values, at);
        return;
    }
    for (size_t i = 0; i < PAIR_STEP; i++) {
        x[i] = values.r[i] * scale;
        y[i] = values.c[i] * scale;
    }
    TMPL(extremes)(values.r, values.c, PAIR_STEP / MOMENTS_LANES, &run->extremes);
    run->moments->n += PAIR_STEP;
    run->moments->differ += differ;
    if (TMPL(add_terms)(x, y, values.abs, values.product, lanes_so_far(run), run->lanes,
                        largest) &
        TMPL(LARGER)) {
        const double found = lanes_greatest(largest);
        size_t i = 0;
        while (values.abs[i] != found)
            i++;
        run->has_largest = true;
        run->place.n = 0;
        run->moments->max_abs = found;
        run->moments->max_abs_at = at + i;
    }
}

static void TMPL(step_doubles)(struct lanes_run *run, const unsigned char *bytes_r,
                               const unsigned char *bytes_c, uint64_t at)
{
    const struct pair *const pair = run->pair;
    double r[PAIR_STEP], c[PAIR_STEP], largest[MOMENTS_LANES];
    struct lanes_extremes extremes;

    TMPL(prefetch)(bytes_r, PAIR_STEP * pair->size[0]);
    TMPL(prefetch)(bytes_c, PAIR_STEP * pair->size[1]);
    run->decode[0](bytes_r, PAIR_STEP, r);
    run->decode[1](bytes_c, PAIR_STEP, c);
    lanes_extremes_init(&extremes);
    const uint64_t differ = TMPL(extremes)(r, c, PAIR_STEP / MOMENTS_LANES, &extremes);
    const unsigned seen = TMPL(add_doubles)(r, c, PAIR_STEP / MOMENTS_LANES, lanes_so_far(run),
                                            run->lanes, run->spare, largest);
    const bool finite = !(seen & TMPL(ODD));
    if (pair->is_wide && !(finite && lanes_are_exact(&extremes))) {
        TMPL(step_terms)(run, bytes_r, bytes_c, PAIR_STEP, at);
        return;
    }
    if (!finite || lanes_may_hold_masks(pair, &extremes)) {
        TMPL(step_odd)(run, bytes_r, bytes_c, PAIR_STEP, at);
        return;
    }
    lanes_swap(run);
    lanes_extremes_add(&run->extremes, &extremes);
    run->moments->n += PAIR_STEP;
    run->moments->differ += differ;
    if (seen & TMPL(LARGER))
        lanes_largest(run, largest, r, c, NULL, PAIR_STEP, at);
}

static void TMPL(step)(struct lanes_run *run, const unsigned char *r, const unsigned char *c,
                       size_t n, uint64_t at)
{
    const struct pair *const pair = run->pair;

    if (pair->is_complex || (pair->is_wide && (n < PAIR_STEP || pair->scale != 1.0))) {
        TMPL(step_terms)(run, r, c, n, at);
    } else if (n < PAIR_STEP || pair->scale != 1.0) {
        TMPL(step_odd)(run, r, c, n, at);
    } else if (pair->is_single) {
        TMPL(step_floats)(run, r, c, at);
    } else {
        TMPL(step_doubles)(run, r, c, at);
    }
}

static void TMPL(add)(struct lanes_run *run, const unsigned char *r, const unsigned char *c,
                      size_t n, uint64_t at)
{
    const struct pair *const pair = run->pair;

#if TMPL_WIDTH == 8
    const struct lanes_place block = {r, c, n, at};
    if (TMPL(whole)(run, &block))
        return;
#endif
    for (size_t i = 0; i < n; i += PAIR_STEP)
        TMPL(step)(run, r + i * pair->size[0], c + i * pair->size[1],
                   n - i < PAIR_STEP ? n - i : PAIR_STEP, at + i);
}

static bool TMPL(same)(struct lanes_run *run, const unsigned char *bytes, uint64_t at)
{
    const struct pair *const pair = run->pair;
    struct TMPL(ends) ends = TMPL(ends_none)();
    float room[PAIR_STEP];

    for (size_t i = 0; i < MOMENTS_BLOCK; i += PAIR_STEP) {
        const unsigned char *const r =
            TMPL(floats)(pair->view[0]->dtype, bytes + i * pair->size[0], room);
        /* The block's own lanes are as they were until all of it was seen. */
        if (TMPL(add_one)(r, i == 0 ? run->lanes : run->spare, run->spare, &ends) & TMPL(ODD))
            return false;
    }
    ends.min[1] = ends.min[0];
    ends.max[1] = ends.max[0];
    if (TMPL(ends_may_hold_masks)(pair, &ends))
        return false;
    lanes_swap(run);
    nd_lanes_mirror(run);
    TMPL(ends_keep)(&ends, &run->ends);
    run->moments->n += MOMENTS_BLOCK;
    if (!run->has_largest) {
        run->has_largest = true;
        run->moments->max_abs = 0.0;
        run->moments->max_abs_at = at;
    }
    return true;
}

static void TMPL(pivot)(struct lanes_run *run, const unsigned char *bytes_r,
                        const unsigned char *bytes_c, size_t n, uint64_t at)
{
    const struct pair *const pair = run->pair;
    double r[PAIR_STEP], c[PAIR_STEP];

    for (size_t i = 0; i < n; i += PAIR_STEP) {
        const unsigned char *const from_r = bytes_r + i * pair->size[0];
        const unsigned char *const from_c = bytes_c + i * pair->size[1];
        if (lanes_is_odd(run, at + i)) {
            nd_lanes_pivot_exact(run, from_r, from_c, n - i < PAIR_STEP ? n - i : PAIR_STEP,
                                 at + i);
            continue;
        }
        run->decode[0](from_r, PAIR_STEP, r);
        run->decode[1](from_c, PAIR_STEP, c);
        TMPL(add_pivoted)(r, c, run->pivot, run->pivoted);
    }
}

const struct kernel_set TMPL(nd_kernels) = {
    .isa = TMPL_ID,
    .decode =
        {
#define ND_DTYPE(word, size, name, kind, digits, emax)                                     \
    TMPL_IF_##kind([ND_DTYPE_##word] = TMPL(decode_##word), )
#include "tensor/dtypes.def"
#undef ND_DTYPE
        },
    .add = TMPL(add),
    .pivot = TMPL(pivot),
    .same = TMPL(same),
    .detail =
        {
            .read = TMPL(detail_read),
            .extremes = TMPL(detail_extremes),
            .ratios = TMPL(detail_ratios),
            .ulps = TMPL(detail_ulps),
            .bins = TMPL(detail_bins),
            .sizes = TMPL(detail_sizes),
        },
};

#undef TMPL_INLINE
#undef TMPL_ISA
#undef TMPL_ID
#undef TMPL_WIDTH
#undef TMPL_TOGETHER
#undef TMPL_HALVES
