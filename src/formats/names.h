/*
 * Inside formats/: what dump.c and names.c need of each other.
 */
#ifndef ND_FORMATS_NAMES_H
#define ND_FORMATS_NAMES_H

#include "formats/dump.h"

enum { ND_MAX_NAME = 4096 };

/* Appends a layer as it is named, without the prefix of a directory. */
struct dump_layer *nd_dump_push_layer(struct dump *dump, const char *name,
                                      const char *type);

/* Frees what finds layers and slots by name. */
void nd_names_done(struct dump *dump);

#endif
