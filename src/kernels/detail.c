/*
 * The detail pass: what needs the rms of the reference, an order, or a second look at
 * single elements.  The positions of a step that count are moved together (detail_take.c);
 * the kernels (detail_tmpl.h) then need no conditions.  What they leave (values near the top of
 * float64, and below float32) is done here in plain sight.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/kernel_set.h"

struct detail_run {
    const struct detail_kernels *kernels;
    struct nd_detail_sums *sums;
    struct pair pair;
    struct detail_terms terms;
    struct detail_lanes lanes;
    bool odd_lately; /* the step before held positions that do not count */
    /* Numbers that follow each other are often in one bin: two tables take turns, so that
     * the next need not wait for the last. */
    uint32_t abs_bins[2][DETAIL_BINS + 2], ulp_bins[2][DETAIL_BINS + 2];
};

static int detail_exponent_min(enum nd_dtype dtype)
{
    /* The one dtype that gave its largest exponent to finite values. */
    return dtype == ND_DTYPE_f8e4m3fn ? -6 : 1 - nd_dtype_info(dtype)->emax;
}

static bool detail_dtype_is(enum nd_dtype dtype, enum nd_kind kind)
{
    return dtype < ND_DTYPE_COUNT && nd_dtype_info(dtype)->kind == kind;
}

static struct detail_terms detail_terms_of(const struct tensor_view *const *view,
                                           const struct detail_params *params)
{
    const enum nd_dtype ulp = params->ulp_dtype;
    struct detail_terms terms = {.rms_r = params->rms_r,
                                 .rel_floor = params->rel_floor,
                                 .ulp_least = params->rms_r * 0x1p-10};

    for (int side = 0; side < 2; side++) {
        const enum nd_dtype real =
            params->real[side] < ND_DTYPE_COUNT ? params->real[side] : view[side]->dtype;
        if (detail_dtype_is(real, ND_KIND_FLOAT)) {
            terms.least_normal[side] = ldexp(1.0, detail_exponent_min(real));
            terms.most[side] = nd_dtype_max(real);
        }
    }
    if (detail_dtype_is(ulp, ND_KIND_FLOAT) || detail_dtype_is(ulp, ND_KIND_COMPLEX)) {
        terms.ulp_digits = nd_dtype_info(ulp)->digits;
        terms.ulp_emin = detail_exponent_min(ulp);
        /* 2^-(exponent - digits + 1) must be a normal number. */
        terms.ulp_is_plain = terms.ulp_emin > -900 || terms.ulp_least >= 0x1p-900;
    }
    return terms;
}

static void detail_run_init(struct detail_run *run, const struct kernel_set *set,
                            const struct tensor_view *const *view,
                            const struct detail_params *params, struct nd_detail_sums *sums)
{
    const struct moments_policy policy = {.nan_strict = params->nan_strict, .scale = 1.0};
    const unsigned wanted = params->worst < DETAIL_WORST ? params->worst : DETAIL_WORST;

    memset(run, 0, sizeof *run);
    run->kernels = &set->detail;
    run->sums = sums;
    run->terms = detail_terms_of(view, params);
    nd_pair_init(&run->pair, view[0], view[1], params->real[0], params->real[1], &policy);
    sums->detail.has_ulp = sums->detail.has_ulp || run->terms.ulp_digits > 0;
    if (wanted > sums->detail.worst_wanted)
        sums->detail.worst_wanted = wanted;
}

/* --- numbers -------------------------------------------------------------------------- */

static uint64_t detail_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* floor(log2(value)) of a finite value > 0. */
static int detail_exponent(double value)
{
    const int field = (int)(detail_bits(value) >> 52);
    int exponent;

    if (field != 0)
        return field - 1023;
    frexp(value, &exponent);
    return exponent - 1;
}

/* value * 2^power */
static double detail_times_power(double value, int power)
{
    const uint64_t bits = (uint64_t)(1023 + power) << 52;
    double factor;

    if (power < -1022 || power > 1023)
        return ldexp(value, power);
    memcpy(&factor, &bits, sizeof factor);
    return value * factor;
}

/* --- elements ------------------------------------------------------------------------- */

static bool worst_is_before(const struct worst_element *a, const struct worst_element *b)
{
    return a->abs > b->abs || (a->abs == b->abs && a->at < b->at);
}

static void worst_insert(struct nd_detail *detail, const struct worst_element *element)
{
    struct worst_element *const worst = detail->worst;
    unsigned place = detail->worst_count;

    if (place == detail->worst_wanted) {
        if (place == 0 || !worst_is_before(element, &worst[place - 1]))
            return;
        place--;
    } else {
        detail->worst_count++;
    }
    for (; place > 0 && worst_is_before(element, &worst[place - 1]); place--)
        worst[place] = worst[place - 1];
    worst[place] = *element;
}

