/*
 * Gathering by bundles: the rows behind a block of an axis whose elements lie side by side
 * (the 16 channels of a block of NC1HWC0, the channels of NHWC, 16 columns of FRACTAL_NZ).
 * In memory a bundle is a matrix of positions by lanes; it is read along its lines, and
 * every line once.
 */
#include "tensor/gather_bundle.h"

#include "tensor/gather_copy.h"
#include "tensor/gather_turn.h"

enum {
    BUNDLE_LANES = 256,   /* bytes: of one axis that lies side by side as a whole */
    BUNDLE_AHEAD = 4096,  /* bytes that are prefetched before they are needed */
    BUNDLE_SHORT = 64,    /* elements of a row: what lies behind it is not its own */
    WINDOW_ROWS = 32,     /* whose bundles are read beside each other */
    WINDOW_WRITTEN = 256, /* bytes of one of these rows at a time */
    WINDOW_ROOM = 16384,  /* bytes: a part of a first-level cache */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int64_t absolute(int64_t step)
{
    return step < 0 ? -step : step;
}

/* From one index to the next one in the same block. */
static int64_t axis_step(const struct axis_map *axis)
{
    return axis->block == 1 ? axis->outer : axis->inner;
}

/* Do neighbours before the line lie nearer to a bundle than the next one behind it? */
static bool bundles_lie_across(const struct bundles *bundles)
{
    const struct axis_map *line = &bundles->plan->axis[bundles->line];

    return bundles->line > 0 && line->block > 1 && bundles->dim > line->block &&
           bundles->tail <= BUNDLE_SHORT &&
           absolute(axis_step(line - 1)) < absolute(line->outer);
}

bool nd_bundles_make(const struct gather_plan *plan, struct bundles *ret)
{
    const uint32_t line = nd_plan_side_by_side(plan), last = plan->rank - 1;

    if (plan->link != NULL || line > last || plan->size > sizeof(uint64_t))
        return false;
    if (line < last && plan->axis[last].block != 1)
        return false;
    *ret = (struct bundles){.plan = plan,
                            .line = line,
                            .dim = plan->dim[line],
                            .block = plan->axis[line].block,
                            .tail = nd_plan_tail(plan, line)};
    if (ret->block == 1)
        ret->block = line == last ? ret->dim : BUNDLE_LANES / plan->size;
    ret->across = bundles_lie_across(ret);
    const uint64_t lanes = least(ret->block, BUNDLE_LANES / plan->size);
    const uint64_t positions = BUNDLE_AHEAD / (lanes * plan->size);
    ret->ahead = ret->across ? plan->axis[line].outer * (int64_t)plan->size
                 : plan->dim[last] < BUNDLE_SHORT
                     ? BUNDLE_AHEAD
                     : (int64_t)positions * plan->axis[last].outer * (int64_t)plan->size;
    return true;
}

/* Where the axes [from, to) of a plan put the flat index over them. */
static int64_t axes_offset(const struct gather_plan *plan, uint32_t from, uint32_t to,
                           uint64_t flat)
{
    int64_t offset = 0;

    for (uint32_t k = to; k-- > from && flat > 0; flat /= plan->dim[k])
        offset += nd_axis_offset(&plan->axis[k], flat % plan->dim[k]);
    return offset;
}

static void strip_copy(const struct strip *strip, unsigned size)
{
    switch (size) {
    case 1:
        strip_turn(strip, 1);
        break;
    case 2:
        strip_turn(strip, 2);
        break;
    case 4:
        strip_turn(strip, 4);
        break;
    default:
        strip_turn(strip, 8);
    }
}

/* The positions [from, to) of rows whose first begins at `at`; that of `from` in the first
 * goes to out. */
static void bundle_part(const struct bundles *bundles, const unsigned char *at,
                        uint64_t lanes, uint64_t from, uint64_t to, unsigned char *out,
                        uint64_t pitch)
{
    const struct gather_plan *plan = bundles->plan;
    const uint32_t last = plan->rank - 1;
    const uint64_t dim = plan->dim[last];
    struct strip strip = {.lanes = lanes,
                          .ahead = bundles->ahead,
                          .pitch = pitch,
                          .step = plan->axis[last].outer * (int64_t)plan->size};

    for (; from < to; from += strip.count, out += strip.count * plan->size) {
        const int64_t before = axes_offset(plan, bundles->line + 1, last, from / dim);
        strip.count = least(dim - from % dim, to - from);
        strip.in = at + before * (int64_t)plan->size + (int64_t)(from % dim) * strip.step;
        strip.out = out;
        strip_copy(&strip, plan->size);
    }
}

/* Where a row of the whole view begins. */
static const unsigned char *row_at(const struct bundles *bundles, uint64_t row)
{
    const struct gather_plan *plan = bundles->plan;
    const int64_t offset = axes_offset(plan, 0, bundles->line, row / bundles->dim) +
                           nd_axis_offset(&plan->axis[bundles->line], row % bundles->dim);

    return plan->data + offset * (int64_t)plan->size;
}

/*
 * The positions [low, high) of a bundle whose first row begins at `at`.  Position t of row
 * i goes to out + i * pitch + (t - origin) elements.  The positions that the same rows hold
 * go together.
 */
static void bundle_rows(const struct bundles *bundles, const unsigned char *at,
                        const struct bundle *bundle, uint64_t low, uint64_t high,
                        uint64_t origin, unsigned char *out, uint64_t pitch)
{
    const uint64_t rows = bundle->rows, from = bundle->from, to = bundle->to;
    const unsigned size = bundles->plan->size;
    uint64_t cut[4] = {low, from < to ? from : to, from < to ? to : from, high};

    for (unsigned i = 1; i < 3; i++)
        cut[i] = cut[i] < low ? low : least(cut[i], high);
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t first = cut[i] < from ? 1 : 0;
        const uint64_t end = cut[i] < to ? rows : rows - 1;
        if (cut[i] < cut[i + 1] && first < end)
            bundle_part(bundles, at + first * size, end - first, cut[i], cut[i + 1],
                        out + (first * pitch + cut[i] * size - origin * size), pitch);
    }
}

