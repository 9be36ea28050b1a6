/*
 * A sink for reports: buffered writing to a stream, with one escaping per medium and one
 * number format.
 */
#ifndef ND_BASE_OUT_H
#define ND_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

enum { ND_OUT_DEPTH = 32 }; /* nesting of JSON that reports write */

struct out {
    struct text text; /* what was written; nd_out_flush() sends it to the stream */
    bool        started[ND_OUT_DEPTH]; /* per open container: it has an element */
    char        bracket[ND_OUT_DEPTH];
    unsigned    depth;
    bool        after_key;
};

void nd_out_raw(struct out *out, const char *string);
void nd_out_printf(struct out *out, const char *fmt, ...) ND_PRINTF(2, 3);
/* Text from outside: control characters and invalid UTF-8 become \xNN, so that no terminal
 * escape passes. */
void nd_out_safe(struct out *out, const char *string);
void nd_out_xml(struct out *out, const char *string); /* also drops what XML 1.0 forbids */

/* JSON: commas and quotes are the writer's business. */
void nd_json_open(struct out *out, char bracket); /* '{' or '[' */
void nd_json_close(struct out *out);
void nd_json_key(struct out *out, const char *key);
void nd_json_string(struct out *out, const char *string); /* NULL writes null */
void nd_json_double(struct out *out, double value);       /* nan, inf as strings */
void nd_json_uint(struct out *out, uint64_t value);
void nd_json_int(struct out *out, int64_t value);
void nd_json_boolean(struct out *out, bool value);
void nd_json_null(struct out *out);

/* Sends everything to the stream; false if something could not be written. */
bool nd_out_flush(struct out *out, FILE *stream);
void nd_out_done(struct out *out);

#endif
