/*
 * Scalar arguments as attributes: numbers, bools, texts, lists of them, and a slice, a
 * torch.Size or the ranks of a process group as they stand.
 *
 *   1. {"type": "float", "value": 1e-05}: the value counts, the type does not
 *   2. [{"type": "int", "value": 8}, ...]: one list
 *   3. "cpu", "cuda:0", "npu:0": a place, not an argument
 */
#include <math.h>

#include "formats/msprobe.h"
#include "formats/msprobe_element.h"

enum { MAX_TEXT = 512 /* of an attribute: longer ones are cut */ };

static bool is_place(const char *text)
{
    static const char *const places[] = {"cpu", "cuda", "npu", "Ascend", "GPU", "CPU"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const size_t len = strlen(places[i]);
        if (strncmp(text, places[i], len) == 0 && (text[len] == '\0' || text[len] == ':'))
            return true;
    }
    return false;
}

/* The JSON text of a value, blanks squeezed, for people. */
static void write_value(struct text *out, const struct cursor *in, uint64_t end)
{
    bool blank = false;

    for (uint64_t i = in->at; i < end && out->len < MAX_TEXT; i++) {
        const char c = (char)in->bytes[i];
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
            blank = out->len > 0;
            continue;
        }
        if (blank && c != ',' && c != ']' && c != '}')
            nd_text_add(out, " ", 1);
        blank = false;
        nd_text_add(out, &c, 1);
    }
}

static bool read_number(const struct cursor *in, uint64_t end, double *ret_number)
{
    const char *const at = (const char *)in->bytes + in->at;
    const char *const stop = (const char *)in->bytes + end;

    return nd_number_read(at, stop, ret_number) == stop;
}

/* A list of numbers also as numbers. */
static enum nd_status read_list(struct arena *arena, struct cursor in,
                                struct attribute *attribute, struct nd_error *err)
{
    double *list = NULL;
    size_t count = 0, capacity = 0;

    ND_TRY(nd_json_expect(&in, '[', err));
    for (bool more = !nd_json_accept(&in, ']'); more; more = nd_json_accept(&in, ',')) {
        nd_json_skip_blank(&in);
        const struct cursor item = in;
        double number;
        ND_TRY(nd_json_scan_value(&in, true, NULL, err));
        if (!read_number(&item, in.at, &number))
            return ND_OK; /* of other things: as text alone */
        double *const grown = nd_arena_grow(arena, list, count, &capacity, sizeof *list);
        if (grown == NULL)
            return nd_fail_memory(err);
        list = grown;
        list[count++] = number;
    }
    attribute->list = list;
    attribute->list_len = count;
    return ND_OK;
}

static enum nd_status attribute_text(struct msprobe_reader *reader, struct cursor in,
                                     struct attribute *attribute, struct nd_error *err)
{
    struct json_text text;

    ND_TRY(nd_json_scan_text(&in, &text, err));
    if (text.len > MAX_TEXT) {
        attribute->text = nd_arena_string(reader->dump->arena, "a long text");
    } else {
        attribute->text = nd_msprobe_text(reader->dump, &text);
    }
    attribute->kind = ATTRIBUTE_TEXT;
    return attribute->text == NULL ? nd_fail_memory(err) : ND_OK;
}

/* Fills kind and value; the value is a whole one, checked. */
static enum nd_status attribute_read(struct msprobe_reader *reader, struct cursor in,
                                     struct attribute *attribute, struct nd_error *err)
{
    struct cursor after = in;
    struct text text = {0};

    ND_TRY(nd_json_scan_value(&after, true, NULL, err));
    nd_json_skip_blank(&in);
    const unsigned char c = in.bytes[in.at];
    if (c == '"')
        return attribute_text(reader, in, attribute, err);
    if (c == 'n') {
        attribute->kind = ATTRIBUTE_NULL;
        return ND_OK;
    }
    if (c == 't' || c == 'f') {
        attribute->kind = ATTRIBUTE_BOOL;
        attribute->number = c == 't' ? 1 : 0;
        return ND_OK;
    }
    if (c != '[' && c != '{') {
        attribute->kind = ATTRIBUTE_NUMBER;
        return read_number(&in, after.at, &attribute->number)
                   ? ND_OK
                   : nd_json_unexpected(&in, "a number", err);
    }
    attribute->kind = c == '[' ? ATTRIBUTE_LIST : ATTRIBUTE_TEXT;
    write_value(&text, &in, after.at);
    attribute->text = text.broken ? NULL : nd_arena_string(reader->dump->arena, text.bytes);
    nd_text_done(&text);
    if (attribute->text == NULL)
        return nd_fail_memory(err);
    return c == '[' ? read_list(reader->dump->arena, in, attribute, err) : ND_OK;
}

enum nd_status nd_msprobe_attribute(struct msprobe_reader *reader, struct cursor value,
                                    const char *key, struct nd_error *err)
{
    struct attribute attribute = {.key = key};

    ND_TRY(attribute_read(reader, value, &attribute, err));
    if (attribute.kind == ATTRIBUTE_TEXT && is_place(attribute.text))
        attribute.key = "device";
    return nd_dump_add_attribute(reader->dump, nd_msprobe_layer(reader), &attribute, err);
}

/* --- lists of typed scalars ---------------------------------------------------------- */

/* The value of a typed scalar at the cursor; false: it is something else. */
static bool scalar_take(struct cursor *in, struct cursor *ret_value, uint64_t *ret_end)
{
    struct msprobe_element element;

    if (!nd_msprobe_is_element(*in) ||
        nd_msprobe_element_read(in, &element, NULL) != ND_OK || element.has_shape ||
        element.has_tensor || !element.has_value)
        return false;
    struct cursor after = element.value;
    if (nd_json_scan_value(&after, true, NULL, NULL) != ND_OK)
        return false;
    *ret_value = element.value;
    *ret_end = after.at;
    return true;
}

enum nd_status nd_msprobe_scalar_list(struct msprobe_reader *reader, const char *key,
                                      bool *ret_done, struct nd_error *err)
{
    struct cursor in = reader->in, value;
    struct text text = {0};
    uint64_t end;

    *ret_done = false;
    bool good = nd_json_accept(&in, '[') && !nd_json_accept(&in, ']');
    nd_text_add(&text, "[", 1);
    for (bool more = good; good && more;) {
        good = scalar_take(&in, &value, &end);
        if (!good)
            break;
        if (text.len > 1)
            nd_text_puts(&text, ", ");
        nd_text_add(&text, (const char *)value.bytes + value.at, (size_t)(end - value.at));
        more = nd_json_accept(&in, ',');
        good = more || nd_json_accept(&in, ']');
    }
    nd_text_add(&text, "]", 1);
    enum nd_status status = ND_OK;
    if (good && !text.broken) {
        const struct cursor list = {.bytes = (const unsigned char *)text.bytes,
                                    .size = text.len};
        status = nd_msprobe_attribute(reader, list, key, err);
        reader->in = in;
        *ret_done = true;
    }
    nd_text_done(&text);
    return good && text.broken ? nd_fail_memory(err) : status;
}
