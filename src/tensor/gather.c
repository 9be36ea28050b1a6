/*
 * Gathering: elements in logical order out of any storage.
 *
 * Where an axis' elements lie side by side (NC1HWC0 read as NCHW, NHWC as NCHW, FRACTAL_NZ),
 * they are read by bundles (gather_bundle.c).  What is here does for the rest: a row is a run
 * along the last axis, and rows advance together, a piece at a time, so that what one brings
 * into the cache the next ones find there.
 */
#include "tensor/gather_bundle.h"
#include "tensor/gather_copy.h"

#include <math.h>
#include <string.h>

enum {
    GATHER_ROWS = 64,  /* rows that advance together */
    GATHER_PIECE = 64, /* elements of each: all pieces' lines stay in a 32 KiB cache */
    GATHER_BLOCKS = 256, /* the same where a row lies in blocks: fewer, longer runs */
};

/* --- rows ---------------------------------------------------------------------------- */

/* A row: where its index 0 lies, and how far the link shifts its indices. */
struct row {
    const unsigned char *at;
    uint64_t shift;
};

static struct row row_at(const struct gather_plan *plan, const uint64_t *index)
{
    const uint32_t last = plan->rank - 1;
    int64_t offset = 0;
    uint64_t shift = 0;

    for (uint32_t k = 0; k < last; k++)
        offset += nd_axis_offset(&plan->axis[k], index[k]);
    if (plan->link != NULL && plan->from != ND_NO_AXIS && plan->from != last)
        shift = nd_link_shift(plan->link, index[plan->from]);
    if (plan->link != NULL && plan->to != last && plan->from != last) {
        const uint64_t j = plan->to == ND_NO_AXIS ? 0 : index[plan->to];
        offset += nd_axis_offset(&plan->link->map, j + shift);
        shift = 0;
    } else if (plan->link != NULL && plan->from == last) {
        shift = plan->to == ND_NO_AXIS ? 0 : index[plan->to];
    }
    return (struct row){.at = plan->data + offset * (int64_t)plan->size, .shift = shift};
}

static void row_next(const struct gather_plan *plan, uint64_t *index)
{
    for (uint32_t k = plan->rank - 1; k-- > 0;) {
        if (++index[k] < plan->dim[k])
            return;
        index[k] = 0;
    }
}

/* Elements [from, from + n) through one map, starting at `at` for index 0. */
static void copy_axis(const struct axis_map *axis, const unsigned char *at, uint64_t from,
                      uint64_t n, unsigned size, unsigned char *out)
{
    if (axis->block == 1) {
        copy_strided(at + (int64_t)from * axis->outer * (int64_t)size, axis->outer, n, size,
                     out);
        return;
    }
    uint64_t within = from % axis->block;
    at += (int64_t)(from / axis->block) * axis->outer * (int64_t)size;
    if (axis->inner == 1 && within == 0) {
        const uint64_t blocks = n / axis->block;
        copy_blocks(at, axis->outer * (int64_t)size, blocks, axis->block * size, out);
        at += (int64_t)blocks * axis->outer * (int64_t)size;
        out += blocks * axis->block * size;
        n -= blocks * axis->block;
    }
    while (n > 0) {
        const uint64_t left = axis->block - within, run = n < left ? n : left;
        copy_strided(at + (int64_t)within * axis->inner * (int64_t)size, axis->inner, run,
                     size, out);
        out += run * size;
        at += axis->outer * (int64_t)size;
        within = 0;
        n -= run;
    }
}

/* Elements [from, from + n) of a row. */
static void row_copy(const struct gather_plan *plan, const struct row *row, uint64_t from,
                     uint64_t n, unsigned char *out)
{
    const uint32_t last = plan->rank - 1;
    const struct axis_map *axis = &plan->axis[last];
    const unsigned size = plan->size;

    if (plan->link != NULL && plan->to == last) {
        copy_axis(&plan->link->map, row->at, from + row->shift, n, size, out);
        return;
    }
    if (plan->link == NULL || plan->from != last) {
        copy_axis(axis, row->at, from, n, size, out);
        return;
    }
    for (uint64_t i = from; i < from + n; i++, out += size) {
        const uint64_t j = row->shift + nd_link_shift(plan->link, i);
        const int64_t at = nd_axis_offset(axis, i) + nd_axis_offset(&plan->link->map, j);
        memcpy(out, row->at + at * (int64_t)size, size);
    }
}

/* A row, or the part of one that is wanted. */
struct span {
    struct row row;
    uint64_t from, to;
    unsigned char *out; /* where element `from` goes */
};

/* The elements [from, to) of `n` rows. */
static void spans_copy(const struct gather_plan *plan, const struct span *spans, unsigned n,
                       uint64_t from, uint64_t to)
{
    for (unsigned r = 0; r < n; r++) {
        const struct span *span = &spans[r];
        const uint64_t first = span->from > from ? span->from : from;
        const uint64_t last = span->to < to ? span->to : to;
        if (first < last)
            row_copy(plan, &span->row, first, last - first,
                     span->out + (first - span->from) * plan->size);
    }
}

