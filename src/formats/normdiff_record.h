/*
 * The parts of the normdiff record below its layers; for format_normdiff.c alone.
 */
#ifndef ND_FORMATS_NORMDIFF_RECORD_H
#define ND_FORMATS_NORMDIFF_RECORD_H

#include "formats/json_in.h"
#include "formats/st_header.h"

enum { ND_NORMDIFF_NAME_MAX = 4096 };

struct normdiff_reader {
    struct dump *dump;
    size_t file;
    struct st_header header;
    const char *device; /* of this file; NULL: not recorded */
    size_t layer;       /* index in "layers", for messages */
};

/* "layers[3].slots.output.0": an error at a place of the record. */
enum nd_status nd_normdiff_fail(const struct normdiff_reader *reader, const char *key,
                                const char *expected, const char *found,
                                struct nd_error *err);

/* {"output.0": {...}, ...} and {"eps": 1e-05, ...}; both may be null or missing (NULL). */
enum nd_status nd_normdiff_slots(const struct normdiff_reader *reader,
                                 struct dump_layer *layer, const cJSON *slots,
                                 struct nd_error *err);
enum nd_status nd_normdiff_attributes(const struct normdiff_reader *reader,
                                      struct dump_layer *layer, const cJSON *attributes,
                                      struct nd_error *err);

#endif
