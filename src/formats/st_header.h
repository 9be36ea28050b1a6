/*
 * The header of a safetensors file, shared by the plain reader, the sharded index and the
 * normdiff dump.
 *
 *   1. 8 bytes, little endian: N, the length of the header, at most 100 MB
 *   2. N bytes of JSON, from '{' on, padded with blanks at the end: name to
 *      {"dtype", "shape", "data_offsets": [begin, end]}, and "__metadata__" to an object
 *      of strings
 *   3. the data; offsets count from here, ranges touch each other and fill it
 *
 * Learned from the format's README and the reference implementation (safetensors 0.4 to
 * 0.8, safetensors/src/tensor.rs).  See docs/formats/safetensors.md.
 */
#ifndef ND_FORMATS_ST_HEADER_H
#define ND_FORMATS_ST_HEADER_H

#include "base/arena.h"
#include "base/cursor.h"
#include "formats/dump.h"

struct st_entry {
    const char *name;
    uint64_t name_at;    /* byte offset of the key in the file */
    enum nd_dtype dtype; /* NONE: not decoded */
    const char *dtype_text;
    struct nd_shape shape;
    uint64_t begin, end; /* from the file's first byte */
    const char *broken;  /* why the tensor cannot be read; NULL: it can */
    bool named;          /* for the readers: something refers to it */
};

struct st_header {
    struct st_entry **entries; /* by name, as people sort names */
    size_t count;
    const char *normdiff; /* __metadata__["normdiff"], decoded; NULL: none */
    size_t normdiff_len;
    uint64_t normdiff_at; /* byte offset of that string in the file */
    uint64_t data_at;     /* where the data begins */
    uint64_t data_end;    /* where the last range ends (maybe beyond the file) */
    uint64_t file_size;
    bool has_hole; /* bytes before data_end that are in no range */
    uint64_t hole_at, hole_end;
};

/* Bits of evidence that these bytes begin a safetensors file. */
int nd_st_probe(const unsigned char *bytes, uint64_t size);
/* True if a header that is whole holds __metadata__["normdiff"]. */
bool nd_st_probe_normdiff(const unsigned char *bytes, uint64_t size);

/* Reads and checks the header of a whole file.  Overlaps and duplicates are errors; a hole
 * is reported in *ret_header, and is for the caller to judge. */
enum nd_status nd_st_header_read(struct cursor file, struct arena *arena,
                                 struct st_header *ret_header, struct nd_error *err);
/* An error if the header has a hole. */
enum nd_status nd_st_header_tight(const struct st_header *header, struct nd_error *err);
/* Notes the bytes after the last range among the things that are no tensors. */
enum nd_status nd_st_header_trailing(const struct st_header *header, struct dump *dump,
                                     struct nd_error *err);

struct st_entry *nd_st_find(const struct st_header *header, const char *name);
/* A slot with the entry's dtype, shape and extent. */
struct dump_slot nd_st_slot(const struct st_entry *entry, size_t file);

#endif
