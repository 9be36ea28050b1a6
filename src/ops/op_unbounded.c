/*
 * Operators that can magnify a relative error without limit, or that jump.
 */
#include "ops/op.h"

const struct op nd_op_unbounded = {
    .name = "unbounded",
    .types =
        "*exp log* *pow sin cos tan div* *divide* *reciprocal* *rsqrt mean var* std* sum "
        "cumsum *norm *loss* *entropy* topk *argmax* *argmin* sort argsort where *floor* "
        "*round* *mod remainder *router* *gate *onehot* *nonzero* *unique*",
    .bound = BOUND_NONE,
};
