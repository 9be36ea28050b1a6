/*
 * Everything that is printed from the table of options and the catalogue.
 */
#ifndef ND_CLI_HELP_H
#define ND_CLI_HELP_H

#include <stdbool.h>

#include "cli/terminal.h"
#include "normdiff/status.h"

/* Each writes to standard output; false if it could not be written. */
bool nd_help_print(const struct terminal *terminal);
bool nd_help_man(void); /* the OPTIONS section as mdoc source */
bool nd_completion_print(const char *shell);

/* What an id of the report means, as text or markdown. */
enum nd_status nd_explain(const char *id, const char *format,
                          const struct terminal *terminal, struct nd_error *err);

#endif
