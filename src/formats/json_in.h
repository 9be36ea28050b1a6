/*
 * JSON reading for every format: cJSON behind limits of depth and size, with byte offsets
 * in errors, and with the bare tokens NaN, Infinity and -Infinity that Python writes
 * (accepted on request).
 */
#ifndef ND_FORMATS_JSON_IN_H
#define ND_FORMATS_JSON_IN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"

enum { ND_JSON_MAX_DEPTH = 64 };

/*
 * Parses bytes[0..size); the tree is the caller's, freed with cJSON_Delete().  Duplicate
 * keys of one object are refused.  allow_nan: bare NaN and infinities become strings
 * "nan", "inf", "-inf"; otherwise they are refused by offset.
 */
enum nd_status nd_json_parse(const unsigned char *bytes, uint64_t size, bool allow_nan,
                             cJSON **ret_root, struct nd_error *err);

/* Typed members of an object; false if absent, null or of another type. */
bool nd_json_text(const cJSON *object, const char *key, const char **ret_text);
/* Also accepts the strings "nan", "inf", "-inf". */
bool nd_json_number(const cJSON *object, const char *key, double *ret_number);
/* The same for an item at hand (a list's element). */
bool nd_json_number_of(const cJSON *item, double *ret_number);
bool nd_json_bool(const cJSON *object, const char *key, bool *ret_value);
/* A whole number below 2^53 (from there on a double cannot tell neighbours apart). */
bool nd_json_size(const cJSON *item, uint64_t *ret_value);

#endif
