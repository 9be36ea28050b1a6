/*
 * Layers and slots by name, while a dump is indexed.
 */
#ifndef ND_FORMATS_NAME_TABLE_H
#define ND_FORMATS_NAME_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* A layer by its name, step and rank, or a slot by its layer's index. */
struct name_key {
    const char *layer; /* NULL: the key of a slot */
    const char *slot;  /* NULL: the key of a layer */
    int64_t step, rank;
    size_t index; /* LAYER keys: value, the latest layer of this name; SLOT: key */
};

struct name_table; /* NULL is an empty one */

/* The key as it was added; NULL: it is not there. */
struct name_key *nd_name_find(struct name_table *table, const struct name_key *key);
/* Adds a copy of a key that is not there; its texts stay the caller's.  False: no memory.
 */
bool nd_name_add(struct name_table **table, struct arena *arena,
                 const struct name_key *key);
void nd_name_table_free(struct name_table *table);

#endif
