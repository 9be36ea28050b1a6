/*
 * A name that is too long for the file system lies under a number; the folder's mapping.csv
 * says which it stands for:
 *
 *   {number},{name}   a line each, no header; 10 or 20 digits, or 32 hexadecimal ones
 */
#ifndef ND_FORMATS_CANN_MAPPING_H
#define ND_FORMATS_CANN_MAPPING_H

#include "formats/dump.h"

#define ND_CANN_MAPPING "mapping.csv"

struct cann_mapped {
    const char *key, *name;
};

struct cann_mapping { /* all zero: empty */
    struct cann_mapped *rows;
    size_t count, capacity;
};

/* Adds a table's rows; one that cannot be read is ignored, and listed. */
enum nd_status nd_cann_mapping_read(struct dump *dump, const char *path,
                                    struct cann_mapping *mapping, struct nd_error *err);
/* The name that a number stands for, else the name itself; one look, so that no row can lead
 * on to another.  NULL: out of memory. */
const char *nd_cann_mapping_name(struct dump *dump, const struct cann_mapping *mapping,
                                 const char *name);
/* The same by the table beside a lone file. */
const char *nd_cann_mapping_lone(struct dump *dump, const char *name);

#endif
