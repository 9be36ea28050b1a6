/*
 * The options of a comparison as words of a command line, so that a command which the report
 * proposes does what this one did, and more.
 */
#ifndef ND_REPEAT_H
#define ND_REPEAT_H

#include "base/arena.h"
#include "base/fail.h"
#include "normdiff/options.h"

struct words {
    const char **items;
    size_t       count, capacity;
};

/* How dumps are read, what is chosen and matched, and how it is judged. */
enum nd_status nd_repeat_options(const struct nd_options *options, struct arena *arena,
                                 struct words *ret_words, struct nd_error *err);
/* The further dumps that were given. */
enum nd_status nd_repeat_evidence(const struct nd_options *options, struct arena *arena,
                                  struct words *ret_words, struct nd_error *err);

#endif
