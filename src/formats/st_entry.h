/*
 * Parsing one tensor of a safetensors header; for st_header.c alone.
 */
#ifndef ND_FORMATS_ST_ENTRY_H
#define ND_FORMATS_ST_ENTRY_H

#include "formats/st_header.h"

struct st_reader {
    struct cursor in; /* over the file, ending with the header */
    struct arena *arena;
    struct st_header *header;
    size_t capacity; /* of header->entries */
    bool has_metadata;
};

/* Reads the value of a tensor's key; entry->name is set. */
enum nd_status nd_st_entry_read(struct st_reader *reader, struct st_entry *entry,
                                struct nd_error *err);

#endif
