/*
 * Looking into a pickle's tree.  Every function accepts any value, NULL included, since
 * the tree's shape is the file's word.
 */
#include "formats/pickle.h"

#include <stdio.h>

bool nd_pickle_is(const struct pickle *value, const char *text)
{
    const size_t len = strlen(text);

    return value != NULL && (value->kind == PICKLE_TEXT || value->kind == PICKLE_BYTES) &&
           value->len == len && memcmp(value->as.text, text, len) == 0;
}

bool nd_pickle_is_global(const struct pickle *value, const char *module, const char *name)
{
    return value != NULL && value->kind == PICKLE_GLOBAL &&
           (module == NULL || nd_pickle_is(&value->as.list->items[0], module)) &&
           nd_pickle_is(&value->as.list->items[1], name);
}

const struct pickle *nd_pickle_item(const struct pickle *value, size_t i)
{
    if (value == NULL || value->kind < PICKLE_TUPLE || value->kind > PICKLE_PERSISTENT ||
        i >= value->as.list->count)
        return NULL;
    return &value->as.list->items[i];
}

const struct pickle *nd_pickle_entry(const struct pickle *dict, const char *key)
{
    if (dict == NULL || dict->kind != PICKLE_DICT)
        return NULL;
    for (uint32_t i = 0; i + 1 < dict->as.list->count; i += 2)
        if (nd_pickle_is(&dict->as.list->items[i], key))
            return &dict->as.list->items[i + 1];
    return NULL;
}

static const char *value_word(enum pickle_kind kind)
{
    switch (kind) {
    case PICKLE_NONE:
        return "None";
    case PICKLE_BOOL:
        return "bool";
    case PICKLE_INT:
    case PICKLE_LONG:
        return "int";
    case PICKLE_FLOAT:
        return "float";
    case PICKLE_TEXT:
        return "str";
    case PICKLE_BYTES:
        return "bytes";
    case PICKLE_TUPLE:
        return "tuple";
    case PICKLE_LIST:
        return "list";
    case PICKLE_SET:
        return "set";
    case PICKLE_DICT:
        return "dict";
    case PICKLE_GLOBAL:
        return "global";
    case PICKLE_CALL:
        return "object";
    case PICKLE_PERSISTENT:
        return "persistent id";
    case PICKLE_MARK:
        break;
    }
    return "mark";
}

const char *nd_pickle_title(const struct pickle *value, char *buf, size_t size)
{
    const struct pickle *global = value;

    /* copyreg._reconstructor(cls, base, state) is how old-style objects name their class.
     */
    for (int depth = 0; depth < 4 && global->kind == PICKLE_CALL; depth++) {
        const struct pickle *callable = nd_pickle_item(global, CALL_CALLABLE);
        const struct pickle *first =
            nd_pickle_item(nd_pickle_item(global, CALL_ARGUMENTS), 0);
        const bool reconstructor =
            nd_pickle_is_global(callable, "copyreg", "_reconstructor") ||
            nd_pickle_is_global(callable, "copy_reg", "_reconstructor");
        global = reconstructor && first != NULL ? first : callable;
    }
    if (global->kind == PICKLE_GLOBAL) {
        const struct pickle *names = global->as.list->items;
        snprintf(buf, size, "%.*s.%.*s", (int)(names[0].len < 200 ? names[0].len : 200),
                 names[0].as.text, (int)(names[1].len < 200 ? names[1].len : 200),
                 names[1].as.text);
    } else {
        snprintf(buf, size, "%s", value_word(value->kind));
    }
    return buf;
}
