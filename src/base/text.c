/*
 * Growable text, globs, natural order and numbers.
 */
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

void nd_text_done(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

static bool text_reserve(struct text *text, size_t more)
{
    if (text->broken || more > SIZE_MAX / 4) {
        text->broken = true;
        return false;
    }
    const size_t want = text->len + more + 1;
    if (want <= text->capacity)
        return true;
    size_t capacity = text->capacity == 0 ? 256 : text->capacity;
    while (capacity < want)
        capacity *= 2;
    char *moved = realloc(text->bytes, capacity);
    if (moved == NULL) {
        text->broken = true;
        return false;
    }
    text->bytes = moved;
    text->capacity = capacity;
    return true;
}

void nd_text_add(struct text *text, const char *bytes, size_t len)
{
    if (!text_reserve(text, len))
        return;
    if (len > 0)
        memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
}

void nd_text_puts(struct text *text, const char *string)
{
    nd_text_add(text, string, strlen(string));
}

void nd_text_printf(struct text *text, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0 || !text_reserve(text, (size_t)len))
        return;
    va_start(args, fmt);
    vsnprintf(text->bytes + text->len, (size_t)len + 1, fmt, args);
    va_end(args);
    text->len += (size_t)len;
}

/* Matches one [set] at *glob against c; moves *glob past it.  A set without ] is literal. */
static bool glob_set(const char **glob, char c)
{
    const char *at = *glob + 1;
    const bool  negated = *at == '!' || *at == '^';
    bool        hit = false, first = true;

    if (negated)
        at++;
    for (; *at != '\0' && (*at != ']' || first); at++, first = false) {
        if (at[1] == '-' && at[2] != '\0' && at[2] != ']') {
            hit = hit || ((unsigned char)c >= (unsigned char)at[0] &&
                          (unsigned char)c <= (unsigned char)at[2]);
            at += 2;
        } else {
            hit = hit || c == *at;
        }
    }
    if (*at != ']') {
        const bool literal = c == '[';
        *glob += 1;
        return literal;
    }
    *glob = at + 1;
    return hit != negated;
}

bool nd_glob_match(const char *glob, const char *name)
{
    const char *star = NULL, *retry = NULL; /* one backtracking point is enough */

    for (;;) {
        if (*glob == '*') {
            star = ++glob;
            retry = name;
            continue;
        }
        if (*name == '\0')
            return *glob == '\0';
        const char *next = glob;
        bool        hit = false;
        if (*next == '[') {
            hit = glob_set(&next, *name);
        } else if (*next == '?') {
            hit = true;
            next++;
        } else if (*next != '\0') {
            if (*next == '\\' && next[1] != '\0')
                next++;
            hit = *next == *name;
            next++;
        }
        if (hit) {
            glob = next;
            name++;
        } else if (star != NULL) {
            glob = star;
            name = ++retry;
        } else {
            return false;
        }
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int nd_natural_compare(const char *a, const char *b)
{
    const char *const whole_a = a, *const whole_b = b;

    while (*a != '\0' && *b != '\0') {
        if (is_digit(*a) && is_digit(*b)) {
            while (*a == '0' && is_digit(a[1]))
                a++;
            while (*b == '0' && is_digit(b[1]))
                b++;
            size_t len_a = 0, len_b = 0;
            while (is_digit(a[len_a]))
                len_a++;
            while (is_digit(b[len_b]))
                len_b++;
            if (len_a != len_b)
                return len_a < len_b ? -1 : 1;
            const int order = memcmp(a, b, len_a);
            if (order != 0)
                return order < 0 ? -1 : 1;
            a += len_a;
            b += len_b;
        } else {
            if (*a != *b)
                return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
            a++;
            b++;
        }
    }
    if (*a != *b)
        return *a == '\0' ? -1 : 1;
    return strcmp(whole_a, whole_b); /* "01" and "1": any fixed order */
}

static bool reads_back(const char *text, double value)
{
    return strtod(text, NULL) == value;
}

char *nd_number_text(double value, char *buf)
{
    if (isnan(value))
        return strcpy(buf, "nan");
    if (isinf(value))
        return strcpy(buf, value > 0 ? "inf" : "-inf");
    /* Every normal double of at most 15 digits survives %.15g with zeros stripped, so 15
     * is tried first; only subnormals can be shorter than %.15g makes them. */
    const bool subnormal = value != 0.0 && fabs(value) < 2.2250738585072014e-308;
    for (int digits = subnormal ? 1 : 15; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, value);
        if (reads_back(buf, value))
            break;
    }
    return buf;
}

static const char *skip_word(const char *at, const char *end, const char *word)
{
    for (; *word != '\0'; word++, at++)
        if (at == end || (*at | 0x20) != *word)
            return NULL;
    return at;
}

/* Length of digits[.digits][e[sign]digits] at `at`; 0 if there are no digits. */
static size_t number_len(const char *at, const char *end)
{
    const char *p = at;
    size_t      digits = 0;

    while (p < end && is_digit(*p))
        p++, digits++;
    if (p < end && *p == '.') {
        p++;
        while (p < end && is_digit(*p))
            p++, digits++;
    }
    if (digits == 0)
        return 0;
    if (p < end && (*p | 0x20) == 'e') {
        const char *e = p + 1;
        if (e < end && (*e == '+' || *e == '-'))
            e++;
        if (e < end && is_digit(*e)) {
            while (e < end && is_digit(*e))
                e++;
            p = e;
        }
    }
    return (size_t)(p - at);
}

const char *nd_number_read(const char *at, const char *end, double *ret_value)
{
    const char *p = at;
    char        copy[400];

    if (p < end && (*p == '+' || *p == '-'))
        p++;
    const bool  negative = p > at && *at == '-';
    const char *after = skip_word(p, end, "nan");
    if (after != NULL) {
        *ret_value = NAN;
        return after;
    }
    if ((after = skip_word(p, end, "infinity")) != NULL ||
        (after = skip_word(p, end, "inf")) != NULL) {
        *ret_value = negative ? -INFINITY : INFINITY;
        return after;
    }
    const size_t len = number_len(p, end);
    if (len == 0 || len >= sizeof copy)
        return NULL;
    double value;
    if (!nd_decimal_read(p, len, &value)) {
        memcpy(copy, p, len);
        copy[len] = '\0';
        value = strtod(copy, NULL);
    }
    *ret_value = negative ? -value : value;
    return p + len;
}
