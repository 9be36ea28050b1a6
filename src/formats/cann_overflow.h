/*
 * What a chip says about an overflow: the 2048 bytes that an op debug dump
 * (Opdebug.Node_OpDebug.{task}.{stream}.{time}) has for its only output.
 *
 *   old  six u64 each of DHA at 0, L2 at 128, AICore at 256: model_id, stream_id, task_id,
 *        task_type, pc_start, para_base; status: DHA u64 at 512, L2 u64 at 768, AICore
 * three u64 (kernel_code, block_idx, status) at 1024 new  u32 0x5A5A5A5A, u32 version, u32
 * valid, u32 unit (0 AIC, 1 AIV, 2 AICPU, 3 SDMA), u32 unused, u32 length, then u64s:
 * model_id, stream_id, task_id, task_type, context_id and what the unit has
 *
 * Learned from msaccucmp's overflow parser; 65535 is "not known".
 */
#ifndef ND_FORMATS_CANN_OVERFLOW_H
#define ND_FORMATS_CANN_OVERFLOW_H

#include "base/cursor.h"
#include "formats/dump.h"

enum { ND_OVERFLOW_FIELDS = 12 };

struct cann_overflow {
    const char *unit;
    const char *names[ND_OVERFLOW_FIELDS];
    uint64_t values[ND_OVERFLOW_FIELDS];
    size_t count;
};

/* False if the bytes say nothing: too few, or no overflow recorded. */
bool nd_cann_overflow_read(struct cursor in, struct cann_overflow *ret_overflow);
/* The value of a field; 65535 where there is none. */
uint64_t nd_cann_overflow_field(const struct cann_overflow *overflow, const char *name);
/* Reads the account of an op debug dump among the dump's files; format_cannoverflow.c.
 * *ret_is_told: there is one. */
enum nd_status nd_cann_overflow_file(struct dump *dump, size_t file,
                                     struct cann_overflow *ret_overflow, bool *ret_is_told,
                                     struct nd_error *err);
/* Its fields as attributes "overflow.unit", "overflow.task_id" and so on. */
enum nd_status nd_cann_overflow_describe(struct dump *dump, struct dump_layer *layer,
                                         const struct cann_overflow *overflow,
                                         struct nd_error *err);

#endif
