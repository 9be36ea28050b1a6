/*
 * Tensor files: dump_tensor_data/NAME.pt or .npy, one bare tensor each, beside the records
 * that name them.
 *
 *   1. a record's data_name is the file's name: a plain one, never a path; the folder that
 *      the dump names is one of the dumping machine and not used
 *   2. the file's dtype may be wider than the record's (MindSpore writes bfloat16 as
 *      float32): the record's is then the real one
 *   3. a file that is not there leaves the statistics; one that cannot be read is broken
 *   4. files that no record names (a run that died lost its last records, or all) are
 *      taken by their names: RECORD.{input|output|kwargs|parameters}.X, and
 *      RECORD.parameters_grad.N.X
 */
#include <stdlib.h>

#include "formats/lone_slot.h"
#include "formats/msprobe.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum nd_status nd_msprobe_files(struct msprobe_reader *reader, struct nd_error *err)
{
    struct dump_directory directory;
    struct dump *const dump = reader->dump;

    if (!reader->site->has_tensors)
        return ND_OK;
    const char *const folder =
        nd_msprobe_path(dump, reader->site->folder, "dump_tensor_data");
    if (folder == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_directory_read(dump, folder, &directory, err));
    reader->tensor_files = directory.names;
    reader->tensor_file_count = directory.name_count;
    reader->tensor_used =
        nd_arena_alloc(dump->arena, directory.name_count + 1, sizeof *reader->tensor_used);
    return reader->tensor_used == NULL ? nd_fail_memory(err) : ND_OK;
}

/* --- one file ------------------------------------------------------------------------ */

static enum nd_status file_open(struct msprobe_reader *reader, const char *name,
                                struct dump_slot *ret_slot, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    const char *const folder =
        nd_msprobe_path(dump, reader->site->folder, "dump_tensor_data");
    const char *const path = folder == NULL ? NULL : nd_msprobe_path(dump, folder, name);

    return path == NULL ? nd_fail_memory(err) : nd_lone_slot(dump, path, ret_slot, err);
}

/* --- files of records ---------------------------------------------------------------- */

/* Index among the tensor files; SIZE_MAX: not there. */
static size_t file_find(const struct msprobe_reader *reader, const char *name)
{
    const char *const *const hit =
        reader->tensor_file_count == 0
            ? NULL
            : bsearch(&name, reader->tensor_files, reader->tensor_file_count, sizeof name,
                      by_name);

    return hit == NULL ? SIZE_MAX : (size_t)(hit - reader->tensor_files);
}

enum nd_status nd_msprobe_payload(struct msprobe_reader *reader, const char *data_name,
                                  struct dump_slot *slot, struct nd_error *err)
{
    struct dump_slot values;

    if (strchr(data_name, '/') != NULL || strcmp(data_name, "..") == 0 ||
        strcmp(data_name, ".") == 0) {
        slot->evidence = ND_EVIDENCE_VALUES;
        slot->broken = "data_name is a path, not the name of a file in dump_tensor_data";
        return ND_OK;
    }
    const size_t at = file_find(reader, data_name);
    if (at == SIZE_MAX) {
        /* Where the whole folder is gone the dump is one of statistics. */
        if (reader->tensor_file_count > 0)
            slot->note = "tensor_file_missing";
        if (!slot->has_statistics && slot->evidence == ND_EVIDENCE_STATISTICS)
            slot->broken = "its tensor file is missing, and the record has no statistics";
        return ND_OK;
    }
    reader->tensor_used[at] = true;
    ND_TRY(file_open(reader, data_name, &values, err));
    values.statistics = slot->statistics;
    values.has_statistics = slot->has_statistics;
    values.checksum = slot->checksum;
    if (values.broken == NULL && values.real_dtype == ND_DTYPE_NONE &&
        slot->dtype != values.dtype)
        values.real_dtype = slot->dtype;
    if (slot->dtype_text != NULL)
        values.dtype_text = slot->dtype_text;
    *slot = values;
    return ND_OK;
}

/* --- files without records ----------------------------------------------------------- */

/* Rule 4: the slot's part of a file's name; NULL: it has none. */
static const char *slot_part(const char *stem, const char **ret_group)
{
    static const struct {
        const char *part, *group;
    } parts[] = {
        {".input.",           "input" },
        {".output.",          "output"},
        {".kwargs.",          "input" },
        {".parameters.",      "param" },
        {".parameters_grad.", "grad"  },
    };
    const char *found = NULL;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = stem; (at = strstr(at, parts[i].part)) != NULL; at++)
            if (found == NULL || at > found) {
                found = at;
                *ret_group = parts[i].group;
            }
    return found;
}

struct leftover {
    const char *file, *key, *slot;
};

