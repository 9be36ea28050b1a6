/*
 * Attributes of the normdiff record: scalars and lists as the framework names them.
 */
#include <string.h>

#include "base/text.h"
#include "formats/normdiff_record.h"

/* Writes a value as people read it; lists inside lists are limited by the JSON's depth. */
static void attribute_write(struct text *text, const cJSON *item)
{
    char number[32];

    if (cJSON_IsString(item)) {
        nd_text_puts(text, item->valuestring);
    } else if (cJSON_IsNumber(item)) {
        nd_text_puts(text, nd_number_text(item->valuedouble, number));
    } else if (cJSON_IsBool(item)) {
        nd_text_puts(text, cJSON_IsTrue(item) ? "true" : "false");
    } else if (cJSON_IsNull(item)) {
        nd_text_puts(text, "null");
    } else {
        const bool is_object = cJSON_IsObject(item) != 0;
        const cJSON *child;
        nd_text_puts(text, is_object ? "{" : "[");
        cJSON_ArrayForEach(child, item)
        {
            if (child != item->child)
                nd_text_puts(text, ", ");
            if (is_object) {
                nd_text_puts(text, child->string);
                nd_text_puts(text, ": ");
            }
            attribute_write(text, child);
        }
        nd_text_puts(text, is_object ? "}" : "]");
    }
}

/* A list of numbers also as numbers; a list that holds anything else as text alone. */
static enum nd_status attribute_list(struct arena *arena, const cJSON *item,
                                     struct attribute *attribute, struct nd_error *err)
{
    const cJSON *child;
    size_t count = 0;

    cJSON_ArrayForEach(child, item) count++;
    double *list = nd_arena_alloc(arena, count + 1, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    cJSON_ArrayForEach(child, item)
    {
        if (!nd_json_number_of(child, &list[attribute->list_len++]))
            break;
    }
    if (child == NULL)
        attribute->list = list;
    else
        attribute->list_len = 0;
    return ND_OK;
}

/* nd_dump_add_attribute() copies what it is given, so texts stay where they are. */
static enum nd_status attribute_add(const struct normdiff_reader *reader,
                                    struct dump_layer *layer, const cJSON *item,
                                    struct nd_error *err)
{
    struct attribute attribute = {.key = item->string};
    struct text text = {0};
    enum nd_status status = ND_OK;

    if (cJSON_IsNull(item)) {
        attribute.kind = ATTRIBUTE_NULL;
    } else if (cJSON_IsBool(item)) {
        attribute.kind = ATTRIBUTE_BOOL;
        attribute.number = cJSON_IsTrue(item) ? 1 : 0;
    } else if (nd_json_number_of(item, &attribute.number)) {
        attribute.kind = ATTRIBUTE_NUMBER;
    } else {
        attribute.kind = cJSON_IsArray(item) ? ATTRIBUTE_LIST : ATTRIBUTE_TEXT;
        attribute_write(&text, item);
        attribute.text = text.len == 0 ? "" : text.bytes;
        if (text.broken)
            status = nd_fail_memory(err);
        else if (attribute.kind == ATTRIBUTE_LIST)
            status = attribute_list(reader->dump->arena, item, &attribute, err);
    }
    if (status == ND_OK)
        status = nd_dump_add_attribute(reader->dump, layer, &attribute, err);
    nd_text_done(&text);
    return status;
}

enum nd_status nd_normdiff_attributes(const struct normdiff_reader *reader,
                                      struct dump_layer *layer, const cJSON *attributes,
                                      struct nd_error *err)
{
    const cJSON *item;

    if (attributes == NULL || cJSON_IsNull(attributes))
        return ND_OK;
    if (!cJSON_IsObject(attributes))
        return nd_normdiff_fail(reader, "attributes", "an object", "another value", err);
    cJSON_ArrayForEach(item, attributes) ND_TRY(attribute_add(reader, layer, item, err));
    return ND_OK;
}
