/*
 * Look-ups in the table of Ascend's operators.
 */
#include "ops/ascend_op.h"

#include <math.h>
#include <string.h>

#include "ops/op.h"
#include "ops/type_memo.h"
#include "ops/type_name.h"

#define A950  ASCEND_950
#define A3    ASCEND_A3
#define A2    ASCEND_A2
#define A310P ASCEND_310P
#define A910  ASCEND_910
#define A310B ASCEND_310B
#define H     ASCEND_F16
#define F     ASCEND_F32
#define B     ASCEND_BF16
#define M     ASCEND_WIDE_WEIGHT
#define W     ASCEND_WIDE_WEIGHT_LATE

static const struct ascend_op ascend_rows[] = {
#define ND_ASCEND_OP(name, types, inputs, outputs, eps, products, dtypes, rounding,        \
                     instead, source)                                                      \
    {name,    types,  inputs, outputs, eps, products, dtypes, ASCEND_ROUND_##rounding,     \
     instead, source},
#include "ops/ascend_ops.def"
#undef ND_ASCEND_OP
};

enum { ROW_COUNT = sizeof ascend_rows / sizeof *ascend_rows };

static const struct ascend_op *row_of(const char *plain)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (nd_type_listed(ascend_rows[i].types, plain))
            return &ascend_rows[i];
    return NULL;
}

/* What the call of an operator has before the operator's own name. */
static size_t call_prefix(const char *plain)
{
    static const char *const prefixes[] = {"npu", "aclnn"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(plain, prefixes[i], strlen(prefixes[i])) == 0)
            return strlen(prefixes[i]);
    return 0;
}

/* "torch_npu.npu_rms_norm" is called npu_rms_norm; other names keep what stands before. */
static size_t type_calls(const char *type, char *ret_plain, size_t size)
{
    const char *last = type;

    for (const char *at = type; *at != '\0'; at++)
        if (*at == '.' || *at == ':')
            last = at + 1;
    (void)nd_type_plain(last, ret_plain, size);
    const size_t prefix = call_prefix(ret_plain);
    if (prefix == 0)
        (void)nd_type_plain(type, ret_plain, size);
    return prefix;
}

static const void *find_row(const char *type)
{
    char plain[128];
    const size_t prefix = type_calls(type, plain, sizeof plain);
    const struct ascend_op *row = row_of(plain);

    return row != NULL || prefix == 0 ? row : row_of(plain + prefix);
}

const struct ascend_op *nd_ascend_op_for(const char *type)
{
    static _Thread_local struct type_memo met[ND_TYPE_MEMO];

    return nd_type_recall(met, type, find_row);
}

/* Anything but NULL says yes. */
static const void *find_native(const char *type)
{
    static const char shared[] =
        "batchnorm layernorm groupnorm instancenorm rmsnorm native* cudnn*";
    char plain[128];
    const bool is_native = type_calls(type, plain, sizeof plain) > 0 ||
                           (row_of(plain) != NULL && !nd_type_listed(shared, plain));

    return is_native ? shared : NULL;
}

bool nd_ascend_is_native(const char *type)
{
    static _Thread_local struct type_memo met[ND_TYPE_MEMO];

    return nd_type_recall(met, type, find_native) != NULL;
}

const struct ascend_op *nd_ascend_default_of(const char *type, double eps, double tolerance)
{
    const struct op *family = nd_op_for(type);

    for (size_t i = 0; i < ROW_COUNT && family != NULL; i++) {
        const struct ascend_op *row = &ascend_rows[i];
        if (strstr(row->name, "Operation") != NULL)
            continue; /* of a library beside the graph engine, which nobody falls back to */
        if (row->default_eps > 0 && row->products != 0 && strncmp(row->outputs, "y", 1) == 0 &&
            nd_op_for(row->name) == family && fabs(row->default_eps - eps) <= tolerance)
            return row;
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

/* reserve_space_1 and _2 hold what the training path of the operator left there. */
static enum output_meaning meaning_of(const char *name)
{
    static const struct {
        const char *end;
        enum output_meaning meaning;
    } ends[] = {
        {"mean",            OUTPUT_MEAN      },
        {"reserve_space_1", OUTPUT_MEAN      },
        {"rstd",            OUTPUT_RSTD      },
        {"invstd",          OUTPUT_RSTD      },
        {"reserve_space_2", OUTPUT_RSTD      },
        {"reserve_1",       OUTPUT_MEAN      },
        {"reserve_2",       OUTPUT_VARIANCE  },
        {"variance",        OUTPUT_VARIANCE  },
        {"running_var",     OUTPUT_VARIANCE  },
        {"square_sum",      OUTPUT_SQUARE_SUM},
        {"sum",             OUTPUT_SUM       },
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i].end))
            return ends[i].meaning;
    return OUTPUT_VALUE;
}

