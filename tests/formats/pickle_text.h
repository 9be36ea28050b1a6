/*
 * A pickle's tree as text, much like Python's repr: calls are name(arguments), what was
 * set on their result {} or [], its state "with ..."; persistent ids stand in <>.
 */
#ifndef ND_TESTS_FORMATS_PICKLE_TEXT_H
#define ND_TESTS_FORMATS_PICKLE_TEXT_H

#include "base/text.h"
#include "formats/pickle.h"

void pickle_text(struct text *out, const struct pickle *value);

#endif
