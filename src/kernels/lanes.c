/*
 * Lanes: their start, their fold, and the steps that need a look at every element.
 */
#include "kernels/lanes.h"

#include <string.h>

void nd_lanes_init(struct lanes *lanes)
{
    memset(lanes->sum, 0, sizeof lanes->sum);
    lanes_extremes_init(&lanes->extremes);
}

/* 16 lanes to 8, 4, 2, 1. */
static double lanes_sum(const double *lane)
{
    double sum[MOMENTS_LANES];

    memcpy(sum, lane, sizeof sum);
    for (int half = MOMENTS_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            sum[l] += sum[l + half];
    return sum[0];
}

void nd_lanes_fold(const struct lanes *lanes, struct nd_moments *moments)
{
    double *const into[LANE_DIFFER] = {
        [LANE_ABS] = &moments->sum_abs, [LANE_EE] = &moments->sum_ee,
        [LANE_R] = &moments->sum_r,     [LANE_C] = &moments->sum_c,
        [LANE_RR] = &moments->sum_rr,   [LANE_CC] = &moments->sum_cc,
        [LANE_RC] = &moments->sum_rc,   [LANE_PR] = &moments->sum_pr,
        [LANE_PC] = &moments->sum_pc,   [LANE_PRR] = &moments->sum_prr,
        [LANE_PCC] = &moments->sum_pcc, [LANE_PRC] = &moments->sum_prc,
    };

    for (int sum = 0; sum < LANE_DIFFER; sum++)
        *into[sum] += lanes_sum(lanes->sum[sum]);
    moments->differ += (uint64_t)lanes_sum(lanes->sum[LANE_DIFFER]);
    for (int side = 0; side < 2; side++) {
        const double min = lanes_least(lanes->extremes.min[side]);
        const double max = lanes_greatest(lanes->extremes.max[side]);
        /* Adding +0 makes a negative zero positive: which of the two came first does not
         * matter then. */
        if (min < moments->min[side])
            moments->min[side] = min + 0.0;
        if (max > moments->max[side])
            moments->max[side] = max + 0.0;
    }
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

void nd_lanes_sort_out(struct lanes_run *run, const double *r, const double *c, size_t n,
                       struct lanes_kept *ret)
{
    struct nd_moments *const moments = run->moments;
    const struct pair *const pair = run->pair;

    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        const enum pair_state state = pair_is_ordinary(pair, r[i], c[i])
                                          ? PAIR_KEPT
                                          : nd_pair_state(pair, r[i], c[i]);
        if (state != PAIR_KEPT) {
            lanes_count_odd(moments, state, r[i], c[i]);
            continue;
        }
        if (ret->count++ == 0) {
            ret->first[0] = r[i];
            ret->first[1] = c[i];
        }
        ret->flag[i] = 1.0;
    }
    /* The pass counts what differs after scaling; here is what scaling hides. */
    for (size_t i = 0; pair->scale != 1.0 && i < n; i++)
        moments->differ +=
            ret->flag[i] != 0.0 && r[i] != c[i] && r[i] * pair->scale == c[i] * pair->scale;
    moments->n += ret->count;
}

static void lanes_add(struct lanes_run *run, const struct pair_values *values, unsigned i,
                      uint64_t at)
{
    struct nd_moments *const moments = run->moments;
    struct lanes *const lanes = &run->lanes;
    const unsigned l = i % MOMENTS_LANES;
    const double r = values->r[i], c = values->c[i], d = values->abs[i];
    const double x = r * run->pair->scale, y = c * run->pair->scale;
    const double terms[LANE_SUMS] = {
        [LANE_ABS] = d,
        [LANE_EE] = d * d,
        [LANE_R] = x,
        [LANE_C] = y,
        [LANE_RR] = x * x,
        [LANE_CC] = y * y,
        [LANE_RC] = values->product[i],
        [LANE_DIFFER] = values->differs[i] ? 1.0 : 0.0,
    };

    for (int sum = 0; sum < LANE_SUMS; sum++)
        lanes->sum[sum][l] += terms[sum];
    if (!run->pair->is_complex) {
        const double u = x - run->pivot.r, v = y - run->pivot.c;
        lanes->sum[LANE_PR][l] += u;
        lanes->sum[LANE_PC][l] += v;
        lanes->sum[LANE_PRR][l] += u * u;
        lanes->sum[LANE_PCC][l] += v * v;
        lanes->sum[LANE_PRC][l] += u * v;
    }
    const double of[2] = {r, c};
    for (int side = 0; side < 2; side++) {
        double *const min = &lanes->extremes.min[side][l];
        double *const max = &lanes->extremes.max[side][l];
        *min = of[side] < *min ? of[side] : *min;
        *max = of[side] > *max ? of[side] : *max;
    }
    if (!run->has_largest || d > moments->max_abs) {
        run->has_largest = true;
        moments->max_abs = d;
        moments->max_abs_at = at + i;
    }
    moments->n++;
}

void nd_lanes_step_exact(struct lanes_run *run, const unsigned char *r,
                         const unsigned char *c, size_t n, uint64_t at)
{
    struct pair_values values;

    nd_pair_read(run->pair, r, c, (unsigned)n, &values);
    for (unsigned i = 0; i < values.n; i++) {
        if (values.state[i] == PAIR_KEPT)
            lanes_add(run, &values, i, at);
        else
            lanes_count_odd(run->moments, (enum pair_state)values.state[i], values.r[i],
                            values.c[i]);
    }
}
