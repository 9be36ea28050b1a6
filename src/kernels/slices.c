/*
 * Worst slices.  One pass in logical order on one thread: rows are finished one by one, and
 * channels keep two sums each.
 */
#include "kernels/slices.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/pair.h"

/* A pass over more elements than this would cost more than the figure is worth. */
static const uint64_t MAX_ELEMENTS = 1ull << 26;
enum { MAX_CHANNELS = 1 << 20, BLOCK = 1024 };

struct sums {
    double error, size; /* of squares */
};

struct walk {
    const struct tensor_view *r, *c;
    struct pair               pair; /* knows what is masked */
    double                    floor; /* of the mean square */
    struct sums              *channels;
    uint64_t                  channel_count, channel_stride; /* elements per channel step */
    uint64_t                  row_length;
    struct sums               row;
    struct worst_slice       *worst_row;
};

static double slice_drift(const struct sums *sums, double floor, uint64_t length)
{
    const double least = floor * (double)length;
    const double size = sums->size > least ? sums->size : least;

    return sums->error == 0 ? 0 : sqrt(sums->error / size);
}

static void walk_element(struct walk *walk, uint64_t at, double r, double c)
{
    if (pair_is_ordinary(&walk->pair, r, c) || nd_pair_state(&walk->pair, r, c) == PAIR_KEPT) {
        struct sums *channel =
            &walk->channels[at / walk->channel_stride % walk->channel_count];
        const double error = (c - r) * (c - r), size = r * r;
        channel->error += error;
        channel->size += size;
        walk->row.error += error;
        walk->row.size += size;
    }
    if ((at + 1) % walk->row_length != 0)
        return;
    const double drift = slice_drift(&walk->row, walk->floor, walk->row_length);
    if (drift > walk->worst_row->drift) {
        walk->worst_row->drift = drift;
        walk->worst_row->at = at + 1 - walk->row_length;
    }
    walk->row = (struct sums){0, 0};
}

static void walk_all(struct walk *walk)
{
    double r[BLOCK], c[BLOCK];

    for (uint64_t first = 0; first < walk->r->count; first += BLOCK) {
        const uint64_t left = walk->r->count - first, n = left < BLOCK ? left : BLOCK;
        nd_view_decode(walk->r, first, n, r);
        nd_view_decode(walk->c, first, n, c);
        for (uint64_t i = 0; i < n; i++)
            walk_element(walk, first + i, r[i], c[i]);
    }
}

void nd_slices_measure(const struct tensor_view *r, const struct tensor_view *c,
                       const enum nd_dtype *real, double rms_r,
                       struct worst_slice *ret_channel, struct worst_slice *ret_row)
{
    const struct moments_policy policy = {.scale = 1};
    const uint32_t rank = r->shape.rank;
    struct walk    walk = {.r = r, .c = c, .floor = 1e-6 * rms_r * rms_r, .channel_stride = 1,
                           .worst_row = ret_row};

    *ret_channel = *ret_row = (struct worst_slice){0};
    if (rank < 2 || r->count == 0 || r->count > MAX_ELEMENTS || !isfinite(walk.floor) ||
        nd_dtype_info(r->dtype)->kind == ND_KIND_COMPLEX ||
        nd_dtype_info(c->dtype)->kind == ND_KIND_COMPLEX)
        return;
    const uint32_t axis = rank >= 4 ? 1 : rank - 1;
    walk.channel_count = r->shape.dim[axis];
    walk.row_length = r->shape.dim[rank - 1];
    for (uint32_t k = axis + 1; k < rank; k++)
        walk.channel_stride *= r->shape.dim[k];
    if (walk.channel_count > MAX_CHANNELS)
        return;
    walk.channels = calloc((size_t)walk.channel_count, sizeof *walk.channels);
    if (walk.channels == NULL)
        return;
    nd_pair_init(&walk.pair, r, c, real[0], real[1], &policy);
    walk_all(&walk);
    ret_channel->axis = axis;
    for (uint64_t k = 0; k < walk.channel_count; k++) {
        const double drift = slice_drift(&walk.channels[k], walk.floor, r->count / walk.channel_count);
        if (drift > ret_channel->drift) {
            ret_channel->drift = drift;
            ret_channel->at = k;
        }
    }
    ret_channel->known = ret_row->known = true;
    free(walk.channels);
}
