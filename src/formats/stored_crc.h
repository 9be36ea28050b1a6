/*
 * Inside formats/: the CRC-32 of members that lie in a file as they are.
 */
#ifndef ND_FORMATS_STORED_CRC_H
#define ND_FORMATS_STORED_CRC_H

#include "formats/dump.h"

/* Sums a stored member of the mapped file when it is first asked for; what was found holds
 * for later openings of all slots that share its state. */
enum nd_status nd_stored_check(const struct dump_slot *slot, const struct map *map,
                               struct nd_error *err);

#endif