void nd_bundle_gather(const struct bundles *bundles, const struct bundle *bundle,
                      uint64_t low, uint64_t high, unsigned char *out, uint64_t pitch)
{
    bundle_rows(bundles, row_at(bundles, bundle->row), bundle, low, high, low, out, pitch);
}

/* All of a bundle, rows behind each other; the first element that is wanted goes to out. */
static void bundle_copy(const struct bundles *bundles, const unsigned char *at,
                        const struct bundle *bundle, unsigned char *out)
{
    const unsigned size = bundles->plan->size;

    if (bundles->tail == 1)
        copy_strided(at, 1, bundle->rows, size, out);
    else
        bundle_rows(bundles, at, bundle, 0, bundles->tail, bundle->from, out,
                    bundles->tail * size);
}

struct bundle nd_bundle_from(const struct bundles *bundles, uint64_t first, uint64_t count,
                             uint64_t rows)
{
    const uint64_t tail = bundles->tail, row = first / tail, from = first % tail;
    const uint64_t lane = row % bundles->dim;
    const uint64_t left = bundles->block - lane % bundles->block;

    rows =
        least(rows, least(least(left, bundles->dim - lane), (count - 1 + from) / tail + 1));
    const uint64_t done = least(rows * tail - from, count);
    return (struct bundle){.row = row,
                           .rows = rows,
                           .from = from,
                           .to = from + done - (rows - 1) * tail,
                           .count = done};
}

/* Bundle after bundle in logical order. */
static void bundles_in_order(const struct bundles *bundles, uint64_t first, uint64_t count,
                             unsigned char *out)
{
    while (count > 0) {
        const struct bundle bundle = nd_bundle_from(bundles, first, count, bundles->block);
        bundle_copy(bundles, row_at(bundles, bundle.row), &bundle, out);
        first += bundle.count;
        count -= bundle.count;
        out += bundle.count * bundles->plan->size;
    }
}

