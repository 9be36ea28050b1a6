/*
 * A hash table with open addressing.  Names come from outside, and whoever knows the hash
 * can choose names that all fall into one place: so it starts from a number that the kernel
 * draws for each process.  Nothing but the time of a look-up depends on that number.
 */
#define _GNU_SOURCE /* getauxval */
#include "formats/name_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/mix.h"

enum { LEAST_CELLS = 16 };

struct name_cell {
    uint64_t hash;
    struct name_key *key; /* NULL: free */
};

struct name_table {
    struct name_cell *cells;
    size_t capacity, count; /* a power of two, at most half of it taken */
    uint64_t seed;
};

static uint64_t drawn_number(void)
{
    const void *const random = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
    uint64_t number = 0;

    if (random != NULL)
        memcpy(&number, random, sizeof number);
    return number;
}

static uint64_t text_hash(uint64_t hash, const char *text)
{
    size_t len = strlen(text);
    uint64_t word;

    hash = mix64(hash ^ len);
    for (; len >= sizeof word; len -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = mix64(hash ^ word);
    }
    word = 0;
    memcpy(&word, text, len);
    return mix64(hash ^ word);
}

static uint64_t key_hash(uint64_t seed, const struct name_key *key)
{
    if (key->layer == NULL)
        return text_hash(mix64(seed ^ key->index), key->slot);
    return text_hash(mix64(mix64(~seed ^ (uint64_t)key->step) ^ (uint64_t)key->rank),
                     key->layer);
}

static bool keys_equal(const struct name_key *a, const struct name_key *b)
{
    if (a->layer == NULL || b->layer == NULL)
        return a->layer == b->layer && a->index == b->index &&
               strcmp(a->slot, b->slot) == 0;
    return a->step == b->step && a->rank == b->rank && strcmp(a->layer, b->layer) == 0;
}

/* The key's cell, or the free one where it belongs. */
static struct name_cell *cell_of(const struct name_table *table, uint64_t hash,
                                 const struct name_key *key)
{
    for (size_t i = hash;; i++) {
        struct name_cell *const cell = &table->cells[i & (table->capacity - 1)];
        if (cell->key == NULL || (cell->hash == hash && keys_equal(cell->key, key)))
            return cell;
    }
}

struct name_key *nd_name_find(struct name_table *table, const struct name_key *key)
{
    if (table == NULL || table->capacity == 0)
        return NULL;
    return cell_of(table, key_hash(table->seed, key), key)->key;
}

static bool table_grow(struct name_table *table)
{
    const struct name_table old = *table;
    struct name_table grown = old;

    grown.capacity = old.capacity == 0 ? LEAST_CELLS : old.capacity * 2;
    grown.cells = calloc(grown.capacity, sizeof *grown.cells);
    if (grown.cells == NULL)
        return false;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.cells[i].key != NULL)
            *cell_of(&grown, old.cells[i].hash, old.cells[i].key) = old.cells[i];
    free(old.cells);
    *table = grown;
    return true;
}

bool nd_name_add(struct name_table **table, struct arena *arena, const struct name_key *key)
{
    struct name_key *const kept = nd_arena_alloc(arena, 1, sizeof *kept);

    if (*table == NULL) {
        *table = calloc(1, sizeof **table);
        if (*table != NULL)
            (*table)->seed = drawn_number();
    }
    if (kept == NULL || *table == NULL ||
        ((*table)->count >= (*table)->capacity / 2 && !table_grow(*table)))
        return false;
    *kept = *key;
    const uint64_t hash = key_hash((*table)->seed, kept);
    *cell_of(*table, hash, kept) = (struct name_cell){hash, kept};
    (*table)->count++;
    return true;
}

void nd_name_table_free(struct name_table *table)
{
    if (table != NULL)
        free(table->cells);
    free(table);
}
