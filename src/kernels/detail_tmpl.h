/*
 * The detail pass for one instruction set (moments_tmpl.h names the parameters): plain loops
 * over the values of a step, which compilers turn into vectors, and what they do not.
 */

static bool TMPL(detail_read)(const struct pair *pair, const unsigned char *r,
                              const unsigned char *c, unsigned n,
                              struct detail_values *restrict ret)
{
    const double top_r = pair->masks[0].top, top_c = pair->masks[1].top;
    int64_t odd = 0;

    TMPL(prefetch)(r, n * pair->size[0]);
    TMPL(prefetch)(c, n * pair->size[1]);
    TMPL(nd_kernels).decode[pair->view[0]->dtype](r, n, ret->r);
    TMPL(nd_kernels).decode[pair->view[1]->dtype](c, n, ret->c);
    for (size_t i = 0; i < n; i++) {
        const double x = ret->r[i], y = ret->c[i];
        const bool low = (x <= top_r) & (y <= top_c);
        const bool kept = (fabs(x) <= DBL_MAX) & (fabs(y) <= DBL_MAX) & !low;
        ret->abs[i] = fabs(y - x);
        ret->place[i] = (uint16_t)i;
        odd += kept ? 0 : 1;
    }
    ret->n = n;
    return odd == 0;
}

static void TMPL(detail_extremes)(struct detail_values *values)
{
    double lane[5][TMPL_WIDTH], most[5];
    TMPL(vd) low_r = TMPL(vd_set)(HUGE_VAL), low_c = low_r;
    TMPL(vd) top_r = TMPL(vd_set)(0.0), top_c = top_r, top_abs = top_r;

    for (size_t i = 0; i < values->padded; i += TMPL_WIDTH) {
        const TMPL(vd) r = TMPL(vd_abs)(TMPL(vd_load)(values->r + i));
        const TMPL(vd) c = TMPL(vd_abs)(TMPL(vd_load)(values->c + i));
        low_r = TMPL(vd_min)(r, low_r);
        low_c = TMPL(vd_min)(c, low_c);
        top_r = TMPL(vd_max)(r, top_r);
        top_c = TMPL(vd_max)(c, top_c);
        top_abs = TMPL(vd_max)(TMPL(vd_load)(values->abs + i), top_abs);
    }
    TMPL(vd_store)(lane[0], TMPL(vd_set)(0.0) - low_r);
    TMPL(vd_store)(lane[1], TMPL(vd_set)(0.0) - low_c);
    TMPL(vd_store)(lane[2], top_r);
    TMPL(vd_store)(lane[3], top_c);
    TMPL(vd_store)(lane[4], top_abs);
    for (int k = 0; k < 5; k++) {
        most[k] = lane[k][0];
        for (int l = 1; l < TMPL_WIDTH; l++)
            most[k] = lane[k][l] > most[k] ? lane[k][l] : most[k];
    }
    values->low[0] = -most[0];
    values->low[1] = -most[1];
    values->top[0] = most[2];
    values->top[1] = most[3];
    values->top_abs = most[4];
}

static uint64_t TMPL(detail_count)(TMPL(vd) counts)
{
    double lane[TMPL_WIDTH], sum = 0.0;

    TMPL(vd_store)(lane, counts);
    for (int l = 0; l < TMPL_WIDTH; l++)
        sum += lane[l];
    return (uint64_t)sum;
}

