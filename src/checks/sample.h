/*
 * The tensors of one layer pair as rows of doubles: all of them, or whole rows chosen so
 * that every part of the tensor is seen.  The choice depends on the layer alone.
 */
#ifndef ND_CHECKS_SAMPLE_H
#define ND_CHECKS_SAMPLE_H

#include "ops/op.h"

struct sample {
    struct op_rows rows;
    uint64_t *row;  /* the rows taken, ascending */
    uint64_t count; /* how many */
    bool whole;
    unsigned inputs;
    double *in[2][OP_MAX_INPUTS]; /* [side][input]: count * row_len each */
    double *out[2];
};

/* Bytes that a sample of this many elements takes. */
uint64_t nd_sample_bytes(unsigned inputs, uint64_t elements);

/*
 * Takes rows of input.0 .. and output.0 of both sides, up to `elements` elements (at least
 * one row; false if even that is more than `limit`).  `worst`: a row that must be among
 * them (ND_NO_INDEX style UINT64_MAX: none).  False also if a tensor is missing, complex or
 * of another shape.
 */
bool nd_sample_load(const struct layer_pair_view *pair, const struct op_rows *rows,
                    unsigned inputs, uint64_t elements, uint64_t limit, uint64_t seed,
                    uint64_t worst, struct sample *ret_sample);
void nd_sample_done(struct sample *sample);

/* Every so manieth row, until no more than `elements` (or one row) are left.  False without
 * memory. */
bool nd_sample_thin(const struct sample *sample, uint64_t elements,
                    struct sample *ret_thin);

/* Elements of both sides' input.0 and output.0 agree in shape and can be replayed. */
bool nd_sample_possible(const struct layer_pair_view *pair, unsigned inputs,
                        struct nd_shape *ret_shape);

static inline uint64_t nd_sample_elements(const struct sample *sample)
{
    return sample->count * sample->rows.row_len;
}

/* The row that holds the element with this logical multi-index. */
uint64_t nd_rows_of_index(const struct op_rows *rows, const struct nd_shape *shape,
                          const uint64_t *index);

/* Writes a row's values to their logical places in a flat tensor. */
void nd_rows_scatter(const struct op_rows *rows, const struct nd_shape *shape, uint64_t row,
                     const double *values, double *flat);

#endif