/* In units of the last place, whatever the exponents. */
static double detail_ulp(const struct detail_terms *terms, double size_r, double e)
{
    const double at = size_r > terms->ulp_least ? size_r : terms->ulp_least;
    const int exponent = at > 0.0 ? detail_exponent(at) : terms->ulp_emin;
    const int spacing = (exponent > terms->ulp_emin ? exponent : terms->ulp_emin) -
                        terms->ulp_digits + 1;

    return detail_times_power(e, -spacing);
}

/* Near the top of float64 an error or a sum overflows; a quarter of it does not. */
static void detail_ratios_of_huge(struct detail_run *run, const struct detail_values *values,
                                  struct detail_counts *ret)
{
    const struct detail_terms *const terms = &run->terms;

    for (unsigned i = 0; i < values->n; i++) {
        const double r = values->r[i], abs = values->abs[i];
        const bool huge = abs > DBL_MAX / 4 || fabs(r) > DBL_MAX / 4;
        const double part = huge ? 0.25 : 1.0;
        const double e = huge && !run->pair.is_complex
                             ? fabs(values->c[i] * part - r * part)
                             : abs * part;
        const double size = fabs(r) * part, floor = terms->rel_floor * part;
        const double rel = e == 0.0 ? 0.0 : e / (size > floor ? size : floor);
        const double scaled = e == 0.0 ? 0.0 : e / (size + terms->rms_r * part);
        double *const max_rel = &run->lanes.max_rel[i % MOMENTS_LANES];
        double *const max_scaled = &run->lanes.max_scaled[i % MOMENTS_LANES];

        run->lanes.sum_rel[i % MOMENTS_LANES] += rel;
        *max_rel = rel > *max_rel ? rel : *max_rel;
        *max_scaled = scaled > *max_scaled ? scaled : *max_scaled;
        ret->within_1e3 += rel < 1e-3 ? 1 : 0;
        ret->within_5e3 += rel < 5e-3 ? 1 : 0;
        ret->scaled_fault += scaled >= 0.1 ? 1 : 0;
        ret->scaled_elevated += scaled >= 0.01 && scaled < 0.1 ? 1 : 0;
    }
}

static void detail_ratios(struct detail_run *run, const struct detail_values *values)
{
    struct nd_detail *const detail = &run->sums->detail;
    struct detail_counts counts = {0};

    if (values->top_abs > DBL_MAX / 4 || values->top[0] > DBL_MAX / 4)
        detail_ratios_of_huge(run, values, &counts);
    else
        run->kernels->ratios(&run->terms, values, &run->lanes, &counts);
    detail->within_1e3 += counts.within_1e3;
    detail->within_5e3 += counts.within_5e3;
    detail->scaled_fault += counts.scaled_fault;
    detail->scaled_elevated += counts.scaled_elevated;
}

static void detail_sizes(struct detail_run *run, const struct detail_values *values)
{
    const double *const of[2] = {values->r, values->c};
    struct nd_detail *const detail = &run->sums->detail;

    for (int side = 0; side < 2; side++) {
        const double least = run->terms.least_normal[side], most = run->terms.most[side];
        uint64_t found[3]; /* zeros, subnormals, saturated */
        if (values->low[side] > 0.0 && values->low[side] >= least &&
            (most == 0.0 || values->top[side] < most))
            continue; /* there are none, as a rule */
        run->kernels->sizes(of[side], values->n, least, most, found);
        detail->zeros[side] += found[0];
        detail->subnormals[side] += found[1];
        detail->saturated[side] += found[2];
    }
}

static void detail_count_bins(const struct detail_run *run, const double *numbers, unsigned n,
                              uint32_t (*inout)[DETAIL_BINS + 2])
{
    int32_t bins[PAIR_STEP];

    run->kernels->bins(numbers, n, bins);
    for (unsigned i = 0; i < n; i++)
        inout[i % 2][bins[i] == DETAIL_BIN_OTHER ? nd_detail_bin(numbers[i])
                                                 : (unsigned)bins[i]]++;
}

static void detail_ulps(struct detail_run *run, const struct detail_values *values)
{
    double ulps[PAIR_STEP];

    if (run->terms.ulp_is_plain) {
        run->kernels->ulps(&run->terms, values, &run->lanes, ulps);
    } else {
        for (unsigned i = 0; i < values->n; i++) {
            ulps[i] = detail_ulp(&run->terms, fabs(values->r[i]), values->abs[i]);
            if (ulps[i] > run->lanes.max_ulp[0])
                run->lanes.max_ulp[0] = ulps[i];
        }
    }
    detail_count_bins(run, ulps, values->n, run->ulp_bins);
}

static void detail_worst(struct detail_run *run, const struct detail_values *values,
                         uint64_t at)
{
    struct nd_detail *const detail = &run->sums->detail;

    if (detail->worst_wanted == 0 ||
        (detail->worst_count == detail->worst_wanted &&
         values->top_abs <= detail->worst[detail->worst_count - 1].abs))
        return;
    for (unsigned i = 0; i < values->n; i++)
        worst_insert(detail, &(struct worst_element){.abs = values->abs[i],
                                                     .at = at + values->place[i],
                                                     .r = values->r[i],
                                                     .c = values->c[i]});
}

