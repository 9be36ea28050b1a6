/*
 * The hot pass for one instruction set, in plain C.  moments.c includes this file once for
 * each row of isas.def, inside a region that lets the compiler use that set.
 *
 * Parameters, undefined again at the end:
 *   TMPL_ISA    the word of the row (base, avx2 ...): the suffix of every name here
 *   TMPL_ID     its enum isa
 *   TMPL_WIDTH  lanes that a pass works on at once: a divisor of 16, so chosen that the
 *               accumulators of one pass stay in registers
 *
 * How it works.  A step is PAIR_STEP elements.  Both sides are decoded into doubles that
 * stay in the L1 cache; then short passes run over them, each with few accumulators.  A
 * pass takes TMPL_WIDTH of the 16 lanes over the whole step, then the next ones: the order
 * of additions within a lane is the same whatever the width, so the sums are the same bits.
 *
 * The first pass finds the extremes and, by the way, whether the step holds anything odd
 * (a value that is not finite, or values low enough to be mask constants on both sides; a
 * last step that is not full counts as odd).  An odd step is copied with every position
 * that does not count replaced by what changes no sum, and the same passes run over the
 * copies.
 *
 * Neither FMA nor reassociation may happen here: see the flags in src/CMakeLists.txt.
 */
#define TMPL_PASTE_(name, isa) name##_##isa
#define TMPL_PASTE(name, isa)  TMPL_PASTE_(name, isa)
#define TMPL(name)             TMPL_PASTE(name, TMPL_ISA)

#define ND_DTYPE(word, size, name, kind, digits, emax)                                     \
    TMPL_IF_##kind(static void TMPL(decode_##word)(const unsigned char *restrict bytes,    \
                                                   size_t n, double *restrict ret) {       \
        for (size_t i = 0; i < n; i++)                                                     \
            ret[i] = load_##word(bytes, i);                                                \
    })
#include "tensor/dtypes.def"
#undef ND_DTYPE

/* Accumulators of lanes [at, at + TMPL_WIDTH): from memory to registers and back. */
#define TMPL_TAKE(local, from)                                                             \
    double local[TMPL_WIDTH];                                                              \
    for (int l = 0; l < TMPL_WIDTH; l++)                                                   \
    local[l] = (from)[at + (size_t)l]
#define TMPL_GIVE(local, to)                                                               \
    for (int l = 0; l < TMPL_WIDTH; l++)                                                   \
    (to)[at + (size_t)l] = local[l]

/*
 * Minimum and maximum of one step; returns false if anything in it is not finite.  The
 * error times zero is a zero, or a NaN once there was a NaN, an infinity or an overflow.
 */
static bool TMPL(pass_extremes)(const double *restrict r, const double *restrict c,
                                size_t groups, struct lanes_extremes *restrict ret)
{
    double trace[MOMENTS_LANES] = {0};

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL_TAKE(min_r, ret->min[0]);
        TMPL_TAKE(max_r, ret->max[0]);
        TMPL_TAKE(min_c, ret->min[1]);
        TMPL_TAKE(max_c, ret->max[1]);
        TMPL_TAKE(zero, trace);
        for (size_t g = 0; g < groups; g++) {
            const double *const group_r = r + g * MOMENTS_LANES + at;
            const double *const group_c = c + g * MOMENTS_LANES + at;
            TMPL_KEEP_LOOP
            for (int l = 0; l < TMPL_WIDTH; l++) {
                const double x = group_r[l], y = group_c[l];
                min_r[l] = x < min_r[l] ? x : min_r[l];
                max_r[l] = x > max_r[l] ? x : max_r[l];
                min_c[l] = y < min_c[l] ? y : min_c[l];
                max_c[l] = y > max_c[l] ? y : max_c[l];
                zero[l] += (y - x) * 0.0;
            }
        }
        TMPL_GIVE(min_r, ret->min[0]);
        TMPL_GIVE(max_r, ret->max[0]);
        TMPL_GIVE(min_c, ret->min[1]);
        TMPL_GIVE(max_c, ret->max[1]);
        TMPL_GIVE(zero, trace);
    }
    return lanes_all_zero(trace);
}

