/*
 * Measuring products, and the thresholds that are their own.
 */
#include "checks/product_replay.h"

#include <math.h>
#include <stdlib.h>

#include "checks/product.h"
#include "checks/window.h"

/* A tensor of more elements is cut to so many to judge a layer: as many outputs as are
 * asked for come from a part of it.  Multiply-adds to find a product's form, and of all
 * outputs of the layer that drift entered in. */
enum {
    REPLAY_WHOLE = 1 << 17,
    REPLAY_DECODE = 1 << 15,
    FORM_TERMS = 1 << 20,
    EXPECTED_TERMS = 1 << 26
};

static const double SINGLE = 0x1p-24;

/*
 * In 16 bits a product is rounded once where it is stored, the bias perhaps before that:
 * honest sides are within 1.5 times each other, so that three times stands out.
 */
static const double HALF_FACTOR = 3;

static double product_gate(double roundoff)
{
    return fmax(4 * roundoff, 64 * SINGLE);
}

/* Channels of a product: what a slope has to agree over. */
static uint64_t product_channel(const struct product *product, uint64_t i)
{
    const bool is_conv = product->form == PRODUCT_CONV;
    uint64_t index[ND_MAX_RANK];

    nd_shape_unravel(&product->out_shape, product->at[i], index);
    return index[is_conv ? 1 : product->out_shape.rank - 1];
}

static double channels_t(const struct channel_slope *channels, uint64_t count)
{
    double mean, error;

    if (!nd_channel_slopes(channels, count, &mean, &error))
        return 0;
    return error > 0 ? fabs(mean) / error : 0;
}

/* Sums over the outputs, as residual.c keeps them for rows. */
struct product_sums {
    double ez, zzee, zzze, zzzz;
    struct channel_slope *slopes;
};

static void product_add(struct product_sums *sums, double e, double z, double rms,
                        struct channel_slope *slope, struct residual *ret)
{
    const double square = z * z;

    ret->n++;
    if (e != 0)
        ret->local = fmax(ret->local, fabs(e) / (fabs(z) + rms));
    ret->sum_ee += e * e;
    ret->sum_zz += square;
    sums->ez += e * z;
    sums->zzee += square * e * e;
    sums->zzze += square * z * e;
    sums->zzzz += square * square;
    slope->ez += e * z;
    slope->zz += square;
}

static void product_finish(const struct product_sums *sums, uint64_t channels,
                           struct residual *ret)
{
    const double zz = ret->sum_zz;

    if (ret->sum_ee > 0)
        ret->rel = zz > 0 ? sqrt(ret->sum_ee / zz) : HUGE_VAL;
    ret->channel_t = channels_t(sums->slopes, channels);
    if (!(zz > 0))
        return;
    const double d = sums->ez / zz;
    const double square = sums->zzee - 2 * d * sums->zzze + d * d * sums->zzzz;
    const double error = sqrt(fmax(square, 0)) / zz;
    ret->slope = d;
    ret->slope_z = error > 0 ? fabs(d) / error : d == 0 ? 0 : HUGE_VAL;
}

static double product_rms(const struct product *product, int side)
{
    double squares = 0;

    for (uint64_t i = 0; i < product->count; i++) {
        const double y = product->out[side][i];
        squares += nd_product_counts(y) ? y * y : 0;
    }
    return sqrt(squares / (double)product->count);
}

/* One side's outputs against the product, scaled as the trusted side scales it. */
static bool product_measure(const struct product *product, int side, double scale,
                            struct residual *ret)
{
    const uint32_t axis = product->form == PRODUCT_CONV ? 1 : product->out_shape.rank - 1;
    const uint64_t channels = product->out_shape.dim[axis];
    const double rms = product_rms(product, side);
    struct product_sums sums = {.slopes = calloc(channels, sizeof *sums.slopes)};

    *ret = (struct residual){0};
    if (sums.slopes == NULL)
        return false;
    for (uint64_t i = 0; i < product->count; i++) {
        const double y = product->out[side][i];
        const double z =
            scale * product->plain[side][i] + nd_product_bias(product, side, i);
        if (nd_product_counts(y) && isfinite(z))
            product_add(&sums, y - z, z, rms, &sums.slopes[product_channel(product, i)],
                        ret);
    }
    product_finish(&sums, channels, ret);
    free(sums.slopes);
    return true;
}

/* Terms summed one after the other in float32 leave about u sqrt(K) / 5, summed in blocks a
 * fraction of it, and the outputs that are looked at are the worst ones first: as much as
 * that is no measure of the other side's arithmetic. */
static struct leeway product_leeway(uint64_t terms)
{
    return (struct leeway){.fit = SINGLE * sqrt((double)terms) / 8};
}

/* What the common thresholds leave to be said in 16 bits. */
static void product_judge(struct replay *replay, double roundoff, uint64_t terms)
{
    const struct residual *own, *other;

    nd_replay_judge(replay, roundoff, product_leeway(terms));
    if (!replay->trusted || replay->flag != REPLAY_FOLLOWS || !(roundoff > SINGLE))
        return;
    own = &replay->residual[replay->side];
    other = &replay->residual[!replay->side];
    if (own->rel > HALF_FACTOR * fmax(other->rel, 0.4247 * roundoff))
        replay->flag = REPLAY_RESIDUAL;
}

void nd_product_replay(const struct layer_pair_view *pair, const struct op *op,
                       double roundoff, const uint64_t *worst, uint64_t terms,
                       uint64_t max_bytes, uint64_t seed, struct replay *ret_replay)
{
    struct replay replay = {.side = 1};
    uint64_t summed = 0;
    struct window window = {.is = false};
    struct product product;

    *ret_replay = replay;
    const bool is_cut = nd_window_is_large(pair, REPLAY_WHOLE) &&
                        nd_window_open(pair, op, "output.0", worst, REPLAY_DECODE,
                                       &window);
    if (nd_product_open_within(is_cut ? &window.pair : pair, product_gate(roundoff),
                               max_bytes, seed, terms, &product)) {
        /* A scale that fits the reference is the product's; the candidate's own would hide
         * that it has another. */
        const int trusted = product.residual[0] > product_gate(roundoff);
        const double scale = product.scale[trusted];
        replay.done = product_measure(&product, 0, scale, &replay.residual[0]) &&
                      product_measure(&product, 1, scale, &replay.residual[1]);
        replay.whole = !is_cut && product.is_whole;
        summed = product.terms;
        nd_product_close(&product);
    }
    if (is_cut)
        nd_window_done(&window);
    if (replay.done)
        product_judge(&replay, roundoff, summed);
    *ret_replay = replay;
}

bool nd_product_expected(const struct layer_pair_view *pair, double roundoff, int side,
                         uint64_t max_bytes, uint64_t seed, double *ret_expected)
{
    const struct slot_view *other = nd_layer_slot(pair->side[!side], "output.0");
    struct product product;

    if (other == NULL || !nd_product_open_within(pair, product_gate(roundoff), max_bytes,
                                                 seed, FORM_TERMS, &product))
        return false;
    const uint64_t count = other->tensor.count;
    const bool good = count <= EXPECTED_TERMS / (product.terms + 1);
    for (uint64_t i = 0; i < count && good; i++) {
        const double z = nd_view_at(&other->tensor, i);
        ret_expected[i] = nd_product_counts(z)
                              ? nd_product_at(&product, side, product.scale[!side], i)
                              : z;
    }
    nd_product_close(&product);
    return good;
}
