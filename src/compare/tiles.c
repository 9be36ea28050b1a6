/*
 * Tiles.
 *
 * A row is a run of logical order, and blocks are cut at multiples of their size: so a row
 * begins and ends within blocks.  What it has of its first block is laid aside (its head),
 * what it has of its last one stays where it is (its rest).  When all rows of a bundle are
 * done, the rest of each and the head of the next make a block.
 *
 * Rows are gathered a window at a time, which does not end where blocks do: what is over
 * moves to before the seam, behind which the next window is gathered.
 */
#include "compare/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/gather_bundle.h"

enum {
    TILE_ROWS = 32,       /* of a bundle: with more, nothing stays in the cache */
    TILE_LEAST = 2 << 20, /* bytes of a bundle: smaller ones stay in the cache as a whole */
    TILE_PAD = 64,        /* so that rows do not all begin in one set of the cache */
    TILE_BLOCKS = 4096,   /* whose sums are held */
    TILE_AHEAD = MOMENTS_BLOCK * 3 / 2 /* positions that are fetched before their time */
};

struct row {
    uint64_t first; /* its flat index; where only a part is wanted, that of the part */
    uint64_t at;    /* measured up to here, but for the head */
    uint64_t end;   /* gathered up to here */
    uint64_t head;  /* elements that were laid aside */
};

/* Room of a side that is not in order. */
struct tile_side {
    struct gather_plan plan;
    struct bundles bundles;
    bool is_staged;
    unsigned size;
    uint64_t pitch;        /* bytes from row to row */
    unsigned char *rows;   /* of each a block, and before it what was not measured before */
    unsigned char *heads;  /* a block for each row */
    unsigned char *joined; /* a block: the rest of the row before */
};

struct tiles {
    const struct tensor_view *view;
    struct tile_side side[2];
    uint64_t tail, group; /* elements of a row; most rows of a bundle */
    uint64_t window;      /* elements of a row that are gathered at once */
    struct moments_pass *pass;
    uint64_t origin; /* flat index of sums[0] */
    /* Counted in the order of memory: what is gathered, what is on its way, and where all
     * of it ends. */
    uint64_t gathered, asked, end;
    struct row row[TILE_ROWS];
    struct moments_sums sums[TILE_BLOCKS];
};

/* --- making them --------------------------------------------------------------------- */

static bool side_make(const struct tensor_view *view, struct tile_side *side)
{
    side->size = nd_dtype_info(view->dtype)->size;
    side->is_staged = !nd_pair_in_place(view);
    if (!side->is_staged)
        return true;
    nd_plan_make(view, &side->plan);
    return !view->swapped && nd_bundles_make(&side->plan, &side->bundles);
}

/* Rows of a whole bundle. */
static uint64_t side_group(const struct tile_side *side)
{
    const struct bundles *const bundles = &side->bundles;

    return bundles->block < bundles->dim ? bundles->block : bundles->dim;
}

/* Where both sides are gathered, their bundles have to be of one form. */
static bool sides_agree(const struct tile_side *a, const struct tile_side *b)
{
    return !a->is_staged || !b->is_staged ||
           (a->bundles.dim == b->bundles.dim && a->bundles.tail == b->bundles.tail &&
            a->bundles.block == b->bundles.block);
}

static bool tiles_alloc(struct tiles *tiles, uint64_t budget)
{
    for (unsigned i = 0; i < 2; i++) {
        struct tile_side *const side = &tiles->side[i];
        const uint64_t block = (uint64_t)MOMENTS_BLOCK * side->size;
        if (!side->is_staged)
            continue;
        side->pitch = block + tiles->window * side->size + TILE_PAD;
        const uint64_t rows = tiles->group * side->pitch, heads = tiles->group * block;
        if (rows + heads + block > budget)
            return false;
        budget -= rows + heads + block;
        side->rows = malloc((size_t)(rows + heads + block));
        if (side->rows == NULL)
            return false;
        side->heads = side->rows + rows;
        side->joined = side->heads + heads;
    }
    return true;
}

/* Windows of one size, a block or a little more: a short one at the end would be as much
 * work as the others. */
static uint64_t window_of(uint64_t tail)
{
    const uint64_t count = tail / MOMENTS_BLOCK;

    return ((tail - 1) / count / MOMENTS_LANES + 1) * MOMENTS_LANES;
}

struct tiles *nd_tiles_new(const struct tensor_view *view, uint64_t budget)
{
    struct tile_side side[2] = {{.size = 0}, {.size = 0}};
    uint64_t tail = 0, group = 0, bytes = 0;

