/*
 * A layer's name for a narrow column.  Names of msprobe begin and end alike
 * ("Module.layers.3.input_layernorm.LayerNorm.forward.0"), so cutting their middle leaves
 * nothing to tell them apart by: what every one of them has goes first.
 */
#include "report/text_parts.h"

#include <string.h>

static size_t name_without_end(const char *name, size_t len, const char *end)
{
    const size_t n = strlen(end);

    return len > n && memcmp(name + len - n, end, n) == 0 ? len - n : len;
}

/* What stands before the names of modules (the first two) and of functions. */
static const char *const begins[] = {"Module.", "Cell.", "Functional.", "Tensor.",
                                     "Torch.",  "NPU.",  "Mint.",       "Primitive."};

enum { MODULES = 2, BEGINS = sizeof begins / sizeof *begins };

static bool is_of_msprobe(const char *name)
{
    return strstr(name, ".forward") != NULL || strstr(name, ".backward") != NULL ||
           strstr(name, ".parameters_grad") != NULL;
}

const char *nd_text_short_name(struct page *page, const struct nd_layer *layer,
                               bool has_type, unsigned columns, char *buf, size_t size)
{
    const char *name = layer->name;
    size_t begin = 0;

    if (nd_page_columns(page, name) <= columns || !is_of_msprobe(name))
        return name;
    while (begin < BEGINS && strncmp(name, begins[begin], strlen(begins[begin])) != 0)
        begin++;
    const bool is_module = begin < MODULES;
    name += begin < BEGINS ? strlen(begins[begin]) : 0;
    size_t len =
        name_without_end(name, strlen(name), is_module ? ".forward.0" : ".forward");
    const size_t type = strlen(layer->type);
    /* The class stands in the next column. */
    if (has_type && is_module && type > 0 && len > type + 1 &&
        name[len - type - 1] == '.' && memcmp(name + len - type, layer->type, type) == 0)
        len -= type + 1;
    if (len >= size)
        return name;
    memcpy(buf, name, len);
    buf[len] = '\0';
    return buf;
}
