/*
 * From a tensor as CANN describes it to a slot: element type, shape, and how the bytes are
 * put into the framework's order.
 *
 * The shape of the bytes is `shape`, in `format`; the framework's is `original_shape`,
 * whose format is recorded of outputs only (original_op.format).  Where it is not, the
 * orders of axes that people use are tried until one fits the stored shape.
 */
#include "formats/cann_op.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const orders[] = {"nchw",  "nhwc",  "hwcn",  "chwn",
                                     "ncdhw", "ndhwc", "dhwcn", "dhwnc"};

enum { ORDER_COUNT = sizeof orders / sizeof *orders };

void nd_cann_shape_push(struct cann_shape *shape, uint64_t dim)
{
    if (dim > INT64_MAX)
        shape->unknown = true; /* -1 of a dynamic shape */
    if (shape->dims.rank == ND_MAX_RANK)
        shape->too_long = true;
    else
        shape->dims.dim[shape->dims.rank++] = dim;
}

static bool shape_given(const struct cann_shape *shape)
{
    return shape->dims.rank > 0 && !shape->unknown && !shape->too_long;
}

/* --- element type and stored shape ---------------------------------------------------- */

static enum nd_status slot_break(struct dump *dump, struct dump_slot *slot, const char *why,
                                 struct nd_error *err)
{
    if (why == NULL)
        return nd_fail_memory(err);
    if (slot->broken == NULL)
        slot->broken = nd_arena_string(dump->arena, why);
    return slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status slot_type(struct dump *dump, const struct cann_tensor *tensor,
                                struct dump_slot *slot, struct nd_error *err)
{
    const struct cann_dtype *const type = nd_cann_dtype(tensor->dtype, tensor->numbering);

    if (type != NULL && type->number[CANN_PROTO] == 0) {
        /* Bytes that nobody gave a type: the toolkit reads them as int8, too. */
        slot->dtype = ND_DTYPE_i8;
        slot->note = "untyped_bytes";
        return ND_OK;
    }
    if (type != NULL)
        slot->dtype = type->dtype;
    if (slot->dtype != ND_DTYPE_NONE)
        return ND_OK;
    if (type != NULL) {
        slot->dtype_text = type->name;
        return slot_break(dump, slot,
                          nd_arena_format(dump->arena,
                                          "element type %s (CANN type %" PRIu64
                                          ") is not supported",
                                          type->name, tensor->dtype),
                          err);
    }
    slot->dtype_text = nd_arena_format(dump->arena, "CANN type %" PRIu64, tensor->dtype);
    return slot->dtype_text == NULL
               ? nd_fail_memory(err)
               : slot_break(
                     dump, slot,
                     nd_arena_format(dump->arena, "%s is not known", slot->dtype_text),
                     err);
}

/* The bytes as they lie, where no shape tells: a scalar or one row. */
static void slot_flat(const struct cann_tensor *tensor, struct dump_slot *slot)
{
    const unsigned element =
        slot->dtype == ND_DTYPE_NONE ? 1 : nd_dtype_info(slot->dtype)->size;

    if (tensor->shape.dims.rank == 0 && tensor->size == element &&
        slot->dtype != ND_DTYPE_NONE && slot->note == NULL)
        return;
    slot->storage = (struct nd_shape){1, {tensor->size / element}};
    if (slot->note == NULL)
        slot->note = "shape_missing";
}

/* --- formats that only order the axes ------------------------------------------------- */

static bool same_count(const struct nd_shape *a, const struct nd_shape *b)
{
    uint64_t n, k;
    return nd_shape_count(a, &n) && nd_shape_count(b, &k) && n == k;
}

/* True if `shape` with axes in order `from` has, in order `to`, the dimensions `wanted`. */
static bool order_gives(const struct nd_shape *shape, const char *from, const char *to,
                        const struct nd_shape *wanted)
{
    if (strlen(to) != shape->rank || wanted->rank != shape->rank)
        return false;
    for (uint32_t k = 0; k < shape->rank; k++) {
        const char *const at = strchr(from, to[k]);
        if (at == NULL || shape->dim[at - from] != wanted->dim[k])
            return false;
    }
    return true;
}

static const char *origin_axes(const struct cann_tensor *tensor)
{
    const struct cann_format *const format =
        tensor->origin_name == NULL
            ? NULL
            : nd_cann_format(tensor->origin_format & ND_CANN_FORMAT_MASK);
    return format == NULL || strlen(format->axes) < 2 ? NULL : format->axes;
}

/* The order of the framework's axes, given that the bytes' is `axes`; NULL: no order of
 * them explains the original shape. */
static const char *slot_order(const struct cann_tensor *tensor,
                              const struct nd_shape *stored, const char *axes)
{
    const char *const origin = origin_axes(tensor);
    const struct nd_shape *const wanted = &tensor->original.dims;

    if (!shape_given(&tensor->original)) {
        const struct layout *const row = nd_layout_by_name(axes);
        return origin != NULL && strlen(origin) == stored->rank ? origin
               : row != NULL                                    ? row->logical
                                                                : axes;
    }
    if (origin != NULL && order_gives(stored, axes, origin, wanted))
        return origin;
    if (nd_shape_equal(stored, wanted))
        return axes;
    for (size_t i = 0; i < ORDER_COUNT; i++)
        if (order_gives(stored, axes, orders[i], wanted))
            return orders[i];
    return NULL;
}

/* Lays the logical axes of the slot's layout in the order `letters`. */
static void slot_axes(struct dump_slot *slot, const char *letters)
{
    const char *const axes = slot->layout->logical;

    slot->has_order = strcmp(letters, axes) != 0;
    for (uint32_t k = 0; letters[k] != '\0' && k < ND_MAX_RANK; k++)
        slot->order[k] = (uint8_t)(strchr(axes, letters[k]) - axes);
}

/* `room` holds the logical shape of a slot that is being made. */
static void slot_set_logical(struct dump_slot *slot, const struct nd_shape *logical,
                             struct nd_shape *room)
{
    *room = *logical;
    slot->logical = room;
}

static void slot_reshape(const struct cann_tensor *tensor, struct dump_slot *slot,
                         struct nd_shape *room)
{
    const struct nd_shape *const wanted = &tensor->original.dims;

