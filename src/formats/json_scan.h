/*
 * A strict JSON scanner (RFC 8259): walks over text in place, without recursion and
 * without a tree.  Readers of big headers use it directly; nd_json_parse() uses it to
 * check a text before cJSON sees it.
 *
 * Stricter than the standard where a C program would be misled: text must be valid UTF-8,
 * lone surrogates and \u0000 are refused, two keys of one object must differ, nesting ends
 * at ND_JSON_MAX_DEPTH, and a number has at most 63 characters.
 */
#ifndef ND_FORMATS_JSON_SCAN_H
#define ND_FORMATS_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/fail.h"

/* A string as it stands in the text, quotes excluded. */
struct json_text {
    const unsigned char *raw;
    size_t len;
    bool escaped; /* holds a backslash */
    uint64_t at;  /* of the opening quote */
};

static inline void nd_json_skip_blank(struct cursor *in)
{
    while (in->at < in->size) {
        const unsigned char c = in->bytes[in->at];
        if (c > ' ' || (c != ' ' && c != '\n' && c != '\t' && c != '\r'))
            return;
        in->at++;
    }
}

/* Blank, then this character; false (position unchanged but for blanks) if another. */
static inline bool nd_json_accept(struct cursor *in, char c)
{
    nd_json_skip_blank(in);
    if (in->at == in->size || in->bytes[in->at] != (unsigned char)c)
        return false;
    in->at++;
    return true;
}

/* The same as an error. */
enum nd_status nd_json_expect(struct cursor *in, char c, struct nd_error *err);
/* Fills err with what stands at the position. */
enum nd_status nd_json_unexpected(const struct cursor *in, const char *expected,
                                  struct nd_error *err);

enum nd_status nd_json_scan_text(struct cursor *in, struct json_text *ret_text,
                                 struct nd_error *err);
/* An unsigned whole number written in digits alone, exactly. */
enum nd_status nd_json_scan_size(struct cursor *in, uint64_t *ret_value,
                                 struct nd_error *err);
/* A JSON number; false, and nothing read, where something else stands. */
bool nd_json_scan_number(struct cursor *in, double *ret_value);
/*
 * Any value, checked and passed over.  allow_nan: bare NaN, Infinity and -Infinity are
 * values too, and *ret_nan_count (may be NULL) counts them.
 */
enum nd_status nd_json_scan_value(struct cursor *in, bool allow_nan,
                                  uint64_t *ret_nan_count, struct nd_error *err);

bool nd_json_text_is(const struct json_text *text, const char *string);
/* Order of the decoded bytes. */
int nd_json_text_compare(const struct json_text *a, const struct json_text *b);
/* Decodes to dst, which holds text->len + 1 bytes; adds a NUL and returns the length. */
size_t nd_json_text_decode(const struct json_text *text, char *dst);

#endif
