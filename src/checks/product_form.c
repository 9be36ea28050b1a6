/*
 * Which product do the shapes of a layer's tensors allow?
 */
#include "checks/product.h"

#include <math.h>

static bool conv_two(const struct layer_view *layer, const char *key, uint64_t otherwise,
                     uint64_t *ret)
{
    const struct attribute *attribute = nd_layer_attribute(layer, key);
    double value[2] = {(double)otherwise, (double)otherwise};

    if (attribute != NULL && attribute->kind == ATTRIBUTE_NUMBER) {
        value[0] = value[1] = attribute->number;
    } else if (attribute != NULL && attribute->kind == ATTRIBUTE_LIST &&
               attribute->list != NULL && attribute->list_len >= 1) {
        value[0] = attribute->list[0];
        value[1] = attribute->list[attribute->list_len > 1 ? 1 : 0];
    } else if (attribute != NULL && attribute->kind != ATTRIBUTE_NULL) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        if (!(value[k] >= 0 && value[k] < 65536 && value[k] == floor(value[k])))
            return false;
        ret[k] = (uint64_t)value[k];
    }
    return true;
}

/* Output length of a convolution along one axis; 0: impossible. */
static uint64_t conv_length(uint64_t in, uint64_t kernel, const struct conv_facts *conv,
                            int axis)
{
    const uint64_t padded = in + 2 * conv->pad[axis];
    const uint64_t reach = conv->dilation[axis] * (kernel - 1) + 1;

    return conv->stride[axis] == 0 || padded < reach
               ? 0
               : (padded - reach) / conv->stride[axis] + 1;
}

static bool conv_fits(const struct layer_view *layer, struct product *product)
{
    const uint64_t *x = product->left_shape.dim, *w = product->right_shape.dim;
    const uint64_t *y = product->out_shape.dim;
    uint64_t groups[2];
    struct conv_facts conv;

    if (product->left_shape.rank != 4 || product->right_shape.rank != 4 ||
        product->out_shape.rank != 4 || x[0] != y[0] || w[0] != y[1] || w[1] == 0 ||
        x[1] % w[1] != 0 || w[2] == 0 || w[3] == 0)
        return false;
    groups[0] = x[1] / w[1];
    if (groups[0] == 0 || w[0] % groups[0] != 0)
        return false;
    conv.groups = groups[0];
    if (!conv_two(layer, "stride", 1, conv.stride) ||
        !conv_two(layer, "dilation", 1, conv.dilation))
        return false;
    if (!conv_two(layer, "padding", 0, conv.pad))
        return false;
    if (nd_layer_attribute(layer, "stride") == NULL) /* the shapes tell the usual ones */
        for (int k = 0; k < 2; k++) {
            conv.pad[k] = nd_layer_attribute(layer, "padding") != NULL ? conv.pad[k]
                          : w[2 + k] <= x[2 + k] && x[2 + k] % w[2 + k] == 0 &&
                                  x[2 + k] / w[2 + k] == y[2 + k]
                              ? 0
                              : w[2 + k] / 2;
            conv.stride[k] = y[2 + k] > 0 ? (x[2 + k] + y[2 + k] - 1) / y[2 + k] : 1;
        }
    product->conv = conv;
    product->terms = w[1] * w[2] * w[3];
    return conv_length(x[2], w[2], &conv, 0) == y[2] &&
           conv_length(x[3], w[3], &conv, 1) == y[3];
}

static bool same_leading(const struct nd_shape *a, const struct nd_shape *b, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

bool nd_product_fits(const struct layer_view *layer, struct product *product)
{
    const struct nd_shape *left = &product->left_shape, *right = &product->right_shape;
    const struct nd_shape *out = &product->out_shape;
    const uint32_t rank = left->rank, last = rank == 0 ? 0 : rank - 1;

    if (rank == 0 || right->rank == 0)
        return false;
    if (product->form == PRODUCT_CONV)
        return conv_fits(layer, product);
    product->terms = left->dim[last];
    if (out->rank != rank)
        return false;
    if (product->form == PRODUCT_LINEAR || product->form == PRODUCT_LINEAR_TURNED) {
        const bool turned = product->form == PRODUCT_LINEAR_TURNED;
        return right->rank == 2 && same_leading(left, out, last) &&
               right->dim[turned ? 0 : 1] == left->dim[last] &&
               right->dim[turned ? 1 : 0] == out->dim[last];
    }
    const bool scores = product->form == PRODUCT_SCORES;
    return rank >= 2 && right->rank == rank && same_leading(left, out, last) &&
           same_leading(right, out, rank - 2) &&
           right->dim[scores ? last : last - 1] == left->dim[last] &&
           right->dim[scores ? last - 1 : last] == out->dim[last];
}

/* --- one output's operands ------------------------------------------------------------ */

static void conv_operands(const struct product *product, const double *left,
                          const uint64_t *index, double *ret_operands)
{
    const uint64_t *x = product->left_shape.dim, *w = product->right_shape.dim;
    const struct conv_facts *conv = &product->conv;
    const uint64_t first = index[1] / (w[0] / conv->groups) * w[1];

    for (uint64_t c = 0; c < w[1]; c++)
        for (uint64_t i = 0; i < w[2]; i++)
            for (uint64_t j = 0; j < w[3]; j++) {
                /* Positions in the padded image. */
                const uint64_t row = index[2] * conv->stride[0] + i * conv->dilation[0];
                const uint64_t at = index[3] * conv->stride[1] + j * conv->dilation[1];
                const bool inside = row >= conv->pad[0] && row - conv->pad[0] < x[2] &&
                                    at >= conv->pad[1] && at - conv->pad[1] < x[3];
                *ret_operands++ =
                    inside ? left[((index[0] * x[1] + first + c) * x[2] + row -
                                   conv->pad[0]) * x[3] + at - conv->pad[1]]
                           : 0;
            }
}

void nd_product_operands(const struct product *product, int side, uint64_t flat,
                         double *ret_operands)
{
    const double *left = product->left[side];
    uint64_t index[ND_MAX_RANK];

    if (product->form == PRODUCT_CONV) {
        nd_shape_unravel(&product->out_shape, flat, index);
        conv_operands(product, left, index, ret_operands);
        return;
    }
    left += flat / product->out_shape.dim[product->out_shape.rank - 1] * product->terms;
    for (uint64_t k = 0; k < product->terms; k++)
        ret_operands[k] = left[k];
}

double nd_product_weigh(const struct product *product, int side, uint64_t channel,
                        const double *operands)
{
    const bool turned = product->form == PRODUCT_LINEAR_TURNED;
    const uint64_t step = turned ? product->right_shape.dim[1] : 1;
    const double *weights =
        product->right[side] + (turned ? channel : channel * product->terms);
    double sum = 0;

    if (step == 1)
        return nd_product_dot(operands, weights, product->terms);
    for (uint64_t k = 0; k < product->terms; k++)
        sum += operands[k] * weights[k * step];
    return sum;
}

double nd_product_bias_at(const struct product *product, int side, uint64_t channel)
{
    return product->bias[side] == NULL ? 0 : product->bias[side][channel];
}
