/*
 * Inside formats/: a deflated member, decoded block after block.
 */
#ifndef ND_FORMATS_INFLATE_H
#define ND_FORMATS_INFLATE_H

#include <zlib.h>

#include "formats/dump.h"

struct inflater {
    const struct extent *extent;
    z_stream stream;
    const unsigned char *in;
    uint64_t in_left;
    uint64_t made, size; /* decoded bytes so far, and as declared */
    uint32_t crc;
    bool ended;
};

/* `file` are the bytes that the extent counts in. */
enum nd_status nd_inflater_init(struct inflater *self, const struct extent *extent,
                                const unsigned char *file, struct nd_error *err);
void           nd_inflater_done(struct inflater *self);
/* The next `want` bytes, exactly. */
enum nd_status nd_inflater_block(struct inflater *self, unsigned char *out, uint64_t want,
                                 struct nd_error *err);
/* All was read: no byte may follow the declared ones, and the CRC-32 must fit. */
enum nd_status nd_inflater_finish(struct inflater *self, struct nd_error *err);

/* CRC-32 of the bytes that follow those of `crc`. */
uint32_t nd_crc_of(uint32_t crc, const unsigned char *bytes, uint64_t size);
enum nd_status nd_fail_crc(const struct extent *extent, struct nd_error *err);

#endif