/* Sums of the errors and of the values; the largest |e| of each lane into ret_largest. */
static void TMPL(pass_values)(const double *restrict r, const double *restrict c,
                              size_t groups, struct lanes *restrict lanes,
                              double *restrict ret_largest)
{
    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL_TAKE(sum_abs, lanes->sum[LANE_ABS]);
        TMPL_TAKE(sum_ee, lanes->sum[LANE_EE]);
        TMPL_TAKE(sum_r, lanes->sum[LANE_R]);
        TMPL_TAKE(sum_c, lanes->sum[LANE_C]);
        TMPL_TAKE(sum_rr, lanes->sum[LANE_RR]);
        TMPL_TAKE(sum_cc, lanes->sum[LANE_CC]);
        TMPL_TAKE(sum_rc, lanes->sum[LANE_RC]);
        TMPL_TAKE(differ, lanes->sum[LANE_DIFFER]);
        double largest[TMPL_WIDTH] = {0};
        for (size_t g = 0; g < groups; g++) {
            const double *const group_r = r + g * MOMENTS_LANES + at;
            const double *const group_c = c + g * MOMENTS_LANES + at;
            TMPL_KEEP_LOOP
            for (int l = 0; l < TMPL_WIDTH; l++) {
                const double x = group_r[l], y = group_c[l];
                const double e = y - x, d = fabs(e);
                sum_abs[l] += d;
                sum_ee[l] += e * e;
                sum_r[l] += x;
                sum_c[l] += y;
                sum_rr[l] += x * x;
                sum_cc[l] += y * y;
                sum_rc[l] += x * y;
                differ[l] += x != y ? 1.0 : 0.0;
                largest[l] = d > largest[l] ? d : largest[l];
            }
        }
        TMPL_GIVE(sum_abs, lanes->sum[LANE_ABS]);
        TMPL_GIVE(sum_ee, lanes->sum[LANE_EE]);
        TMPL_GIVE(sum_r, lanes->sum[LANE_R]);
        TMPL_GIVE(sum_c, lanes->sum[LANE_C]);
        TMPL_GIVE(sum_rr, lanes->sum[LANE_RR]);
        TMPL_GIVE(sum_cc, lanes->sum[LANE_CC]);
        TMPL_GIVE(sum_rc, lanes->sum[LANE_RC]);
        TMPL_GIVE(differ, lanes->sum[LANE_DIFFER]);
        TMPL_GIVE(largest, ret_largest);
    }
}

/* Sums about the pivot. */
static void TMPL(pass_pivot)(const double *restrict r, const double *restrict c,
                             size_t groups, struct moments_pivot pivot,
                             struct lanes *restrict lanes)
{
    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL_TAKE(sum_pr, lanes->sum[LANE_PR]);
        TMPL_TAKE(sum_pc, lanes->sum[LANE_PC]);
        TMPL_TAKE(sum_prr, lanes->sum[LANE_PRR]);
        TMPL_TAKE(sum_pcc, lanes->sum[LANE_PCC]);
        TMPL_TAKE(sum_prc, lanes->sum[LANE_PRC]);
        for (size_t g = 0; g < groups; g++) {
            const double *const group_r = r + g * MOMENTS_LANES + at;
            const double *const group_c = c + g * MOMENTS_LANES + at;
            TMPL_KEEP_LOOP
            for (int l = 0; l < TMPL_WIDTH; l++) {
                const double u = group_r[l] - pivot.r, v = group_c[l] - pivot.c;
                sum_pr[l] += u;
                sum_pc[l] += v;
                sum_prr[l] += u * u;
                sum_pcc[l] += v * v;
                sum_prc[l] += u * v;
            }
        }
        TMPL_GIVE(sum_pr, lanes->sum[LANE_PR]);
        TMPL_GIVE(sum_pc, lanes->sum[LANE_PC]);
        TMPL_GIVE(sum_prr, lanes->sum[LANE_PRR]);
        TMPL_GIVE(sum_pcc, lanes->sum[LANE_PCC]);
        TMPL_GIVE(sum_prc, lanes->sum[LANE_PRC]);
    }
}

