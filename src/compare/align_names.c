/*
 * Normalised names: the same layer as two frameworks or wrappers spell it.
 *
 *   "module.conv1"               DistributedDataParallel's wrapper
 *   "Module.conv1.Conv2d.forward.0", "Cell.conv1.Conv2d.0.forward"
 *   "backbone/bn1", "backbone_bn1" separators and their escaping
 *   "fc.Dense"                   class synonyms
 */
#include <string.h>

#include "compare/align.h"

static const char *const wrappers[] = {"Module", "Cell", "module", "_orig_mod", "_fsdp_wrapped_module"};

static const struct {
    const char *from, *to;
} synonyms[] = {
    {"Dense", "Linear"},         {"BatchNorm", "BatchNorm2d"},
    {"MaxPool", "MaxPool2d"},    {"AvgPool", "AvgPool2d"},
    {"Conv2D", "Conv2d"},        {"BatchNorm2D", "BatchNorm2d"},
    {"LayerNormalization", "LayerNorm"},
};

static bool is_word(const char *token, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(token, word, len) == 0;
}

static bool is_number(const char *token, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (token[i] < '0' || token[i] > '9')
            return false;
    return len > 0;
}

struct token {
    const char *text;
    size_t      len;
};

enum { MAX_TOKENS = 128 };

static size_t split(const char *name, struct token *tokens)
{
    size_t count = 0;

    while (*name != '\0' && count < MAX_TOKENS) {
        const size_t len = strcspn(name, "./");
        if (len > 0)
            tokens[count++] = (struct token){name, len};
        name += len;
        name += *name != '\0';
    }
    return count;
}

/* Takes "forward.0", "0.forward" out: direction and call are known from elsewhere. */
static size_t drop_direction(struct token *tokens, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (!is_word(tokens[i].text, tokens[i].len, "forward") &&
            !is_word(tokens[i].text, tokens[i].len, "backward"))
            continue;
        size_t from = i, to = i + 1;
        if (to < count && is_number(tokens[to].text, tokens[to].len))
            to++;
        else if (is_number(tokens[i - 1].text, tokens[i - 1].len))
            from--;
        if (from == 0)
            return count;
        memmove(tokens + from, tokens + to, (count - to) * sizeof *tokens);
        return count - (to - from);
    }
    return count;
}

const char *nd_normalised_name(struct arena *arena, const char *name)
{
    struct token tokens[MAX_TOKENS];
    size_t       count = split(name, tokens), first = 0, at = 0;
    char        *out = nd_arena_alloc(arena, strlen(name) * 2 + 16, 1);

    if (out == NULL)
        return NULL;
    for (bool again = true; again && first + 1 < count;) {
        again = false;
        for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers && !again; w++)
            again = is_word(tokens[first].text, tokens[first].len, wrappers[w]);
        first += again;
    }
    count = drop_direction(tokens + first, count - first);
    for (size_t i = 0; i < count; i++) {
        const char *text = tokens[first + i].text;
        size_t      len = tokens[first + i].len;
        for (size_t s = 0; s < sizeof synonyms / sizeof *synonyms; s++)
            if (is_word(text, len, synonyms[s].from)) {
                text = synonyms[s].to;
                len = strlen(text);
                break;
            }
        if (i > 0)
            out[at++] = '.';
        memcpy(out + at, text, len);
        at += len;
    }
    out[at] = '\0';
    return out;
}
