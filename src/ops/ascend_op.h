/*
 * What Ascend's operators return, with which defaults, on which products, and where they
 * round: a table of facts (ascend_ops.def), each with its source.
 */
#ifndef ND_OPS_ASCEND_OP_H
#define ND_OPS_ASCEND_OP_H

#include <stddef.h>

#include "tensor/view.h"

enum ascend_product {
    ASCEND_950 = 1 << 0,
    ASCEND_A3 = 1 << 1, /* Ascend910_93 */
    ASCEND_A2 = 1 << 2, /* Ascend910B */
    ASCEND_310P = 1 << 3,
    ASCEND_910 = 1 << 4, /* Ascend910A */
    ASCEND_310B = 1 << 5
};

enum ascend_dtypes {
    ASCEND_F16 = 1 << 0,
    ASCEND_F32 = 1 << 1,
    ASCEND_BF16 = 1 << 2,
    ASCEND_WIDE_WEIGHT = 1 << 3,     /* float32 beside an x of 16 bits */
    ASCEND_WIDE_WEIGHT_LATE = 1 << 4 /* that, from Ascend910B on */
};

enum ascend_rounding {
    ASCEND_ROUND_END, /* statistics and weight in float32, one rounding at the end */
    ASCEND_ROUND_BEFORE_WEIGHT, /* the normalised value is rounded, then multiplied */
    ASCEND_ROUND_SUM_TOO,       /* and the sum x1 + x2 before that (float16) */
    ASCEND_ROUND_STATISTICS     /* outputs are float32 */
};

enum output_meaning {
    OUTPUT_VALUE,
    OUTPUT_MEAN,
    OUTPUT_VARIANCE,
    OUTPUT_RSTD,
    OUTPUT_SUM,
    OUTPUT_SQUARE_SUM,
    OUTPUT_NOTHING /* its content means nothing */
};

struct ascend_op {
    const char *name, *types, *inputs, *outputs;
    double default_eps; /* 0: none */
    unsigned products, dtypes;
    enum ascend_rounding rounding;
    const char *instead; /* what to use in place of a deprecated one; or NULL */
    const char *source;
};

/* By a layer's type; NULL: not in the table. */
const struct ascend_op *nd_ascend_op_for(const char *type);
/* Does only Ascend call an operator so?  "LayerNorm" may be a module of a framework. */
bool nd_ascend_is_native(const char *type);
/* The operator of the type's family (BatchNorm2d and BatchNormV3 are of one) whose own
 * default eps this is, within the tolerance; NULL: none. */
const struct ascend_op *nd_ascend_default_of(const char *type, double eps, double tolerance);

struct ascend_output {
    char name[32];
    enum output_meaning meaning;
    bool optional; /* filled only with an attribute that is off by default */
};
/* Output `index` of a type; false where it is not known. */
bool nd_ascend_output(const struct ascend_op *op, size_t index, struct ascend_output *ret);

/* The slot that a framework has for input `index`: "param.weight"; NULL: it is an input. */
const char *nd_ascend_parameter(const struct ascend_op *op, size_t index);

/* The product that a device's name tells ("npu:0 Ascend910B3"); 0: none. */
unsigned nd_ascend_product(const char *device);
const char *nd_ascend_product_name(unsigned product); /* NULL: none */

/* Why the operator is not documented for a pair of types on a product. */
enum ascend_gap {
    ASCEND_GAP_NONE,    /* it is, or nothing is known */
    ASCEND_GAP_PRODUCT, /* not on this product at all */
    ASCEND_GAP_DTYPE,   /* not for this input */
    ASCEND_GAP_BF16,    /* the product has no bfloat16 */
    ASCEND_GAP_WEIGHT   /* not with a float32 weight beside a 16-bit input */
};
enum ascend_gap nd_ascend_gap(const struct ascend_op *op, unsigned product, enum nd_dtype x,
                              enum nd_dtype weight);

#endif
