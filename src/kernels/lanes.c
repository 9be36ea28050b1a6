/*
 * Lanes: their start, their fold, and the steps that need a look at every element.
 */
#include "kernels/lanes.h"

#include <string.h>

void nd_lanes_block_begin(struct lanes_run *run)
{
    run->lanes = &run->room[0];
    run->spare = &run->room[1];
    memset(run->lanes, 0, sizeof *run->lanes);
    run->block_n = run->moments->n;
    run->odd_before = run->odd != 0;
    run->odd = 0;
}

void nd_lanes_mirror(struct lanes_run *run)
{
    struct lanes *const lanes = run->lanes;

    memset(lanes->sum[LANE_ABS], 0, sizeof lanes->sum[LANE_ABS]);
    memset(lanes->sum[LANE_EE], 0, sizeof lanes->sum[LANE_EE]);
    memcpy(lanes->sum[LANE_C], lanes->sum[LANE_R], sizeof lanes->sum[LANE_C]);
    memcpy(lanes->sum[LANE_CC], lanes->sum[LANE_RR], sizeof lanes->sum[LANE_CC]);
    memcpy(lanes->sum[LANE_RC], lanes->sum[LANE_RR], sizeof lanes->sum[LANE_RC]);
}

double nd_lanes_sum(const double *lane)
{
    double sum[MOMENTS_LANES];

    memcpy(sum, lane, sizeof sum);
    for (int half = MOMENTS_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            sum[l] += sum[l + half];
    return sum[0];
}

static void lanes_fold_end(const double *lane, const float *end, double sign,
                           double *inout)
{
    double most[MOMENTS_LANES];

    for (int l = 0; l < MOMENTS_LANES; l++) {
        const double value = (double)end[l] * sign, other = lane[l] * sign;
        most[l] = value > other ? value : other;
    }
    for (int half = MOMENTS_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            most[l] = most[l + half] > most[l] ? most[l + half] : most[l];
    /* Adding +0 makes a negative zero positive: which of the two came first does not
     * matter then. */
    if (most[0] > *inout * sign)
        *inout = most[0] * sign + 0.0;
}

void nd_lanes_chunk_begin(struct lanes_run *run)
{
    lanes_extremes_init(&run->extremes);
    lanes_ends_init(&run->ends);
    run->has_largest = false;
    run->odd_lately = false;
    run->place.n = 0;
}

void nd_lanes_chunk_end(struct lanes_run *run)
{
    struct nd_moments *const moments = run->moments;

    for (int side = 0; side < 2; side++) {
        lanes_fold_end(run->extremes.min[side], run->ends.min[side], -1.0,
                       &moments->min[side]);
        lanes_fold_end(run->extremes.max[side], run->ends.max[side], 1.0,
                       &moments->max[side]);
    }
    for (int l = 0; l < MOMENTS_LANES; l++)
        moments->differ += (uint64_t)run->ends.differ[l];
    if (run->place.n > 0)
        nd_lanes_find_largest(run);
}

static void lanes_add_pivoted(struct nd_moments *moments, const double *sum)
{
    moments->sum_pr += sum[PIVOT_R];
    moments->sum_pc += sum[PIVOT_C];
    moments->sum_prr += sum[PIVOT_RR];
    moments->sum_pcc += sum[PIVOT_CC];
    moments->sum_prc += sum[PIVOT_RC];
}

/*
 * The sums about the pivot follow from the others where little cancels: where the squares
 * about the pivot are a 64th or more of those that they are the difference of, at most six
 * of 53 bits are lost.  Else (a mean far larger than the spread) they are added up by
 * themselves.  NaN compares false: then too.  (Short integers lose nothing anyway.)
 */
static bool lanes_pivot_follows(const double *sum, double n, const struct moments_pivot *pivot,
                                double *ret)
{
    const double kept = 64.0;
    const double p = pivot->r, q = pivot->c;

    ret[PIVOT_R] = sum[LANE_R] - p * n;
    ret[PIVOT_C] = sum[LANE_C] - q * n;
    ret[PIVOT_RR] = (sum[LANE_RR] - p * sum[LANE_R]) - p * ret[PIVOT_R];
    ret[PIVOT_CC] = (sum[LANE_CC] - q * sum[LANE_C]) - q * ret[PIVOT_C];
    ret[PIVOT_RC] = (sum[LANE_RC] - p * sum[LANE_C]) - q * ret[PIVOT_R];
    return ret[PIVOT_RR] * kept >= sum[LANE_RR] + p * p * n &&
           ret[PIVOT_CC] * kept >= sum[LANE_CC] + q * q * n;
}

bool nd_lanes_block_end(struct lanes_run *run)
{
    struct nd_moments *const moments = run->moments;
    double (*const lane)[MOMENTS_LANES] = run->lanes->sum;
    double sum[LANE_SUMS], pivoted[PIVOT_SUMS];

    /* nd_lanes_sum() of each, all at once. */
    for (int half = MOMENTS_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < LANE_SUMS; k++)
            for (int l = 0; l < half; l++)
                lane[k][l] += lane[k][l + half];
    for (int k = 0; k < LANE_SUMS; k++)
        sum[k] = lane[k][0];
    moments->sum_abs += sum[LANE_ABS];
    moments->sum_ee += sum[LANE_EE];
    moments->sum_r += sum[LANE_R];
    moments->sum_c += sum[LANE_C];
    moments->sum_rr += sum[LANE_RR];
    moments->sum_cc += sum[LANE_CC];
    moments->sum_rc += sum[LANE_RC];
    if (run->pair->is_complex)
        return true;
    const bool is_exact = run->pair->is_short && run->pair->scale == 1.0;
    const double n = (double)(moments->n - run->block_n);
    if (lanes_pivot_follows(sum, n, &run->pivot, pivoted) || is_exact) {
        lanes_add_pivoted(moments, pivoted);
        return true;
    }
    memset(run->pivoted, 0, sizeof run->pivoted);
    return false;
}

void nd_lanes_pivot_end(struct lanes_run *run)
{
    double sum[PIVOT_SUMS];

    for (int k = 0; k < PIVOT_SUMS; k++)
        sum[k] = nd_lanes_sum(run->pivoted[k]);
    lanes_add_pivoted(run->moments, sum);
}

static void lanes_count_side(struct side_counts *counts, double value)
{
    counts->nan += isnan(value) ? 1 : 0;
    counts->pos_inf += value == HUGE_VAL ? 1 : 0;
    counts->neg_inf += value == -HUGE_VAL ? 1 : 0;
}

/* A position that stays out of the sums. */
static void lanes_count_odd(struct nd_moments *moments, enum pair_state state, double r,
                            double c)
{
    if (state == PAIR_MASKED) {
        moments->masked++;
        moments->masks_differ += r != c ? 1 : 0;
        return;
    }
    if (state == PAIR_MISMATCHES) {
        moments->mismatches++;
        moments->differ++;
    }
    lanes_count_side(&moments->side[0], r);
    lanes_count_side(&moments->side[1], c);
}

bool nd_lanes_count_sifted(struct lanes_run *run, const struct lanes_sifted *sifted,
                           const struct lanes_place *place)
{
    struct nd_moments *const moments = run->moments;
    const unsigned added = sifted->total - (unsigned)place->n; /* -infinity on both sides */
    const bool are_masks = run->pair->masks[0].count > 0;
    const unsigned masked = sifted->masked - (are_masks ? added : 0);
    const unsigned wild = sifted->wild - (are_masks ? 0 : added);
    const unsigned n = (unsigned)place->n - masked - wild;

    run->odd_lately = masked + wild > 0;
    if (run->odd_lately || place->n < PAIR_STEP || run->pair->scale != 1.0)
        for (size_t i = 0; i < place->n; i += PAIR_STEP)
            lanes_mark_odd(run, place->at + i);
    moments->n += n;
    moments->differ += n - sifted->equal + sifted->mismatches;
    moments->mismatches += sifted->mismatches;
    moments->masked += masked;
    moments->masks_differ += sifted->masks_differ;
    for (int side = 0; side < 2; side++) {
        moments->side[side].nan += sifted->side[side].nan;
        moments->side[side].pos_inf += sifted->side[side].pos_inf;
        moments->side[side].neg_inf += sifted->side[side].neg_inf - (are_masks ? 0 : added);
    }
    return n > 0;
}

static void lanes_add(struct lanes_run *run, const struct pair_values *values, unsigned i,
                      uint64_t at)
{
    struct nd_moments *const moments = run->moments;
    const unsigned l = i % MOMENTS_LANES;
    const double d = values->abs[i], of[2] = {values->r[i], values->c[i]};
    const double x = of[0] * run->pair->scale, y = of[1] * run->pair->scale;
    const double terms[LANE_SUMS] = {
        [LANE_ABS] = d,
        [LANE_EE] = d * d,
        [LANE_R] = x,
        [LANE_C] = y,
        [LANE_RR] = x * x,
        [LANE_CC] = y * y,
        [LANE_RC] = values->product[i],
    };

    for (int sum = 0; sum < LANE_SUMS; sum++)
        run->lanes->sum[sum][l] += terms[sum];
    for (int side = 0; side < 2; side++) {
        double *const min = &run->extremes.min[side][l];
        double *const max = &run->extremes.max[side][l];
        *min = of[side] < *min ? of[side] : *min;
        *max = of[side] > *max ? of[side] : *max;
    }
    if (!run->has_largest || d > moments->max_abs) {
        run->has_largest = true;
        run->place.n = 0;
        moments->max_abs = d;
        moments->max_abs_at = at + i;
    }
    moments->n++;
    moments->differ += values->differs[i] ? 1 : 0;
}

void nd_lanes_add_values(struct lanes_run *run, const struct pair_values *values, uint64_t at)
{
    for (unsigned i = 0; i < values->n; i++) {
        if (values->state[i] == PAIR_KEPT)
            lanes_add(run, values, i, at);
        else
            lanes_count_odd(run->moments, (enum pair_state)values->state[i], values->r[i],
                            values->c[i]);
    }
}

void nd_lanes_add_exact(struct lanes_run *run, const unsigned char *r,
                        const unsigned char *c, size_t n, uint64_t at)
{
    struct pair_values values;

    for (size_t i = 0; i < n; i += PAIR_STEP) {
        nd_pair_read(run->pair, r + i * run->pair->size[0], c + i * run->pair->size[1],
                     n - i < PAIR_STEP ? (unsigned)(n - i) : PAIR_STEP, &values);
        nd_lanes_add_values(run, &values, at + i);
    }
}

static void lanes_pivot_step(struct lanes_run *run, const struct pair_values *values)
{
    const double scale = run->pair->scale;

    for (unsigned i = 0; i < values->n; i++) {
        if (values->state[i] != PAIR_KEPT)
            continue;
        const double u = values->r[i] * scale - run->pivot.r;
        const double v = values->c[i] * scale - run->pivot.c;
        const double terms[PIVOT_SUMS] = {u, v, u * u, v * v, u * v};
        for (int sum = 0; sum < PIVOT_SUMS; sum++)
            run->pivoted[sum][i % MOMENTS_LANES] += terms[sum];
    }
}

void nd_lanes_pivot_exact(struct lanes_run *run, const unsigned char *r,
                          const unsigned char *c, size_t n, uint64_t at)
{
    struct pair_values values;

    (void)at;
    for (size_t i = 0; i < n; i += PAIR_STEP) {
        nd_pair_read(run->pair, r + i * run->pair->size[0], c + i * run->pair->size[1],
                     n - i < PAIR_STEP ? (unsigned)(n - i) : PAIR_STEP, &values);
        lanes_pivot_step(run, &values);
    }
}

/* Is one of n pairs of doubles, times the scale, so far apart?  A loop of so many steps
 * that compilers make vectors of it before they unroll it. */
static bool lanes_any_apart(const double *r, const double *c, size_t n, double scale,
                            double largest)
{
    enum { SPAN = 64 };
    double most[SPAN] = {0.0};

    if (n % SPAN != 0 || largest == 0.0)
        return true; /* it may be */
    for (size_t i = 0; i < n; i += SPAN)
        for (size_t k = 0; k < SPAN; k++) {
            const double d = fabs(c[i + k] * scale - r[i + k] * scale);
            const double below = d <= largest ? d : 0.0;
            most[k] = below > most[k] ? below : most[k];
        }
    for (size_t half = SPAN / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            most[k] = most[k + half] > most[k] ? most[k + half] : most[k];
    return most[0] == largest;
}

/* The first of n pairs of doubles that counts and, times the scale, is so far apart; or
 * n. */
static size_t lanes_first_with(const struct pair *pair, const double *r, const double *c,
                               size_t n, double largest)
{
    const double scale = pair->scale;

    if (!lanes_any_apart(r, c, n, scale, largest))
        return n;
    for (size_t at = 0; at < n; at += MOMENTS_LANES) {
        const size_t end = at + MOMENTS_LANES < n ? at + MOMENTS_LANES : n;
        int64_t here = 0;
        for (size_t i = at; i < end; i++)
            here |= fabs(c[i] * scale - r[i] * scale) == largest ? 1 : 0;
        for (size_t i = at; here != 0 && i < end; i++)
            if (fabs(c[i] * scale - r[i] * scale) == largest &&
                nd_pair_state(pair, r[i], c[i]) == PAIR_KEPT)
                return i;
    }
    return n;
}

void nd_lanes_find_largest(struct lanes_run *run)
{
    const struct lanes_place *const place = &run->place;
    const struct pair *const pair = run->pair;
    double r[PAIR_STEP], c[PAIR_STEP];

    for (size_t at = 0; at < place->n; at += PAIR_STEP) {
        const size_t left = place->n - at, n = left < PAIR_STEP ? left : PAIR_STEP;
        run->decode[0](place->r + at * pair->size[0], n, r);
        run->decode[1](place->c + at * pair->size[1], n, c);
        const size_t found = lanes_first_with(pair, r, c, n, run->moments->max_abs);
        if (found < n) {
            run->moments->max_abs_at = place->at + at + found;
            break;
        }
    }
    run->place.n = 0;
}