/* --- steps ------------------------------------------------------------------------------ */

static void detail_step(struct detail_run *run, const unsigned char *r,
                        const unsigned char *c, unsigned n, uint64_t at)
{
    struct detail_values values;

    nd_detail_take(run->kernels, &run->pair, r, c, n, &run->odd_lately, &values);
    if (values.n == 0)
        return;
    values.padded = (values.n + MOMENTS_LANES - 1) / MOMENTS_LANES * MOMENTS_LANES;
    for (unsigned i = values.n; i < values.padded; i++) {
        values.r[i] = values.c[i] = 1.0;
        values.abs[i] = 0.0;
    }
    run->kernels->extremes(&values);
    run->sums->detail.n += values.n;
    detail_ratios(run, &values);
    detail_sizes(run, &values);
    detail_count_bins(run, values.abs, values.n, run->abs_bins);
    if (run->terms.ulp_digits > 0)
        detail_ulps(run, &values);
    detail_worst(run, &values, at);
}

static void detail_take_bins(uint32_t (*from)[DETAIL_BINS + 2], uint64_t *inout)
{
    for (unsigned bin = 0; bin < DETAIL_BINS + 2; bin++)
        inout[bin] += (uint64_t)from[0][bin] + from[1][bin];
    memset(from, 0, 2 * sizeof *from);
}

static void detail_chunk_end(struct detail_run *run)
{
    struct nd_detail *const detail = &run->sums->detail;

    detail->sum_rel += nd_lanes_sum(run->lanes.sum_rel);
    memset(run->lanes.sum_rel, 0, sizeof run->lanes.sum_rel);
}

static void detail_run_end(struct detail_run *run)
{
    struct nd_detail *const detail = &run->sums->detail;
    const double most[3] = {lanes_greatest(run->lanes.max_rel),
                            lanes_greatest(run->lanes.max_scaled),
                            lanes_greatest(run->lanes.max_ulp)};

    detail->max_rel = most[0] > detail->max_rel ? most[0] : detail->max_rel;
    detail->max_scaled = most[1] > detail->max_scaled ? most[1] : detail->max_scaled;
    detail->max_ulp = most[2] > detail->max_ulp ? most[2] : detail->max_ulp;
    detail_take_bins(run->abs_bins, run->sums->abs_bins);
    detail_take_bins(run->ulp_bins, run->sums->ulp_bins);
}

void nd_detail_init(struct nd_detail_sums *sums)
{
    memset(sums, 0, sizeof *sums);
}

void nd_detail_measure(const struct kernel_set *set, const struct tensor_view *r,
                       const struct tensor_view *c, const struct detail_params *params,
                       uint64_t first, uint64_t count, struct nd_detail_sums *sums)
{
    const struct tensor_view *const view[2] = {r, c};
    unsigned char buffer[2][PAIR_STEP * PAIR_ELEMENT_MAX];
    struct detail_run run;

    detail_run_init(&run, set, view, params, sums);
    for (uint64_t done = 0; done < count; done += PAIR_STEP) {
        const uint64_t left = count - done, at = first + done;
        const unsigned n = left < PAIR_STEP ? (unsigned)left : PAIR_STEP;
        detail_step(&run, nd_pair_bytes(r, at, n, buffer[0]),
                    nd_pair_bytes(c, at, n, buffer[1]), n, at);
        if ((done + PAIR_STEP) % MOMENTS_CHUNK == 0 || left <= PAIR_STEP)
            detail_chunk_end(&run);
    }
    detail_run_end(&run);
}

static void detail_fold(struct nd_detail *into, const struct nd_detail *next)
{
    into->n += next->n;
    into->sum_rel += next->sum_rel;
    into->within_1e3 += next->within_1e3;
    into->within_5e3 += next->within_5e3;
    into->scaled_fault += next->scaled_fault;
    into->scaled_elevated += next->scaled_elevated;
    into->has_ulp = into->has_ulp || next->has_ulp;
    if (next->max_rel > into->max_rel)
        into->max_rel = next->max_rel;
    if (next->max_scaled > into->max_scaled)
        into->max_scaled = next->max_scaled;
    if (next->max_ulp > into->max_ulp)
        into->max_ulp = next->max_ulp;
    for (int side = 0; side < 2; side++) {
        into->zeros[side] += next->zeros[side];
        into->subnormals[side] += next->subnormals[side];
        into->saturated[side] += next->saturated[side];
    }
    if (next->worst_wanted > into->worst_wanted)
        into->worst_wanted = next->worst_wanted;
    for (unsigned i = 0; i < next->worst_count; i++)
        worst_insert(into, &next->worst[i]);
}

void nd_detail_fold(struct nd_detail_sums *into, const struct nd_detail_sums *next)
{
    detail_fold(&into->detail, &next->detail);
    for (unsigned bin = 0; bin < DETAIL_BINS + 2; bin++) {
        into->abs_bins[bin] += next->abs_bins[bin];
        into->ulp_bins[bin] += next->ulp_bins[bin];
    }
}