    if (!side_make(&view[0], &side[0]) || !side_make(&view[1], &side[1]) ||
        !sides_agree(&side[0], &side[1]))
        return NULL;
    for (unsigned i = 0; i < 2; i++)
        if (side[i].is_staged) {
            group = side_group(&side[i]);
            tail = side[i].bundles.tail;
            bytes = nd_bundles_reach(&side[i].bundles) * side[i].size;
        }
    if (tail < 2 * MOMENTS_BLOCK || group < 2 || group > TILE_ROWS || bytes < TILE_LEAST)
        return NULL;
    struct tiles *const tiles = malloc(sizeof *tiles);
    if (tiles == NULL)
        return NULL;
    tiles->view = view;
    tiles->tail = tail;
    tiles->window = window_of(tail);
    tiles->group = group;
    for (unsigned i = 0; i < 2; i++) {
        tiles->side[i] = side[i];
        tiles->side[i].bundles.plan = &tiles->side[i].plan;
    }
    if (budget > sizeof *tiles && tiles_alloc(tiles, budget - sizeof *tiles))
        return tiles;
    nd_tiles_free(tiles);
    return NULL;
}

void nd_tiles_free(struct tiles *tiles)
{
    if (tiles == NULL)
        return;
    free(tiles->side[0].rows);
    free(tiles->side[1].rows);
    free(tiles);
}

/* --- blocks -------------------------------------------------------------------------- */

/* Where a row's elements go: before it is what the row had of a block. */
static unsigned char *row_seam(const struct tile_side *side, uint64_t i)
{
    return side->rows + i * side->pitch + (uint64_t)MOMENTS_BLOCK * side->size;
}

/* While the next block is measured, a block's worth of what will be gathered comes into the
 * cache: so memory and processor are busy at once. */
static void tiles_ask(struct tiles *tiles)
{
    uint64_t at = tiles->asked;

    for (unsigned k = 0; k < 2; k++)
        tiles->pass->run.ahead[k] = NULL;
    if (at < tiles->gathered)
        at = tiles->gathered;
    if (at >= tiles->end || at >= tiles->gathered + TILE_AHEAD * tiles->group)
        return;
    for (unsigned k = 0; k < 2; k++)
        if (tiles->side[k].is_staged)
            tiles->pass->run.ahead[k] = nd_bundles_source(&tiles->side[k].bundles, at);
    tiles->asked = at + MOMENTS_BLOCK;
}

/* A block from `at` on, whose bytes of the staged sides are given. */
static void measure_block(struct tiles *tiles, unsigned char *const *staged, uint64_t at,
                          size_t n)
{
    const unsigned char *bytes[2];

    for (unsigned k = 0; k < 2; k++)
        bytes[k] =
            tiles->side[k].is_staged
                ? staged[k]
                : tiles->view[k].data + (tiles->view[k].base + at) * tiles->side[k].size;
    tiles_ask(tiles);
    nd_pass_add(tiles->pass, bytes, at, n,
                &tiles->sums[(at - tiles->origin) / MOMENTS_BLOCK]);
}

/* Lays aside what a row has of its first block, where all of that is there. */
static void row_behead(struct tiles *tiles, uint64_t i, unsigned char **inout_bytes)
{
    struct row *const row = &tiles->row[i];
    const uint64_t wanting = (0 - row->at) % MOMENTS_BLOCK;

    if (wanting == 0 || row->end - row->at < wanting)
        return;
    for (unsigned k = 0; k < 2; k++) {
        const struct tile_side *const side = &tiles->side[k];
        if (!side->is_staged)
            continue;
        memcpy(side->heads + i * MOMENTS_BLOCK * side->size, inout_bytes[k],
               wanting * side->size);
        inout_bytes[k] += wanting * side->size;
    }
    row->head = wanting;
    row->at += wanting;
}

/* Row i was gathered to `end`, the element `seam` and those behind it at its seam. */
static void row_advance(struct tiles *tiles, uint64_t i, uint64_t seam, uint64_t end)
{
    struct row *const row = &tiles->row[i];
    unsigned char *bytes[2] = {NULL, NULL};

    row->end = end;
    for (unsigned k = 0; k < 2; k++)
        if (tiles->side[k].is_staged)
            bytes[k] = row_seam(&tiles->side[k], i) +
                       ((int64_t)row->at - (int64_t)seam) * (int64_t)tiles->side[k].size;
    row_behead(tiles, i, bytes);
    while (row->end - row->at >= MOMENTS_BLOCK) {
        measure_block(tiles, bytes, row->at, MOMENTS_BLOCK);
        row->at += MOMENTS_BLOCK;
        for (unsigned k = 0; k < 2; k++)
            if (tiles->side[k].is_staged)
                bytes[k] += MOMENTS_BLOCK * tiles->side[k].size;
    }
    for (unsigned k = 0; k < 2; k++) {
        const uint64_t rest = (row->end - row->at) * tiles->side[k].size;
        if (tiles->side[k].is_staged && rest > 0)
            memmove(row_seam(&tiles->side[k], i) - rest, bytes[k], rest);
    }
}

