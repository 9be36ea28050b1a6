/*
 * The normdiff dump: a safetensors file (st_header.h) whose __metadata__["normdiff"] is a
 * JSON text that records layers in execution order.  The record is described in
 * docs/formats/normdiff-dump.md; this reads version 1 of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/format.h"
#include "formats/normdiff_record.h"

enum { NORMDIFF_VERSION = 1 };

static int normdiff_probe(const struct dump_head *head)
{
    return nd_st_probe_normdiff(head->bytes, head->size) ? 80 : 0;
}

enum nd_status nd_normdiff_fail(const struct normdiff_reader *reader, const char *key,
                                const char *expected, const char *found,
                                struct nd_error *err)
{
    char place[160];

    snprintf(place, sizeof place, "layers[%zu].%s", reader->layer, key);
    return nd_fail_key(err, ND_ERR_MALFORMED, place, expected, "%s", found);
}

/* --- the run ------------------------------------------------------------------------- */

static enum nd_status normdiff_version(const cJSON *root, struct nd_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, "version");
    char number[32];

    if (!cJSON_IsNumber(item))
        return nd_fail_key(err, ND_ERR_MALFORMED, "version", "the version, a number",
                           item == NULL ? "nothing" : "another value");
    if (item->valuedouble == NORMDIFF_VERSION)
        return ND_OK;
    nd_fail_key(err, ND_ERR_UNSUPPORTED, "version", "version 1 of the normdiff dump",
                "version %s", nd_number_text(item->valuedouble, number));
    if (item->valuedouble > NORMDIFF_VERSION)
        nd_error_hint(err, "a newer normdiff wrote this dump: read it with that one");
    return ND_ERR_UNSUPPORTED;
}

/* A text member; a number or true as text; *ret_text stays where it is anything else. */
static enum nd_status normdiff_words(struct arena *arena, const cJSON *root,
                                     const char *key, const char **ret_text,
                                     struct nd_error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    char number[32];
    const char *text = cJSON_IsString(item)   ? item->valuestring
                       : cJSON_IsNumber(item) ? nd_number_text(item->valuedouble, number)
                       : cJSON_IsTrue(item)   ? "true"
                                              : NULL;

    if (text == NULL)
        return ND_OK;
    const char *copy = nd_arena_string(arena, text);
    if (copy == NULL)
        return nd_fail_memory(err);
    *ret_text = copy;
    return ND_OK;
}

static void normdiff_whole(const cJSON *object, const char *key, int64_t *ret_value)
{
    uint64_t value;

    if (nd_json_size(cJSON_GetObjectItemCaseSensitive(object, key), &value))
        *ret_value = (int64_t)value; /* below 2^53 */
}

static enum nd_status normdiff_run(struct normdiff_reader *reader, const cJSON *root,
                                   struct nd_error *err)
{
    struct dump *dump = reader->dump;
    bool value = false;

    ND_TRY(normdiff_words(dump->arena, root, "device", &reader->device, err));
    if (dump->device == NULL)
        dump->device = reader->device;
    ND_TRY(normdiff_words(dump->arena, root, "framework", &dump->framework, err));
    ND_TRY(normdiff_words(dump->arena, root, "model", &dump->model, err));
    ND_TRY(normdiff_words(dump->arena, root, "autocast", &dump->autocast, err));
    ND_TRY(normdiff_words(dump->arena, root, "loss", &dump->loss, err));
    nd_json_number(root, "seed", &dump->seed);
    if (nd_json_bool(root, "deterministic", &value))
        dump->deterministic = value;
    normdiff_whole(root, "step", &dump->step);
    normdiff_whole(root, "rank", &dump->rank);

    /* An unfinished run leaves data that no tensor claims yet, or claims without data. */
    const bool said = nd_json_bool(root, "complete", &value);
    const bool finished = said && value;
    if (said ? !finished : reader->header.file_size < reader->header.data_end)
        dump->partial = true;
    return said && !finished ? ND_OK : nd_st_header_tight(&reader->header, err);
}

/* --- layers -------------------------------------------------------------------------- */