static int by_place(const void *a, const void *b)
{
    const struct leftover *x = a, *y = b;
    int order = nd_natural_compare(x->key, y->key);

    if (order == 0)
        order = strcmp(x->key, y->key);
    if (order == 0)
        order = nd_natural_compare(x->slot, y->slot);
    return order != 0 ? order : strcmp(x->file, y->file);
}

/* The record's key and the slot of a file's name. */
static enum nd_status leftover_read(struct dump *dump, const char *file,
                                    struct leftover *ret, struct nd_error *err)
{
    const char *const stem = nd_dump_path_stem(dump, file);
    const char *group = "output";

    if (stem == NULL)
        return nd_fail_memory(err);
    const char *const part = slot_part(stem, &group);
    size_t key_len = part == NULL ? strlen(stem) : (size_t)(part - stem);
    const char *rest = part == NULL ? "0" : strchr(part + 1, '.') + 1;
    if (strcmp(group, "grad") == 0) { /* the call's number belongs to the key */
        const size_t digits = strspn(rest, "0123456789");
        if (digits > 0 && rest[digits] == '.')
            rest += digits + 1;
        key_len = (size_t)(rest - stem) - 1;
    }
    ret->file = file;
    ret->key = nd_arena_copy(dump->arena, stem, key_len);
    ret->slot = nd_arena_format(dump->arena, "%s.%s", group, rest);
    return ret->key == NULL || ret->slot == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status leftover_layer(struct msprobe_reader *reader, const char *key,
                                     size_t *ret_layer, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    struct msprobe_name name;
    char type[256] = "";

    const struct msprobe_record *const record = nd_msprobe_find(reader, key);
    if (record != NULL) {
        *ret_layer = record->layer;
        return ND_OK;
    }
    nd_msprobe_name_read(key, &name);
    if (name.type_len < sizeof type)
        memcpy(type, name.type, name.type_len);
    const char *const full = name.form == MSPROBE_GRAD
                                 ? nd_msprobe_name_write(dump->arena, key, &name, name.call)
                                 : key;
    struct dump_layer *const layer =
        full == NULL ? NULL : nd_dump_add_layer(dump, full, type);
    if (layer == NULL)
        return nd_fail_memory(err);
    layer->direction = name.direction;
    layer->call = name.call;
    *ret_layer = dump->layer_count - 1;
    return ND_OK;
}

static bool layer_has(const struct dump_layer *layer, const char *slot)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, slot) == 0)
            return true;
    return false;
}

static enum nd_status leftovers_add(struct msprobe_reader *reader,
                                    const struct leftover *list, size_t count,
                                    struct nd_error *err)
{
    size_t layer = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        struct dump_slot slot;
        struct msprobe_name name;
        if (i == 0 || strcmp(list[i - 1].key, list[i].key) != 0)
            ND_TRY(leftover_layer(reader, list[i].key, &layer, err));
        ND_TRY(file_open(reader, list[i].file, &slot, err));
        slot.name = list[i].slot;
        nd_msprobe_name_read(list[i].key, &name);
        slot.undefined = nd_msprobe_undefined(list[i].key, &name, slot.name);
        const bool twice = i > 0 && strcmp(list[i - 1].key, list[i].key) == 0 &&
                           strcmp(list[i - 1].slot, list[i].slot) == 0;
        if (twice || (reader->record_count > 0 &&
                      layer_has(&reader->dump->layers[layer], slot.name)))
            ND_TRY(nd_dump_ignore(reader->dump, list[i].file, err));
        else
            ND_TRY(
                nd_dump_add_slot(reader->dump, &reader->dump->layers[layer], &slot, err));
    }
    return ND_OK;
}

static bool named_like_a_tensor(const char *name)
{
    const size_t len = strlen(name);

    return (len > 3 && strcmp(name + len - 3, ".pt") == 0) ||
           (len > 4 && strcmp(name + len - 4, ".npy") == 0);
}

enum nd_status nd_msprobe_leftovers(struct msprobe_reader *reader, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    struct leftover *const list =
        nd_arena_alloc(dump->arena, reader->tensor_file_count + 1, sizeof *list);
    size_t count = 0;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < reader->tensor_file_count; i++)
        if (!reader->tensor_used[i] && named_like_a_tensor(reader->tensor_files[i]))
            ND_TRY(leftover_read(dump, reader->tensor_files[i], &list[count++], err));
    if (count == 0)
        return ND_OK;
    qsort(list, count, sizeof *list, by_place);
    dump->partial = dump->partial || reader->record_count > 0;
    if (reader->record_count == 0)
        dump->order = ND_ORDER_NAME;
    return leftovers_add(reader, list, count, err);
}