/* Joins the head of row i to the rest of the row before, and keeps its own rest. */
static void row_join(struct tiles *tiles, uint64_t i)
{
    const struct row *const row = &tiles->row[i];
    const uint64_t before = row->first % MOMENTS_BLOCK, rest = row->end - row->at;
    unsigned char *joined[2] = {NULL, NULL};

    for (unsigned k = 0; k < 2; k++) {
        const struct tile_side *const side = &tiles->side[k];
        joined[k] = side->joined;
        if (side->is_staged && row->head > 0)
            memcpy(side->joined + before * side->size,
                   side->heads + i * MOMENTS_BLOCK * side->size, row->head * side->size);
    }
    if (row->head > 0)
        measure_block(tiles, joined, row->first - before, MOMENTS_BLOCK);
    for (unsigned k = 0; k < 2; k++) {
        const struct tile_side *const side = &tiles->side[k];
        if (side->is_staged && rest > 0)
            memcpy(side->joined + row->at % MOMENTS_BLOCK * side->size,
                   row_seam(side, i) - rest * side->size, rest * side->size);
    }
}

static void measure_bundle(struct tiles *tiles, const struct bundle *bundle)
{
    const uint64_t tail = tiles->tail, start = bundle->row * tail, last = bundle->rows - 1;

    for (uint64_t i = 0; i <= last; i++) {
        const uint64_t first = start + i * tail + (i == 0 ? bundle->from : 0);
        tiles->row[i] = (struct row){.first = first, .at = first, .end = first};
    }
    for (uint64_t low = 0; low < tail; low += tiles->window) {
        const uint64_t high = tail - low < tiles->window ? tail : low + tiles->window;
        for (unsigned k = 0; k < 2; k++) {
            const struct tile_side *const side = &tiles->side[k];
            if (side->is_staged)
                nd_bundle_gather(&side->bundles, bundle, low, high, row_seam(side, 0),
                                 side->pitch);
        }
        tiles->gathered = start + high * bundle->rows;
        for (uint64_t i = 0; i <= last; i++) {
            const uint64_t to = i == last && bundle->to < high ? bundle->to : high;
            if (start + i * tail + to > tiles->row[i].end)
                row_advance(tiles, i, start + i * tail + low, start + i * tail + to);
        }
    }
    for (uint64_t i = 0; i <= last; i++)
        row_join(tiles, i);
}

/* At most so many elements as there are sums for. */
static void measure_bundles(struct tiles *tiles, uint64_t first, uint64_t count)
{
    const struct tile_side *const side = &tiles->side[tiles->side[0].is_staged ? 0 : 1];
    unsigned char *const joined[2] = {tiles->side[0].joined, tiles->side[1].joined};
    const uint64_t end = first + count, over = end % MOMENTS_BLOCK;

    tiles->origin = tiles->gathered = tiles->asked = first;
    tiles->end = end;
    while (first < end) {
        const struct bundle bundle =
            nd_bundle_from(&side->bundles, first, end - first, tiles->group);
        measure_bundle(tiles, &bundle);
        first += bundle.count;
    }
    if (over > 0)
        measure_block(tiles, joined, end - over, over);
}

void nd_tiles_measure(struct tiles *tiles, struct moments_pass *pass, uint64_t first,
                      uint64_t count, uint64_t part, struct nd_moments *inout)
{
    const uint64_t most = (uint64_t)TILE_BLOCKS * MOMENTS_BLOCK;

    tiles->pass = pass;
    for (uint64_t at = 0, to; at < count; at = to) {
        to = count - at < most ? count : at + most;
        measure_bundles(tiles, first + at, to - at);
        for (uint64_t from = at, end; from < to; from = end) {
            end = to - from < part - from % part ? to : from + (part - from % part);
            nd_sums_add(&tiles->sums[(from - at) / MOMENTS_BLOCK],
                        (end - from - 1) / MOMENTS_BLOCK + 1, &inout[from / part]);
        }
    }
}
