/*
 * Comparing names of layer types.
 */
#include "ops/type_name.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

size_t nd_type_plain(const char *type, char *ret_plain, size_t size)
{
    size_t len = 0;

    for (; *type != '\0' && len + 1 < size; type++)
        if (strchr("_.: ", *type) == NULL)
            ret_plain[len++] = (char)tolower((unsigned char)*type);
    ret_plain[len] = '\0';
    return len;
}

bool nd_type_word(const char **at, char *ret_word, size_t size)
{
    const char *start = *at + strspn(*at, " ");
    size_t len = strcspn(start, " ");

    if (len == 0)
        return false;
    *at = start + len;
    if (len >= size)
        len = size - 1;
    memcpy(ret_word, start, len);
    ret_word[len] = '\0';
    return true;
}

bool nd_type_listed(const char *globs, const char *plain)
{
    char glob[64];

    while (nd_type_word(&globs, glob, sizeof glob))
        if (nd_glob_match(glob, plain))
            return true;
    return false;
}
