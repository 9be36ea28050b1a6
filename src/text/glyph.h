/*
 * Characters of a text that is valid UTF-8: how many bytes each has, and how many columns
 * of a terminal it takes.
 */
#ifndef ND_TEXT_GLYPH_H
#define ND_TEXT_GLYPH_H

#include <stddef.h>

size_t nd_glyph_len(const char *at);
unsigned nd_glyph_columns(const char *at, size_t len);
unsigned nd_glyph_columns_between(const char *at, const char *end);

#endif