static enum nd_status normdiff_direction(const struct normdiff_reader *reader,
                                         const cJSON *item, struct dump_layer *layer,
                                         struct nd_error *err)
{
    const cJSON *direction = cJSON_GetObjectItemCaseSensitive(item, "direction");

    if (direction == NULL || cJSON_IsNull(direction))
        return ND_OK;
    if (cJSON_IsString(direction) && strcmp(direction->valuestring, "forward") == 0)
        return ND_OK;
    if (!cJSON_IsString(direction) || strcmp(direction->valuestring, "backward") != 0)
        return nd_normdiff_fail(reader, "direction", "\"forward\" or \"backward\"",
                                "another value", err);
    layer->direction = DIRECTION_BACKWARD;
    return ND_OK;
}

/* Optional whole numbers: absent and null keep the default, anything else is an error. */
static enum nd_status normdiff_number(const struct normdiff_reader *reader,
                                      const cJSON *item, const char *key,
                                      int64_t *ret_value, struct nd_error *err)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, key);
    uint64_t value;

    if (number == NULL || cJSON_IsNull(number))
        return ND_OK;
    if (!nd_json_size(number, &value))
        return nd_normdiff_fail(reader, key, "a whole number that is not negative",
                                "another value", err);
    *ret_value = (int64_t)value;
    return ND_OK;
}

static enum nd_status normdiff_stack(struct arena *arena, const cJSON *item,
                                     struct dump_layer *layer, struct nd_error *err)
{
    const cJSON *lines = cJSON_GetObjectItemCaseSensitive(item, "stack"), *line;
    struct text text = {0};

    cJSON_ArrayForEach(line, lines)
    {
        if (!cJSON_IsString(line))
            continue;
        if (text.len > 0)
            nd_text_puts(&text, "\n");
        nd_text_puts(&text, line->valuestring);
    }
    if (text.len > 0)
        layer->stack = nd_arena_copy(arena, text.bytes, text.len);
    const bool failed = text.broken || (text.len > 0 && layer->stack == NULL);
    nd_text_done(&text);
    return failed ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status normdiff_layer(const struct normdiff_reader *reader,
                                     const cJSON *item, struct nd_error *err)
{
    struct dump *dump = reader->dump;
    const char *name, *type = "";

    if (!cJSON_IsObject(item) || !nd_json_text(item, "name", &name))
        return nd_normdiff_fail(reader, "name", "an object with the layer's name",
                                "a layer without one", err);
    if (strlen(name) > ND_NORMDIFF_NAME_MAX)
        return nd_normdiff_fail(reader, "name", "names of at most 4096 bytes",
                                "a longer name", err);
    nd_json_text(item, "type", &type);
    struct dump_layer *layer = nd_dump_add_layer(dump, name, type);
    if (layer == NULL)
        return nd_fail_memory(err);
    ND_TRY(normdiff_direction(reader, item, layer, err));
    ND_TRY(normdiff_number(reader, item, "call", &layer->call, err));
    ND_TRY(normdiff_number(reader, item, "micro_step", &layer->micro_step, err));
    nd_json_bool(item, "container", &layer->container);
    nd_json_bool(item, "recompute", &layer->recompute);
    ND_TRY(normdiff_stack(dump->arena, item, layer, err));
    ND_TRY(nd_normdiff_attributes(
        reader, layer, cJSON_GetObjectItemCaseSensitive(item, "attributes"), err));
    return nd_normdiff_slots(reader, layer, cJSON_GetObjectItemCaseSensitive(item, "slots"),
                             err);
}

/* --- name, direction and call are a layer's identity --------------------------------- */

static int layer_order(const void *a, const void *b)
{
    const struct dump_layer *first = *(const struct dump_layer *const *)a;
    const struct dump_layer *second = *(const struct dump_layer *const *)b;
    const int order = strcmp(first->name, second->name);

    if (order != 0)
        return order;
    if (first->direction != second->direction)
        return first->direction < second->direction ? -1 : 1;
    return (first->call > second->call) - (first->call < second->call);
}

static enum nd_status normdiff_unique(const struct dump *dump, size_t first,
                                      struct nd_error *err)
{
    const size_t count = dump->layer_count - first;
    const struct dump_layer **sorted = count == 0 ? NULL : malloc(count * sizeof *sorted);
    enum nd_status status = ND_OK;

