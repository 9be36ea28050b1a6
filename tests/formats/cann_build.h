/*
 * Writes CANN dump files for tests, from the field numbers of their description; it shares
 * nothing with the reader.
 */
#ifndef ND_TESTS_FORMATS_CANN_BUILD_H
#define ND_TESTS_FORMATS_CANN_BUILD_H

#include "formats/build.h"

void pb_varint(struct bytes *out, uint64_t value);
void pb_number(struct bytes *out, unsigned field, uint64_t value);
/* A field of bytes; `inner` is freed. */
void pb_block(struct bytes *out, unsigned field, struct bytes *inner);
void pb_text(struct bytes *out, unsigned field, const char *text);
/* A Shape of packed dimensions. */
void pb_shape(struct bytes *out, unsigned field, size_t rank, const uint64_t *dims);

/* The tensor of a test: what is 0 or NULL is left out. */
struct cann_build {
    bool is_output;
    unsigned dtype, format, group;
    size_t rank;
    uint64_t dims[18];
    size_t original_rank;
    uint64_t original[6];
    uint64_t size;
    const char *origin; /* original_op.name, with the format below and GE's float32 */
    unsigned origin_format;
};
void cann_build_tensor(struct bytes *message, const struct cann_build *tensor);
/* u64 length, message, data; the message is freed. */
void cann_build_file(struct bytes *out, struct bytes *message, const void *data,
                     size_t size);
/* A dump of one float32 tensor of shape (1), whose value is given. */
void cann_build_float(struct bytes *out, const char *op_name, float value);

/* A seed of the fuzz corpus, which make_cann.py wrote. */
struct bytes corpus_file(const char *format, const char *name);
/* Opens the first n bytes for every n. */
void use_every_length(const struct bytes *bytes, const char *format);

#endif
