/*
 * The command line: the table of options (options.def) and what parsing it yields.
 */
#ifndef ND_CLI_OPTIONS_H
#define ND_CLI_OPTIONS_H

#include "base/arena.h"
#include "normdiff/options.h"
#include "normdiff/status.h"

enum option_type {
    OPTION_FLAG,      /* bool */
    OPTION_TEXT,      /* const char * */
    OPTION_OPTIONAL,  /* const char *, "" where no argument is given */
    OPTION_CHOICE,    /* const char *, one of the words of the argument */
    OPTION_SECOND,    /* bool: the second of two words */
    OPTION_LIST,      /* struct nd_strings, one more item each time */
    OPTION_WORDS,     /* struct nd_strings, items between commas */
    OPTION_GLOBS,     /* struct nd_strings, and all of them without an argument */
    OPTION_TOLERANCE, /* struct nd_strings of GLOB=NUMBER */
    OPTION_NUMBER,    /* double, not negative */
    OPTION_SIZE,      /* size_t */
    OPTION_UNSIGNED,  /* unsigned */
    OPTION_PLACE,     /* int64_t */
    OPTION_BYTES,     /* uint64_t with a unit */
    OPTION_TIERS,     /* double[3], rising */
    OPTION_FAIL_ON,   /* enum nd_fail_on, and its number */
    OPTION_SIDED,     /* const char *[2] */
    OPTION_RESERVED   /* refused */
};

struct option {
    const char *group; /* "reserved" ones are not shown */
    char letter;
    const char *name;
    const char *argument;
    enum option_type type;
    size_t offset; /* into struct cli */
    const char *fallback;
};

/* The i-th row; NULL past the last. */
const struct option *nd_option_at(size_t i);

/* Whether the option may stand without its argument, and whether it takes one at all. */
bool nd_option_optional(const struct option *option);
bool nd_option_takes(const struct option *option);
/* Whether the argument is one of a few words ("auto|always|never"). */
bool nd_option_worded(const struct option *option);

struct cli {
    struct nd_options nd;
    const char *format;
    struct nd_strings reports; /* NAME=FILE */
    bool all, quiet, verbose, list, version, reserved;
    const char *color, *progress, *lang, *explain, *completion, *help;
    struct nd_strings operands;
    struct arena *arena;
};

/*
 * Reads the command line.  The first error is the one reported, but reading goes on, so
 * that *ret_cli knows the report formats even of a wrong command line.  nd_cli_done() in
 * either case.
 */
enum nd_status nd_cli_parse(int argc, char **argv, struct cli *ret_cli,
                            struct nd_error *err);
void nd_cli_done(struct cli *cli);

/* The word of a list that is nearest to what was typed; NULL: none is near. */
const char *nd_nearest(const char *typed, const char *(*word_at)(size_t i));

#endif