/* --- windows ------------------------------------------------------------------------- */

/* What lies side by side in several bundles of the rows of a window.  `bytes` is a constant
 * where this is inlined. */
static inline __attribute__((always_inline)) void
window_blocks(const unsigned char *at, int64_t across, uint64_t rows, int64_t behind,
              uint64_t blocks, uint64_t bytes, unsigned char *out, uint64_t pitch)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < blocks; k++) {
            const unsigned char *in = at + (int64_t)i * across + (int64_t)k * behind;
            turn_prefetch(in, (int64_t)blocks * behind);
            memcpy(out + i * pitch + k * bytes, in, bytes);
        }
}

/*
 * The bundle at `at` of each of `rows` rows, which lie one behind the other.  Their
 * positions are whole pages apart as a rule, and would share a few sets of the cache: so
 * they are brought together first.
 */
static void window_short(const struct bundles *bundles, const unsigned char *at,
                         uint64_t rows, uint64_t lanes, unsigned char *out, uint64_t pitch)
{
    const struct gather_plan *plan = bundles->plan;
    const unsigned size = plan->size;
    const int64_t behind = plan->axis[bundles->line].outer * (int64_t)size;
    const uint64_t row = bundles->block * size, bytes = (rows - 1) * row + lanes * size;
    unsigned char room[WINDOW_ROOM];
    struct strip strip = {.step = (int64_t)(rows * row + TURN_LINE),
                          .count = bundles->tail,
                          .lanes = lanes,
                          .pitch = bundles->tail * size};

    for (uint64_t t = 0; t < bundles->tail; t++) {
        const unsigned char *const in =
            at + axes_offset(plan, bundles->line + 1, plan->rank, t) * (int64_t)size;
        for (uint64_t b = 0; b < bytes; b += TURN_LINE)
            turn_prefetch(in, behind + (int64_t)b);
        memcpy(room + (int64_t)t * strip.step, in, bytes);
    }
    for (uint64_t i = 0; i < rows; i++) {
        strip.in = room + i * row;
        strip.out = out + i * pitch;
        strip_copy(&strip, size);
    }
}

/* All positions of rows. */
static void bundle_whole(const struct bundles *bundles, const unsigned char *at,
                         uint64_t rows, unsigned char *out)
{
    const unsigned size = bundles->plan->size;

    if (bundles->tail == 1)
        copy_strided(at, 1, rows, size, out);
    else
        bundle_part(bundles, at, rows, 0, bundles->tail, out, bundles->tail * size);
}

/* Bundles [first, end) of `rows` rows, the first of which begins at `at`. */
static void window_part(const struct bundles *bundles, const unsigned char *at,
                        uint64_t rows, uint64_t first, uint64_t end, unsigned char *out)
{
    const struct gather_plan *plan = bundles->plan;
    const struct axis_map *line = &plan->axis[bundles->line];
    const int64_t across = axis_step(line - 1) * (int64_t)plan->size;
    const int64_t behind = line->outer * (int64_t)plan->size;
    const uint64_t bytes = bundles->block * bundles->tail * plan->size;
    const uint64_t pitch = bundles->dim * bundles->tail * plan->size;
    const bool are_whole = end * bundles->block <= bundles->dim;
    const bool is_dense = across == (int64_t)(bundles->block * plan->size);
    const uint64_t fit =
        (WINDOW_ROOM / bundles->tail - TURN_LINE) / (bundles->block * plan->size);

    at += (int64_t)first * behind;
    out += first * bytes;
    if (bundles->tail == 1 && are_whole && bytes == 64) {
        window_blocks(at, across, rows, behind, end - first, 64, out, pitch);
    } else if (bundles->tail == 1 && are_whole && bytes == 32) {
        window_blocks(at, across, rows, behind, end - first, 32, out, pitch);
    } else if (bundles->tail > 1 && is_dense && fit > 1) {
        for (uint64_t k = first; k < end; k++)
            for (uint64_t i = 0; i < rows; i += fit)
                window_short(bundles,
                             at + (int64_t)i * across + (int64_t)(k - first) * behind,
                             least(fit, rows - i),
                             least(bundles->block, bundles->dim - k * bundles->block),
                             out + i * pitch + (k - first) * bytes, pitch);
    } else {
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t k = first; k < end; k++)
                bundle_whole(bundles,
                             at + (int64_t)i * across + (int64_t)(k - first) * behind,
                             least(bundles->block, bundles->dim - k * bundles->block),
                             out + i * pitch + (k - first) * bytes);
    }
}

