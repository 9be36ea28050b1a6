/*
 * A pickle's tree as text.
 */
#include "formats/pickle_text.h"

#include <inttypes.h>

static void render(struct text *out, const struct pickle *value);

static void render_bytes(struct text *out, const struct pickle *value, const char *prefix)
{
    nd_text_printf(out, "%s'", prefix);
    for (uint32_t i = 0; i < value->len; i++) {
        const unsigned char c = (unsigned char)value->as.text[i];
        if (c >= 0x20 && c < 0x7f)
            nd_text_printf(out, "%c", c);
        else
            nd_text_printf(out, "\\x%02x", (unsigned)c);
    }
    nd_text_puts(out, "'");
}

static void render_items(struct text *out, const struct pickle_list *list, const char *open,
                         const char *close)
{
    nd_text_puts(out, open);
    for (uint32_t i = 0; i < list->count; i++) {
        nd_text_puts(out, i == 0 ? "" : ", ");
        render(out, &list->items[i]);
    }
    nd_text_puts(out, close);
}

static void render_pairs(struct text *out, const struct pickle_list *list)
{
    nd_text_puts(out, "{");
    for (uint32_t i = 0; i + 1 < list->count; i += 2) {
        nd_text_puts(out, i == 0 ? "" : ", ");
        render(out, &list->items[i]);
        nd_text_puts(out, ": ");
        render(out, &list->items[i + 1]);
    }
    nd_text_puts(out, "}");
}

static void render_call(struct text *out, const struct pickle *parts)
{
    render(out, &parts[CALL_CALLABLE]);
    render_items(out, parts[CALL_ARGUMENTS].as.list, "(", ")");
    if (parts[CALL_ENTRIES].kind == PICKLE_DICT)
        render_pairs(out, parts[CALL_ENTRIES].as.list);
    if (parts[CALL_ELEMENTS].kind == PICKLE_LIST)
        render_items(out, parts[CALL_ELEMENTS].as.list, "[", "]");
    if (parts[CALL_STATE].kind != PICKLE_NONE) {
        nd_text_puts(out, " with ");
        render(out, &parts[CALL_STATE]);
    }
}

static void render_inside(struct text *out, const struct pickle *value)
{
    const struct pickle_list *list = value->as.list;

    switch (value->kind) {
    case PICKLE_TUPLE:
        render_items(out, list, "(", ")");
        break;
    case PICKLE_LIST:
        render_items(out, list, "[", "]");
        break;
    case PICKLE_SET:
        render_items(out, list, "{", "}");
        break;
    case PICKLE_DICT:
        render_pairs(out, list);
        break;
    case PICKLE_CALL:
        render_call(out, list->items);
        break;
    case PICKLE_PERSISTENT:
        render_items(out, list, "<", ">");
        break;
    default:
        nd_text_puts(out, "?");
        break;
    }
}

static void render(struct text *out, const struct pickle *value)
{
    char buf[64];

    switch (value->kind) {
    case PICKLE_NONE:
        nd_text_puts(out, "None");
        break;
    case PICKLE_BOOL:
        nd_text_puts(out, value->as.integer ? "True" : "False");
        break;
    case PICKLE_INT:
        nd_text_printf(out, "%" PRId64, value->as.integer);
        break;
    case PICKLE_FLOAT:
        nd_text_puts(out, nd_number_text(value->as.number, buf));
        break;
    case PICKLE_TEXT:
        render_bytes(out, value, "");
        break;
    case PICKLE_BYTES:
        render_bytes(out, value, "b");
        break;
    case PICKLE_LONG:
        nd_text_puts(out, "L");
        for (uint32_t i = 0; i < value->len; i++)
            nd_text_printf(out, "%02x", (unsigned)(unsigned char)value->as.text[i]);
        break;
    case PICKLE_GLOBAL:
        nd_text_puts(out, nd_pickle_title(value, buf, sizeof buf));
        break;
    default:
        if (value->as.list->walking) {
            nd_text_puts(out, "[...]");
            break;
        }
        value->as.list->walking = true;
        render_inside(out, value);
        value->as.list->walking = false;
    }
}

void pickle_text(struct text *out, const struct pickle *value)
{
    render(out, value);
}
