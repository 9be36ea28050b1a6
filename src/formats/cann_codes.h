/*
 * The numbers that CANN writes for element types and formats; cann_dtypes.def and
 * cann_formats.def are the tables.
 */
#ifndef ND_FORMATS_CANN_CODES_H
#define ND_FORMATS_CANN_CODES_H

#include "tensor/layout.h"

/* Which of the two numberings of element types a number is in. */
enum cann_numbering { CANN_PROTO, CANN_GE };

struct cann_dtype {
    const char *name;
    unsigned number[2];  /* by enum cann_numbering */
    enum nd_dtype dtype; /* NONE: not read */
};

struct cann_format {
    unsigned number;
    const char *name;
    const char *axes;
};

/* CANN keeps the format in the low 8 bits of a word and the group count in the next 16. */
enum { ND_CANN_FORMAT_BITS = 8, ND_CANN_FORMAT_MASK = 0xff, ND_CANN_GROUP_MASK = 0xffff };

/* NULL: no such number. */
const struct cann_dtype *nd_cann_dtype(uint64_t number, enum cann_numbering numbering);
const struct cann_format *nd_cann_format(uint64_t number);
/* By name as statistics spell it ("FLOAT16", "NC1HWC0"); NULL: unknown. */
const struct cann_dtype *nd_cann_dtype_named(const char *name, size_t len);
const struct cann_format *nd_cann_format_named(const char *name, size_t len);

/* The row of tensor/layouts.def that has the format's elements; NULL: none is known. */
const struct layout *nd_cann_layout(const struct cann_format *format);

#endif
