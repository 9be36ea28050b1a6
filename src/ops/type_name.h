/*
 * Names of layer types as tables of operators compare them: in lower case without '_', '.',
 * ':' and blanks, against blank-separated globs.
 */
#ifndef ND_OPS_TYPE_NAME_H
#define ND_OPS_TYPE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the plain form of `type`, cut to fit `size`; its length. */
size_t nd_type_plain(const char *type, char *ret_plain, size_t size);

/* Copies the next blank-separated word of *at, cut to fit, and steps over it; false at the
 * end. */
bool nd_type_word(const char **at, char *ret_word, size_t size);

/* Does one of the globs match the plain name? */
bool nd_type_listed(const char *globs, const char *plain);

#endif
