/*
 * From a slot to its values: bytes that are stored are seen where they lie; a deflated
 * member is inflated first, small ones into memory, large ones into a temporary file.
 * Whatever is wrong is this tensor's trouble alone.
 */
#include "formats/extent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pool.h"
#include "formats/files.h"
#include "formats/inflate.h"
#include "formats/pieces.h"
#include "formats/stored_crc.h"

enum {
    /* Inflated members that all threads hold in memory at once, on two sides; larger
     * ones go to a file. */
    MEMORY_BUDGET = 32 * 1024 * 1024,
    MEMORY_LEAST = 256 * 1024,
    MEMORY_MOST = ND_MEMBER_IN_MEMORY,
    INFLATE_BLOCK = 256 * 1024
};

/* --- views ------------------------------------------------------------------------- */

uint64_t nd_extent_payload(const struct extent *extent)
{
    const uint64_t whole = extent->codec == CODEC_STORED ? extent->size : extent->raw_size;
    return extent->skip > whole ? 0 : whole - extent->skip;
}

enum nd_status nd_slot_storage_view(const struct dump_slot *slot, const void *data,
                                    uint64_t size, struct tensor_view *ret_view,
                                    struct nd_error *err)
{
    char shape[400];
    uint64_t need;

    if (slot->dtype == ND_DTYPE_NONE)
        return nd_fail(err, ND_ERR_UNSUPPORTED, "an element type that is known", "'%s'",
                       slot->dtype_text == NULL ? "none" : slot->dtype_text);
    if (slot->storage.rank > ND_MAX_RANK)
        return nd_fail(err, ND_ERR_LIMIT, "at most 16 dimensions", "%" PRIu32 " dimensions",
                       slot->storage.rank);
    const struct dtype_info *const info = nd_dtype_info(slot->dtype);
    if (!nd_shape_bytes(&slot->storage, info->size, &need))
        return nd_fail(err, ND_ERR_MALFORMED, "a shape below 2^63 bytes", "shape %s of %s",
                       nd_shape_text(&slot->storage, shape, sizeof shape), info->name);
    if (!slot->strided && need > size)
        return nd_fail(err, ND_ERR_MALFORMED, NULL,
                       "shape %s of %s takes %" PRIu64 " bytes, there are %" PRIu64,
                       nd_shape_text(&slot->storage, shape, sizeof shape), info->name, need,
                       size);
    nd_view_contiguous(ret_view, data, size, slot->dtype, &slot->storage);
    ret_view->swapped = slot->swapped;
    if (slot->strided && !nd_view_set_strides(ret_view, slot->base, slot->stride))
        return nd_fail(err, ND_ERR_MALFORMED, "strides that stay inside the data",
                       "shape %s of %s, whose strides leave the %" PRIu64
                       " bytes of its storage",
                       nd_shape_text(&slot->storage, shape, sizeof shape), info->name, size);
    return ND_OK;
}

static void order_axes(const struct dump_slot *slot, struct tensor_view *view)
{
    uint32_t order[ND_MAX_RANK];

    for (uint32_t k = 0; k < ND_MAX_RANK; k++)
        order[k] = slot->order[k];
    nd_view_permute(view, order);
}

/* The storage in logical order. */
enum nd_status nd_slot_logical_view(const struct dump_slot *slot,
                                   const struct tensor_view *storage,
                                   struct tensor_view *ret_view, struct nd_error *err)
{
    static const struct nd_shape none; /* the layout derives it */
    const char *why = "";
    uint32_t c0 = slot->c0;
    uint64_t count;

    *ret_view = *storage;
    if (slot->layout != NULL) {
        if (slot->strided)
            return nd_fail(err, ND_ERR_UNSUPPORTED, NULL, "a device layout with strides");
        if (!nd_layout_apply_groups(ret_view, slot->layout, &slot->storage,
                                    slot->logical == NULL ? &none : slot->logical,
                                    slot->groups, &c0, &why))
            return nd_fail(err, ND_ERR_MALFORMED, NULL, "layout %s: %s", slot->layout->name,
                           why);
        if (slot->has_order)
            order_axes(slot, ret_view);
        return ND_OK;
    }
    if (slot->logical == NULL || nd_shape_equal(slot->logical, &slot->storage))
        return ND_OK;
    char a[400], b[400];
    nd_shape_text(slot->logical, a, sizeof a);
    nd_shape_text(&slot->storage, b, sizeof b);
    if (slot->logical->rank > ND_MAX_RANK || !nd_shape_count(slot->logical, &count) ||
        count != storage->count || !storage->contiguous)
        return nd_fail(err, ND_ERR_MALFORMED, "a layout that explains it",
                       "logical shape %s for bytes of shape %s", a, b);
    nd_view_contiguous(ret_view, storage->data, storage->data_size, slot->dtype,
                       slot->logical);
    ret_view->swapped = slot->swapped;
    ret_view->base = storage->base;
    return ND_OK;
}

/* --- deflated members -------------------------------------------------------------- */

static uint64_t memory_limit(void)
{
    const unsigned share = MEMORY_BUDGET / 2 / nd_pool_processors();
    return share < MEMORY_LEAST ? MEMORY_LEAST : share > MEMORY_MOST ? MEMORY_MOST : share;
}

static enum nd_status inflate_to_memory(struct inflater *self, struct open_slot *open,
                                        struct nd_error *err)
{
    unsigned char *const bytes = malloc((size_t)self->size);

    if (bytes == NULL)
        return nd_fail_memory(err);
    const enum nd_status status = nd_inflater_block(self, bytes, self->size, err);
    if (status != ND_OK)
        free(bytes);
    else
        open->own_memory = bytes;
    return status;
}

