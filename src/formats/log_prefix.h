/*
 * What loggers, launchers and CI systems put before a line.
 */
#ifndef ND_FORMATS_LOG_PREFIX_H
#define ND_FORMATS_LOG_PREFIX_H

#include "formats/log_text.h"

enum { ND_LOG_PREFIXES = 16 };

struct log_tags {
    int64_t rank;        /* -1: none */
    struct slice runner; /* Polygraphy's; len 0: none */
};

/*
 * Peels any number of prefixes.  ret_starts[0] is the line's begin, ret_starts[i] what is
 * left after i prefixes; returns how many starts there are.  A prefix and a layer's name
 * can look alike ("12: max=..."), so the caller tries the last start first and falls back.
 */
size_t nd_log_peel(const char *at, const char *end, const char *ret_starts[ND_LOG_PREFIXES],
                   struct log_tags *ret_tags);

#endif
