/*
 * The strict JSON scanner.  Duplicate keys are found when an object closes, by sorting its
 * keys: objects of a million keys cost n log n, whatever the keys are.
 */
#include "formats/json_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "formats/json_in.h"

enum { NUMBER_MAX = 63 }; /* what cJSON 1.7 copies before it converts */

enum nd_status nd_json_unexpected(const struct cursor *in, const char *expected,
                                  struct nd_error *err)
{
    if (in->at >= in->size)
        return nd_fail_at(err, ND_ERR_MALFORMED, in->at, expected,
                          "the end of the JSON text");
    const unsigned char c = in->bytes[in->at];
    if (c > 0x20 && c < 0x7f)
        return nd_fail_at(err, ND_ERR_MALFORMED, in->at, expected, "'%c'", c);
    return nd_fail_at(err, ND_ERR_MALFORMED, in->at, expected, "the byte 0x%02x", c);
}

enum nd_status nd_json_expect(struct cursor *in, char c, struct nd_error *err)
{
    char expected[4] = {'\'', c, '\'', '\0'};

    if (nd_json_accept(in, c))
        return ND_OK;
    return nd_json_unexpected(in, expected, err);
}

/* --- numbers and words ------------------------------------------------------------- */

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static unsigned char peek(const struct cursor *in, uint64_t at)
{
    return at < in->size ? in->bytes[at] : 0;
}

enum nd_status nd_json_scan_size(struct cursor *in, uint64_t *ret_value,
                                 struct nd_error *err)
{
    nd_json_skip_blank(in);
    const uint64_t first = in->at;
    uint64_t value = 0, at = first;

    for (; is_digit(peek(in, at)); at++) {
        if (!nd_size_mul(value, 10, &value) ||
            !nd_size_add(value, peek(in, at) - '0', &value))
            return nd_fail_at(err, ND_ERR_MALFORMED, first, "a number below 2^64",
                              "a larger number");
    }
    const unsigned char next = peek(in, at);
    if (at == first || next == '.' || (next | 0x20) == 'e' ||
        (at > first + 1 && in->bytes[first] == '0'))
        return nd_json_unexpected(
            in, "a whole number that is not negative, in plain digits", err);
    in->at = at;
    *ret_value = value;
    return ND_OK;
}

