/*
 * A tensor whose parts lie in several files: along one axis, one part behind the other in
 * each index of the axes before it.
 */
#ifndef ND_FORMATS_PIECES_H
#define ND_FORMATS_PIECES_H

#include "formats/dump.h"

struct piece {
    size_t file;
    uint64_t offset;
    uint64_t run; /* bytes of one index of the axes before */
};

struct pieces {
    uint64_t outer; /* how many such indices there are */
    size_t count;
    const struct piece *piece; /* each lies in its file: whoever makes them has checked */
};

/* Joins the parts, small ones in memory, large ones in a temporary file, which becomes the
 * slot's own; *ret_data is where they begin. */
enum nd_status nd_pieces_open(const struct dump *dump, const struct pieces *pieces,
                              struct open_slot *open, const unsigned char **ret_data,
                              struct nd_error *err);

#endif
