/*
 * Filling struct nd_error and passing statuses up.
 */
#ifndef ND_BASE_FAIL_H
#define ND_BASE_FAIL_H

#include <stdint.h>

#include "normdiff/status.h"

#define ND_TRY(call)                                                                     \
    do {                                                                                 \
        const enum nd_status nd_try_status_ = (call);                                    \
        if (nd_try_status_ != ND_OK)                                                     \
            return nd_try_status_;                                                       \
    } while (0)

#if defined(__GNUC__)
#define ND_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define ND_PRINTF(fmt, first)
#endif

/*
 * Fills *err and returns status.  `expected` is a plain text (NULL: none); what was found
 * is formatted.  file is filled in by whoever opened it (nd_error_file) when still empty.
 * err may be NULL.
 */
enum nd_status nd_fail(struct nd_error *err, enum nd_status status, const char *expected,
                       const char *found_fmt, ...) ND_PRINTF(4, 5);
/* The same with a byte offset, or with a key ("layers[3].slots") as the place. */
enum nd_status nd_fail_at(struct nd_error *err, enum nd_status status, uint64_t offset,
                          const char *expected, const char *found_fmt, ...) ND_PRINTF(5, 6);
enum nd_status nd_fail_key(struct nd_error *err, enum nd_status status, const char *key,
                           const char *expected, const char *found_fmt, ...) ND_PRINTF(5, 6);
enum nd_status nd_fail_errno(struct nd_error *err, const char *file, int error_number);
enum nd_status nd_fail_memory(struct nd_error *err);

/* Adds to an error already filled; no effect on a NULL err. */
void nd_error_file(struct nd_error *err, const char *file); /* only if none is set yet */
void nd_error_hint(struct nd_error *err, const char *hint);
void nd_error_expected(struct nd_error *err, const char *fmt, ...) ND_PRINTF(2, 3);

#endif
