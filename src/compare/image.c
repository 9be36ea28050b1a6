/*
 * Pictures that the device prepares by itself: a model built with AIPP takes the uint8 image
 * as it was read, in NHWC, where the framework's model is given the float NCHW tensor made of
 * it.  They stand under one name and are not one tensor.
 */
#include <string.h>

#include "compare/compare.h"

static bool is_channels(uint64_t dim)
{
    return dim == 1 || dim == 3 || dim == 4; /* grey, RGB, XRGB */
}

static bool is_model_input(const struct dump_layer *layer, const struct dump_slot *slot)
{
    static const char *const types[] = {"Data", "AippData", "Placeholder", "Input", "Parameter"};

    if (strncmp(slot->name, "input", 5) == 0)
        return true;
    for (size_t i = 0; layer->type != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(layer->type, types[i]) == 0)
            return true;
    return false;
}

bool nd_slot_is_image(const struct layer_pair *layer, const struct slot_pair *slot)
{
    const struct dump_slot *r = slot->side[0], *c = slot->side[1];

    if (r == NULL || c == NULL || layer->side[1] == NULL || r->dtype == ND_DTYPE_NONE ||
        c->dtype != ND_DTYPE_u8 || nd_dtype_info(r->dtype)->kind != ND_KIND_FLOAT ||
        !(is_model_input(layer->side[0], r) || is_model_input(layer->side[1], c)))
        return false;
    const struct nd_shape *tensor = r->logical != NULL ? r->logical : &r->storage;
    const struct nd_shape *image = &c->storage;
    return tensor->rank == 4 && image->rank == 4 && is_channels(tensor->dim[1]) &&
           is_channels(image->dim[3]) && tensor->dim[0] == image->dim[0];
}

bool nd_slot_skip_image(struct arena *arena, struct slot_pair *slot)
{
    struct dump_slot *adjusted = nd_arena_alloc(arena, 1, sizeof *adjusted);

    if (adjusted == NULL)
        return false;
    *adjusted = slot->adjusted[1] != NULL ? *slot->adjusted[1] : *slot->side[1];
    adjusted->undefined = true; /* nor is it what the layer computed from */
    slot->adjusted[1] = adjusted;
    slot->undefined = true;
    slot->state = SLOT_SKIPPED;
    slot->reason = "aipp: the candidate holds the uint8 NHWC image, the reference the float NCHW "
                   "tensor made of it; not compared";
    return true;
}
