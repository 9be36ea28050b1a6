/*
 * Strings of the strict JSON scanner: found, checked and passed over in place; decoded
 * only where somebody wants the bytes.
 */
#include "formats/json_scan.h"

#include <string.h>

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* Four hex digits at p; -1 if they are not. */
static int32_t hex_unit(const unsigned char *p, uint64_t left)
{
    int32_t unit = 0;

    if (left < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_value(p[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Length of the escape at p, which is a backslash; 0 if it is not one that we accept. */
static size_t escape_len(const unsigned char *p, uint64_t left)
{
    if (left < 2)
        return 0;
    if (p[1] != 'u')
        return memchr("\"\\/bfnrt", p[1], 8) != NULL ? 2 : 0;
    const int32_t unit = hex_unit(p + 2, left - 2);
    if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
        return 0;
    if (unit < 0xd800 || unit > 0xdbff)
        return 6;
    if (left < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    const int32_t low = hex_unit(p + 8, left - 8);
    return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

/* Length of the UTF-8 sequence at p (a byte over 0x7f); 0 if it is invalid. */
static size_t utf8_len(const unsigned char *p, uint64_t left)
{
    const size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

    if (p[0] < 0xc2 || p[0] > 0xf4 || left < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, beyond U+10FFFF. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

/* The highest bit of every byte of `eight` that does not stand for itself: a control
 * character, a quotation mark, a backslash, or anything that is not ASCII.  The trick is an
 * old one: x - 1 borrows into the highest bit of a byte that is 0.  A borrow may also mark
 * the byte above one that is marked, never the first. */
static uint64_t special_bytes(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    const uint64_t quotes = eight ^ (ones * '"'), slashes = eight ^ (ones * '\\');

    return ((eight - ones * 0x20) | (quotes - ones) | (slashes - ones) | eight) & highs;
}

/* Most of a text is bytes that stand for themselves. */
static uint64_t plain_end(const unsigned char *bytes, uint64_t at, uint64_t size)
{
    uint64_t eight;

    for (; size - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, bytes + at, sizeof eight);
        const uint64_t special = special_bytes(eight);
        if (special == 0)
            continue;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        return at + (uint64_t)__builtin_ctzll(special) / 8;
#else
        break;
#endif
    }
    while (at < size && bytes[at] >= 0x20 && bytes[at] < 0x80 && bytes[at] != '"' &&
           bytes[at] != '\\')
        at++;
    return at;
}

enum nd_status nd_json_scan_text(struct cursor *in, struct json_text *ret_text,
                                 struct nd_error *err)
{
    nd_json_skip_blank(in);
    const uint64_t opening = in->at;
    if (in->at == in->size || in->bytes[in->at] != '"')
        return nd_json_unexpected(in, "a string", err);

    bool escaped = false;
    for (in->at++;;) {
        in->at = plain_end(in->bytes, in->at, in->size);
        if (in->at == in->size)
            break;
        const unsigned char *p = in->bytes + in->at;
        const uint64_t left = in->size - in->at;
        size_t len = 1;
        if (*p == '"') {
            *ret_text = (struct json_text){.raw = in->bytes + opening + 1,
                                           .len = (size_t)(in->at - opening - 1),
                                           .escaped = escaped,
                                           .at = opening};
            in->at++;
            return ND_OK;
        }
        if (*p == '\\') {
            escaped = true;
            if ((len = escape_len(p, left)) == 0)
                return nd_fail_at(err, ND_ERR_MALFORMED, in->at,
                                  "an escape sequence of JSON (and no \\u0000)",
                                  "a backslash that begins none");
        } else if (*p < 0x20) {
            return nd_json_unexpected(in, "control characters to be escaped", err);
        } else if (*p >= 0x80 && (len = utf8_len(p, left)) == 0) {
            return nd_json_unexpected(in, "valid UTF-8", err);
        }
        in->at += len;
    }
    return nd_fail_at(err, ND_ERR_MALFORMED, opening, "a closing quotation mark",
                      "a string that never ends");
}

/* Decodes the unit at *inout_at of a checked text to at most 4 bytes; returns how many. */
static size_t text_unit(const struct json_text *text, size_t *inout_at, unsigned char *dst)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const unsigned char *p = text->raw + *inout_at;

    if (*p != '\\') {
        *dst = *p;
        *inout_at += 1;
        return 1;
    }
    if (p[1] != 'u') {
        *dst = p[1] == '"' ? '"' : (unsigned char)to[strchr(from, p[1]) - from];
        *inout_at += 2;
        return 1;
    }
    const size_t len = escape_len(p, text->len - *inout_at);
    *inout_at += len;
    uint32_t code = (uint32_t)hex_unit(p + 2, 4);
    if (len == 12)
        code = 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)hex_unit(p + 8, 4) - 0xdc00);
    const size_t need = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = need - 1; i > 0; i--, code >>= 6)
        dst[i] = (unsigned char)(0x80 | (code & 0x3f));
    dst[0] = (unsigned char)(lead[need] | code);
    return need;
}

size_t nd_json_text_decode(const struct json_text *text, char *dst)
{
    size_t len = 0;

    if (!text->escaped) {
        if (text->len > 0)
            memcpy(dst, text->raw, text->len);
        dst[text->len] = '\0';
        return text->len;
    }
    for (size_t at = 0; at < text->len;) {
        if (text->raw[at] != '\\') { /* most of it, so without a call */
            dst[len++] = (char)text->raw[at++];
            continue;
        }
        unsigned char unit[4];
        const size_t n = text_unit(text, &at, unit);
        for (size_t i = 0; i < n; i++)
            dst[len++] = (char)unit[i];
    }
    dst[len] = '\0';
    return len;
}

int nd_json_text_compare(const struct json_text *a, const struct json_text *b)
{
    if (!a->escaped && !b->escaped) {
        const size_t shorter = a->len < b->len ? a->len : b->len;
        const int order = memcmp(a->raw, b->raw, shorter);
        return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
    }
    unsigned char unit_a[4], unit_b[4];
    size_t at_a = 0, at_b = 0, n_a = 0, n_b = 0, i_a = 0, i_b = 0;
    for (;;) {
        if (i_a == n_a) {
            n_a = at_a < a->len ? text_unit(a, &at_a, unit_a) : 0;
            i_a = 0;
        }
        if (i_b == n_b) {
            n_b = at_b < b->len ? text_unit(b, &at_b, unit_b) : 0;
            i_b = 0;
        }
        if (n_a == 0 || n_b == 0)
            return (n_a > 0) - (n_b > 0);
        if (unit_a[i_a] != unit_b[i_b])
            return unit_a[i_a] < unit_b[i_b] ? -1 : 1;
        i_a++;
        i_b++;
    }
}

bool nd_json_text_is(const struct json_text *text, const char *string)
{
    const struct json_text other = {.raw = (const unsigned char *)string,
                                    .len = strlen(string)};

    return nd_json_text_compare(text, &other) == 0;
}
