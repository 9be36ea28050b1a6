/*
 * Channels in the order of their errors.
 */
#include "checks/channel_gap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_ELEMENTS = 1 << 16, GAP_CHANNELS = 16, GAP_ROWS = 8 };

/* A channel far smaller than the tensor is measured against this share of it. */
static const double SMALL_CHANNEL = 1e-2;

struct channel {
    uint64_t index;
    double error, size; /* sums of squares; then error is the relative one */
};

static int by_error(const void *a, const void *b)
{
    const struct channel *left = a, *right = b;

    if (left->error != right->error)
        return left->error > right->error ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* Positions of one channel: `inner` follow one another, every inner * channels. */
struct positions {
    const struct tensor_view *side[2];
    uint64_t channels, inner, count, step; /* count of them; step: every so many are read */
};

static bool positions_of(const struct layer_pair_view *pair, struct positions *ret)
{
    *ret = (struct positions){.inner = 1};
    for (int side = 0; side < 2; side++) {
        const struct slot_view *slot =
            pair->side[side] == NULL ? NULL : nd_layer_slot(pair->side[side], "output.0");
        if (slot == NULL || !slot->has_tensor || slot->tensor.shape.rank < 2 ||
            slot->tensor.count == 0 ||
            nd_dtype_info(slot->tensor.dtype)->kind != ND_KIND_FLOAT)
            return false;
        ret->side[side] = &slot->tensor;
    }
    const struct nd_shape *shape = &ret->side[0]->shape;
    const uint32_t axis = shape->rank == 4 ? 1 : shape->rank - 1; /* images, all others */
    if (!nd_shape_equal(shape, &ret->side[1]->shape))
        return false;
    ret->channels = shape->dim[axis];
    for (uint32_t k = axis + 1; k < shape->rank; k++)
        ret->inner *= shape->dim[k];
    ret->count = ret->side[0]->count / ret->channels;
    const uint64_t rows = GAP_ELEMENTS / ret->channels + 1;
    ret->step = ret->count > rows ? ret->count / rows : 1;
    return true;
}

static uint64_t position_flat(const struct positions *of, uint64_t at, uint64_t channel)
{
    return (at / of->inner * of->channels + channel) * of->inner + at % of->inner;
}

/* What is not finite on both sides is left out. */
static void channel_add(struct channel *channel, double r, double c)
{
    if (!isfinite(r) || !isfinite(c))
        return;
    channel->error += (c - r) * (c - r);
    channel->size += r * r;
}

/* Sums over the positions read. */
static void channel_sum(const struct positions *of, struct channel *channel)
{
    for (uint64_t at = 0; at < of->count; at += of->step) {
        const uint64_t flat = position_flat(of, at, channel->index);
        channel_add(channel, nd_view_at(of->side[0], flat), nd_view_at(of->side[1], flat));
    }
}

/* All channels' sums at once, where they follow one another: the same, row by row. */
static bool channels_sum(const struct positions *of, struct channel *channels)
{
    double *row = malloc(2 * of->channels * sizeof *row);

    for (uint64_t at = 0; row != NULL && at < of->count; at += of->step) {
        for (int side = 0; side < 2; side++)
            nd_view_decode(of->side[side], at * of->channels, of->channels,
                           row + (uint64_t)side * of->channels);
        for (uint64_t c = 0; c < of->channels; c++)
            channel_add(&channels[c], row[c], row[of->channels + c]);
    }
    free(row);
    return row != NULL;
}

static void gap_find(const struct channel *sorted, uint64_t count,
                     struct channel_gap *ret_gap)
{
    const uint64_t most = count / 8; /* a few of them, not a part of the tensor */

    for (uint64_t k = 1; k <= most; k++) {
        const double above = sorted[k - 1].error, below = sorted[k].error;
        if (!(below > 0) || above <= ret_gap->ratio * below)
            continue;
        *ret_gap = (struct channel_gap){.ratio = above / below,
                                        .error = above,
                                        .wrong = k,
                                        .channel = sorted[0].index,
                                        .channels = count};
    }
}

void nd_channel_gap(const struct layer_pair_view *pair, struct channel_gap *ret_gap)
{
    struct positions of;
    double whole = 0;

    *ret_gap = (struct channel_gap){.ratio = 0};
    if (!positions_of(pair, &of) || of.channels < GAP_CHANNELS ||
        of.count / of.step < GAP_ROWS || of.channels > GAP_ELEMENTS)
        return;
    struct channel *channels = calloc(of.channels, sizeof *channels);
    if (channels == NULL)
        return;
    const bool is_summed = of.inner == 1 && channels_sum(&of, channels);
    for (uint64_t c = 0; c < of.channels; c++) {
        channels[c].index = c;
        if (!is_summed)
            channel_sum(&of, &channels[c]);
        whole += channels[c].size / (double)of.channels;
    }
    for (uint64_t c = 0; c < of.channels; c++) {
        const double size = fmax(channels[c].size, SMALL_CHANNEL * SMALL_CHANNEL * whole);
        channels[c].error = size > 0 ? sqrt(channels[c].error / size) : 0;
    }
    qsort(channels, of.channels, sizeof *channels, by_error);
    gap_find(channels, of.channels, ret_gap);
    free(channels);
}

double nd_channel_error(const struct layer_pair_view *pair, uint64_t channels,
                        uint64_t channel)
{
    struct channel of = {.index = channel};
    struct positions positions;

    if (!positions_of(pair, &positions) || channels != positions.channels ||
        channel >= channels)
        return 0;
    channel_sum(&positions, &of);
    return of.size > 0 ? sqrt(of.error / of.size) : 0;
}
