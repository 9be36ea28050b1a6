/*
 * A temporary folder for tests of directories, removed with all that is in it.
 */
#ifndef ND_TESTS_FORMATS_FOLDER_H
#define ND_TESTS_FORMATS_FOLDER_H

#include <stddef.h>

/* Makes one below TMPDIR and returns its path, a static buffer. */
const char *folder_new(void);
void folder_free(void);

/* The path of a name in it; one of a few static buffers. */
const char *folder_path(const char *name);
/* Writes a file; folders in its name are made. */
void folder_write(const char *name, const void *bytes, size_t size);
void folder_text(const char *name, const char *text);
/* An .npy file of one float. */
void folder_array(const char *name, double value);

#endif
