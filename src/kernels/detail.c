/*
 * The detail pass: what needs the rms of the reference, an order, or a second look at
 * single elements.  It is run for few pairs, so it decodes and loops in plain sight.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/pair.h"

/* What a side's dtype says about the size of its values. */
struct detail_limits {
    double least_normal, most; /* 0, 0 where the dtype is no float */
};

struct detail_run {
    const struct detail_params *params;
    struct nd_detail_sums *sums;
    struct pair pair;
    struct detail_limits limits[2];
    int ulp_digits, ulp_emin;
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

static void detail_run_init(struct detail_run *run, const struct tensor_view *r,
                            const struct tensor_view *c, const struct detail_params *params,
                            struct nd_detail_sums *sums)
{
    const struct moments_policy policy = {.nan_strict = params->nan_strict, .scale = 1.0};
    const struct tensor_view *const view[2] = {r, c};
    const enum nd_dtype ulp = params->ulp_dtype;

    memset(run, 0, sizeof *run);
    run->params = params;
    run->sums = sums;
    nd_pair_init(&run->pair, r, c, params->real[0], params->real[1], &policy);
    for (int side = 0; side < 2; side++) {
        const enum nd_dtype real =
            params->real[side] < ND_DTYPE_COUNT ? params->real[side] : view[side]->dtype;
        if (detail_dtype_is(real, ND_KIND_FLOAT)) {
            run->limits[side].least_normal = ldexp(1.0, detail_exponent_min(real));
            run->limits[side].most = nd_dtype_max(real);
        }
    }
    if (detail_dtype_is(ulp, ND_KIND_FLOAT) || detail_dtype_is(ulp, ND_KIND_COMPLEX)) {
        sums->detail.has_ulp = true;
        run->ulp_digits = nd_dtype_info(ulp)->digits;
        run->ulp_emin = detail_exponent_min(ulp);
    }
    const unsigned wanted = params->worst < DETAIL_WORST ? params->worst : DETAIL_WORST;
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

unsigned nd_detail_bin(double value)
{
    const uint64_t bits = detail_bits(value);
    const int field = (int)(bits >> 52) - 1023 + 127;

    if (value == 0.0)
        return 0;
    if (field >= 255)
        return DETAIL_BINS + 1;
    if (field >= 1)
        return 1U + (unsigned)field * 16U + (unsigned)(bits >> 48 & 15U);
    return 1U + (unsigned)(value * 0x1p130); /* sixteenths of 2^-126 */
}

static double detail_edge(unsigned k)
{
    const unsigned field = k / 16, sixteenths = k % 16;

    if (field >= 255)
        return HUGE_VAL; /* as the bits of a float32 say */
    return field == 0 ? ldexp(sixteenths, -126 - 4)
                      : ldexp(16 + sixteenths, (int)field - 127 - 4);
}

double nd_detail_quantile(const uint64_t *bins, uint64_t n, double q)
{
    /* Integers: 0.9 * n as a double may lie just above a whole number. */
    const uint64_t thousandths = (uint64_t)(q * 1000.0 + 0.5);
    const uint64_t rank = n / 1000 * thousandths + (n % 1000 * thousandths + 999) / 1000;
    uint64_t seen = bins[0];

    if (seen >= rank)
        return 0.0;
    for (unsigned k = 0; k < DETAIL_BINS; k++) {
        seen += bins[1 + k];
        if (seen >= rank)
            return detail_edge(k + 1);
    }
    return HUGE_VAL;
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

static void detail_add_side(const struct detail_run *run, int side, double value)
{
    struct nd_detail *const detail = &run->sums->detail;
    const struct detail_limits *const limits = &run->limits[side];
    const double size = fabs(value);

    detail->zeros[side] += size == 0.0 ? 1 : 0;
    detail->subnormals[side] += size > 0.0 && size < limits->least_normal ? 1 : 0;
    detail->saturated[side] += size > 0.0 && size == limits->most ? 1 : 0;
}

static void detail_add_ulp(const struct detail_run *run, double size_r, double e)
{
    struct nd_detail *const detail = &run->sums->detail;
    const double least = run->params->rms_r * 0x1p-10;
    const double at = size_r > least ? size_r : least;
    const int exponent = at > 0.0 ? detail_exponent(at) : run->ulp_emin;
    const int spacing =
        (exponent > run->ulp_emin ? exponent : run->ulp_emin) - run->ulp_digits + 1;
    const double ulp = detail_times_power(e, -spacing);

    run->sums->ulp_bins[nd_detail_bin(ulp)]++;
    if (ulp > detail->max_ulp)
        detail->max_ulp = ulp;
}

/* Returns the relative error. */
static double detail_add_ratios(const struct detail_run *run, double r, double c,
                                double abs)
{
    struct nd_detail *const detail = &run->sums->detail;
    /* Near the top of float64 an error or a sum overflows; a quarter of it does not. */
    const bool huge = abs > DBL_MAX / 4 || fabs(r) > DBL_MAX / 4;
    const double part = huge ? 0.25 : 1.0;
    const double e = huge && !run->pair.is_complex ? fabs(c * part - r * part) : abs * part;
    const double size_r = fabs(r) * part;
    const double floor = run->params->rel_floor * part;
    const double rel = e == 0.0 ? 0.0 : e / (size_r > floor ? size_r : floor);
    const double scaled = e == 0.0 ? 0.0 : e / (size_r + run->params->rms_r * part);

    detail->within_1e3 += rel < 1e-3 ? 1 : 0;
    detail->within_5e3 += rel < 5e-3 ? 1 : 0;
    if (rel > detail->max_rel)
        detail->max_rel = rel;
    detail->scaled_fault += scaled >= 0.1 ? 1 : 0;
    detail->scaled_elevated += scaled >= 0.01 && scaled < 0.1 ? 1 : 0;
    if (scaled > detail->max_scaled)
        detail->max_scaled = scaled;
    return rel;
}

/* Returns the sum of the relative errors of one step. */
static double detail_step(const struct detail_run *run, const struct pair_values *values,
                          uint64_t at)
{
    struct nd_detail *const detail = &run->sums->detail;
    double sum_rel = 0.0;

    for (unsigned i = 0; i < values->n; i++) {
        const double r = values->r[i], c = values->c[i], abs = values->abs[i];
        if (values->state[i] != PAIR_KEPT)
            continue;
        detail->n++;
        detail_add_side(run, 0, r);
        detail_add_side(run, 1, c);
        sum_rel += detail_add_ratios(run, r, c, abs);
        run->sums->abs_bins[nd_detail_bin(abs)]++;
        if (detail->has_ulp)
            detail_add_ulp(run, fabs(r), abs);
        worst_insert(detail,
                     &(struct worst_element){.abs = abs, .at = at + i, .r = r, .c = c});
    }
    return sum_rel;
}

void nd_detail_init(struct nd_detail_sums *sums)
{
    memset(sums, 0, sizeof *sums);
}

void nd_detail_measure(const struct tensor_view *r, const struct tensor_view *c,
                       const struct detail_params *params, uint64_t first, uint64_t count,
                       struct nd_detail_sums *sums)
{
    unsigned char buffer[2][PAIR_STEP * PAIR_ELEMENT_MAX];
    struct pair_values values;
    struct detail_run run;
    double sum_rel = 0.0; /* of the chunk at hand */

    detail_run_init(&run, r, c, params, sums);
    for (uint64_t done = 0; done < count; done += PAIR_STEP) {
        const uint64_t left = count - done, at = first + done;
        const unsigned n = left < PAIR_STEP ? (unsigned)left : PAIR_STEP;
        nd_pair_read(&run.pair, nd_pair_bytes(r, at, n, buffer[0]),
                     nd_pair_bytes(c, at, n, buffer[1]), n, &values);
        sum_rel += detail_step(&run, &values, at);
        if ((done + PAIR_STEP) % MOMENTS_CHUNK == 0 || left <= PAIR_STEP) {
            sums->detail.sum_rel += sum_rel;
            sum_rel = 0.0;
        }
    }
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

void nd_detail_settle(struct nd_detail_sums *sums)
{
    struct nd_detail *const detail = &sums->detail;

    detail->p50 = nd_detail_quantile(sums->abs_bins, detail->n, 0.5);
    detail->p90 = nd_detail_quantile(sums->abs_bins, detail->n, 0.9);
    detail->p99 = nd_detail_quantile(sums->abs_bins, detail->n, 0.99);
    detail->p999 = nd_detail_quantile(sums->abs_bins, detail->n, 0.999);
    detail->p99_ulp =
        detail->has_ulp ? nd_detail_quantile(sums->ulp_bins, detail->n, 0.99) : 0.0;
}