/* values * scale where they count, else `instead`. */
static void TMPL(replace)(const double *restrict values, const double *restrict kept,
                          size_t n, double scale, double instead, double *restrict ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = kept[i] != 0.0 ? values[i] * scale : instead;
    for (size_t i = n; i < PAIR_STEP; i++) /* up to the next full group of lanes */
        ret[i] = instead;
}

/*
 * What takes the place of a position that does not count: for the extremes the first pair
 * that does, for the sums a pair of zeros, for the sums about the pivot the pivot.
 */
static void TMPL(step_odd)(struct lanes_run *run, const double *r, const double *c,
                           size_t n, uint64_t at)
{
    const size_t groups = (n + MOMENTS_LANES - 1) / MOMENTS_LANES;
    const double scale = run->pair->scale;
    struct lanes_kept kept;
    double x[PAIR_STEP], y[PAIR_STEP], largest[MOMENTS_LANES];

    nd_lanes_sort_out(run, r, c, n, &kept);
    if (kept.count == 0)
        return;
    TMPL(replace)(r, kept.flag, n, 1.0, kept.first[0], x);
    TMPL(replace)(c, kept.flag, n, 1.0, kept.first[1], y);
    TMPL(pass_extremes)(x, y, groups, &run->lanes.extremes);
    TMPL(replace)(r, kept.flag, n, scale, run->pivot.r, x);
    TMPL(replace)(c, kept.flag, n, scale, run->pivot.c, y);
    TMPL(pass_pivot)(x, y, groups, run->pivot, &run->lanes);
    TMPL(replace)(r, kept.flag, n, scale, 0.0, x);
    TMPL(replace)(c, kept.flag, n, scale, 0.0, y);
    TMPL(pass_values)(x, y, groups, &run->lanes, largest);
    lanes_largest(run, largest, x, y, kept.flag, n, at);
}

static void TMPL(step)(struct lanes_run *run, const unsigned char *bytes_r,
                       const unsigned char *bytes_c, size_t n, uint64_t at)
{
    const struct pair *const pair = run->pair;
    struct lanes_extremes extremes;
    double r[PAIR_STEP], c[PAIR_STEP], largest[MOMENTS_LANES];

    TMPL(nd_kernels).decode[pair->view[0]->dtype](bytes_r, n, r);
    TMPL(nd_kernels).decode[pair->view[1]->dtype](bytes_c, n, c);
    lanes_extremes_init(&extremes);
    const bool finite =
        n == PAIR_STEP && TMPL(pass_extremes)(r, c, PAIR_STEP / MOMENTS_LANES, &extremes);
    if (pair->is_wide && !(finite && lanes_are_exact(&extremes))) {
        nd_lanes_step_exact(run, bytes_r, bytes_c, n, at);
        return;
    }
    if (!finite || pair->scale != 1.0 || lanes_may_hold_masks(pair, &extremes)) {
        TMPL(step_odd)(run, r, c, n, at);
        return;
    }
    run->moments->n += PAIR_STEP;
    lanes_extremes_add(&run->lanes.extremes, &extremes);
    TMPL(pass_values)(r, c, PAIR_STEP / MOMENTS_LANES, &run->lanes, largest);
    TMPL(pass_pivot)(r, c, PAIR_STEP / MOMENTS_LANES, run->pivot, &run->lanes);
    lanes_largest(run, largest, r, c, NULL, n, at);
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
    .step = TMPL(step),
};

#undef TMPL_TAKE
#undef TMPL_GIVE
#undef TMPL
#undef TMPL_PASTE
#undef TMPL_PASTE_
#undef TMPL_ISA
#undef TMPL_ID
#undef TMPL_WIDTH
