/*
 * Blocks whose bytes are equal on both sides, for one instruction set: the differences are
 * zeros, and one side's sums are both sides'.  Behind moments_tmpl.h.
 */

/* Sums and squares of one side are added up for so many vectors of lanes at once. */
enum {
    TMPL(SAME_AT_ONCE) = MOMENTS_LANES / TMPL_WIDTH < 4 ? MOMENTS_LANES / TMPL_WIDTH : 4
};

struct TMPL(same_sums) {
    TMPL(vd) sum[TMPL(SAME_AT_ONCE)], squares[TMPL(SAME_AT_ONCE)];
};

TMPL_INLINE void TMPL(same_take)(const struct lanes *in, size_t at,
                                 struct TMPL(same_sums) *ret)
{
    for (size_t k = 0; k < TMPL(SAME_AT_ONCE); k++) {
        ret->sum[k] = TMPL(vd_load)(in->sum[LANE_R] + at + k * TMPL_WIDTH);
        ret->squares[k] = TMPL(vd_load)(in->sum[LANE_RR] + at + k * TMPL_WIDTH);
    }
}

/* False: a square is not finite. */
TMPL_INLINE bool TMPL(same_give)(const struct TMPL(same_sums) *sums, size_t at,
                                 struct lanes *out)
{
    bool finite = true;

    for (size_t k = 0; k < TMPL(SAME_AT_ONCE); k++) {
        TMPL(vd_store)(out->sum[LANE_R] + at + k * TMPL_WIDTH, sums->sum[k]);
        TMPL(vd_store)(out->sum[LANE_RR] + at + k * TMPL_WIDTH, sums->squares[k]);
        finite = TMPL(vd_all_at_most)(sums->squares[k], TMPL(vd_set)(DBL_MAX)) && finite;
    }
    return finite;
}

/* Reads ahead on both sides, by and by: the next step is compared before it is added. */
TMPL_INLINE void TMPL(same_prefetch)(const struct lanes_place *step, size_t at)
{
    __builtin_prefetch((const void *)((uintptr_t)step->r + LANES_AHEAD + at));
    __builtin_prefetch((const void *)((uintptr_t)step->c + LANES_AHEAD + at));
}

/* Full groups of lanes: the step's, `size` bytes each, as floats. */
static bool TMPL(same_floats)(const struct lanes_place *step, size_t size,
                              const unsigned char *bytes, const struct lanes *in,
                              struct lanes *out, struct TMPL(ends) *ends)
{
    enum { SPAN = TMPL(SAME_AT_ONCE) * TMPL_WIDTH, SIZE = sizeof(float) };
    TMPL(vs) min = ends->min[0], max = ends->max[0];
    struct TMPL(same_sums) sums;
    bool finite = true;

    for (size_t at = 0; at < MOMENTS_LANES; at += SPAN) {
        TMPL(same_take)(in, at, &sums);
        TMPL_KEEP_LOOP
        for (size_t i = at; i < step->n; i += MOMENTS_LANES) {
            TMPL(same_prefetch)(step, i * size);
            for (size_t k = 0; k < SPAN; k += TMPL(SINGLES)) {
                const TMPL(vs) all = TMPL(vs_load)(bytes + (i + k) * SIZE);
                min = TMPL(vs_min)(all, min);
                max = TMPL(vs_max)(all, max);
            }
            for (size_t k = 0; k < TMPL(SAME_AT_ONCE); k++) {
                const TMPL(vd) x = TMPL(vd_widen)(bytes + (i + k * TMPL_WIDTH) * SIZE);
                sums.sum[k] = sums.sum[k] + x;
                sums.squares[k] = TMPL(vd_add_exact)(sums.squares[k], x, x);
            }
        }
        finite = TMPL(same_give)(&sums, at, out) && finite;
    }
    ends->min[0] = min;
    ends->max[0] = max;
    return finite;
}

static bool TMPL(same_doubles)(const struct lanes_place *step, size_t size,
                               const unsigned char *bytes, const struct lanes *in,
                               struct lanes *out, struct lanes_extremes *extremes)
{
    enum { SPAN = TMPL(SAME_AT_ONCE) * TMPL_WIDTH, SIZE = sizeof(double) };
    TMPL(vd) min = TMPL(vd_load)(extremes->min[0]), max = TMPL(vd_load)(extremes->max[0]);
    struct TMPL(same_sums) sums;
    bool finite = true;

    for (size_t at = 0; at < MOMENTS_LANES; at += SPAN) {
        TMPL(same_take)(in, at, &sums);
        TMPL_KEEP_LOOP
        for (size_t i = at; i < step->n; i += MOMENTS_LANES) {
            TMPL(same_prefetch)(step, i * size);
            TMPL(same_prefetch)(step, i * size + LANES_LINE);
            for (size_t k = 0; k < TMPL(SAME_AT_ONCE); k++) {
                const TMPL(vd) x =
                    TMPL(vd_load)((const void *)(bytes + (i + k * TMPL_WIDTH) * SIZE));
                min = TMPL(vd_min)(x, min);
                max = TMPL(vd_max)(x, max);
                sums.sum[k] = sums.sum[k] + x;
                sums.squares[k] = sums.squares[k] + x * x;
            }
        }
        finite = TMPL(same_give)(&sums, at, out) && finite;
    }
    TMPL(vd_store)(extremes->min[0], min);
    TMPL(vd_store)(extremes->max[0], max);
    return finite;
}