    if (!shape_given(&tensor->original) || nd_shape_equal(&slot->storage, wanted))
        return;
    if (same_count(&slot->storage, wanted)) {
        slot_set_logical(slot, wanted, room);
    } else if (slot->note == NULL) {
        slot->note = "original_shape_differs";
    }
}

static void slot_plain(const struct cann_tensor *tensor, const struct cann_format *format,
                       struct dump_slot *slot, struct nd_shape *room)
{
    const char *const axes = format->axes;

    if (strlen(axes) != slot->storage.rank) {
        slot_reshape(tensor, slot, room);
        return;
    }
    const char *const order = slot_order(tensor, &slot->storage, axes);
    const struct layout *const row = nd_cann_layout(format);
    if (order == NULL || row == NULL) {
        slot_reshape(tensor, slot, room);
        return;
    }
    if (strcmp(order, axes) == 0)
        return;
    slot->layout = row;
    *room = (struct nd_shape){.rank = slot->storage.rank};
    for (uint32_t k = 0; k < slot->storage.rank; k++)
        room->dim[k] = slot->storage.dim[strchr(axes, row->logical[k]) - axes];
    slot->logical = room;
    slot_axes(slot, order);
}

/* --- blocked formats ------------------------------------------------------------------ */

static bool slot_fits(const struct dump_slot *slot, const struct nd_shape *logical)
{
    struct tensor_view view;
    uint32_t c0 = 0;
    uint64_t count;
    const char *why;

    if (!nd_shape_count(&slot->storage, &count) || !nd_shape_count(logical, &count))
        return false;
    nd_view_contiguous(&view, NULL, INT64_MAX,
                       slot->dtype == ND_DTYPE_NONE ? ND_DTYPE_i8 : slot->dtype,
                       &slot->storage);
    return nd_layout_apply_groups(&view, slot->layout, &slot->storage, logical,
                                  slot->groups, &c0, &why);
}

static bool slot_take(struct dump_slot *slot, const struct nd_shape *logical,
                      struct nd_shape *room)
{
    if (!slot_fits(slot, logical))
        return false;
    slot_set_logical(slot, logical, room);
    return true;
}

/* Takes the original shape as one whose axes stand in the order `letters`. */
static bool slot_take_order(struct dump_slot *slot, const struct nd_shape *original,
                            const char *letters, struct nd_shape *room)
{
    const char *const axes = slot->layout->logical;
    struct nd_shape logical = {.rank = original->rank};

    if (letters == NULL || strlen(letters) != original->rank ||
        strlen(axes) != original->rank)
        return false;
    for (uint32_t k = 0; k < original->rank; k++) {
        const char *const at = strchr(letters, axes[k]);
        if (at == NULL)
            return false;
        logical.dim[k] = original->dim[at - letters];
    }
    if (!slot_take(slot, &logical, room))
        return false;
    slot_axes(slot, letters);
    return true;
}

static void slot_blocked(const struct cann_tensor *tensor, struct dump_slot *slot,
                         struct nd_shape *room)
{
    const struct nd_shape *const original = &tensor->original.dims;