/* As many whole indices before the line, from number `row` on, as lie beside each other. */
static uint64_t window_copy(const struct bundles *bundles, uint64_t row, uint64_t rows,
                            unsigned char *out)
{
    const struct gather_plan *plan = bundles->plan;
    const uint32_t before = bundles->line - 1;
    const struct axis_map *axis = &plan->axis[before];
    const uint64_t index = row % plan->dim[before];
    const uint64_t bytes = bundles->block * bundles->tail * plan->size;
    const uint64_t together = bytes < WINDOW_WRITTEN ? WINDOW_WRITTEN / bytes : 1;
    const uint64_t count = (bundles->dim - 1) / bundles->block + 1;
    const unsigned char *const at =
        plan->data + axes_offset(plan, 0, bundles->line, row) * (int64_t)plan->size;

    rows = least(least(rows, WINDOW_ROWS), plan->dim[before] - index);
    if (axis->block > 1)
        rows = least(rows, axis->block - index % axis->block);
    for (uint64_t k = 0; k < count; k += together)
        window_part(bundles, at, rows, k, least(k + together, count), out);
    return rows;
}

void nd_bundles_gather(const struct bundles *bundles, uint64_t first, uint64_t count,
                       unsigned char *out)
{
    const uint64_t row = bundles->dim * bundles->tail;
    const unsigned size = bundles->plan->size;

    if (bundles->across) {
        const uint64_t head = least((row - first % row) % row, count);
        bundles_in_order(bundles, first, head, out);
        first += head;
        count -= head;
        out += head * size;
        while (count >= row) {
            const uint64_t done = row * window_copy(bundles, first / row, count / row, out);
            first += done;
            count -= done;
            out += done * size;
        }
    }
    bundles_in_order(bundles, first, count, out);
}

/* --- pieces -------------------------------------------------------------------------- */

uint64_t nd_bundles_reach(const struct bundles *bundles)
{
    const uint64_t row = bundles->dim * bundles->tail;

    if (bundles->across)
        return row * least(WINDOW_ROWS, bundles->plan->dim[bundles->line - 1]);
    return least(bundles->block, bundles->dim) * bundles->tail;
}

uint64_t nd_bundles_cut(const struct bundles *bundles, uint64_t first, uint64_t most)
{
    const uint64_t row = bundles->dim * bundles->tail;
    const uint64_t step = bundles->block * bundles->tail;
    uint64_t end = first + most;

    if (bundles->across) {
        const uint64_t window = row * WINDOW_ROWS;
        end -= end / window > first / window ? end % window : end % row;
    } else {
        end -= end % row % step; /* a row's last bundle may be a smaller one */
    }
    return end > first ? end - first : most;
}

const unsigned char *nd_bundles_source(const struct bundles *bundles, uint64_t at)
{
    const struct gather_plan *plan = bundles->plan;
    const uint32_t last = plan->rank - 1;
    const uint64_t row = at / bundles->tail, lane = row % bundles->dim;
    const uint64_t first = row - lane % bundles->block;
    const uint64_t lanes =
        least(bundles->block, bundles->dim - (lane - lane % bundles->block));
    const uint64_t rest = at - first * bundles->tail, position = rest / lanes;

    if (bundles->across || bundles->line == last ||
        (plan->axis[last].outer != (int64_t)bundles->block &&
         plan->axis[last].outer != (int64_t)bundles->dim))
        return NULL;
    return row_at(bundles, first) +
           (axes_offset(plan, bundles->line + 1, plan->rank, position) +
            (int64_t)(rest % lanes)) *
               (int64_t)plan->size;
}
