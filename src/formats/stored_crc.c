/*
 * The CRC-32 of stored members.  Summing is slower than comparing, so that large members
 * are cut into parts for all threads before their slots are opened; zlib joins the sums.
 */
#include "formats/stored_crc.h"

#include <stdlib.h>

#include "base/pool.h"
#include "formats/inflate.h"

enum crc_state { CRC_UNKNOWN, CRC_FINE, CRC_WRONG };

/* Joining two sums takes microseconds, summing a part milliseconds. */
static const uint64_t PART = 4u << 20;

static void state_set(const struct dump_slot *slot, const struct map *map, uint32_t crc)
{
    if (slot->crc_state != NULL && nd_map_intact(map))
        atomic_store(slot->crc_state, crc == slot->extent.crc ? CRC_FINE : CRC_WRONG);
}

enum nd_status nd_stored_check(const struct dump_slot *slot, const struct map *map,
                               struct nd_error *err)
{
    const struct extent *const extent = &slot->extent;

    if (!extent->has_crc)
        return ND_OK;
    const unsigned char state =
        slot->crc_state == NULL ? CRC_UNKNOWN : atomic_load(slot->crc_state);
    if (state != CRC_UNKNOWN)
        return state == CRC_FINE ? ND_OK : nd_fail_crc(extent, err);
    const uint32_t crc = nd_crc_of(
        0, map->bytes == NULL ? NULL : map->bytes + extent->crc_offset, extent->crc_size);
    state_set(slot, map, crc);
    return crc == extent->crc ? ND_OK : nd_fail_crc(extent, err);
}

/* --- in parts ------------------------------------------------------------------------ */

struct crc_part {
    const struct slot_at *of;
    const unsigned char *bytes;
    uint64_t size;
    uint32_t crc;
};

static const struct map *map_of(const struct slot_at *at)
{
    return &at->dump->files[at->slot->extent.file].map;
}

/* Parts of a member that is yet to be summed; 0: nothing to do, or too small to cut. */
static size_t part_count(const struct slot_at *at)
{
    const struct dump_slot *const slot = at->slot;
    const struct extent *const extent = &slot->extent;

    if (slot->broken != NULL || slot->evidence != ND_EVIDENCE_VALUES ||
        extent->codec != CODEC_STORED || !extent->has_crc || slot->crc_state == NULL ||
        extent->crc_size < 2 * PART || !at->dump->files[extent->file].is_mapped ||
        atomic_load(slot->crc_state) != CRC_UNKNOWN)
        return 0;
    return (size_t)((extent->crc_size + PART - 1) / PART);
}

static void cut(const struct slot_at *at, struct crc_part *parts, size_t count)
{
    const struct extent *const extent = &at->slot->extent;
    const unsigned char *const bytes = map_of(at)->bytes + extent->crc_offset;

    for (size_t i = 0; i < count; i++) {
        const uint64_t left = extent->crc_size - i * PART;
        parts[i] = (struct crc_part){
            .of = at, .bytes = bytes + i * PART, .size = left < PART ? left : PART};
    }
}

static void sum(void *user, size_t i, unsigned worker)
{
    struct crc_part *const part = &((struct crc_part *)user)[i];

    (void)worker;
    part->crc = nd_crc_of(0, part->bytes, part->size);
}

/* Joins the parts of one member; their count. */
static size_t join(const struct crc_part *parts, size_t count)
{
    const struct slot_at *const at = parts[0].of;
    uLong crc = parts[0].crc;
    size_t n = 1;

    for (; n < count && parts[n].of == at; n++)
        crc = crc32_combine(crc, parts[n].crc, (z_off_t)parts[n].size);
    state_set(at->slot, map_of(at), (uint32_t)crc);
    return n;
}

void nd_slots_check_stored(const struct slot_at *slots, size_t count, unsigned jobs)
{
    size_t total = 0, at = 0;

    for (size_t i = 0; i < count; i++)
        total += part_count(&slots[i]);
    struct crc_part *const parts = total == 0 ? NULL : malloc(total * sizeof *parts);
    if (parts == NULL)
        return; /* opening a slot sums what is not summed yet */
    for (size_t i = 0; i < count; i++) {
        const size_t n = part_count(&slots[i]);
        cut(&slots[i], parts + at, n);
        at += n;
    }
    nd_pool_run(jobs, total, sum, NULL, parts);
    for (size_t i = 0; i < total;)
        i += join(parts + i, total - i);
    free(parts);
}