static void TMPL(detail_ratios)(const struct detail_terms *terms,
                                const struct detail_values *values,
                                struct detail_lanes *lanes, struct detail_counts *ret)
{
    const TMPL(vd) floor = TMPL(vd_set)(terms->rel_floor), rms = TMPL(vd_set)(terms->rms_r);
    const TMPL(vd) bound[4] = {TMPL(vd_set)(1e-3), TMPL(vd_set)(5e-3), TMPL(vd_set)(1e-1),
                               TMPL(vd_set)(1e-2)};
    TMPL(vd) below[4] = {TMPL(vd_set)(0.0), TMPL(vd_set)(0.0), TMPL(vd_set)(0.0),
                         TMPL(vd_set)(0.0)};

    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL(vd) sum = TMPL(vd_load)(lanes->sum_rel + at);
        TMPL(vd) max_rel = TMPL(vd_load)(lanes->max_rel + at);
        TMPL(vd) max_scaled = TMPL(vd_load)(lanes->max_scaled + at);
        for (size_t i = at; i < values->padded; i += MOMENTS_LANES) {
            const TMPL(vd) e = TMPL(vd_load)(values->abs + i);
            const TMPL(vd) size = TMPL(vd_abs)(TMPL(vd_load)(values->r + i));
            const TMPL(vd) rel = TMPL(vd_unless_zero)(e, e / TMPL(vd_max)(size, floor));
            const TMPL(vd) scaled = TMPL(vd_unless_zero)(e, e / (size + rms));
            sum = sum + rel;
            max_rel = TMPL(vd_max)(rel, max_rel);
            max_scaled = TMPL(vd_max)(scaled, max_scaled);
            below[0] = TMPL(vd_add_below)(below[0], rel, bound[0]);
            below[1] = TMPL(vd_add_below)(below[1], rel, bound[1]);
            below[2] = TMPL(vd_add_below)(below[2], scaled, bound[2]);
            below[3] = TMPL(vd_add_below)(below[3], scaled, bound[3]);
        }
        TMPL(vd_store)(lanes->sum_rel + at, sum);
        TMPL(vd_store)(lanes->max_rel + at, max_rel);
        TMPL(vd_store)(lanes->max_scaled + at, max_scaled);
    }
    const uint64_t scaled_below = TMPL(detail_count)(below[2]);
    ret->within_1e3 = TMPL(detail_count)(below[0]) - (values->padded - values->n);
    ret->within_5e3 = TMPL(detail_count)(below[1]) - (values->padded - values->n);
    ret->scaled_fault = values->padded - scaled_below;
    ret->scaled_elevated = scaled_below - TMPL(detail_count)(below[3]);
}

/* The spacing of numbers with digits bits at 2^k is 2^(k - digits + 1). */
static void TMPL(detail_ulps)(const struct detail_terms *terms,
                              const struct detail_values *restrict values,
                              struct detail_lanes *lanes, double *restrict ret)
{
    const int64_t least = 1023 + terms->ulp_emin, inverse = 2046 + terms->ulp_digits - 1;

    for (size_t i = 0; i < values->padded; i++) {
        const double size = fabs(values->r[i]);
        const double at = size > terms->ulp_least ? size : terms->ulp_least;
        double factor;
        int64_t bits;
        memcpy(&bits, &at, sizeof bits);
        const int64_t field = bits >> 52;
        bits = (inverse - (field > least ? field : least)) << 52;
        memcpy(&factor, &bits, sizeof factor);
        ret[i] = values->abs[i] * factor;
    }
    for (size_t at = 0; at < MOMENTS_LANES; at += TMPL_WIDTH) {
        TMPL(vd) most = TMPL(vd_load)(lanes->max_ulp + at);
        for (size_t i = at; i < values->padded; i += MOMENTS_LANES)
            most = TMPL(vd_max)(TMPL(vd_load)(ret + i), most);
        TMPL(vd_store)(lanes->max_ulp + at, most);
    }
}

/* A bin's number is in the upper 16 bits of the double: exponent, and 4 bits of mantissa. */
static void TMPL(detail_bins)(const double *restrict values, unsigned n,
                              int32_t *restrict ret)
{
    enum { FIRST = (1023 - 127) * 16 };

    for (size_t i = 0; i < n; i++) {
        int64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const int64_t bin = (bits >> 48) - FIRST;
        const int64_t known = bin < DETAIL_BINS - 16 ? 1 + bin : DETAIL_BINS + 1;
        ret[i] = (int32_t)(bin >= 16 ? known : bits == 0 ? 0 : DETAIL_BIN_OTHER);
    }
}

static void TMPL(detail_sizes)(const double *values, unsigned n, double least_normal,
                               double most, uint64_t *ret)
{
    int64_t zeros = 0, small = 0, large = 0;

    for (size_t i = 0; i < n; i++) {
        const double size = fabs(values[i]);
        zeros += size == 0.0 ? 1 : 0;
        small += ((size > 0.0) & (size < least_normal)) ? 1 : 0;
        large += ((size > 0.0) & (size == most)) ? 1 : 0;
    }
    ret[0] = (uint64_t)zeros;
    ret[1] = (uint64_t)small;
    ret[2] = (uint64_t)large;
}
