/*
 * dump.json and debug.json, as msprobe's JSON writer makes them and its compare reads them:
 *
 *   1. {"task": "tensor" | "statistics" | ..., "level": "L0" | "L1" | "mix" | "debug",
 *      "framework": ..., "dump_data_dir": a path of the dumping machine, never usable,
 *      "data": {RECORD NAME: RECORD, ...} in order of execution}
 *   2. a forward record: {"input_args": [...], "input_kwargs": {...}, "output": [...],
 *      "parameters": {NAME: T}, "is_recompute": bool}; any of them may be missing
 *   3. a backward record: {"input": [...], "output": [...]}
 *   4. a parameters_grad record: {NAME: [T]}
 *   5. a debug record: tensors in any nesting
 *   6. bare NaN, Infinity and -Infinity stand for numbers
 *
 * Files of gigabytes are usual, so the text is read as a stream: what is in memory at any
 * time is what the dump keeps.
 */
#include <stdlib.h>

#include "formats/msprobe.h"
#include "formats/names.h"

const char *nd_msprobe_text(struct dump *dump, const struct json_text *text)
{
    char *const copy = nd_arena_alloc(dump->arena, text->len + 1, 1);

    if (copy != NULL)
        nd_json_text_decode(text, copy);
    return copy;
}

struct dump_layer *nd_msprobe_layer(struct msprobe_reader *reader)
{
    return &reader->dump->layers[reader->records[reader->record_count - 1].layer];
}

static enum nd_status skip_value(struct msprobe_reader *reader, struct nd_error *err)
{
    return nd_json_scan_value(&reader->in, true, NULL, err);
}

/* The next member's key, the cursor behind its colon; *ret_more false at the end of the
 * object.  inout_count counts the members. */
static enum nd_status next_member(struct cursor *in, size_t *inout_count,
                                  struct json_text *ret_key, bool *ret_more,
                                  struct nd_error *err)
{
    *ret_more = false;
    if (nd_json_accept(in, '}'))
        return ND_OK;
    if (*inout_count > 0 && !nd_json_accept(in, ','))
        return nd_json_unexpected(in, "',' or '}'", err);
    ++*inout_count;
    ND_TRY(nd_json_scan_text(in, ret_key, err));
    *ret_more = true;
    return nd_json_expect(in, ':', err);
}