static enum nd_status inflate_to_file(struct inflater *self, int fd, unsigned char *block,
                                      struct nd_error *err)
{
    while (self->made < self->size) {
        const uint64_t left = self->size - self->made;
        const size_t want = left < INFLATE_BLOCK ? (size_t)left : INFLATE_BLOCK;
        ND_TRY(nd_inflater_block(self, block, want, err));
        if (!nd_spool_write(fd, block, want)) {
            nd_fail_errno(err, "a temporary file", errno);
            nd_error_hint(err, "set TMPDIR to a folder with room for the largest tensor");
            return ND_ERR_IO;
        }
    }
    return ND_OK;
}

static enum nd_status inflate_to_spool(struct inflater *self, struct open_slot *open,
                                       struct nd_error *err)
{
    unsigned char *const block = malloc(INFLATE_BLOCK);
    const int fd = nd_spool_new();
    enum nd_status status;

    if (block == NULL)
        status = nd_fail_memory(err);
    else if (fd < 0)
        status = nd_fail_errno(err, "a temporary file", errno);
    else
        status = inflate_to_file(self, fd, block, err);
    if (status == ND_OK)
        status = nd_map_fd(fd, &open->own_map, err);
    open->has_own_map = status == ND_OK;
    if (fd >= 0)
        close(fd);
    free(block);
    return status;
}

static void open_slot_release(struct open_slot *open)
{
    if (open->has_own_map)
        nd_map_close(&open->own_map);
    free(open->own_memory);
    open->has_own_map = false;
    open->own_memory = NULL;
}

static enum nd_status inflate_extent(const struct extent *extent, const struct map *map,
                                     struct open_slot *open, struct nd_error *err)
{
    struct inflater self;

    ND_TRY(nd_inflater_init(&self, extent, map->bytes, err));
    enum nd_status status = ND_OK;
    if (self.size > 0)
        status = self.size <= memory_limit() ? inflate_to_memory(&self, open, err)
                                             : inflate_to_spool(&self, open, err);
    if (status == ND_OK)
        status = nd_inflater_finish(&self, err);
    nd_inflater_done(&self);
    if (status != ND_OK)
        open_slot_release(open);
    return status;
}

/* --- opening ----------------------------------------------------------------------- */

/* The bytes of the slot: in the file's mapping, which becomes the slot's own if it was
 * made for it, or in the inflated member. */
static enum nd_status slot_bytes(const struct dump_slot *slot, struct map map, bool is_own,
                                 struct open_slot *open, const unsigned char **ret_data,
                                 struct nd_error *err)
{
    const struct extent *const extent = &slot->extent;
    enum nd_status status;

    if (extent->codec == CODEC_STORED) {
        status = nd_stored_check(slot, &map, err);
        open->own_map = map;
        open->has_own_map = is_own;
        *ret_data = map.bytes == NULL ? NULL : map.bytes + extent->offset + extent->skip;
        if (status != ND_OK)
            open_slot_release(open);
        return status;
    }
    status = inflate_extent(extent, &map, open, err);
    if (!nd_map_intact(&map)) {
        open_slot_release(open);
        status = nd_fail(err, ND_ERR_CHANGED, NULL, "the file shrank while it was read");
    }
    if (is_own)
        nd_map_close(&map);
    const unsigned char *const whole =
        open->own_memory != NULL ? open->own_memory : open->own_map.bytes;
    *ret_data = whole == NULL ? NULL : whole + extent->skip;
    return status;
}

static enum nd_status slot_open(const struct dump *dump, const struct dump_slot *slot,
                                struct open_slot *open, struct nd_error *err)
{
    const struct dump_file *const file = &dump->files[slot->extent.file];
    const unsigned char *data = NULL;
    struct map map = file->map;

    if (slot->extent.codec == CODEC_PIECES) {
        ND_TRY(nd_pieces_open(dump, slot->extent.pieces, open, &data, err));
    } else {
        if (!file->is_mapped)
            ND_TRY(nd_file_reopen(dump, file, &map, err));
        ND_TRY(slot_bytes(slot, map, !file->is_mapped, open, &data, err));
    }
    enum nd_status status = nd_slot_storage_view(
        slot, data, nd_extent_payload(&slot->extent), &open->storage, err);
    if (status == ND_OK)
        status = nd_slot_logical_view(slot, &open->storage, &open->view, err);
    if (status != ND_OK)
        open_slot_release(open);
    return status;
}

enum nd_status nd_slot_open(const struct dump *dump, const struct dump_slot *slot,
                            struct open_slot *ret_open, struct nd_error *err)
{
    struct open_slot open = {.file = slot->extent.file, .dump = dump};
    enum nd_status status;

    if (slot->broken != NULL)
        status = nd_fail(err, ND_ERR_MALFORMED, NULL, "%s", slot->broken);
    else if (slot->evidence != ND_EVIDENCE_VALUES)
        status = nd_fail(err, ND_ERR_UNSUPPORTED, "values", "no values");
    else
        status = slot_open(dump, slot, &open, err);
    if (status == ND_OK)
        *ret_open = open;
    else if (slot->extent.file < dump->file_count)
        nd_error_file(err, dump->files[slot->extent.file].path);
    return status;
}

bool nd_slot_close(struct open_slot *open)
{
    const struct dump_file *const file = &open->dump->files[open->file];
    const bool intact = (!file->is_mapped || nd_map_intact(&file->map)) &&
                        (!open->has_own_map || nd_map_intact(&open->own_map));

    open_slot_release(open);
    return intact;
}
