/*
 * Words that models call their layers by.
 */
#include "checks/name_guess.h"

#include <string.h>

#include "ops/type_memo.h"
#include "ops/type_name.h"

struct guess {
    const char *words; /* globs of the plain word: no '_', no '.' */
    const char *types[NAME_GUESSES];
};

/* clang-format off */
static const struct guess guesses[] = {
    {"bn bn[0-9]* batchnorm* *bn", {"BatchNorm2d"}},
    {"gn gn[0-9]* groupnorm*",     {"GroupNorm"}},
    {"rmsnorm* *rms",              {"RMSNorm"}},
    {"ln ln[0-9a-z] ln[0-9]* *norm *norm[0-9]* layernorm* norm*",
     {"LayerNorm", "RMSNorm", "GroupNorm"}},
    {"drop* *dropout* *drop",      {"Dropout"}},
    {"softmax* *softmax",          {"Softmax"}},
    {"gelu* silu* swish* relu* *relu* act act[0-9]* actfn activation* *act",
     {"ReLU", "SiLU", "GELU"}},
};
/* clang-format on */

/* The last part of a dotted name that is no number: "layers.3.ln_1" -> "ln_1",
 * "features.4.act.0" -> "act". */
static void name_word(const char *name, char *ret_word, size_t size)
{
    size_t end = strlen(name);

    for (;;) {
        size_t from = end;
        while (from > 0 && name[from - 1] != '.' && name[from - 1] != '/')
            from--;
        const size_t len = end - from < size - 1 ? end - from : size - 1;
        memcpy(ret_word, name + from, len);
        ret_word[len] = '\0';
        if (from == 0 || strspn(ret_word, "0123456789") < len)
            return;
        end = from - 1;
    }
}

static const void *find_guess(const char *plain)
{
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
        if (nd_type_listed(guesses[i].words, plain))
            return &guesses[i];
    return NULL;
}

size_t nd_name_guess(const char *name, const struct op *ret_ops[NAME_GUESSES])
{
    static _Thread_local struct type_memo met[ND_TYPE_MEMO];
    char word[128], plain[128];
    size_t count = 0;

    name_word(name, word, sizeof word);
    if (nd_type_plain(word, plain, sizeof plain) == 0)
        return 0;
    const struct guess *const guess = nd_type_recall(met, plain, find_guess);
    while (guess != NULL && count < NAME_GUESSES && guess->types[count] != NULL) {
        ret_ops[count] = nd_op_for(guess->types[count]);
        count++;
    }
    return count;
}