bool nd_ascend_output(const struct ascend_op *op, size_t index, struct ascend_output *ret)
{
    const char *at = op->outputs;
    char word[sizeof ret->name + 1];

    for (size_t i = 0; i <= index; i++)
        if (!nd_type_word(&at, word, sizeof word))
            return false;
    size_t len = strlen(word);
    const char mark = word[len - 1];
    len -= mark == '?' || mark == '!';
    if (len >= sizeof ret->name)
        return false;
    *ret = (struct ascend_output){.optional = mark == '?'};
    memcpy(ret->name, word, len);
    ret->meaning = mark == '!' ? OUTPUT_NOTHING : meaning_of(ret->name);
    return true;
}

const char *nd_ascend_product_name(unsigned product)
{
    static const char *const names[] = {"Ascend950",   "Ascend910_93", "Ascend910B",
                                        "Ascend310P",  "Ascend910",    "Ascend310B"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (product == 1u << i)
            return names[i];
    return NULL;
}

const char *nd_ascend_parameter(const struct ascend_op *op, size_t index)
{
    static const struct {
        const char *name, *slot;
    } slots[] = {
        {"weight", "param.weight"      },
        {"bias",   "param.bias"        },
        {"mean",   "state.running_mean"},
        {"var",    "state.running_var" },
    };
    const char *at = op->inputs;
    char word[32];

    for (size_t i = 0; i <= index; i++)
        if (!nd_type_word(&at, word, sizeof word))
            return NULL;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (strcmp(slots[i].name, word) == 0)
            return slots[i].slot;
    return NULL;
}

unsigned nd_ascend_product(const char *device)
{
    static const struct {
        const char *part;
        unsigned product;
    } parts[] = {
        {"Ascend950",    ASCEND_950 },
        {"Ascend910_93", ASCEND_A3  },
        {"Ascend910B",   ASCEND_A2  },
        {"Ascend910",    ASCEND_910 },
        {"Ascend310P",   ASCEND_310P},
        {"Ascend310B",   ASCEND_310B},
    };

    for (size_t i = 0; device != NULL && i < sizeof parts / sizeof *parts; i++)
        if (strstr(device, parts[i].part) != NULL)
            return parts[i].product;
    return 0;
}

enum ascend_gap nd_ascend_gap(const struct ascend_op *op, unsigned product, enum nd_dtype x,
                              enum nd_dtype weight)
{
    const bool early = product == ASCEND_310P || product == ASCEND_910 || product == ASCEND_310B;
    const unsigned bit = x == ND_DTYPE_f16    ? ASCEND_F16
                         : x == ND_DTYPE_f32  ? ASCEND_F32
                         : x == ND_DTYPE_bf16 ? ASCEND_BF16
                                              : 0;

    if (op->products == 0)
        return ASCEND_GAP_NONE;
    if (product != 0 && (op->products & product) == 0)
        return ASCEND_GAP_PRODUCT;
    if (bit == 0)
        return x == ND_DTYPE_f64 ? ASCEND_GAP_DTYPE : ASCEND_GAP_NONE;
    if ((op->dtypes & bit) == 0)
        return ASCEND_GAP_DTYPE;
    if (bit == ASCEND_BF16 && (product == ASCEND_310P || product == ASCEND_910))
        return ASCEND_GAP_BF16;
    if (bit == ASCEND_F32 || weight != ND_DTYPE_f32 || (op->dtypes & ASCEND_WIDE_WEIGHT) != 0)
        return ASCEND_GAP_NONE;
    return (op->dtypes & ASCEND_WIDE_WEIGHT_LATE) != 0 && !early ? ASCEND_GAP_NONE
                                                                 : ASCEND_GAP_WEIGHT;
}
