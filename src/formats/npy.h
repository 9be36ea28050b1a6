/*
 * The header of a NumPy array, for every container that holds one: .npy files and the
 * members of .npz archives.
 */
#ifndef ND_FORMATS_NPY_H
#define ND_FORMATS_NPY_H

#include "formats/dump.h"

enum {
    ND_NPY_MAGIC_SIZE = 6,
    /* Real headers have 128 bytes; numpy itself refuses more than 10,000 characters. */
    ND_NPY_MAX_HEADER = 64 * 1024
};

struct npy_head {
    enum nd_dtype   dtype; /* NONE: not supported, `trouble` says why */
    const char     *dtype_text;
    const char     *trouble;
    bool            swapped, fortran;
    struct nd_shape shape;
    const int64_t  *stride; /* in elements; NULL: as C has it */
    uint64_t        header_size; /* bytes before the data */
    uint64_t        data_size;   /* 0 where dtype is NONE */
};

/* Bytes of the header, magic included, from its first 12 bytes. */
enum nd_status nd_npy_head_size(const unsigned char *bytes, uint64_t size,
                                uint64_t *ret_size, struct nd_error *err);
/* Reads the header at in->at and moves past it; texts and strides are put in the arena. */
enum nd_status nd_npy_head_read(struct cursor *in, struct arena *arena,
                                struct npy_head *ret_head, struct nd_error *err);
/* The slot that the header describes; the extent is the caller's to fill. */
struct dump_slot nd_npy_slot(const struct npy_head *head);

#endif
