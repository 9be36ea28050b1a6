/*
 * Look-ups in the table of Ascend's operators.
 */
#include "ops/ascend_op.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

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

static const struct ascend_op ascend_rows[] = {
#define ND_ASCEND_OP(types, outputs, eps, products, dtypes, rounding, instead, source)     \
    {types, outputs, eps, products, dtypes, ASCEND_ROUND_##rounding, instead, source},
#include "ops/ascend_ops.def"
#undef ND_ASCEND_OP
};

/* The next blank-separated word; its length, 0 at the end. */
static size_t next_word(const char **at, const char **ret_word)
{
    *ret_word = *at + strspn(*at, " ");
    const size_t len = strcspn(*ret_word, " ");
    *at = *ret_word + len;
    return len;
}

static bool types_match(const char *types, const char *plain)
{
    const char *word;
    char glob[64];
    size_t len;

    while ((len = next_word(&types, &word)) > 0 && len < sizeof glob) {
        memcpy(glob, word, len);
        glob[len] = '\0';
        if (nd_glob_match(glob, plain))
            return true;
    }
    return false;
}

const struct ascend_op *nd_ascend_op_for(const char *type)
{
    char plain[128];
    size_t len = 0;

    for (; *type != '\0' && len + 1 < sizeof plain; type++)
        if (strchr("_.: ", *type) == NULL)
            plain[len++] = (char)tolower((unsigned char)*type);
    plain[len] = '\0';
    for (size_t i = 0; i < sizeof ascend_rows / sizeof *ascend_rows; i++)
        if (types_match(ascend_rows[i].types, plain))
            return &ascend_rows[i];
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
    const char *at = op->outputs, *word = NULL;
    size_t len = 0;

    for (size_t i = 0; i <= index; i++)
        if ((len = next_word(&at, &word)) == 0)
            return false;
    const char mark = word[len - 1];
    len -= mark == '?' || mark == '!';
    *ret = (struct ascend_output){.optional = mark == '?'};
    if (len >= sizeof ret->name)
        return false;
    memcpy(ret->name, word, len);
    ret->meaning = mark == '!' ? OUTPUT_NOTHING : meaning_of(ret->name);
    return true;
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

bool nd_ascend_supports(const struct ascend_op *op, unsigned product, enum nd_dtype x,
                        enum nd_dtype weight, const char **ret_why)
{
    const unsigned bit = x == ND_DTYPE_f16    ? ASCEND_F16
                         : x == ND_DTYPE_f32  ? ASCEND_F32
                         : x == ND_DTYPE_bf16 ? ASCEND_BF16
                                              : 0;

    *ret_why = NULL;
    if (op->products == 0 || bit == 0)
        return true;
    if (product != 0 && (op->products & product) == 0)
        *ret_why = "the operator is not documented for this product";
    else if ((op->dtypes & bit) == 0)
        *ret_why = "the operator does not take this input type";
    else if (bit == ASCEND_BF16 && (product == ASCEND_310P || product == ASCEND_910))
        *ret_why = "the product has no bfloat16";
    else if (bit != ASCEND_F32 && weight == ND_DTYPE_f32 &&
             ((op->dtypes & ASCEND_WIDE_WEIGHT) == 0 || product == ASCEND_310P))
        *ret_why = "a float32 weight beside a 16-bit input is not supported";
    return *ret_why == NULL;
}
