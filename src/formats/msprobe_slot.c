/*
 * What a record's members become: tensors are slots, scalars attributes, lists and objects
 * nest, and the index or the key becomes part of the name.
 *
 * Mean and norm of half-precision tensors are computed in that precision by default, which
 * rounds them; figures that such a dtype can hold exactly are taken to be rounded.
 */
#include <math.h>

#include "base/decimal.h"
#include "formats/msprobe.h"
#include "formats/msprobe_element.h"
#include "formats/names.h"

enum { MAX_NESTING = 32 };

/* --- slots --------------------------------------------------------------------------- */

/* Half a unit of the last place, for figures that went through a 16-bit float. */
static void half_units(struct dump_slot *slot)
{
    if (slot->dtype != ND_DTYPE_f16 && slot->dtype != ND_DTYPE_bf16)
        return;
    for (int s = STATISTIC_MEAN; s <= STATISTIC_NORM; s++) {
        const double value = slot->statistics.value[s];
        if (isfinite(value) && nd_dtype_round(slot->dtype, value) == value)
            slot->statistics.half_unit[s] = nd_dtype_roundoff(slot->dtype) * fabs(value);
    }
}

/* msprobe calls every checksum md5; its form tells which it is. */
static const char *checksum_kind(const char *text)
{
    const size_t len = strlen(text);

    return strncmp(text, "0x", 2) == 0 ? "xor" : len == 8 ? "crc32" : "md5";
}

static enum nd_status slot_evidence(struct msprobe_reader *reader,
                                    const struct msprobe_element *element,
                                    struct dump_slot *slot, struct nd_error *err)
{
    uint64_t count;

    slot->statistics = element->statistics;
    slot->has_statistics = element->has_statistics;
    slot->evidence = ND_EVIDENCE_STATISTICS;
    half_units(slot);
    if (element->has_md5 && element->md5.len > 0) {
        const char *const text = nd_msprobe_text(reader->dump, &element->md5);
        slot->checksum = text == NULL ? NULL
                                      : nd_arena_format(reader->dump->arena, "%s:%s",
                                                        checksum_kind(text), text);
        if (slot->checksum == NULL)
            return nd_fail_memory(err);
        slot->evidence = ND_EVIDENCE_CHECKSUM;
    }
    if (element->has_data_name && element->data_name.len > 0 &&
        !nd_json_text_is(&element->data_name, "-1")) {
        const char *const text = nd_msprobe_text(reader->dump, &element->data_name);
        if (text == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_msprobe_payload(reader, text, slot, err));
    }
    /* An empty tensor has no statistics and no values either: nothing to compare. */
    if (slot->evidence == ND_EVIDENCE_STATISTICS && !slot->has_statistics &&
        element->has_shape && nd_shape_count(&element->shape, &count) && count == 0)
        slot->undefined = true;
    return ND_OK;
}

static enum nd_status slot_add(struct msprobe_reader *reader, struct dump_slot *slot,
                               const char *name, struct nd_error *err)
{
    const struct msprobe_record *const record = &reader->records[reader->record_count - 1];

    if (strlen(name) > ND_MAX_NAME)
        return nd_fail_key(err, ND_ERR_LIMIT, record->key,
                           "argument names of at most 4096 bytes", "a longer name");
    slot->name = name;
    if (reader->has_undefined && nd_msprobe_undefined(record->key, &record->name, name))
        slot->undefined = true;
    return nd_dump_add_slot(reader->dump, nd_msprobe_layer(reader), slot, err);
}

/* The slot's name: what the operator calls a parameter, else the path. */
static const char *slot_name(const struct msprobe_reader *reader)
{
    const char *const parameter = reader->argument[0] == '\0' || reader->is_output
                                      ? NULL
                                      : nd_msprobe_parameter(reader->op, reader->argument);

    return parameter != NULL ? parameter : reader->path.bytes;
}

/* Most tensors have the dtype of the one before. */
static void slot_dtype(struct msprobe_reader *reader, const struct json_text *text,
                       struct dump_slot *slot)
{
    if (text->len >= sizeof reader->dtype_text)
        return;
    if (reader->dtype_len != text->len || text->len == 0 ||
        memcmp(reader->dtype_raw, text->raw, text->len) != 0) {
        memcpy(reader->dtype_raw, text->raw, text->len);
        reader->dtype_len = text->len;
        nd_json_text_decode(text, reader->dtype_text);
        reader->dtype = nd_dtype_by_name(reader->dtype_text, strlen(reader->dtype_text));
    }
    slot->dtype = reader->dtype;
    if (slot->dtype == ND_DTYPE_NONE)
        slot->dtype_text = reader->dtype_text;
}

