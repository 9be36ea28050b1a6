/*
 * Filling struct nd_error.  Texts are cut at a UTF-8 boundary so that a report can always
 * print them.
 */
#include "base/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *nd_status_text(enum nd_status status)
{
    switch (status) {
#define ND_STATUS_CASE(name, text)                                                       \
    case name:                                                                           \
        return text;
        ND_STATUS_LIST(ND_STATUS_CASE)
#undef ND_STATUS_CASE
    }
    return "unknown status";
}

static void trim_partial_utf8(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
        len--;
    if (len == 0)
        return;
    const unsigned char lead = (unsigned char)text[len - 1];
    const size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (strlen(text) - (len - 1) < need)
        text[len - 1] = '\0';
}

static void copy_text(char *to, size_t size, const char *from)
{
    const size_t len = from == NULL ? 0 : strlen(from);
    const size_t keep = len < size ? len : size - 1;

    if (keep > 0)
        memcpy(to, from, keep);
    to[keep] = '\0';
    if (keep < len)
        trim_partial_utf8(to);
}

ND_PRINTF(4, 0)
static enum nd_status fail_va(struct nd_error *err, enum nd_status status,
                              const char *expected, const char *fmt, va_list args)
{
    if (err != NULL) {
        err->status = status;
        err->file[0] = err->at[0] = err->hint[0] = '\0';
        copy_text(err->expected, sizeof err->expected, expected);
        vsnprintf(err->found, sizeof err->found, fmt, args);
        trim_partial_utf8(err->found);
    }
    return status;
}

enum nd_status nd_fail(struct nd_error *err, enum nd_status status, const char *expected,
                       const char *found_fmt, ...)
{
    va_list args;

    va_start(args, found_fmt);
    fail_va(err, status, expected, found_fmt, args);
    va_end(args);
    return status;
}

enum nd_status nd_fail_at(struct nd_error *err, enum nd_status status, uint64_t offset,
                          const char *expected, const char *found_fmt, ...)
{
    va_list args;

    va_start(args, found_fmt);
    fail_va(err, status, expected, found_fmt, args);
    va_end(args);
    if (err != NULL)
        snprintf(err->at, sizeof err->at, "byte %" PRIu64, offset);
    return status;
}

enum nd_status nd_fail_key(struct nd_error *err, enum nd_status status, const char *key,
                           const char *expected, const char *found_fmt, ...)
{
    va_list args;

    va_start(args, found_fmt);
    fail_va(err, status, expected, found_fmt, args);
    va_end(args);
    if (err != NULL)
        copy_text(err->at, sizeof err->at, key);
    return status;
}

enum nd_status nd_fail_errno(struct nd_error *err, const char *file, int error_number)
{
    nd_fail(err, error_number == ENOMEM ? ND_ERR_MEMORY : ND_ERR_IO,
            "a readable file or directory", "%s", strerror(error_number));
    nd_error_file(err, file);
    return error_number == ENOMEM ? ND_ERR_MEMORY : ND_ERR_IO;
}

enum nd_status nd_fail_memory(struct nd_error *err)
{
    return nd_fail(err, ND_ERR_MEMORY, NULL, "out of memory");
}

void nd_error_file(struct nd_error *err, const char *file)
{
    if (err != NULL && err->file[0] == '\0')
        copy_text(err->file, sizeof err->file, file);
}

void nd_error_hint(struct nd_error *err, const char *hint)
{
    if (err != NULL)
        copy_text(err->hint, sizeof err->hint, hint);
}

void nd_error_expected(struct nd_error *err, const char *fmt, ...)
{
    va_list args;

    if (err == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(err->expected, sizeof err->expected, fmt, args);
    va_end(args);
    trim_partial_utf8(err->expected);
}
