/*
 * Status codes and the error a failed call leaves behind.
 *
 * A function that can fail in more than one way returns enum nd_status (ND_OK is 0)
 * and fills struct nd_error: which file, where in it, what was found, what was expected.
 */
#ifndef NORMDIFF_STATUS_H
#define NORMDIFF_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ND_STATUS(name, text): one line per status; the order is the ABI. */
#define ND_STATUS_LIST(X)                                                                \
    X(ND_OK, "success")                                                                  \
    X(ND_ERR_USAGE, "the command or the options are wrong")                              \
    X(ND_ERR_IO, "a file or directory cannot be read")                                   \
    X(ND_ERR_MALFORMED, "the file breaks its format's rules")                            \
    X(ND_ERR_UNKNOWN_FORMAT, "no known dump format")                                     \
    X(ND_ERR_UNSUPPORTED, "a valid file that uses what is not supported")                \
    X(ND_ERR_LIMIT, "a limit was exceeded")                                              \
    X(ND_ERR_MEMORY, "out of memory")                                                    \
    X(ND_ERR_CHANGED, "the file changed while it was read")                              \
    X(ND_ERR_NOTHING, "nothing to compare")

enum nd_status {
#define ND_STATUS_ENUM(name, text) name,
    ND_STATUS_LIST(ND_STATUS_ENUM)
#undef ND_STATUS_ENUM
};

/* All texts are NUL-terminated UTF-8, cut to fit; an empty text means "does not apply". */
struct nd_error {
    enum nd_status status;
    char           file[512];     /* path as typed, or path of a member inside a tree */
    char           at[192];       /* "byte 128", "layers[3].slots", "line 12" */
    char           found[512];
    char           expected[512];
    char           hint[512];     /* what to do about it */
};

/* The sentence for a status; never NULL. */
const char *nd_status_text(enum nd_status status);

#ifdef __cplusplus
}
#endif
#endif
