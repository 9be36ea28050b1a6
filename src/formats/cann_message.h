/*
 * The message DumpData of CANN dump files (package toolkit.dumpdata).  Fields by number; in
 * an input everything from the fourth on stands one or two numbers lower than in an output:
 *
 *   DumpData    1 version, 2 dump_time, 3 output, 4 input, 5 buffer, 6 op_name, 7 attr,
 *               8 space, 9 dfx_message
 *   OpOutput    1 data_type, 2 format, 3 shape, 4 original_op, 5 data, 6 size,
 *               7 original_shape, 8 sub_format, 9 address, 10 dim_range, 11 offset
 *   OpInput     1 data_type, 2 format, 3 shape, 4 data, 5 size, 6 original_shape,
 *               7 sub_format, 8 address, 9 offset, 10 arg_index, 11 input_type
 *   OriginalOp  1 name, 2 output_index, 3 data_type (of GE's numbering), 4 format
 *   Shape       1 dim, packed or not; OpBuffer, Workspace 2 data, 3 size; OpAttr 1 name,
 *               2 value
 *
 * Learned from dump_data.proto of hicann/runtime and its older copies; fields that are not
 * listed are passed over.
 */
#ifndef ND_FORMATS_CANN_MESSAGE_H
#define ND_FORMATS_CANN_MESSAGE_H

#include "formats/cann_op.h"

struct cann_message {
    struct cann_op op; /* inputs first */
    const char *version;
    bool has_data;        /* some tensor's bytes stand in the message: version 1 */
    uint64_t buffer_size; /* of buffers and workspaces together, as declared */
    uint64_t buffer_count;
};

/* Bits of evidence that these bytes are such a message, whole; 0: they are not. */
int nd_cann_message_probe(struct cursor in);
/* True if these bytes begin like one: with the version, as every writer does. */
bool nd_cann_message_starts(const unsigned char *bytes, uint64_t size);
/* Reads it; `base` is where in.bytes stand in the file. */
enum nd_status nd_cann_message_read(struct cursor in, uint64_t base, struct arena *arena,
                                    struct cann_message *ret_message, struct nd_error *err);

/* True for the message of an overflow dump; cann_overflow.h. */
bool nd_cann_message_overflow(struct cursor in);

/* The message of a file of version 2: u64 length, message, data.  False if the length does
 * not fit the file. */
bool nd_cann_message_of(const unsigned char *bytes, uint64_t size,
                        struct cursor *ret_message);
/* Lays the data behind the message at `at`: inputs, outputs, buffers, workspaces. */
void nd_cann_message_place(struct cann_message *message, uint64_t at);

#endif
