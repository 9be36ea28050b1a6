/*
 * Worst slices: rows are finished one by one, and channels keep two sums each in every part.
 */
#include "kernels/slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel_set.h"

/* A pass over more elements than this would cost more than the figure is worth. */
static const uint64_t MAX_ELEMENTS = 1ull << 26;
enum {
    MAX_CHANNELS = 1 << 20,
    PART = 1 << 20,    /* elements, about */
    MAX_SUMS = 1 << 18 /* of all parts; where channels are many, parts are few */
};

/* Squares of one step: of errors, and of the reference; 0 where a position does not count. */
struct squares {
    double error[PAIR_STEP], size[PAIR_STEP];
};

/* One part on its way. */
struct part_walk {
    const struct slices *slices;
    struct pair pair;
    double *error, *size; /* by channel */
    double row[2];        /* the row at hand: errors, reference */
    struct worst_slice worst;
};

/* --- planning --------------------------------------------------------------------------- */

static bool slices_apply(const struct tensor_view *view, double floor)
{
    const uint64_t rank = view[0].shape.rank;

    return rank >= 2 && view[0].count > 0 && view[0].count <= MAX_ELEMENTS &&
           isfinite(floor) && nd_dtype_info(view[0].dtype)->kind != ND_KIND_COMPLEX &&
           nd_dtype_info(view[1].dtype)->kind != ND_KIND_COMPLEX;
}

static void slices_cut(struct slices *slices)
{
    const uint64_t count = slices->view[0]->count;
    const uint64_t rows = count / slices->row_length;
    const uint64_t room = MAX_SUMS / slices->channel_count;
    uint64_t parts = count / PART + 1;

    parts = parts < room ? parts : room;
    parts = parts < rows ? parts : rows;
    parts = parts > 0 ? parts : 1;
    slices->part_length = (rows + parts - 1) / parts * slices->row_length;
    slices->part_count = (size_t)((count + slices->part_length - 1) / slices->part_length);
}

bool nd_slices_init(struct slices *slices, const struct kernel_set *set,
                    const struct tensor_view *view, const enum nd_dtype *real, double rms_r)
{
    const struct nd_shape *const shape = &view[0].shape;

    *slices = (struct slices){.set = set, .view = {&view[0], &view[1]},
                              .real = {real[0], real[1]}, .floor = 1e-6 * rms_r * rms_r,
                              .channel_stride = 1};
    if (!slices_apply(view, slices->floor))
        return true;
    slices->axis = shape->rank >= 4 ? 1 : shape->rank - 1;
    slices->channel_count = shape->dim[slices->axis];
    slices->row_length = shape->dim[shape->rank - 1];
    for (uint32_t k = slices->axis + 1; k < shape->rank; k++)
        slices->channel_stride *= shape->dim[k];
    if (slices->channel_count > MAX_CHANNELS)
        return true;
    slices_cut(slices);
    slices->sums = calloc(slices->part_count * (size_t)slices->channel_count,
                          2 * sizeof *slices->sums);
    slices->rows = calloc(slices->part_count, sizeof *slices->rows);
    if (slices->sums != NULL && slices->rows != NULL)
        return true;
    nd_slices_done(slices);
    return false;
}

void nd_slices_done(struct slices *slices)
{
    free(slices->sums);
    free(slices->rows);
    *slices = (struct slices){.part_count = 0};
}

/* --- measuring -------------------------------------------------------------------------- */

static double slice_drift(double error, double size, double floor, uint64_t length)
{
    const double least = floor * (double)length;

    return error == 0 ? 0 : sqrt(error / (size > least ? size : least));
}

/* By the rules of pair.h, one by one. */
static void walk_squares_exact(const struct part_walk *walk, const unsigned char *r,
                               const unsigned char *c, unsigned n, struct squares *ret)
{
    struct pair_values all;

    nd_pair_read(&walk->pair, r, c, n, &all);
    for (unsigned i = 0; i < n; i++) {
        const bool kept = all.state[i] == PAIR_KEPT;
        ret->error[i] = kept ? all.abs[i] * all.abs[i] : 0.0;
        ret->size[i] = kept ? all.r[i] * all.r[i] : 0.0;
    }
}

static void walk_squares(const struct part_walk *walk, const unsigned char *r,
                         const unsigned char *c, unsigned n, struct squares *ret)
{
    static const struct moments_pivot zeros = {0.0, 0.0};
    double x[PAIR_STEP], y[PAIR_STEP];

    if (walk->pair.is_wide) {
        walk_squares_exact(walk, r, c, n, ret);
        return;
    }
    walk->slices->set->detail.sifted(&walk->pair, r, c, n, &zeros, x, y);
    for (unsigned i = 0; i < n; i++) {
        ret->error[i] = (y[i] - x[i]) * (y[i] - x[i]);
        ret->size[i] = x[i] * x[i];
    }
}

