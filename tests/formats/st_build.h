/*
 * Safetensors files from a header's text, and assertions that the tests of its readers
 * share.
 */
#ifndef ND_TESTS_FORMATS_ST_BUILD_H
#define ND_TESTS_FORMATS_ST_BUILD_H

#include "formats/build.h"

/* Length, header, and data_size bytes 0, 1, 2 ... */
struct bytes st_file(const char *header, size_t data_size);
/* A normdiff dump around a record (JSON; it is quoted here): t0 is F32 [2, 3], t1 F32 [4],
 * holding what the data bytes happen to be. */
struct bytes nd_file(const char *record);

/* An opened dump, or the error why there is none; in exact memory. */
struct st_opened {
    struct dump *dump;
    unsigned char *block;
    enum nd_status status;
    struct nd_error error;
};

/* Frees the bytes. */
struct st_opened st_open(struct bytes bytes, const char *format);
/* The same, for files that must be sound. */
struct dump *st_open_sound(struct bytes bytes, const char *format,
                           struct st_opened *opened);
void st_close(struct st_opened *opened);

/* The file is refused, and the error speaks of what it should. */
void assert_refused(struct bytes bytes, const char *format, enum nd_status status,
                    const char *at, const char *found);

#endif
