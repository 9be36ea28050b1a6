/*
 * The catalogue: everything that people read, in every language, keyed by the id of the
 * finding, option or phrase.  One ND_TEXT line of a table holds one id.
 *
 * A placeholder is {key}; {key|one|many} chooses a word by whether the value is 1.
 */
#ifndef ND_TEXT_CATALOGUE_H
#define ND_TEXT_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum language { LANGUAGE_EN, LANGUAGE_ZH, LANGUAGE_COUNT };

/* From "zh", "zh_CN.UTF-8", "en" ...; English for what is not known, and for NULL. */
enum language nd_language_of(const char *word);

/* The words of an id; NULL: no such id. */
const char *nd_catalogue_words(const char *id, enum language language);

/* The i-th id, in the order of the tables; NULL past the last. */
const char *nd_catalogue_id(size_t i);

/* One value of a placeholder: a text, or where that is NULL a number. */
struct catalogue_value {
    const char *key;
    const char *text;
    double number;
};

/* Appends words to *out with the placeholders filled in; one without a value stays as it
 * stands, so that the mistake is seen. */
void nd_catalogue_fill(const char *words, const struct catalogue_value *values,
                       size_t count, struct text *out);

/*
 * A number as people read it: exact where that is short ("1e-05", "128"), else about four
 * significant digits ("1.0002e-04", "0.03125").  buf holds 32 bytes; returns buf.
 */
char *nd_number_words(double value, char *buf);

#endif
