/*
 * Reading the argument of an option into its place.
 */
#ifndef ND_CLI_OPTION_VALUES_H
#define ND_CLI_OPTION_VALUES_H

#include "cli/options.h"

/* value NULL: the option stands without its argument. */
enum nd_status nd_option_set(struct cli *cli, const struct option *option,
                             const char *value, struct nd_error *err);

/* Appends to a list; false: out of memory. */
bool nd_strings_add(struct arena *arena, struct nd_strings *list, const char *item);

#endif
