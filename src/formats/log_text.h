/*
 * Lines of a console log as a person saw them, and the numbers in them.
 *
 *   1. a line ends with \n or \r\n; what stands before the last \r was overwritten on the
 *      screen and does not count
 *   2. ANSI escape sequences and control characters are dropped; tabs are blanks
 *   3. typographic minus signs, hyphens, blanks and full-width colons, commas and bars
 *      become their ASCII forms, as copies from web pages need
 *
 * The rules follow logs that people posted; docs/formats/logs.md lists the shapes.
 */
#ifndef ND_FORMATS_LOG_TEXT_H
#define ND_FORMATS_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "normdiff/types.h"

/* A longer line holds no print of statistics; it is passed over in one step. */
enum { ND_LOG_LINE_MAX = 64 * 1024 };

struct slice {
    const char *at;
    size_t len;
};

/* What ends the lines of a text: '\r' where no '\n' stands in all of it, as in files that an
 * old Mac or a terminal's recorder wrote. */
char nd_log_line_end(const struct cursor *in);
/* Reads the next line into buf[ND_LOG_LINE_MAX + 1]; false at the end of the text. */
bool nd_log_line(struct cursor *in, char line_end, char *buf, size_t *ret_len);

/*
 * A number as logs print it: sign, digits (grouped by commas in threes or not), fraction,
 * exponent; nan and inf in any case.  *ret_half_unit is half of the last printed digit's
 * unit ("1.2500e-03": 5e-08; "3": 0.5), 0 for nan and inf.  Returns the position after
 * it; NULL if none stands there, or one that runs into a word ("3x", "1.2.3").
 */
const char *nd_log_number(const char *at, const char *end, double *ret_value,
                          double *ret_half_unit);

/*
 * A shape: [4, 16], (2, 16), torch.Size([1, 2]), 2x16, 1:1:8:16.  Returns the position
 * after it; NULL if none stands there.  "..." is no shape.
 */
const char *nd_log_shape(const char *at, const char *end, struct nd_shape *ret_shape);

struct slice nd_slice_trim(struct slice slice, const char *set); /* at both ends */
bool nd_slice_is(struct slice slice, const char *word);          /* in any case */

static inline bool nd_char_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool nd_char_word(char c)
{
    return nd_char_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

#endif
