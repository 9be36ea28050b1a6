/*
 * Checksums of stored members, ahead of opening them.
 */
#include "compare/stored.h"

#include <stdlib.h>

void nd_pairs_check_stored(const struct comparison *comparison,
                           struct slot_pair *const *pairs, size_t stride, size_t count)
{
    struct slot_at *const slots = malloc((2 * count + 1) * sizeof *slots);
    size_t found = 0;

    if (slots == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct slot_pair *const pair =
            *(struct slot_pair *const *)(const void *)((const char *)pairs + i * stride);
        for (unsigned side = 0; side < 2; side++)
            if (pair->side[side] != NULL)
                slots[found++] = (struct slot_at){comparison->dump[side], pair->side[side]};
    }
    nd_slots_check_stored(slots, found, comparison->options->jobs);
    free(slots);
}
