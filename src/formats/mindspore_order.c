/*
 * MindSpore's execution order: ms_execution_order_graph_{g}.csv, a row per node in the
 * order of execution, its full name in the first cell
 * ("Default/network/conv1/Conv2D-op12"). Tensor files have '_' for '/', or the last part
 * alone.
 */
#include <stdlib.h>

#include "base/text.h"
#include "formats/mindspore.h"
#include "formats/names.h"

struct ms_place {
    int64_t rank;
    const char *name; /* escaped, or the last part */
    size_t at;
};

static enum nd_status place_add(struct dump *dump, struct ms_order *order, int64_t rank,
                                const char *name, size_t at, struct nd_error *err)
{
    struct ms_place *const places = nd_arena_grow(dump->arena, order->places, order->count,
                                                  &order->capacity, sizeof *places);

    if (places == NULL || name == NULL)
        return nd_fail_memory(err);
    order->places = places;
    places[order->count++] = (struct ms_place){rank, name, at};
    return ND_OK;
}

/* One row, as both names that a file of the node may have. */
static enum nd_status order_row(struct dump *dump, const char *from, size_t len,
                                int64_t rank, struct ms_order *order, struct nd_error *err)
{
    char *const full = nd_arena_copy(dump->arena, from, len);
    const size_t at = order->count;

    if (full == NULL)
        return nd_fail_memory(err);
    const char *const slash = strrchr(full, '/');
    const char *const last = slash == NULL ? NULL : nd_arena_string(dump->arena, slash + 1);
    for (char *p = full; *p != '\0'; p++)
        if (*p == '/')
            *p = '_';
    ND_TRY(place_add(dump, order, rank, full, at, err));
    return slash == NULL ? ND_OK : place_add(dump, order, rank, last, at, err);
}

enum nd_status nd_ms_order_add(struct dump *dump, size_t file, int64_t rank,
                               struct ms_order *order, struct nd_error *err)
{
    const struct cursor in = nd_dump_bytes(dump, file);
    const char *at = (const char *)in.bytes, *const end = at + in.size;

    while (at < end) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const char *const stop = newline == NULL ? end : newline;
        const char *from = at;
        at = stop + 1;
        while (from < stop && (*from == ' ' || *from == '"'))
            from++;
        size_t len = 0;
        while (from + len < stop && strchr(",\" \r", from[len]) == NULL)
            len++;
        if (len == 0 || len > ND_MAX_NAME)
            continue;
        ND_TRY(order_row(dump, from, len, rank, order, err));
    }
    return ND_OK;
}

static int compare_names(const struct ms_place *a, const struct ms_place *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *a, const void *b)
{
    const struct ms_place *x = a, *y = b;
    const int order = compare_names(x, y);

    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

void nd_ms_order_sort(struct ms_order *order)
{
    if (order->count > 1)
        qsort(order->places, order->count, sizeof *order->places, by_name);
}

size_t nd_ms_order_find(const struct ms_order *order, int64_t rank, const char *op)
{
    const struct ms_place wanted = {.rank = rank, .name = op};
    size_t low = 0, high = order->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_names(&order->places[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < order->count && compare_names(&order->places[low], &wanted) == 0
               ? order->places[low].at
               : SIZE_MAX;
}
