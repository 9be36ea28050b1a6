/*
 * Growable text and slices.  A text that failed to grow stays failed (`broken`) and
 * ignores what follows, so that callers check once at the end.
 */
#ifndef ND_BASE_TEXT_H
#define ND_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

struct text {
    char  *bytes; /* NUL-terminated once anything was added */
    size_t len, capacity;
    bool   broken;
};

void nd_text_done(struct text *text);
void nd_text_add(struct text *text, const char *bytes, size_t len);
void nd_text_puts(struct text *text, const char *string);
void nd_text_printf(struct text *text, const char *fmt, ...) ND_PRINTF(2, 3);

/* Shell-style glob: * ? [a-z] [!a] and backslash escapes; * matches '.' and '/' too. */
bool nd_glob_match(const char *glob, const char *name);

/* Compares names as people sort them: digit runs by value ("layer2" < "layer10"). */
int nd_natural_compare(const char *a, const char *b);

/*
 * Writes the shortest decimal text that reads back to the same double ("1e-05",
 * "0.001", "nan", "inf", "-inf"); buf holds at least 32 bytes.  Returns buf.
 */
char *nd_number_text(double value, char *buf);

/*
 * Reads a decimal number from [at, end) without a locale: sign, digits, fraction,
 * exponent, or nan/inf/infinity in any case, with a sign.  Returns the position after it,
 * or NULL if there is no number.
 */
const char *nd_number_read(const char *at, const char *end, double *ret_value);

#endif
