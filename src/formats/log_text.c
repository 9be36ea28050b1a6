/*
 * Cleaning of log lines, and numbers with the precision they were printed with.
 */
#include "formats/log_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/text.h"

/* --- lines --------------------------------------------------------------------------- */

/* Length of the escape sequence at p (an ESC): CSI, OSC, or two characters. */
static size_t escape_len(const unsigned char *p, size_t left)
{
    size_t at = 2;

    if (left < 2)
        return left;
    if (p[1] == '[') {
        while (at < left && (p[at] < 0x40 || p[at] > 0x7e))
            at++;
        return at < left ? at + 1 : left;
    }
    if (p[1] == ']') { /* ends with BEL or ESC \ */
        while (at < left && p[at] != 0x07 && p[at] != 0x1b)
            at++;
        return at >= left ? left : p[at] == 0x07 ? at + 1 : at + 2 < left ? at + 2 : left;
    }
    return 2;
}

/* Characters that stand for an ASCII one; 0 drops them. */
static const struct {
    const char *utf8;
    char ascii;
} log_look_alikes[] = {
    {"\xe2\x80\x90", '-'}, /* hyphen */
    {"\xe2\x80\x91", '-'}, /* non-breaking hyphen */
    {"\xe2\x80\x92", '-'}, /* figure dash */
    {"\xe2\x80\x93", '-'}, /* en dash */
    {"\xe2\x88\x92", '-'}, /* minus sign */
    {"\xef\xbc\x8d", '-'}, /* full-width hyphen */
    {"\xc2\xa0",     ' '}, /* no-break space */
    {"\xe2\x80\xaf", ' '}, /* narrow no-break space */
    {"\xe3\x80\x80", ' '}, /* ideographic space */
    {"\xef\xbc\x9a", ':'}, /* full-width colon */
    {"\xef\xbc\x8c", ','}, /* full-width comma */
    {"\xef\xbd\x9c", '|'}, /* full-width bar */
    {"\xe2\x94\x82", '|'}, /* box drawing bar */
    {"\xef\xbc\x9d", '='}, /* full-width equals */
    {"\xe2\x89\x88", '='}, /* almost equal */
    {"\xef\xbb\xbf", 0  }, /* byte order mark */
    {"\xe2\x80\x8b", 0  }, /* zero-width space */
};

/* Length of the look-alike at p; 0: none. */
static size_t look_alike(const unsigned char *p, size_t left, char *ret_ascii)
{
    for (size_t i = 0; i < sizeof log_look_alikes / sizeof log_look_alikes[0]; i++) {
        const size_t len = strlen(log_look_alikes[i].utf8);
        if (left >= len && memcmp(p, log_look_alikes[i].utf8, len) == 0) {
            *ret_ascii = log_look_alikes[i].ascii;
            return len;
        }
    }
    return 0;
}

static size_t line_clean(const unsigned char *p, size_t len, char *buf)
{
    size_t out = 0;

    for (size_t i = 0; i < len;) {
        char ascii = 0;
        size_t used;
        if (p[i] == 0x1b) {
            i += escape_len(p + i, len - i);
        } else if (p[i] >= 0xc2 && (used = look_alike(p + i, len - i, &ascii)) > 0) {
            if (ascii != 0)
                buf[out++] = ascii;
            i += used;
        } else {
            if (p[i] >= 0x20 && p[i] != 0x7f)
                buf[out++] = (char)p[i];
            else if (p[i] == '\t')
                buf[out++] = ' ';
            i++;
        }
    }
    buf[out] = '\0';
    return out;
}

char nd_log_line_end(const struct cursor *in)
{
    const unsigned char *first = in->bytes + in->at;
    const size_t left = (size_t)(in->size - in->at);

    return left > 0 && memchr(first, '\n', left) == NULL &&
                   memchr(first, '\r', left) != NULL
               ? '\r'
               : '\n';
}

bool nd_log_line(struct cursor *in, char line_end, char *buf, size_t *ret_len)
{
    if (in->at >= in->size)
        return false;
    const unsigned char *first = in->bytes + in->at;
    const size_t left = (size_t)(in->size - in->at);
    const unsigned char *newline = memchr(first, line_end, left);
    size_t len = newline == NULL ? left : (size_t)(newline - first);

    in->at += newline == NULL ? left : len + 1;
    while (len > 0 && first[len - 1] == '\r')
        len--;
    size_t visible = len;
    while (visible > 0 && first[visible - 1] != '\r')
        visible--;
    first += visible;
    len -= visible;
    *ret_len = len > ND_LOG_LINE_MAX ? 0 : line_clean(first, len, buf);
    buf[*ret_len] = '\0';
    return true;
}

/* --- numbers ------------------------------------------------------------------------- */

static size_t digits_len(const char *at, const char *end)
{
    size_t len = 0;

    while (at + len < end && nd_char_digit(at[len]))
        len++;
    return len;
}

/* Digits, in groups of exactly three where commas stand between them. */
static size_t grouped_len(const char *at, const char *end)
{
    size_t len = digits_len(at, end);

    if (len == 0 || len > 3)
        return len;
    while (at + len + 3 < end && at[len] == ',' && digits_len(at + len + 1, end) == 3)
        len += 4;
    return len;
}

