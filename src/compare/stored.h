/*
 * Stored members of pairs that carry a checksum: checked before the pairs are opened, so
 * that one large member keeps all threads busy.
 */
#ifndef ND_COMPARE_STORED_H
#define ND_COMPARE_STORED_H

#include "compare/slot_pair.h"

/* `count` pairs, each `stride` bytes behind the other: the one member of a list of structs
 * that points to them.  Small ones are left to opening, and all without memory. */
void nd_pairs_check_stored(const struct comparison *comparison,
                           struct slot_pair *const *pairs, size_t stride, size_t count);

#endif
