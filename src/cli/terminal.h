/*
 * What is known about the terminal and the reader: width, colour, characters, language.
 */
#ifndef ND_CLI_TERMINAL_H
#define ND_CLI_TERMINAL_H

#include <stdbool.h>

struct terminal {
    bool out_is_tty, err_is_tty;
    unsigned width;
    bool utf8;
    bool color;             /* of standard output */
    const char *lang;       /* "en" or "zh" */
    const char *lang_asked; /* by --lang alone; NULL: not asked */
};

/* color is "auto", "always" or "never"; lang NULL where the option is not given. */
void nd_terminal_init(struct terminal *terminal, const char *color, const char *lang);

#endif
