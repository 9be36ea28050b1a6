/*
 * Names of CANN dump files.
 *
 *   1. {type}.{operator}.{task}[.{stream}].{time}, without an extension; time in
 *      microseconds.  Blanks, dots and slashes of type and operator have become '_'
 *   2. of an FFTS+ task .{mode}.{context}.{thread}[.{device}] follows
 *   3. behind it, of converted and of statistics files:
 *      .{input|output}.{index}[.anything].npy, or .csv
 *   4. {type}.{task}.{time} and exception_info.{stream}.{task}.{time} name no operator
 *
 * Learned from RT's dump_task.cpp, file_utils.cpp and the patterns of msaccucmp.
 */
#ifndef ND_FORMATS_CANN_NAME_H
#define ND_FORMATS_CANN_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cann_name {
    const char *type, *op; /* in the name that was parsed */
    size_t type_len, op_len;
    uint64_t task, stream, time; /* task and stream 65535: not known */
    bool has_stream;
    bool is_ffts;
    uint64_t context, thread, device;
    size_t dump_len;       /* of what rules 1 and 2 cover */
    const char *direction; /* "input" or "output" of rule 3; NULL: none */
    uint64_t index;
    const char *rest; /* what stands behind: "", ".csv", ".npy", ".NCHW.npy" */
};

/* False for a name that is none of these; `name` has no folders in front. */
bool nd_cann_name_parse(const char *name, struct cann_name *ret_name);

/* True for a name that a dump has by nature: with a time of 13 digits or more and without
 * an extension, or with that of statistics. */
bool nd_cann_name_is_dump(const char *name);
/* The same for arrays that a converter wrote. */
bool nd_cann_name_is_array(const char *name);

/* {name}.{index}.{time}.npy, a tensor of the framework's own run. */
struct golden_name {
    size_t op_len;
    uint64_t index, time;
};
bool nd_golden_name_parse(const char *name, struct golden_name *ret_name);

/* Rule 1's escaping, in place. */
void nd_cann_escape(char *name);

#endif
