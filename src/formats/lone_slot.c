/*
 * A lone tensor file as a slot of somebody else's layer.
 */
#include "formats/lone_slot.h"

#include "formats/format.h"
#include "formats/names.h"

static bool format_is_ours(const struct dump_format *format)
{
    return format == &nd_format_pt || format == &nd_format_ptlegacy ||
           format == &nd_format_npy;
}

/* What a reader left behind besides the slot is taken back: the layers here are ours. */
static const char *take_slot(struct dump *dump, size_t first, struct dump_slot *ret_slot)
{
    const char *trouble = NULL;

    if (dump->layer_count != first + 1 || dump->layers[first].slot_count != 1)
        trouble = dump->layer_count == first ? "no tensor is in the file"
                                             : "several tensors where one belongs";
    else
        *ret_slot = dump->layers[first].slots[0];
    dump->layer_count = first;
    return trouble;
}

/* Lists a lone tensor file; what is wrong with it becomes the slot's. */
static enum nd_status file_slot(struct dump *dump, size_t file, struct dump_slot *ret_slot,
                                struct nd_error *err)
{
    struct nd_error reason = {0};
    const struct dump before = *dump;

    *ret_slot = nd_dump_slot_init();
    const struct dump_format *const format = nd_dump_recognise_file(dump, file, &reason);
    if (format != NULL && !format_is_ours(format))
        nd_fail(&reason, ND_ERR_MALFORMED, "a PyTorch or NumPy file", "%s", format->title);
    if (reason.status == ND_OK) {
        dump->names = NULL;
        dump->prefix = NULL;
        (void)format->index(dump, file, &reason);
        nd_names_done(dump);
        dump->names = before.names;
        dump->prefix = before.prefix;
        dump->order = before.order;
        dump->bytes = before.bytes;
        dump->tensor_count = before.tensor_count;
    }
    if (reason.status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    const char *trouble = take_slot(dump, before.layer_count, ret_slot);
    if (reason.status != ND_OK)
        trouble = nd_dump_reason(dump, &reason);
    if (reason.status != ND_OK && trouble == NULL)
        return nd_fail_memory(err);
    if (trouble != NULL) {
        *ret_slot = nd_dump_slot_init();
        ret_slot->broken = trouble;
    }
    return ND_OK;
}

enum nd_status nd_lone_slot(struct dump *dump, const char *relative,
                            struct dump_slot *ret_slot, struct nd_error *err)
{
    struct nd_error reason = {0};
    size_t file;
    const enum nd_status status = nd_dump_file_add(dump, relative, &file, &reason);

    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    if (status != ND_OK) {
        *ret_slot = nd_dump_slot_init();
        ret_slot->broken = nd_dump_reason(dump, &reason);
        return ret_slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
    }
    const enum nd_status read = file_slot(dump, file, ret_slot, err);
    nd_dump_file_rest(dump, file);
    return read;
}