/* What equal steps are collected in before it is sure that all of the block is. */
struct TMPL(same_found) {
    struct TMPL(ends) ends;
    struct lanes_extremes extremes;
};

/* A step of full groups of lanes.  False: its sides differ, or not all of it counts. */
static bool TMPL(same_step)(const struct lanes_run *run, const struct lanes_place *step,
                            const struct lanes *in, struct lanes *out,
                            struct TMPL(same_found) *found)
{
    const struct pair *const pair = run->pair;
    const enum nd_dtype dtype = pair->view[0]->dtype;
    const size_t each = pair->size[0], size = step->n * each;
    unsigned char part[PAIR_STEP * sizeof(float)];
    double room[PAIR_STEP]; /* or floats */
    const unsigned char *bytes = step->r;

    if (memcmp(step->r, step->c, size) != 0)
        return false;
    if (!pair->is_single) {
        if (dtype != ND_DTYPE_f64) {
            run->decode[0](bytes, step->n, room);
            bytes = (const void *)room;
        }
        return TMPL(same_doubles)(step, each, bytes, in, out, &found->extremes);
    }
    if (step->n < PAIR_STEP && dtype != ND_DTYPE_f32) { /* whole steps become floats */
        memset(part, 0, sizeof part);
        memcpy(part, bytes, size);
        bytes = part;
    }
    if (dtype != ND_DTYPE_f32)
        bytes = TMPL(floats)(dtype, bytes, (void *)room);
    return TMPL(same_floats)(step, each, bytes, in, out, &found->ends);
}

static void TMPL(same_keep)(struct lanes_run *run, struct TMPL(same_found) *found)
{
    const bool is_single = run->pair->is_single;

    lanes_swap(run);
    if (is_single) {
        TMPL(ends_keep)(&found->ends, &run->ends);
    } else {
        struct lanes_extremes *const ends = &found->extremes;
        memcpy(ends->min[1], ends->min[0], sizeof ends->min[1]);
        memcpy(ends->max[1], ends->max[0], sizeof ends->max[1]);
        lanes_extremes_add(&run->extremes, ends);
    }
}

static bool TMPL(same_may_hold_masks)(const struct pair *pair,
                                      struct TMPL(same_found) *found)
{
    if (!pair->is_single)
        return lanes_any_below(found->extremes.min[0], pair->masks[0].top);
    found->ends.min[1] = found->ends.min[0];
    found->ends.max[1] = found->ends.max[0];
    return TMPL(ends_may_hold_masks)(pair, &found->ends);
}

/* The first n elements of a block, full groups of lanes. */
static bool TMPL(same_groups)(struct lanes_run *run, const struct lanes_place *block,
                              size_t n)
{
    const struct pair *const pair = run->pair;
    /* Less than what is read ahead. */
    const size_t size = pair->size[0], each = pair->is_single ? PAIR_STEP : PAIR_STEP / 2;
    struct TMPL(same_found) found = {.ends = TMPL(ends_none)()};

    lanes_extremes_init(&found.extremes);
    for (size_t i = 0; i < n; i += each) {
        const struct lanes_place step = {block->r + i * size, block->c + i * size,
                                         n - i < each ? n - i : each, block->at + i,
                                         {NULL, NULL}};
        /* The block's own lanes are as they were until all of it was seen. */
        if (!TMPL(same_step)(run, &step, i == 0 ? run->lanes : run->spare, run->spare,
                             &found))
            return false;
    }
    if (TMPL(same_may_hold_masks)(pair, &found))
        return false;
    TMPL(same_keep)(run, &found);
    run->moments->n += n;
    if (!run->has_largest) {
        run->has_largest = true;
        run->moments->max_abs = 0.0;
        run->moments->max_abs_at = block->at;
    }
    return true;
}

/* Most blocks that differ do so at once: that costs nothing yet. */
TMPL_INLINE bool TMPL(heads_differ)(const unsigned char *r, const unsigned char *c)
{
    uint64_t differ = 0;

    for (size_t i = 0; i < LANES_LINE / sizeof differ; i++)
        differ |= load_raw_u64(r, i) ^ load_raw_u64(c, i);
    return differ != 0;
}

/* A block, or the last part of one. */
static bool TMPL(same)(struct lanes_run *run, const struct lanes_place *block)
{
    const size_t whole = block->n / MOMENTS_LANES * MOMENTS_LANES, rest = block->n - whole;
    const unsigned char *const r = block->r + whole * run->pair->size[0];
    const unsigned char *const c = block->c + whole * run->pair->size[0];

    if (run->pair->is_complex || run->pair->scale != 1.0 || run->odd_before)
        return false;
    if (whole >= LANES_LINE && TMPL(heads_differ)(block->r, block->c))
        return false;
    /* Not for nothing: a memcmp() of no bytes may read where none has been read ahead. */
    if (rest > 0 && memcmp(r, c, rest * run->pair->size[0]) != 0)
        return false;
    if (whole > 0 && !TMPL(same_groups)(run, block, whole))
        return false;
    if (block->n % PAIR_STEP != 0) /* the sums about the pivot go over full steps */
        lanes_mark_odd(run, block->at + block->n);
    nd_lanes_add_exact(run, r, c, rest, block->at + whole);
    nd_lanes_mirror(run);
    return true;
}
