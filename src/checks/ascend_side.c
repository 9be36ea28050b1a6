/*
 * Ascend's operators beside the layers of a pair.
 */
#include "checks/ascend_side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Formats that hold what the device's own operators got and gave. */
static bool is_operator_dump(const char *format)
{
    return format != NULL && (strncmp(format, "cann", 4) == 0 || strcmp(format, "atb") == 0);
}

static const char *side_type(const struct subject *subject, int side)
{
    const struct layer_view *view = subject->pair->side[side];

    return view == NULL || view->type == NULL ? "" : view->type;
}

const struct ascend_op *nd_ascend_side_op(const struct subject *subject, int side)
{
    const char *type = side_type(subject, side);
    const struct ascend_op *op = nd_ascend_op_for(type);

    if (op == NULL || op->products == 0)
        return NULL;
    return nd_ascend_is_native(type) ||
                   is_operator_dump(subject->input->result->dump[side].format)
               ? op
               : NULL;
}

/* May a module of this side have run Ascend's operator?  The candidate may, unless its
 * device says otherwise. */
static bool may_be_npu(const struct subject *subject, int side)
{
    const char *device = subject->input->result->dump[side].device;

    if (device == NULL)
        return side == 1;
    return strncmp(device, "npu", 3) == 0 || nd_ascend_product(device) != 0;
}

bool nd_ascend_side_default(const struct subject *subject, int side, double measured,
                            double uncertainty, double declared,
                            struct ascend_default *ret)
{
    const struct ascend_op *op = nd_ascend_side_op(subject, side);
    const double tolerance = fmax(uncertainty, 0.01 * measured);

    if (isnan(measured) && !isnan(declared))
        return false;
    if (!isnan(measured) && (op == NULL || !(fabs(op->default_eps - measured) <= tolerance)))
        op = op != NULL || may_be_npu(subject, side)
                 ? nd_ascend_default_of(side_type(subject, side), measured, tolerance)
                 : NULL;
    if (op == NULL || op->default_eps == 0)
        return false;
    *ret = (struct ascend_default){.operator_name = op->name,
                                   .eps = op->default_eps,
                                   .is_measured = !isnan(measured)};
    return true;
}

const char *nd_ascend_eps_text(const struct subject *subject, double eps)
{
    char text[32];

    for (int digits = 0; digits < 3; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, eps);
        if (strtod(text, NULL) == eps)
            break;
    }
    char *power = strchr(text, 'e');
    if (power == NULL)
        return nd_say_number(subject, eps);
    const int exponent = (int)strtol(power + 1, NULL, 10);
    *power = '\0';
    const char *made = nd_arena_format(subject->arena, "%se%d", text, exponent);
    return made == NULL ? "" : made;
}