    if (!shape_given(&tensor->original) ||
        slot_take_order(slot, original, origin_axes(tensor), room) ||
        slot_take(slot, original, room))
        return;
    for (size_t i = 0; i < ORDER_COUNT; i++)
        if (slot_take_order(slot, original, orders[i], room))
            return;
    /* A contradiction: opening the slot says which. */
    slot_set_logical(slot, original, room);
}

static enum nd_status slot_layout(struct dump *dump, const struct cann_tensor *tensor,
                                  struct dump_slot *slot, struct nd_shape *room,
                                  struct nd_error *err)
{
    const uint64_t number = tensor->format & ND_CANN_FORMAT_MASK;
    const struct cann_format *const format = nd_cann_format(number);

    if (format != NULL && *format->axes != '\0') {
        slot_plain(tensor, format, slot, room);
        return ND_OK;
    }
    slot->layout = format == NULL ? NULL : nd_cann_layout(format);
    if (slot->layout != NULL) {
        slot->groups = tensor->group;
        slot_blocked(tensor, slot, room);
        return ND_OK;
    }
    slot->layout_text =
        nd_arena_format(dump->arena, "%s (CANN format %" PRIu64 ")",
                        format == NULL ? "a layout without a name" : format->name, number);
    if (slot->layout_text == NULL)
        return nd_fail_memory(err);
    slot->layout_broken = slot->broken == NULL;
    return slot_break(dump, slot,
                      nd_arena_format(dump->arena, "layout %s: no formula is known for it",
                                      slot->layout_text),
                      err);
}

enum nd_status nd_cann_slot(struct dump *dump, size_t file,
                            const struct cann_tensor *tensor, struct dump_slot *ret_slot,
                            struct nd_error *err)
{
    struct dump_slot slot = nd_dump_slot_init();
    struct nd_shape *const room = nd_arena_alloc(dump->scratch, 1, sizeof *room);

    if (room == NULL)
        return nd_fail_memory(err);
    slot.has_shape = true;
    slot.extent = (struct extent){.file = file,
                                  .offset = tensor->offset,
                                  .size = tensor->size,
                                  .raw_size = tensor->size};
    ND_TRY(slot_type(dump, tensor, &slot, err));
    if (tensor->shape.too_long) {
        ND_TRY(slot_break(dump, &slot, "a shape of more than 16 dimensions", err));
    } else if (shape_given(&tensor->shape)) {
        slot.storage = tensor->shape.dims;
        ND_TRY(slot_layout(dump, tensor, &slot, room, err));
    } else {
        slot_flat(tensor, &slot);
        slot_reshape(tensor, &slot, room);
    }
    *ret_slot = slot;
    return ND_OK;
}