/* Half of ten to the power of `exponent`, rounded once. */
static double half_power(long exponent)
{
    char text[32];
    double half;

    if (exponent > -20 && exponent < 20 && nd_decimal_of(5, (int)exponent - 1, &half))
        return half;
    snprintf(text, sizeof text, "5e%ld", exponent - 1);
    half = strtod(text, NULL);
    return isfinite(half) ? half : 0.0;
}

/* Digits, fraction and exponent at `at`, copied without commas; NULL if there are none. */
static const char *plain_number(const char *at, const char *end, char copy[96],
                                long *ret_unit)
{
    const char *p = at + grouped_len(at, end);
    size_t whole = 0, fraction = 0;
    long exponent = 0;

    if (p - at > 48)
        return NULL;
    for (const char *c = at; c < p; c++)
        if (*c != ',')
            copy[whole++] = *c;
    size_t len = whole;
    if (p < end && *p == '.') {
        fraction = digits_len(p + 1, end);
        if (fraction > 32 || whole + fraction == 0)
            return NULL;
        memcpy(copy + len, p, fraction + 1);
        len += fraction + 1;
        p += fraction + 1;
    }
    if (whole + fraction == 0)
        return NULL;
    if (p + 1 < end && (*p | 0x20) == 'e') {
        const size_t sign = p[1] == '+' || p[1] == '-';
        const size_t digits = digits_len(p + 1 + sign, end);
        if (digits > 0 && digits <= 6) {
            memcpy(copy + len, p, 1 + sign + digits);
            copy[len + 1 + sign + digits] = '\0';
            exponent = strtol(copy + len + 1, NULL, 10);
            len += 1 + sign + digits;
            p += 1 + sign + digits;
        }
    }
    copy[len] = '\0';
    *ret_unit = exponent - (long)fraction;
    return p;
}

const char *nd_log_number(const char *at, const char *end, double *ret_value,
                          double *ret_half_unit)
{
    char copy[96];
    long unit = 0;
    double value, half = 0.0;
    const char *p = at + (at < end && (*at == '+' || *at == '-'));

    if (p < end && ((*p | 0x20) == 'n' || (*p | 0x20) == 'i')) {
        p = nd_number_read(at, end, &value);
    } else {
        p = plain_number(p, end, copy, &unit);
        if (p != NULL) {
            if (!nd_decimal_read(copy, strlen(copy), &value))
                value = strtod(copy, NULL);
            value = *at == '-' ? -value : value;
            half = half_power(unit);
        }
    }
    if (p == NULL || (p < end && (nd_char_word(*p) || *p == '%')) ||
        (p + 1 < end && *p == '.' && nd_char_word(p[1])))
        return NULL;
    *ret_value = value;
    *ret_half_unit = half;
    return p;
}

/* --- shapes -------------------------------------------------------------------------- */

static const char *shape_dims(const char *at, const char *end, const char *separators,
                              struct nd_shape *shape)
{
    shape->rank = 0;
    for (;;) {
        const size_t len = digits_len(at, end);
        uint64_t dim = 0;
        if (len == 0 || len > 18 || shape->rank == ND_MAX_RANK)
            return NULL;
        for (size_t i = 0; i < len; i++)
            dim = dim * 10 + (uint64_t)(at[i] - '0');
        shape->dim[shape->rank++] = dim;
        at += len;
        const char *next = at;
        while (next < end && *next != '\0' && strchr(separators, *next) != NULL)
            next++;
        if (next == at || next == end || !nd_char_digit(*next))
            return at;
        at = next;
    }
}

static const char *skip_any(const char *at, const char *end, const char *set)
{
    while (at < end && *at != '\0' && strchr(set, *at) != NULL)
        at++;
    return at;
}

const char *nd_log_shape(const char *at, const char *end, struct nd_shape *ret_shape)
{
    struct nd_shape shape = {0};
    static const char torch[] = "torch.Size(";
    const size_t prefix = sizeof torch - 1;
    const bool wrapped = (size_t)(end - at) > prefix && strncasecmp(at, torch, prefix) == 0;
    const char *p = wrapped ? at + prefix : at;

    if (p < end && (*p == '[' || *p == '(')) {
        const char closing = *p == '[' ? ']' : ')';
        p = skip_any(p + 1, end, " ");
        if (p < end && *p != closing) {
            p = shape_dims(p, end, ", ", &shape);
            if (p == NULL)
                return NULL;
            p = skip_any(p, end, ", ");
        }
        if (p >= end || *p != closing)
            return NULL;
        p++;
        if (wrapped && p < end && *p == ')')
            p++;
    } else {
        p = shape_dims(p, end, "x:*", &shape);
        if (p == NULL || shape.rank < 2)
            return NULL;
    }
    *ret_shape = shape;
    return p;
}

/* --- slices -------------------------------------------------------------------------- */

struct slice nd_slice_trim(struct slice slice, const char *set)
{
    while (slice.len > 0 && strchr(set, slice.at[0]) != NULL) {
        slice.at++;
        slice.len--;
    }
    while (slice.len > 0 && strchr(set, slice.at[slice.len - 1]) != NULL)
        slice.len--;
    return slice;
}

bool nd_slice_is(struct slice slice, const char *word)
{
    return strlen(word) == slice.len && strncasecmp(slice.at, word, slice.len) == 0;
}
