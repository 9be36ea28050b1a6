/*
 * The few types that every part of the library shares, from the readers to the reports.
 */
#ifndef NORMDIFF_TYPES_H
#define NORMDIFF_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ND_MAX_RANK 16 /* dimensions of a tensor; more is refused by name */

struct nd_shape {
    uint32_t rank;
    uint64_t dim[ND_MAX_RANK];
};

/* What a slot carries. */
enum nd_evidence { ND_EVIDENCE_VALUES, ND_EVIDENCE_STATISTICS, ND_EVIDENCE_CHECKSUM };

/* Where the execution order of a dump's layers comes from, best first. */
enum nd_order {
    ND_ORDER_OPTION,
    ND_ORDER_RECORDED,
    ND_ORDER_CONTAINER,
    ND_ORDER_TIMESTAMP,
    ND_ORDER_NAME
};

#ifdef __cplusplus
}
#endif
#endif