static enum nd_status add_tensor(struct msprobe_reader *reader,
                                 const struct msprobe_element *element,
                                 struct nd_error *err)
{
    struct dump_slot slot = nd_dump_slot_init();

    slot.storage = element->shape;
    slot.has_shape = element->has_shape;
    slot.broken = element->broken;
    if (element->has_dtype)
        slot_dtype(reader, &element->dtype, &slot);
    if (slot.broken == NULL)
        ND_TRY(slot_evidence(reader, element, &slot, err));
    return slot_add(reader, &slot, slot_name(reader), err);
}

/* A number that a call returned: a tensor of one element, as msprobe compares it. */
static enum nd_status add_result(struct msprobe_reader *reader, struct cursor value,
                                 struct nd_error *err)
{
    struct msprobe_element element = {.has_shape = true};
    struct dump_slot slot = nd_dump_slot_init();

    for (int s = 0; s < STATISTIC_COUNT; s++) {
        struct cursor in = value;
        ND_TRY(nd_msprobe_statistic(&in, &element, (enum statistic)s, err));
    }
    if (!element.has_statistics)
        return ND_OK;
    slot.evidence = ND_EVIDENCE_STATISTICS;
    slot.has_shape = true;
    slot.statistics = element.statistics;
    slot.has_statistics = true;
    return slot_add(reader, &slot, reader->path.bytes, err);
}

static const char *attribute_key(const struct msprobe_reader *reader)
{
    return reader->argument[0] != '\0' ? reader->argument : reader->path.bytes;
}

/* --- nesting ------------------------------------------------------------------------- */

static enum nd_status element_read(struct msprobe_reader *reader, unsigned depth,
                                   struct nd_error *err);

static enum nd_status typed_read(struct msprobe_reader *reader, unsigned depth,
                                 struct nd_error *err)
{
    struct msprobe_element element;

    ND_TRY(nd_msprobe_element_read(&reader->in, &element, err));
    if (element.has_tensor) {
        const struct cursor after = reader->in;
        reader->in = element.tensor;
        const enum nd_status status = element_read(reader, depth + 1, err);
        reader->in = after;
        return status;
    }
    if (element.has_shape && element.has_dtype)
        return add_tensor(reader, &element, err);
    if (!element.has_value)
        return ND_OK;
    if (reader->is_output)
        return add_result(reader, element.value, err);
    /* Where a tensor lies is no argument that anything depends on. */
    const bool is_place = nd_json_text_is(&element.type, "torch.device");
    return nd_msprobe_attribute(reader, element.value,
                                is_place ? "device" : attribute_key(reader), err);
}

/* Appends ".name" to the path; false: the name is too long to be one. */
static void path_push(struct text *path, const char *name)
{
    nd_text_add(path, ".", 1);
    nd_text_puts(path, name);
}

static void path_pop(struct text *path, size_t len)
{
    if (!path->broken && path->bytes != NULL) {
        path->len = len;
        path->bytes[len] = '\0';
    }
}

/* One child: its name is on the path while it is read. */
static enum nd_status child_read(struct msprobe_reader *reader, const char *name,
                                 unsigned depth, struct nd_error *err)
{
    const size_t len = reader->path.len;

    path_push(&reader->path, name);
    if (reader->path.broken)
        return nd_fail_memory(err);
    if (reader->path.len > (size_t)2 * ND_MAX_NAME)
        return nd_fail_at(err, ND_ERR_LIMIT, reader->in.at,
                          "argument names of at most 4096 bytes", "a longer name");
    const enum nd_status status = element_read(reader, depth, err);
    path_pop(&reader->path, len);
    return status;
}

static enum nd_status list_read(struct msprobe_reader *reader, unsigned depth,
                                struct nd_error *err)
{
    struct cursor *const in = &reader->in;
    const bool is_gradient = strncmp(reader->path.bytes, "grad.", 5) == 0;
    bool done = false;

