/*
 * Names of MindSpore's tensor files:
 *
 *   {type}.{op}.{task}.{stream}.{time}.{input|output}.{slot}.{format}[.{dtype}].npy
 *
 *   1. op is the full scope with '_' for '/', or its last part; a parameter's has dots, so
 *      a name is read from its end
 *   2. format is DefaultFormat for the host's order, else the device's layout
 *   3. dtype (not written by older CPU and GPU versions) is the real one: bfloat16 lies as
 *      float32, int4 as int8
 */
#include <string.h>

#include "formats/mindspore.h"

enum { MAX_TOKENS = 64 };

struct token {
    const char *at;
    size_t len;
};

static bool token_is(const struct token *token, const char *word)
{
    return token->len == strlen(word) && memcmp(token->at, word, token->len) == 0;
}

static bool token_number(const struct token *token, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (token->len == 0 || token->len > 18)
        return false;
    for (size_t i = 0; i < token->len; i++) {
        if (token->at[i] < '0' || token->at[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(token->at[i] - '0');
    }
    *ret_number = number;
    return true;
}

struct parsed {
    struct token type, op, format, dtype;
    uint64_t time, slot;
    bool is_output;
};

static size_t split(const char *name, size_t len, struct token *tokens)
{
    size_t count = 0, at = 0;

    for (;;) {
        const char *const dot = memchr(name + at, '.', len - at);
        const size_t end = dot == NULL ? len : (size_t)(dot - name);
        if (count == MAX_TOKENS)
            return 0;
        tokens[count++] = (struct token){name + at, end - at};
        if (dot == NULL)
            return count;
        at = end + 1;
    }
}

static bool parse(const char *name, struct parsed *ret)
{
    struct token tokens[MAX_TOKENS];
    const size_t len = strlen(name);
    uint64_t task, stream;

    if (len < 5 || strcmp(name + len - 4, ".npy") != 0)
        return false;
    const size_t count = split(name, len - 4, tokens);
    for (size_t i = count; i-- > 5;) {
        struct parsed parsed = {.is_output = token_is(&tokens[i], "output")};
        if ((!parsed.is_output && !token_is(&tokens[i], "input")) || i + 2 >= count ||
            !token_number(&tokens[i + 1], &parsed.slot) ||
            !token_number(&tokens[i - 1], &parsed.time) ||
            !token_number(&tokens[i - 2], &stream) || !token_number(&tokens[i - 3], &task))
            continue;
        parsed.type = tokens[0];
        parsed.op.at = tokens[1].at;
        parsed.op.len = (size_t)(tokens[i - 4].at + tokens[i - 4].len - tokens[1].at);
        parsed.format = tokens[i + 2];
        if (i + 3 < count)
            parsed.dtype = tokens[i + 3];
        *ret = parsed;
        return parsed.type.len > 0 && parsed.op.len > 0;
    }
    return false;
}

bool nd_ms_name_is(const char *name)
{
    struct parsed parsed;

    return parse(name, &parsed) &&
           (token_is(&parsed.format, "DefaultFormat") ||
            nd_dtype_by_name(parsed.dtype.at == NULL ? "" : parsed.dtype.at,
                             parsed.dtype.len) != ND_DTYPE_NONE);
}

bool nd_ms_name(struct dump *dump, const char *name, struct ms_item *ret_item,
                bool *ret_memory)
{
    struct parsed parsed;
    struct ms_item item = {.values = nd_dump_slot_init()};

    *ret_memory = true;
    if (!parse(name, &parsed))
        return false;
    item.type = nd_arena_copy(dump->arena, parsed.type.at, parsed.type.len);
    item.op = nd_arena_copy(dump->arena, parsed.op.at, parsed.op.len);
    item.time = parsed.time;
    item.is_output = parsed.is_output;
    item.slot = parsed.slot;
    if (parsed.dtype.len > 0)
        item.values.real_dtype = nd_dtype_by_name(parsed.dtype.at, parsed.dtype.len);
    if (!token_is(&parsed.format, "DefaultFormat") && !token_is(&parsed.format, "ND")) {
        item.values.layout_text =
            nd_arena_copy(dump->arena, parsed.format.at, parsed.format.len);
        *ret_memory = item.values.layout_text != NULL;
    }
    *ret_memory = *ret_memory && item.type != NULL && item.op != NULL;
    *ret_item = item;
    return true;
}