static bool accept_word(struct cursor *in, const char *word)
{
    const size_t len = strlen(word);

    nd_json_skip_blank(in);
    if (nd_cursor_left(in) < len || memcmp(in->bytes + in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

/* --- records ------------------------------------------------------------------------- */

static enum nd_status fail_twice(const struct json_text *key, struct nd_error *err)
{
    return nd_fail_at(err, ND_ERR_MALFORMED, key->at, "keys that differ",
                      "the key \"%.*s\" a second time",
                      key->len > 200 ? 200 : (int)key->len, (const char *)key->raw);
}

/* One member of a forward or backward record.  Bits of *inout_seen tell those that came. */
static enum nd_status record_member(struct msprobe_reader *reader,
                                    const struct json_text *key, unsigned *inout_seen,
                                    struct nd_error *err)
{
    static const struct {
        const char *key, *group;
    } members[] = {
        {"input_args",   "input" },
        {"input_kwargs", "input" },
        {"input",        "input" },
        {"output",       "output"},
        {"parameters",   "param" },
        {"is_recompute", NULL    },
    };

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!nd_json_text_is(key, members[i].key))
            continue;
        if (*inout_seen & 1u << i)
            return fail_twice(key, err);
        *inout_seen |= 1u << i;
        if (members[i].group != NULL)
            return nd_msprobe_elements(reader, members[i].group, err);
        if (accept_word(&reader->in, "true"))
            reader->records[reader->record_count - 1].recompute = true;
        else
            ND_TRY(skip_value(reader, err));
        return ND_OK;
    }
    return skip_value(reader, err); /* is_nan, and what later versions add */
}

static enum nd_status record_members(struct msprobe_reader *reader, struct nd_error *err)
{
    struct json_text key;
    size_t count = 0;
    unsigned seen = 0;
    bool more;

    if (!nd_json_accept(&reader->in, '{'))
        return skip_value(reader, err); /* null: a call that left nothing behind */
    for (;;) {
        ND_TRY(next_member(&reader->in, &count, &key, &more, err));
        if (!more)
            return ND_OK;
        ND_TRY(record_member(reader, &key, &seen, err));
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* As check_slots finds it for few slots, which most records have. */
static bool slots_differ(const struct dump_layer *layer)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(layer->slots[i].name, layer->slots[k].name) == 0)
                return false;
    return true;
}

/* No two slots of a layer may have one name: which of them would count? */
static enum nd_status check_slots(struct msprobe_reader *reader, struct nd_error *err)
{
    const struct dump_layer *const layer = nd_msprobe_layer(reader);
    enum { FEW = 64, VERY_FEW = 8 };
    const char *few[FEW], **names = few;
    enum nd_status status = ND_OK;

    if (layer->slot_count < 2 || (layer->slot_count <= VERY_FEW && slots_differ(layer)))
        return ND_OK;
    if (layer->slot_count > FEW)
        names = malloc(layer->slot_count * sizeof *names);
    if (names == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < layer->slot_count; i++)
        names[i] = layer->slots[i].name;
    qsort(names, layer->slot_count, sizeof *names, by_name);
    for (size_t i = 1; i < layer->slot_count && status == ND_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = nd_fail_key(err, ND_ERR_MALFORMED, layer->name,
                                 "tensors of different names", "%.200s twice", names[i]);
    if (names != few)
        free(names);
    return status;
}

static enum nd_status record_add(struct msprobe_reader *reader,
                                 const struct json_text *text, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    struct msprobe_record *const records =
        nd_arena_grow(dump->scratch, reader->records, reader->record_count,
                      &reader->record_capacity, sizeof *records);
    char *const key = nd_arena_alloc(dump->scratch, text->len + 1, 1);
    char type[256] = "";

    if (records == NULL || key == NULL)
        return nd_fail_memory(err);
    nd_json_text_decode(text, key);
    if (text->len > ND_MAX_NAME)
        return nd_fail_at(err, ND_ERR_LIMIT, text->at, "record names of at most 4096 bytes",
                          "a longer name");
    reader->records = records;
    struct msprobe_record *const record = &records[reader->record_count];
    *record = (struct msprobe_record){.key = key};
    nd_msprobe_name_read(key, &record->name);
    if (record->name.type_len < sizeof type)
        memcpy(type, record->name.type, record->name.type_len);
    /* An old parameters_grad has no number; the name is what a new one would be. */
    const char *const name =
        record->name.form == MSPROBE_GRAD
            ? nd_msprobe_name_write(dump->scratch, key, &record->name, record->name.call)
            : key;
    struct dump_layer *const layer =
        name == NULL ? NULL : nd_dump_add_layer(dump, name, type);
    if (layer == NULL)
        return nd_fail_memory(err);
    layer->direction = record->name.direction;
    layer->call = record->name.call;
    record->layer = dump->layer_count - 1;
    reader->record_count++;
    reader->op = nd_msprobe_operator(key, &record->name);
    reader->has_undefined = nd_msprobe_undefined(key, &record->name, NULL);
    return ND_OK;
}

static enum nd_status read_record(struct msprobe_reader *reader,
                                  const struct json_text *key, struct nd_error *err)
{
    ND_TRY(record_add(reader, key, err));
    switch (reader->records[reader->record_count - 1].name.form) {
    case MSPROBE_GRAD:
        ND_TRY(nd_msprobe_elements(reader, "grad", err));
        break;
    case MSPROBE_DEBUG:
        ND_TRY(nd_msprobe_elements(reader, "output", err));
        break;
    default:
        ND_TRY(record_members(reader, err));
        break;
    }
    ND_TRY(check_slots(reader, err));
    return nd_dump_trim_layer(reader->dump, nd_msprobe_layer(reader), err);
}

/* --- the file ------------------------------------------------------------------------- */

static enum nd_status read_data(struct msprobe_reader *reader, struct nd_error *err)
{
    struct json_text key;
    size_t count = 0;
    bool more;

    if (!nd_json_accept(&reader->in, '{')) {
        if (accept_word(&reader->in, "null"))
            return ND_OK;
        return nd_json_unexpected(&reader->in, "an object of records", err);
    }
    for (;;) {
        ND_TRY(next_member(&reader->in, &count, &key, &more, err));
        if (!more)
            return ND_OK;
        ND_TRY(read_record(reader, &key, err));
    }
}

static enum nd_status read_framework(struct msprobe_reader *reader, struct nd_error *err)
{
    struct json_text text;

    nd_json_skip_blank(&reader->in);
    if (reader->in.at == reader->in.size || reader->in.bytes[reader->in.at] != '"')
        return skip_value(reader, err);
    ND_TRY(nd_json_scan_text(&reader->in, &text, err));
    reader->dump->framework = nd_msprobe_text(reader->dump, &text);
    return reader->dump->framework == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status read_top(struct msprobe_reader *reader, struct nd_error *err)
{
    struct cursor *const in = &reader->in;
    struct json_text key;
    size_t count = 0;
    bool more, has_data = false;

    if (in->size >= 3 && memcmp(in->bytes, "\xef\xbb\xbf", 3) == 0)
        in->at = 3;
    ND_TRY(nd_json_expect(in, '{', err));
    for (;;) {
        ND_TRY(next_member(in, &count, &key, &more, err));
        if (!more)
            break;
        if (nd_json_text_is(&key, "framework")) {
            ND_TRY(read_framework(reader, err));
        } else if (!nd_json_text_is(&key, "data")) {
            ND_TRY(skip_value(reader, err));
        } else if (has_data) {
            return fail_twice(&key, err);
        } else {
            has_data = true;
            ND_TRY(read_data(reader, err));
        }
    }
    nd_json_skip_blank(in);
    if (in->at < in->size)
        return nd_json_unexpected(in, "the end of the JSON text", err);
    return has_data
               ? ND_OK
               : nd_fail(err, ND_ERR_MALFORMED, "the key \"data\"", "none of that name");
}

enum nd_status nd_msprobe_json(struct msprobe_reader *reader, size_t file,
                               struct nd_error *err)
{
    reader->in = nd_dump_bytes(reader->dump, file);
    const enum nd_status status = read_top(reader, err);
    if (status != ND_OK)
        nd_error_file(err, reader->dump->files[file].path);
    return status;
}
