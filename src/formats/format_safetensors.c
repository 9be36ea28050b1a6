/*
 * Plain safetensors (.safetensors): names, no layers.  The byte layout is described in
 * st_header.h.  The header lists tensors by alignment and name, never by execution, so
 * the order is the natural order of the names.
 */
#include "formats/format.h"
#include "formats/st_header.h"

static int safetensors_probe(const struct dump_head *head)
{
    return nd_st_probe(head->bytes, head->size);
}

static enum nd_status safetensors_index(struct dump *dump, size_t file,
                                        struct nd_error *err)
{
    struct st_header header;

    ND_TRY(nd_st_header_read(nd_dump_bytes(dump, file), dump->scratch, &header, err));
    ND_TRY(nd_st_header_tight(&header, err));
    dump->order = ND_ORDER_NAME;
    for (size_t i = 0; i < header.count; i++) {
        const struct st_entry *entry = header.entries[i];
        const struct dump_slot slot = nd_st_slot(entry, file);
        ND_TRY(nd_dump_add_tensor(dump, entry->name, &slot, err));
    }
    return nd_st_header_trailing(&header, dump, err);
}

const struct dump_format nd_format_safetensors = {
    .name = "safetensors",
    .title = "safetensors",
    .probe = safetensors_probe,
    .index = safetensors_index,
};