/* In lanes where they pay. */
static double sum_of(const double *values, uint64_t n)
{
    double lane[MOMENTS_LANES] = {0}, rest = 0.0;
    uint64_t i = 0;

    for (; i + MOMENTS_LANES <= n; i += MOMENTS_LANES)
        for (int l = 0; l < MOMENTS_LANES; l++)
            lane[l] += values[i + (uint64_t)l];
    for (; i < n; i++)
        rest += values[i];
    return n < MOMENTS_LANES ? rest : nd_lanes_sum(lane) + rest;
}

static void add_each(double *restrict into, const double *restrict values, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        into[i] += values[i];
}

static void walk_row_end(struct part_walk *walk, uint64_t at)
{
    const uint64_t length = walk->slices->row_length;
    const double drift =
        slice_drift(walk->row[0], walk->row[1], walk->slices->floor, length);

    if (drift > walk->worst.drift) {
        walk->worst.drift = drift;
        walk->worst.at = at - length;
    }
    walk->row[0] = walk->row[1] = 0.0;
}

/* n positions of one row, from flat index `at`. */
static void walk_segment(struct part_walk *walk, const double *error, const double *size,
                         uint64_t n, uint64_t at)
{
    const struct slices *const slices = walk->slices;
    const double sum[2] = {sum_of(error, n), sum_of(size, n)};

    walk->row[0] += sum[0];
    walk->row[1] += sum[1];
    if (slices->channel_stride == 1) {
        const uint64_t channel = at % slices->channel_count;
        add_each(walk->error + channel, error, n);
        add_each(walk->size + channel, size, n);
    } else {
        const uint64_t channel = at / slices->channel_stride % slices->channel_count;
        walk->error[channel] += sum[0];
        walk->size[channel] += sum[1];
    }
    if ((at + n) % slices->row_length == 0)
        walk_row_end(walk, at + n);
}

void nd_slices_part(const struct slices *slices, size_t part)
{
    const struct moments_policy policy = {.scale = 1};
    const uint64_t first = part * slices->part_length;
    const uint64_t left = slices->view[0]->count - first;
    const uint64_t end = first + (left < slices->part_length ? left : slices->part_length);
    double *const sums = slices->sums + 2 * part * (size_t)slices->channel_count;
    unsigned char buffer[2][PAIR_STEP * PAIR_ELEMENT_MAX];
    struct part_walk walk = {.slices = slices, .error = sums,
                             .size = sums + slices->channel_count};
    struct squares squares;

    nd_pair_init(&walk.pair, slices->view[0], slices->view[1], slices->real[0],
                 slices->real[1], &policy);
    for (uint64_t at = first; at < end; at += PAIR_STEP) {
        const uint64_t n = end - at < PAIR_STEP ? end - at : PAIR_STEP;
        walk_squares(&walk, nd_pair_bytes(slices->view[0], at, n, buffer[0]),
                     nd_pair_bytes(slices->view[1], at, n, buffer[1]), (unsigned)n, &squares);
        for (uint64_t i = 0, here; i < n; i += here) {
            const uint64_t in_row = slices->row_length - (at + i) % slices->row_length;
            here = n - i < in_row ? n - i : in_row;
            walk_segment(&walk, squares.error + i, squares.size + i, here, at + i);
        }
    }
    slices->rows[part] = walk.worst;
}

/* --- folding ---------------------------------------------------------------------------- */

static struct worst_slice slices_worst_channel(const struct slices *slices)
{
    const uint64_t count = slices->channel_count;
    const uint64_t length = slices->view[0]->count / count;
    struct worst_slice worst = {.known = true, .axis = slices->axis};

    for (uint64_t k = 0; k < count; k++) {
        double error = 0.0, size = 0.0;
        for (size_t part = 0; part < slices->part_count; part++) {
            error += slices->sums[2 * part * count + k];
            size += slices->sums[(2 * part + 1) * count + k];
        }
        const double drift = slice_drift(error, size, slices->floor, length);
        if (drift > worst.drift) {
            worst.drift = drift;
            worst.at = k;
        }
    }
    return worst;
}

void nd_slices_end(const struct slices *slices, struct worst_slice *ret_channel,
                   struct worst_slice *ret_row)
{
    struct worst_slice row = {.known = slices->part_count > 0};

    for (size_t part = 0; part < slices->part_count; part++)
        if (slices->rows[part].drift > row.drift) {
            row.drift = slices->rows[part].drift;
            row.at = slices->rows[part].at;
        }
    *ret_row = row;
    *ret_channel = slices->part_count > 0 ? slices_worst_channel(slices)
                                          : (struct worst_slice){.known = false};
}
