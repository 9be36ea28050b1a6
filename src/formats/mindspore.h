/*
 * Inside the MindSpore reader: tensors as files and as rows of statistics, before they are
 * put together as layers.
 *
 *   format_mindspore.c  the folders
 *   mindspore_name.c    file names
 *   mindspore_table.c   statistic.csv
 *   mindspore_order.c   execution-order tables
 *   mindspore_layers.c  calls and layers, in order
 */
#ifndef ND_FORMATS_MINDSPORE_H
#define ND_FORMATS_MINDSPORE_H

#include "formats/dump.h"

/* One tensor of one execution of an operator. */
struct ms_item {
    const char *type, *op; /* op: with '_' for every '/' */
    int64_t step, rank;
    uint64_t time; /* microseconds; 0: unknown */
    bool is_output, is_row;
    uint64_t slot, call;
    size_t source;           /* order of finding: breaks ties of the time */
    const char *path;        /* of a tensor file; NULL: a row */
    struct dump_slot values; /* of a row: its statistics; of a file: what its name says */
};

struct ms_items {
    struct ms_item *items;
    size_t count, capacity;
};

/*
 * Reads a file's name
 * ({type}.{op}.{task}.{stream}.{time}.{io}.{slot}.{format}[.{dtype}].npy) into an item;
 * false: another name.  Texts go to the arena; *ret_memory false if they do not fit.
 */
bool nd_ms_name(struct dump *dump, const char *name, struct ms_item *ret_item,
                bool *ret_memory);
/* The same without keeping anything. */
bool nd_ms_name_is(const char *name);

enum { ND_MS_MAX_ITEMS = 4 * 1000 * 1000 };
enum nd_status nd_ms_item_add(struct dump *dump, struct ms_items *items,
                              const struct ms_item *item, struct nd_error *err);

/* Whether bytes begin like a statistic.csv. */
bool nd_ms_table_is(const unsigned char *bytes, uint64_t size);
/* Adds a row's tensors; step and rank are those of the folder. */
enum nd_status nd_ms_table(struct dump *dump, size_t file, int64_t step, int64_t rank,
                           struct ms_items *items, struct nd_error *err);

/* Positions of operators, from execution-order tables. */
struct ms_order {
    struct ms_place *places;
    size_t count, capacity;
};
enum nd_status nd_ms_order_add(struct dump *dump, size_t file, int64_t rank,
                               struct ms_order *order, struct nd_error *err);
void nd_ms_order_sort(struct ms_order *order);
/* SIZE_MAX: not in a table. */
size_t nd_ms_order_find(const struct ms_order *order, int64_t rank, const char *op);

/* Makes layers of everything; the items are sorted on the way. */
enum nd_status nd_ms_layers(struct dump *dump, struct ms_items *items,
                            struct ms_order *places, struct nd_error *err);

#endif