/* `count` elements from `from` on in the row of index, in pieces of many rows. */
static void rows_gather(const struct gather_plan *plan, uint64_t *index, uint64_t from,
                        uint64_t count, unsigned char *out)
{
    const uint64_t dim = plan->dim[plan->rank - 1];
    const uint64_t piece =
        plan->axis[plan->rank - 1].block > 1 ? GATHER_BLOCKS : GATHER_PIECE;
    struct span spans[GATHER_ROWS];

    while (count > 0) {
        unsigned n = 0;
        uint64_t low = dim, high = 0;
        for (; n < GATHER_ROWS && count > 0; n++) {
            const uint64_t left = dim - from, take = left < count ? left : count;
            spans[n] = (struct span){row_at(plan, index), from, from + take, out};
            low = from < low ? from : low;
            high = from + take > high ? from + take : high;
            out += take * plan->size;
            count -= take;
            from = 0;
            row_next(plan, index);
        }
        for (uint64_t at = low - low % piece; at < high; at += piece)
            spans_copy(plan, spans, n, at, at + piece < high ? at + piece : high);
    }
}

/* --- any range ----------------------------------------------------------------------- */

/* The index of an element, but for its place along the last axis. */
static uint64_t plan_index(const struct gather_plan *plan, uint64_t flat, uint64_t *index)
{
    const uint64_t dim = plan->dim[plan->rank - 1];
    uint64_t rest = flat / dim;

    for (uint32_t k = plan->rank - 1; k-- > 0; rest /= plan->dim[k])
        index[k] = rest % plan->dim[k];
    index[plan->rank - 1] = 0;
    return flat % dim;
}

static void gather_mapped(const struct tensor_view *view, uint64_t first, uint64_t count,
                          unsigned char *out)
{
    uint64_t index[ND_MAX_RANK] = {0};
    struct gather_plan plan;
    struct bundles bundles;

    nd_plan_make(view, &plan);
    if (nd_bundles_make(&plan, &bundles)) {
        nd_bundles_gather(&bundles, first, count, out);
        return;
    }
    const uint64_t from = plan_index(&plan, first, index);
    rows_gather(&plan, index, from, count, out);
}

uint64_t nd_view_reach(const struct tensor_view *view)
{
    struct gather_plan plan;
    struct bundles bundles;

    if (view->contiguous || view->count == 0)
        return 1;
    nd_plan_make(view, &plan);
    return nd_bundles_make(&plan, &bundles) ? nd_bundles_reach(&bundles) : 1;
}

uint64_t nd_view_cut(const struct tensor_view *view, uint64_t first, uint64_t most)
{
    struct gather_plan plan;
    struct bundles bundles;

    if (view->contiguous || view->count == 0)
        return most;
    nd_plan_make(view, &plan);
    return nd_bundles_make(&plan, &bundles) ? nd_bundles_cut(&bundles, first, most) : most;
}

/* --- elements ------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *bytes, uint64_t n, unsigned size)
{
    for (uint64_t i = 0; i < n; i++, bytes += size)
        for (unsigned k = 0; k < size / 2; k++) {
            const unsigned char byte = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = byte;
        }
}

void nd_view_gather(const struct tensor_view *view, uint64_t first, uint64_t count,
                    void *dst)
{
    const struct dtype_info *info = nd_dtype_info(view->dtype);

    if (count == 0)
        return;
    if (view->contiguous)
        memcpy(dst, view->data + (view->base + first) * info->size, count * info->size);
    else
        gather_mapped(view, first, count, dst);
    if (view->swapped && info->kind == ND_KIND_COMPLEX)
        swap_bytes(dst, 2 * count, info->size / 2);
    else if (view->swapped)
        swap_bytes(dst, count, info->size);
}

void nd_view_decode(const struct tensor_view *view, uint64_t first, uint64_t count,
                    double *dst)
{
    const struct dtype_info *info = nd_dtype_info(view->dtype);
    const unsigned parts = info->kind == ND_KIND_COMPLEX ? 2 : 1;
    unsigned char buffer[8192];

    if (view->contiguous) {
        nd_dtype_decode(view->dtype, view->swapped,
                        view->data + (view->base + first) * info->size, (size_t)count, dst);
        return;
    }
    while (count > 0) {
        const uint64_t room = sizeof buffer / info->size;
        const uint64_t n = count < room ? count : room;
        nd_view_gather(view, first, n, buffer);
        nd_dtype_decode(view->dtype, false, buffer, (size_t)n, dst);
        first += n;
        count -= n;
        dst += n * parts;
    }
}

double nd_view_at(const struct tensor_view *view, uint64_t flat)
{
    double value[2] = {0, 0};

    nd_view_decode(view, flat, 1, value);
    return nd_dtype_info(view->dtype)->kind == ND_KIND_COMPLEX ? hypot(value[0], value[1])
                                                               : value[0];
}
