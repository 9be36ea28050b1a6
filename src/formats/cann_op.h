/*
 * One execution of an operator as CANN dumps it, whatever the container: tensors with the
 * numbers of CANN, and what they become in a dump.
 */
#ifndef ND_FORMATS_CANN_OP_H
#define ND_FORMATS_CANN_OP_H

#include "formats/cann_codes.h"
#include "formats/dump.h"

/* More inputs and outputs than any operator has, and few enough to be kept. */
enum { ND_CANN_MAX_TENSORS = 65536 };

struct cann_shape {
    struct nd_shape dims; /* rank 0 where `too_long` or `unknown` */
    bool too_long;        /* more dimensions than we have */
    bool unknown;         /* a dimension is -1: dynamic */
};

struct cann_tensor {
    bool is_output;
    uint64_t dtype;
    enum cann_numbering numbering;
    uint64_t format, group; /* as in the file: the format may be a whole word of GE's */
    struct cann_shape shape, original;
    uint64_t size, offset; /* offset in the file; UINT64_MAX: past all files */
    /* The framework's tensor that this output holds. */
    const char *origin_name; /* NULL: not recorded */
    uint64_t origin_index, origin_dtype, origin_format;
};

struct cann_op {
    const char *name;      /* unescaped; NULL: the file's name tells */
    uint64_t time;         /* microseconds; 0: the file's name tells */
    const char *attribute; /* JSON of an FFTS+ operator; NULL: none */
    struct cann_tensor *tensors;
    size_t count, capacity;
    uint64_t end; /* of the data in the file */
};

/* NULL: out of memory, or too many: *err says which. */
struct cann_tensor *nd_cann_tensor_add(struct arena *arena, struct cann_op *op,
                                       struct nd_error *err);
/* Puts a dimension of a file behind the others. */
void nd_cann_shape_push(struct cann_shape *shape, uint64_t dim);

/* The slot of a tensor, without its name. */
enum nd_status nd_cann_slot(struct dump *dump, size_t file,
                            const struct cann_tensor *tensor, struct dump_slot *ret_slot,
                            struct nd_error *err);

/* The layer of an operator whose name may be NULL: named by the file then; its type and
 * time come from the file's name.  NULL: out of memory. */
struct dump_layer *nd_cann_layer(struct dump *dump, size_t file, const char *op_name,
                                 uint64_t time);
/* The operator as a layer with all its tensors. */
enum nd_status nd_cann_add(struct dump *dump, size_t file, const struct cann_op *op,
                           struct nd_error *err);

#endif
