/*
 * The steps of one instruction set, made of the passes of moments_tmpl.h (which names the
 * parameters).
 */

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
    if (seen & TMPL(LARGER))
        lanes_larger(run, largest, place);
    return true;
}

static void TMPL(step_floats)(struct lanes_run *run, const unsigned char *bytes_r,
                              const unsigned char *bytes_c, uint64_t at)
{
    const struct pair *const pair = run->pair;
    float room_r[PAIR_STEP], room_c[PAIR_STEP];
    const unsigned char *const r = TMPL(floats)(pair->view[0]->dtype, bytes_r, room_r);
    const unsigned char *const c = TMPL(floats)(pair->view[1]->dtype, bytes_c, room_c);
    const struct lanes_place place = {bytes_r, bytes_c, PAIR_STEP, at, {NULL, NULL}};
    const double so_far = lanes_so_far(run);
    double largest[MOMENTS_LANES];
    struct TMPL(ends) ends;
    unsigned seen = TMPL(ODD);

    if (run->odd_lately) {
        TMPL(odd_floats)(run, &place, r, c, room_r, room_c);
        return;
    }
#if TMPL_WIDTH == 8
    const struct lanes_place floats = {r, c, PAIR_STEP, at, {NULL, NULL}};
    seen = TMPL(measure_f32_f32)(&floats, so_far, run->lanes, &ends, run->spare, largest);
#else
    ends = TMPL(ends_of_pair)(r, c);
    if (!TMPL(ends_may_hold_masks)(pair, &ends))
        seen = TMPL(add_floats)(r, c, PAIR_STEP, so_far, run->lanes, run->spare, largest);
#endif
    if (!TMPL(keep_floats)(run, &place, seen, &ends, largest))
        TMPL(odd_floats)(run, &place, r, c, room_r, room_c);
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

    if (block->n < MOMENTS_BLOCK || run->pair->scale != 1.0)
        return false;
    if (run->odd_before)
        return TMPL(odd_whole)(run, block);
    if (!run->pair->is_single)
        return TMPL(whole_doubles)(run, block);
    if (measure[r][c] == NULL)
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

    if (pair_is_c64(run->pair))
        pair_c64_read(run->pair, bytes_r, bytes_c, n, &values);
    else
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
    if (scale != 1.0) /* the sums about the pivot are made of values as they are stored */
        lanes_mark_odd(run, at);
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
    const struct lanes_place place = {bytes_r, bytes_c, PAIR_STEP, at, {NULL, NULL}};
    double r[PAIR_STEP], c[PAIR_STEP], largest[MOMENTS_LANES];
    struct lanes_extremes extremes;

    TMPL(prefetch)(bytes_r, PAIR_STEP * pair->size[0]);
    TMPL(prefetch)(bytes_c, PAIR_STEP * pair->size[1]);
    run->decode[0](bytes_r, PAIR_STEP, r);
    run->decode[1](bytes_c, PAIR_STEP, c);
    if (run->odd_lately && !pair->is_wide) {
        TMPL(odd_doubles)(run, &place, r, c);
        return;
    }
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
        TMPL(odd_doubles)(run, &place, r, c);
        return;
    }
    lanes_swap(run);
    lanes_extremes_add(&run->extremes, &extremes);
    run->moments->n += PAIR_STEP;
    run->moments->differ += differ;
    if (seen & TMPL(LARGER))
        lanes_larger(run, largest, &place);
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
    const struct lanes_place block = {r, c, n, at, {run->ahead[0], run->ahead[1]}};

#if TMPL_WIDTH == 8
    if (TMPL(whole)(run, &block))
        return;
#endif
    for (size_t i = TMPL(add_bytes)(run, &block); i < n; i += PAIR_STEP)
        TMPL(step)(run, r + i * pair->size[0], c + i * pair->size[1],
                   n - i < PAIR_STEP ? n - i : PAIR_STEP, at + i);
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
            const size_t here = n - i < PAIR_STEP ? n - i : PAIR_STEP;
            TMPL(read_sifted)(pair, from_r, from_c, here, &run->pivot, r, c);
        } else {
            run->decode[0](from_r, PAIR_STEP, r);
            run->decode[1](from_c, PAIR_STEP, c);
        }
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
            .sifted = TMPL(read_sifted),
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