static const unsigned char *after_digits(const unsigned char *at, const unsigned char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

/* The end of the JSON number at the cursor; NULL: there is none. */
static const unsigned char *number_end(const struct cursor *in)
{
    if (in->at >= in->size)
        return NULL;
    const unsigned char *const end = in->bytes + in->size, *at = in->bytes + in->at;
    at += *at == '-';
    const unsigned char *const whole = at;
    at = after_digits(at, end);
    bool good = at > whole && (at == whole + 1 || *whole != '0');
    if (at < end && *at == '.') {
        const unsigned char *const fraction = ++at;
        at = after_digits(at, end);
        good = good && at > fraction;
    }
    if (at < end && (*at | 0x20) == 'e') {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        const unsigned char *const exponent = at;
        at = after_digits(at, end);
        good = good && at > exponent;
    }
    return good ? at : NULL;
}

static enum nd_status scan_number(struct cursor *in, struct nd_error *err)
{
    const unsigned char *const end = number_end(in);

    if (end == NULL)
        return nd_json_unexpected(in, "a JSON value", err);
    if (end - in->bytes > (ptrdiff_t)in->at + NUMBER_MAX)
        return nd_fail_at(err, ND_ERR_LIMIT, in->at, "a number of at most 63 characters",
                          "a longer number");
    in->at = (uint64_t)(end - in->bytes);
    return ND_OK;
}

bool nd_json_scan_number(struct cursor *in, double *ret_value)
{
    nd_json_skip_blank(in);
    const unsigned char *const end = number_end(in);
    if (end == NULL)
        return false;
    const unsigned char *const at = in->bytes + in->at;
    if (end - at > NUMBER_MAX)
        return false;
    in->at += (uint64_t)(end - at);
    const bool negative = *at == '-';
    const char *const text = (const char *)at;
    if (!nd_decimal_read(text + negative, (size_t)(end - at) - negative, ret_value))
        return nd_number_read(text, (const char *)end, ret_value) != NULL;
    if (negative)
        *ret_value = -*ret_value;
    return true;
}

static bool scan_word(struct cursor *in, const char *word)
{
    const size_t len = strlen(word);

    if (nd_cursor_left(in) < len || memcmp(in->bytes + in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

/* --- whole values ------------------------------------------------------------------ */

struct json_walk {
    struct cursor *in;
    bool allow_nan;
    uint64_t nan_count;
    size_t depth;
    bool is_object[ND_JSON_MAX_DEPTH];
    size_t first_key[ND_JSON_MAX_DEPTH]; /* of the open objects, in keys[] */
    struct json_text *keys;
    size_t key_count, key_capacity;
};

static enum nd_status walk_scalar(struct json_walk *walk, struct nd_error *err)
{
    struct cursor *in = walk->in;
    struct json_text text;

    if (peek(in, in->at) == '"')
        return nd_json_scan_text(in, &text, err);
    if (scan_word(in, "true") || scan_word(in, "false") || scan_word(in, "null"))
        return ND_OK;
    const uint64_t at = in->at;
    if (scan_word(in, "NaN") || scan_word(in, "Infinity") || scan_word(in, "-Infinity")) {
        walk->nan_count++;
        if (walk->allow_nan)
            return ND_OK;
        in->at = at;
        return nd_fail_at(err, ND_ERR_MALFORMED, at,
                          "a JSON value (JSON has no such number)",
                          "a bare NaN or Infinity");
    }
    return scan_number(in, err);
}

static enum nd_status walk_open(struct json_walk *walk, bool is_object,
                                struct nd_error *err)
{
    if (walk->depth == ND_JSON_MAX_DEPTH)
        return nd_fail_at(err, ND_ERR_LIMIT, walk->in->at, "at most 64 levels of nesting",
                          "deeper nesting");
    walk->is_object[walk->depth] = is_object;
    walk->first_key[walk->depth] = walk->key_count;
    walk->depth++;
    walk->in->at++;
    return ND_OK;
}

static enum nd_status walk_key(struct json_walk *walk, struct nd_error *err)
{
    struct json_text key;

    ND_TRY(nd_json_scan_text(walk->in, &key, err));
    if (walk->key_count == walk->key_capacity) {
        const size_t want = walk->key_capacity == 0 ? 64 : walk->key_capacity * 2;
        struct json_text *moved = want > SIZE_MAX / sizeof *moved
                                      ? NULL
                                      : realloc(walk->keys, want * sizeof *moved);
        if (moved == NULL)
            return nd_fail_memory(err);
        walk->keys = moved;
        walk->key_capacity = want;
    }
    walk->keys[walk->key_count++] = key;
    return nd_json_expect(walk->in, ':', err);
}

static int key_order(const void *a, const void *b)
{
    return nd_json_text_compare(a, b);
}

/* Closes the innermost container; an object must not have used a key twice. */
static enum nd_status walk_close(struct json_walk *walk, struct nd_error *err)
{
    walk->depth--;
    if (!walk->is_object[walk->depth])
        return ND_OK;
    const size_t count = walk->key_count - walk->first_key[walk->depth];
    walk->key_count -= count;
    if (count < 2)
        return ND_OK;
    struct json_text *keys = walk->keys + walk->key_count;
    qsort(keys, count, sizeof *keys, key_order);
    for (size_t i = 1; i < count; i++) {
        if (nd_json_text_compare(&keys[i - 1], &keys[i]) != 0)
            continue;
        const struct json_text *later =
            keys[i].at > keys[i - 1].at ? &keys[i] : &keys[i - 1];
        return nd_fail_at(err, ND_ERR_MALFORMED, later->at, "keys that differ",
                          "the key \"%.*s\" a second time",
                          later->len > 200 ? 200 : (int)later->len,
                          (const char *)later->raw);
    }
    return ND_OK;
}

/* After a value: closes what ends here, and passes over a comma. */
static enum nd_status walk_after(struct json_walk *walk, struct nd_error *err)
{
    while (walk->depth > 0) {
        const bool is_object = walk->is_object[walk->depth - 1];
        if (nd_json_accept(walk->in, ','))
            return is_object ? walk_key(walk, err) : ND_OK;
        if (!nd_json_accept(walk->in, is_object ? '}' : ']'))
            return nd_json_unexpected(walk->in, is_object ? "',' or '}'" : "',' or ']'",
                                      err);
        ND_TRY(walk_close(walk, err));
    }
    return ND_OK;
}

static enum nd_status walk_value(struct json_walk *walk, struct nd_error *err)
{
    do {
        nd_json_skip_blank(walk->in);
        const unsigned char c = peek(walk->in, walk->in->at);
        if (c == '{' || c == '[') {
            ND_TRY(walk_open(walk, c == '{', err));
            nd_json_skip_blank(walk->in);
            if (peek(walk->in, walk->in->at) != (c == '{' ? '}' : ']')) {
                if (c == '{')
                    ND_TRY(walk_key(walk, err));
                continue;
            }
        } else {
            ND_TRY(walk_scalar(walk, err));
        }
        ND_TRY(walk_after(walk, err));
    } while (walk->depth > 0);
    return ND_OK;
}

enum nd_status nd_json_scan_value(struct cursor *in, bool allow_nan,
                                  uint64_t *ret_nan_count, struct nd_error *err)
{
    struct json_walk walk; /* what depth counts needs no values before */

    walk.in = in;
    walk.allow_nan = allow_nan;
    walk.nan_count = 0;
    walk.depth = walk.key_count = walk.key_capacity = 0;
    walk.keys = NULL;
    const enum nd_status status = walk_value(&walk, err);

    free(walk.keys);
    if (status == ND_OK && ret_nan_count != NULL)
        *ret_nan_count = walk.nan_count;
    return status;
}
