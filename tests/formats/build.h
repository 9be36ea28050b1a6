/*
 * Builds files byte by byte for the tests of formats: sound ones, and every way of being
 * wrong that no writer produces on purpose.
 */
#ifndef ND_TESTS_FORMATS_BUILD_H
#define ND_TESTS_FORMATS_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/dump.h"

/* --- bytes ------------------------------------------------------------------------- */

struct bytes {
    unsigned char *at;
    size_t size, capacity;
};

void bytes_put(struct bytes *bytes, const void *from, size_t size);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_le(struct bytes *bytes, uint64_t value, unsigned size);
void bytes_free(struct bytes *bytes);
/* Reads a whole file; the test fails if there is none. */
struct bytes bytes_of_file(const char *folder, const char *name);

/* --- .npy -------------------------------------------------------------------------- */

/* Magic, version, length and header text as they are given, then the data. */
void npy_put(struct bytes *bytes, unsigned major, const char *header, const void *data,
             size_t size);
/* A version 1 array: descr '<f4', shape "(3, 4)". */
void npy_put_array(struct bytes *bytes, const char *descr, const char *shape,
                   const void *data, size_t size);

/* --- ZIP --------------------------------------------------------------------------- */

struct zip_build_member {
    const char *name;
    size_t name_len; /* 0: strlen */
    uint32_t crc;
    uint64_t stored_size, size, header_at;
    unsigned method, flags, disk;
    bool use_extra64; /* all ones in the slots, values in a ZIP64 extra */
    bool no_extra64;  /* all ones in the slots, and no extra */
};

struct zip_build {
    struct bytes bytes;
    struct zip_build_member members[16];
    size_t count;
    /* of the end record: */
    bool use_end64;
    int entries_more;
    uint64_t size_more, offset_more;
    unsigned disk;
    unsigned prefix; /* bytes put in front before the first member */
};

/* How the local header is written: Python's, or PyTorch's (zero CRC and sizes, an extra
 * field for alignment, a data descriptor). */
enum zip_local { LOCAL_PLAIN, LOCAL_TORCH };

/* Adds a member, stored (0) or deflated (8), and returns its row for changes. */
struct zip_build_member *zip_build_add(struct zip_build *zip, const char *name,
                                       const void *data, size_t size, unsigned method,
                                       enum zip_local local);
void zip_build_end(struct zip_build *zip);

/* --- dumps ------------------------------------------------------------------------- */

/* Opens bytes from a heap block of exactly their size, so that a sanitizer sees the first
 * byte read too far; `ret_block` is to be freed after the dump. */
enum nd_status open_exact(const void *bytes, size_t size, const char *name,
                          const char *format, struct dump **ret_dump,
                          unsigned char **ret_block, struct nd_error *err);
/* Opens each tensor and reads all of it.  Returns how many can be read. */
size_t read_everything(const struct dump *dump);
/* Index, read everything, close: nothing but "does not crash" is asked. */
void use_exact(const void *bytes, size_t size, const char *name, const char *format);

/* The slot of a layer; NULL if there is none. */
const struct dump_slot *find_slot(const struct dump *dump, const char *layer,
                                  const char *slot);
/* All values as doubles; the caller frees them. */
double *slot_values(const struct dump *dump, const struct dump_slot *slot,
                    uint64_t *ret_count);

#endif
