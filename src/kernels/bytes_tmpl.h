/*
 * Pairs of 8-bit integers and bools, for one instruction set.  All sums of a block are
 * integers that 32 bits hold, so that their order does not matter: they go to the first
 * lane whole.  Behind moments_tmpl.h.
 *
 * Plain loops over 16-bit words, each of a form that compilers turn into the products of
 * words that machines add up in pairs.
 */
struct TMPL(bytes) {
    int32_t sum[LANE_SUMS], differ;
    int16_t min[2], max[2], largest;
};

static bool TMPL(words_of_bytes)(enum nd_dtype dtype, const unsigned char *restrict bytes,
                                 int16_t *restrict ret)
{
    if (dtype == ND_DTYPE_i8)
        for (size_t i = 0; i < PAIR_STEP; i++)
            ret[i] = (int16_t)(signed char)bytes[i];
    else if (dtype == ND_DTYPE_u8)
        for (size_t i = 0; i < PAIR_STEP; i++)
            ret[i] = (int16_t)bytes[i];
    else if (dtype == ND_DTYPE_bool8)
        for (size_t i = 0; i < PAIR_STEP; i++)
            ret[i] = (int16_t)(bytes[i] != 0);
    else
        return false;
    return true;
}

/* Extremes, and the errors: their sizes, and whether there are any. */
static void TMPL(bytes_ends)(const int16_t *restrict x, const int16_t *restrict y,
                             int16_t *restrict ret_abs, int16_t *restrict ret_unequal,
                             struct TMPL(bytes) *inout)
{
    int16_t min_x = inout->min[0], max_x = inout->max[0], min_y = inout->min[1];
    int16_t max_y = inout->max[1], largest = inout->largest;

    for (size_t i = 0; i < PAIR_STEP; i++) {
        const int16_t e = (int16_t)(y[i] - x[i]), d = (int16_t)(e < 0 ? -e : e);
        ret_abs[i] = d;
        ret_unequal[i] = (int16_t)(d != 0);
        largest = d > largest ? d : largest;
        min_x = x[i] < min_x ? x[i] : min_x;
        max_x = x[i] > max_x ? x[i] : max_x;
        min_y = y[i] < min_y ? y[i] : min_y;
        max_y = y[i] > max_y ? y[i] : max_y;
    }
    inout->min[0] = min_x;
    inout->max[0] = max_x;
    inout->min[1] = min_y;
    inout->max[1] = max_y;
    inout->largest = largest;
}

/* `one` is 1, but unknown to the compiler: with it the other sums are of products too. */
static void TMPL(bytes_sums)(const int16_t *restrict x, const int16_t *restrict y,
                             const int16_t *restrict abs, const int16_t *restrict unequal,
                             int16_t one, struct TMPL(bytes) *inout)
{
    int32_t rr = 0, cc = 0, rc = 0, sum_abs = 0, ee = 0, r = 0, c = 0, differ = 0;

    for (size_t i = 0; i < PAIR_STEP; i++) {
        rr += x[i] * x[i];
        cc += y[i] * y[i];
        rc += x[i] * y[i];
    }
    for (size_t i = 0; i < PAIR_STEP; i++) {
        sum_abs += abs[i] * one;
        ee += abs[i] * abs[i];
    }
    for (size_t i = 0; i < PAIR_STEP; i++) {
        r += x[i] * one;
        c += y[i] * one;
    }
    for (size_t i = 0; i < PAIR_STEP; i++)
        differ += unequal[i] * one;
    inout->sum[LANE_ABS] += sum_abs;
    inout->sum[LANE_EE] += ee;
    inout->sum[LANE_R] += r;
    inout->sum[LANE_C] += c;
    inout->sum[LANE_RR] += rr;
    inout->sum[LANE_CC] += cc;
    inout->sum[LANE_RC] += rc;
    inout->differ += differ;
}

static void TMPL(bytes_keep)(struct lanes_run *run, const struct TMPL(bytes) *bytes,
                             const struct lanes_place *place)
{
    struct lanes_ends *const ends = &run->ends;

    for (int k = 0; k < LANE_SUMS; k++)
        run->lanes->sum[k][0] += (double)bytes->sum[k];
    for (int side = 0; side < 2; side++) {
        const float min = (float)bytes->min[side], max = (float)bytes->max[side];
        ends->min[side][0] = min < ends->min[side][0] ? min : ends->min[side][0];
        ends->max[side][0] = max > ends->max[side][0] ? max : ends->max[side][0];
    }
    run->moments->n += place->n;
    run->moments->differ += (uint64_t)bytes->differ;
    if ((double)bytes->largest > lanes_so_far(run)) {
        run->has_largest = true;
        run->moments->max_abs = (double)bytes->largest;
        run->place = *place;
    }
}

/* Adds a block's full steps, and returns how many elements they have; 0: other types. */
static size_t TMPL(add_bytes)(struct lanes_run *run, const struct lanes_place *block)
{
    const struct pair *const pair = run->pair;
    const enum nd_dtype dtype_r = pair->view[0]->dtype, dtype_c = pair->view[1]->dtype;
    const size_t full = block->n / PAIR_STEP * PAIR_STEP;
    const struct lanes_place place = {block->r, block->c, full, block->at, {NULL, NULL}};
    const int16_t one = (int16_t)nd_dtype_info(dtype_r)->size; /* as far as it is used */
    int16_t x[PAIR_STEP], y[PAIR_STEP], abs[PAIR_STEP], unequal[PAIR_STEP];
    struct TMPL(bytes) bytes = {
        .min = {INT16_MAX, INT16_MAX}, .max = {INT16_MIN, INT16_MIN}};

    if (place.n == 0 || pair->scale != 1.0 || pair->size[0] != 1 || pair->size[1] != 1)
        return 0;
    for (size_t i = 0; i < place.n; i += PAIR_STEP) {
        if (!TMPL(words_of_bytes)(dtype_r, place.r + i, x) ||
            !TMPL(words_of_bytes)(dtype_c, place.c + i, y))
            return 0;
        TMPL(prefetch)(place.r + i, PAIR_STEP);
        TMPL(prefetch)(place.c + i, PAIR_STEP);
        TMPL(bytes_ends)(x, y, abs, unequal, &bytes);
        TMPL(bytes_sums)(x, y, abs, unequal, one, &bytes);
    }
    TMPL(bytes_keep)(run, &bytes, &place);
    return place.n;
}