    if (!reader->is_output)
        ND_TRY(nd_msprobe_scalar_list(reader, attribute_key(reader), &done, err));
    if (done)
        return ND_OK;
    reader->argument[0] = '\0';
    ND_TRY(nd_json_expect(in, '[', err));
    bool more = !nd_json_accept(in, ']');
    for (uint64_t i = 0; more; i++) {
        char name[ND_DECIMAL_ROOM];
        nd_decimal_write(i, name);
        /* A parameter's gradients are a list of one, which has no name of its own. */
        ND_TRY(is_gradient && i == 0 ? element_read(reader, depth + 1, err)
                                     : child_read(reader, name, depth + 1, err));
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, ']', err));
    }
    return ND_OK;
}

static enum nd_status object_read(struct msprobe_reader *reader, unsigned depth,
                                  struct nd_error *err)
{
    struct cursor *const in = &reader->in;

    ND_TRY(nd_json_expect(in, '{', err));
    for (bool more = !nd_json_accept(in, '}'); more;) {
        struct json_text key;
        ND_TRY(nd_json_scan_text(in, &key, err));
        ND_TRY(nd_json_expect(in, ':', err));
        if (key.len > ND_MAX_NAME)
            return nd_fail_at(err, ND_ERR_LIMIT, key.at,
                              "argument names of at most 4096 bytes", "a longer name");
        char name[ND_MAX_NAME + 1];
        nd_json_text_decode(&key, name);
        reader->argument[0] = '\0';
        if (depth == 0 && strlen(name) < sizeof reader->argument)
            memcpy(reader->argument, name, strlen(name) + 1);
        ND_TRY(child_read(reader, name, depth + 1, err));
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, '}', err));
    }
    return ND_OK;
}

static enum nd_status element_read(struct msprobe_reader *reader, unsigned depth,
                                   struct nd_error *err)
{
    struct cursor *const in = &reader->in;

    if (depth > MAX_NESTING)
        return nd_fail_at(err, ND_ERR_LIMIT, in->at, "at most 32 levels of arguments",
                          "deeper nesting");
    nd_json_skip_blank(in);
    const unsigned char c = in->at < in->size ? in->bytes[in->at] : 0;
    if (c == '[')
        return list_read(reader, depth, err);
    if (c == '{')
        return nd_msprobe_is_element(*in) ? typed_read(reader, depth, err)
                                          : object_read(reader, depth, err);
    const struct cursor value = *in;
    ND_TRY(nd_json_scan_value(in, true, NULL, err));
    if (c == 'n' || reader->is_output)
        return ND_OK;
    return nd_msprobe_attribute(reader, value, attribute_key(reader), err);
}

/* The list of positional arguments, or of results. */
static enum nd_status positions_read(struct msprobe_reader *reader, struct nd_error *err)
{
    struct cursor *const in = &reader->in;
    const bool named = strcmp(reader->path.bytes, "input") == 0;

    ND_TRY(nd_json_expect(in, '[', err));
    bool more = !nd_json_accept(in, ']');
    for (size_t i = 0; more; i++) {
        char name[ND_DECIMAL_ROOM];
        nd_decimal_write(i, name);
        if (!named ||
            !nd_msprobe_argument(reader->op, i, reader->argument, sizeof reader->argument))
            reader->argument[0] = '\0';
        ND_TRY(child_read(reader, name, 1, err));
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, ']', err));
    }
    return ND_OK;
}

enum nd_status nd_msprobe_elements(struct msprobe_reader *reader, const char *group,
                                   struct nd_error *err)
{
    struct cursor *const in = &reader->in;

    nd_json_skip_blank(in);
    reader->is_output = strcmp(group, "input") != 0;
    reader->argument[0] = '\0';
    path_pop(&reader->path, 0);
    nd_text_puts(&reader->path, group);
    if (reader->path.broken)
        return nd_fail_memory(err);
    const unsigned char c = in->at < in->size ? in->bytes[in->at] : 0;
    if (c == '[')
        return positions_read(reader, err);
    if (c != '{')
        return nd_json_scan_value(in, true, NULL, err);
    /* A lone tensor where a list is usual. */
    return nd_msprobe_is_element(*in) ? child_read(reader, "0", 1, err)
                                      : object_read(reader, 0, err);
}
