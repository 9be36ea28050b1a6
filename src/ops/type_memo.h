/*
 * What a layer's type was found to be, kept for the types that were met last: a dump has
 * any number of layers, but a few dozen types.  Each thread has tables of its own, so that
 * there is no lock, and what is kept is a function of the type alone, so that no result
 * depends on what was asked before.
 */
#ifndef ND_OPS_TYPE_MEMO_H
#define ND_OPS_TYPE_MEMO_H

#include <stdbool.h>

enum { ND_TYPE_MEMO = 64 /* rows of a table: a power of two */ };

/* Zeroed at first; static and _Thread_local. */
struct type_memo {
    const void *found;
    bool is_known;
    char type[48]; /* longer ones are looked up every time */
};

/* What find(type) returns; `table` has ND_TYPE_MEMO rows, and only this `find`. */
const void *nd_type_recall(struct type_memo *table, const char *type,
                           const void *(*find)(const char *type));

#endif
