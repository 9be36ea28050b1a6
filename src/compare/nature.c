/*
 * What an operator's type says about its slots: contents without a meaning, and integers
 * that rounding alone moves by one.  Types are the last word of a class or API name.
 */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "compare/compare.h"

enum { TYPE_SIZE = 64 };

/* "torch.empty_like", "EmptyLike" -> "empty_like", "emptylike" */
static void nature_word(const struct dump_layer *layer, char word[TYPE_SIZE])
{
    const char *type = layer->type == NULL ? "" : layer->type, *dot = strrchr(type, '.');
    size_t      len = 0;

    for (const char *p = dot == NULL ? type : dot + 1; *p != '\0' && len + 1 < TYPE_SIZE; p++)
        word[len++] = (char)tolower((unsigned char)*p);
    word[len] = '\0';
}

/* The slots that msprobe leaves out by operator too: memory nobody wrote yet, and the
 * states of attention's random generator. */
static const struct {
    const char *type, *slots;
} voids[] = {
    {"empty",                "output.*"   },
    {"empty_*",              "output.*"   },
    {"emptylike",            "output.*"   },
    {"new_empty*",           "output.*"   },
    {"recv",                 "input.*"    },
    {"irecv",                "input.*"    },
    {"npu_fusion_attention", "output.[45]"},
};

bool nd_layer_leaves_undefined(const struct dump_layer *layer, const char *slot)
{
    char word[TYPE_SIZE];

    nature_word(layer, word);
    for (size_t i = 0; i < sizeof voids / sizeof *voids; i++)
        if (layer->direction == DIRECTION_FORWARD && nd_glob_match(voids[i].type, word) &&
            nd_glob_match(voids[i].slots, slot))
            return true;
    return false;
}

bool nd_layer_quantises(const struct dump_layer *layer)
{
    char word[TYPE_SIZE];

    nature_word(layer, word);
    return strstr(word, "quant") != NULL && strstr(word, "dequant") == NULL;
}