    if (count == 0)
        return ND_OK;
    if (sorted == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &dump->layers[first + i];
    qsort(sorted, count, sizeof *sorted, layer_order);
    for (size_t i = 1; i < count && status == ND_OK; i++)
        if (layer_order(&sorted[i - 1], &sorted[i]) == 0)
            status = nd_fail_key(
                err, ND_ERR_MALFORMED, "layers",
                "layers that differ in name, direction or call",
                "layer \"%.300s\", %s, call %" PRId64 ", a second time", sorted[i]->name,
                sorted[i]->direction == DIRECTION_FORWARD ? "forward" : "backward",
                sorted[i]->call);
    free(sorted);
    return status;
}

/* --- the file ------------------------------------------------------------------------ */

/* Tensors that no layer names, but for the exporter's padding between tensors. */
static enum nd_status normdiff_unnamed(const struct normdiff_reader *reader,
                                       struct nd_error *err)
{
    for (size_t i = 0; i < reader->header.count; i++) {
        const struct st_entry *entry = reader->header.entries[i];
        if (entry->named || strncmp(entry->name, "_pad", 4) == 0)
            continue;
        const char *what = nd_arena_format(reader->dump->arena,
                                           "tensor \"%s\": no layer names it", entry->name);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(reader->dump, what, err));
    }
    return ND_OK;
}

static enum nd_status normdiff_layers(struct normdiff_reader *reader, const cJSON *root,
                                      struct nd_error *err)
{
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(root, "layers"), *item;
    const size_t first = reader->dump->layer_count;

    if (!cJSON_IsObject(root))
        return nd_fail_key(err, ND_ERR_MALFORMED, "__metadata__.normdiff", "a JSON object",
                           "another value");
    ND_TRY(normdiff_version(root, err));
    ND_TRY(normdiff_run(reader, root, err));
    if (!cJSON_IsArray(layers))
        return nd_fail_key(err, ND_ERR_MALFORMED, "layers", "a list of layers",
                           layers == NULL ? "nothing" : "another value");
    cJSON_ArrayForEach(item, layers)
    {
        ND_TRY(normdiff_layer(reader, item, err));
        reader->layer++;
    }
    return normdiff_unique(reader->dump, first, err);
}

/* The record stands inside a string of the header: offsets count within that string. */
static void normdiff_place(struct nd_error *err)
{
    char at[sizeof err->at];

    if (err == NULL)
        return;
    if (strstr(err->found, "NaN") != NULL)
        nd_error_hint(err,
                      "write numbers that JSON cannot hold as \"nan\", \"inf\", \"-inf\"");
    memcpy(at, err->at, sizeof at);
    snprintf(err->at, sizeof err->at, "__metadata__.normdiff, %.150s", at);
}

static enum nd_status normdiff_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct normdiff_reader reader = {.dump = dump, .file = file};
    cJSON *root;

    dump->grouped = true;
    dump->order = ND_ORDER_RECORDED;
    ND_TRY(nd_st_header_read(nd_dump_bytes(dump, file), dump->scratch, &reader.header, err));
    if (reader.header.normdiff == NULL)
        return nd_fail_at(err, ND_ERR_MALFORMED, 8, "a \"normdiff\" text in __metadata__",
                          "a safetensors file without one");
    const enum nd_status parsed =
        nd_json_parse((const unsigned char *)reader.header.normdiff,
                      reader.header.normdiff_len, false, &root, err);
    if (parsed != ND_OK) {
        normdiff_place(err);
        return parsed;
    }
    enum nd_status status = normdiff_layers(&reader, root, err);
    cJSON_Delete(root);
    if (status == ND_OK)
        status = normdiff_unnamed(&reader, err);
    if (status == ND_OK)
        status = nd_st_header_trailing(&reader.header, dump, err);
    return status;
}

const struct dump_format nd_format_normdiff = {
    .name = "normdiff",
    .title = "normdiff dump (safetensors)",
    .probe = normdiff_probe,
    .index = normdiff_index,
};
