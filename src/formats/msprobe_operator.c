/*
 * What the reader knows of operators: names of positional arguments (the table
 * msprobe_operators.def), and slots whose content has no meaning.
 */
#include "formats/msprobe.h"

static const struct msprobe_operator operators[] = {
#define ND_MSPROBE_OP(name, arguments) {name, arguments},
#include "formats/msprobe_operators.def"
#undef ND_MSPROBE_OP
};

static bool text_is(const char *text, size_t len, const char *word)
{
    return *word == *text && strncmp(word, text, len) == 0 && word[len] == '\0';
}

const struct msprobe_operator *nd_msprobe_operator(const char *key,
                                                   const struct msprobe_name *name)
{
    if (name->is_module || name->type_len == 0 || name->direction != DIRECTION_FORWARD)
        return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (text_is(key, name->base_len, operators[i].name) ||
            text_is(name->type, name->type_len, operators[i].name))
            return &operators[i];
    return NULL;
}

bool nd_msprobe_argument(const struct msprobe_operator *op, size_t i, char *buf,
                         size_t size)
{
    if (op == NULL)
        return false;
    const char *at = op->arguments;
    for (; i > 0; i--) {
        at = strchr(at, ' ');
        if (at == NULL)
            return false;
        at++;
    }
    size_t len = 0;
    for (; at[len] != ' ' && at[len] != '\0' && len + 1 < size; len++)
        buf[len] = at[len];
    buf[len] = '\0';
    return true;
}

/* Only operators that are in the table have parameters: another API's "weight" may be a
 * tensor like any other. */
const char *nd_msprobe_parameter(const struct msprobe_operator *op, const char *argument)
{
    static const struct {
        const char *argument, *slot;
    } parameters[] = {
        {"weight",       "param.weight"      },
        {"gamma",        "param.weight"      },
        {"bias",         "param.bias"        },
        {"beta",         "param.bias"        },
        {"running_mean", "state.running_mean"},
        {"running_var",  "state.running_var" },
    };

    for (size_t i = 0; op != NULL && i < sizeof parameters / sizeof *parameters; i++)
        if (strcmp(parameters[i].argument, argument) == 0)
            return parameters[i].slot;
    return NULL;
}

/* --- without meaning ----------------------------------------------------------------- */

/* msprobe's own list of what is never compared, and the buffers that a collective is about
 * to write.  "input.0*" covers a list of tensors too. */
static const struct {
    const char *type, *slots;
    bool is_collective; /* Distributed.gather, not Torch.gather */
} voids[] = {
    {"empty",                  "output*",                   false},
    {"empty_like",             "output*",                   false},
    {"empty_strided",          "output*",                   false},
    {"empty_with_format",      "output*",                   false},
    {"new_empty",              "output*",                   false},
    {"new_empty_strided",      "output*",                   false},
    {"to",                     "*",                         false},
    {"numpy",                  "*",                         false},
    {"__setitem__",            "*",                         false},
    {"npu_fusion_attention",   "output.[45]",               false},
    {"recv",                   "input.*",                   true },
    {"irecv",                  "input.*",                   true },
    {"batch_isend_irecv",      "input.*",                   true },
    {"all_gather",             "input.0*",                  true },
    {"all_gather",             "input.tensor_list*",        true },
    {"_all_gather_base",       "input.*",                   true },
    {"all_gather_into_tensor", "input.0",                   true },
    {"all_gather_into_tensor", "input.output_tensor",       true },
    {"gather",                 "input.gather_list*",        true },
    {"reduce_scatter",         "input.0",                   true },
    {"reduce_scatter",         "input.output",              true },
    {"_reduce_scatter_base",   "input.*",                   true },
    {"reduce_scatter_tensor",  "input.0",                   true },
    {"reduce_scatter_tensor",  "input.output",              true },
    {"scatter",                "input.0",                   true },
    {"all_to_all",             "input.0*",                  true },
    {"all_to_all",             "input.output_tensor_list*", true },
    {"all_to_all_single",      "input.*",                   true },
};

bool nd_msprobe_undefined(const char *key, const struct msprobe_name *name,
                          const char *slot)
{
    if (name->is_module || name->type_len == 0 || name->direction != DIRECTION_FORWARD)
        return false;
    const bool collective =
        strncmp(key, "Distributed.", 12) == 0 || strncmp(key, "MintDistributed.", 16) == 0;
    for (size_t i = 0; i < sizeof voids / sizeof *voids; i++)
        if (voids[i].is_collective == collective &&
            text_is(name->type, name->type_len, voids[i].type) &&
            (slot == NULL || nd_glob_match(voids[i].slots, slot)))
            return true;
    return false;
}
