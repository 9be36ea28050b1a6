/*
 * FFTS+ tasks: an operator that runs as several threads, each on a slice of its tensors, and
 * leaves a dump a thread.  The attribute of each says how it was cut:
 *
 *   threadMode          0: the dumped shapes are those of the slices; 1: the lists below
 *                       tell them
 *   slice_instance_num  threads
 *   outputCutList, inputCutList   a list a tensor: into how many parts each axis was cut
 *   output_tensor_slice, input_tensor_slice   a list a thread of a list a tensor: lower and
 *                       higher of each axis
 *
 * Learned from ffts_type.h and the json forms of the graph engine, and from msaccucmp's
 * ffts_parser.
 */
#ifndef ND_FORMATS_CANN_FFTS_H
#define ND_FORMATS_CANN_FFTS_H

#include "formats/dump.h"

/* Does the layer's attribute tell of this many threads? */
bool nd_ffts_has_threads(const struct dump_layer *layer, size_t count);

/*
 * Makes one layer of one execution's threads, in order: *ret_whole is the first with its
 * tensors joined.  A tensor that was not cut is the first thread's.  *ret_joined false: the
 * attribute does not explain what is there, and nothing was changed.
 */
enum nd_status nd_ffts_join(struct dump *dump, const struct dump_layer *const *threads,
                            size_t count, struct dump_layer *ret_whole, bool *ret_joined,
                            struct nd_error *err);

#endif
