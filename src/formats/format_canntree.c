/*
 * Folders of CANN dump files, flat or as the tree of a run:
 *
 *   {time}/{device}/{model}/{model id}/{iteration}/{type}.{operator}.{task}.{stream}.{time}
 *
 *   1. leading step and rank folders, devices and iterations are steps and ranks
 *      (cann_place.c); names are those of cann_name.h, long ones put back by mapping.csv
 *      (cann_walk.c)
 *   2. dumps of any version, statistics, and arrays that a converter made of them; what the
 *      message calls the operator wins over the file's name
 *   3. the order is that of the times; an operator that ran several times is one layer with
 *      several calls (cann_calls.c)
 *   4. op debug dumps mark the operator that overflowed (cann_marks.c)
 *   5. other files are ignored and listed; one that is named like a dump and cannot be read
 *      is a broken layer
 */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "formats/cann_marks.h"
#include "formats/cann_op.h"
#include "formats/names.h"

struct tree_reader {
    struct dump *dump;
    struct tree tree;
    struct cann_marks marks;
    const struct tree_file **owners; /* of the dump's layers */
    size_t owner_count, owner_capacity;
    size_t read_count;
    struct nd_error first; /* what is wrong with the first file that cannot be read */
};

static int file_order(const void *a, const void *b)
{
    const struct tree_file *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->is_named != y->is_named)
        return x->is_named ? -1 : 1;
    if (x->is_named && x->parsed.time != y->parsed.time)
        return x->parsed.time < y->parsed.time ? -1 : 1;
    const int order = nd_natural_compare(x->name, y->name);
    return order != 0 ? order : strcmp(x->path, y->path);
}

/* Layers that were added have this file; an array joins the layer of its execution. */
static enum nd_status reader_own(struct tree_reader *reader, const struct tree_file *file,
                                 struct nd_error *err)
{
    while (reader->owner_count < reader->dump->layer_count) {
        const struct tree_file **const owners =
            nd_arena_grow(reader->dump->arena, reader->owners, reader->owner_count,
                          &reader->owner_capacity, sizeof *owners);
        if (owners == NULL)
            return nd_fail_memory(err);
        reader->owners = owners;
        owners[reader->owner_count++] = file;
    }
    return ND_OK;
}

static enum nd_status reader_break(struct tree_reader *reader, const struct tree_file *file,
                                   const struct nd_error *reason, struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    struct dump_slot slot = nd_dump_slot_init();
    const struct cann_name *const parsed = &file->parsed;
    const char *const name = file->is_named && parsed->op_len > 0
                                 ? nd_arena_copy(dump->arena, parsed->op, parsed->op_len)
                                 : file->name;
    const char *const type =
        file->is_named ? nd_arena_copy(dump->arena, parsed->type, parsed->type_len) : "";

    if (reader->first.status == ND_OK)
        reader->first = *reason;
    slot.name = "output.0";
    slot.broken = nd_dump_reason(dump, reason);
    if (file->file != SIZE_MAX)
        slot.extent.file = file->file;
    if (name == NULL || type == NULL || slot.broken == NULL)
        return nd_fail_memory(err);
    struct dump_layer *const layer = nd_dump_push_layer(dump, name, type);
    if (layer == NULL)
        return nd_fail_memory(err);
    if (file->is_named)
        layer->time = (double)parsed->time;
    ND_TRY(nd_dump_add_slot(dump, layer, &slot, err));
    return reader_own(reader, file, err);
}

static enum nd_status reader_ignore(struct tree_reader *reader,
                                    const struct tree_file *file, const char *why,
                                    struct nd_error *err)
{
    const char *const what =
        nd_arena_format(reader->dump->arena, "%s: %s", file->path, why);
    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(reader->dump, what, err);
}

/* An array of a converter: named so that both sides of one execution find together, and
 * renamed to the operator then. */
static enum nd_status reader_array(struct tree_reader *reader, struct tree_file *file,
                                   struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    const struct cann_name *const parsed = &file->parsed;
    const size_t first = dump->layer_count;

    dump->files[file->file].stem =
        nd_arena_format(dump->arena, "%.*s.%s.%llu", (int)parsed->dump_len, file->name,
                        parsed->direction, (unsigned long long)parsed->index);
    if (dump->files[file->file].stem == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_index_file(dump, file->file, err));
    for (size_t i = first; i < dump->layer_count; i++) {
        struct dump_layer *const layer = &dump->layers[i];
        layer->name = nd_arena_copy(dump->arena, parsed->op, parsed->op_len);
        layer->type = nd_arena_copy(dump->arena, parsed->type, parsed->type_len);
        if (layer->name == NULL || layer->type == NULL)
            return nd_fail_memory(err);
        layer->time = (double)parsed->time;
    }
    return ND_OK;
}

static enum nd_status reader_overflow(struct tree_reader *reader,
                                      const struct tree_file *file, struct nd_error *err)
{
    struct cann_overflow overflow;
    bool is_told = false;

    ND_TRY(nd_cann_overflow_file(reader->dump, file->file, &overflow, &is_told, err));
    return is_told
               ? nd_cann_marks_add(reader->dump, &reader->marks, file, &overflow, err)
               : reader_ignore(reader, file, "an op debug dump without an overflow", err);
}

static enum nd_status reader_index(struct tree_reader *reader, struct tree_file *file,
                                   const struct dump_format *format, struct nd_error *err)
{
    struct dump *const dump = reader->dump;

    if (format == &nd_format_cannoverflow)
        return reader_overflow(reader, file, err);
    if (format == &nd_format_npy)
        return reader_array(reader, file, err);
    dump->files[file->file].stem = file->name;
    if (format == &nd_format_cannstats) { /* the operator's name without ".csv" */
        dump->files[file->file].stem = nd_dump_path_stem(dump, file->name);
        if (dump->files[file->file].stem == NULL)
            return nd_fail_memory(err);
    }
    return nd_dump_index_file(dump, file->file, err);
}

static bool is_ours(const struct dump_format *format, const struct tree_file *file)
{
    if (format == &nd_format_npy)
        return file->is_named && file->parsed.direction != NULL && file->parsed.op_len > 0;
    return format == &nd_format_cann || format == &nd_format_cannv1 ||
           format == &nd_format_cannnano || format == &nd_format_cannstats ||
           format == &nd_format_cannoverflow;
}

static enum nd_status reader_file(struct tree_reader *reader, struct tree_file *file,
                                  struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    const struct dump_format *format = NULL;
    struct nd_error reason = {0};

    enum nd_status status = nd_dump_file_add(dump, file->path, &file->file, &reason);
    if (status == ND_OK) {
        format = nd_dump_recognise_file(dump, file->file, &reason);
        if (format == NULL)
            status = reason.status;
    }
    if (status == ND_OK && !is_ours(format, file))
        return reader_ignore(reader, file, format->title, err);
    if (status == ND_OK)
        status = reader_index(reader, file, format, &reason);
    if (file->file != SIZE_MAX)
        nd_dump_file_rest(dump, file->file);
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    if (status == ND_OK) {
        reader->read_count++;
        return reader_own(reader, file, err);
    }
    if (format == NULL && status != ND_ERR_IO && !nd_cann_name_is_dump(file->name))
        return reader_ignore(reader, file, reason.found, err);
    return reader_break(reader, file, &reason, err);
}

static enum nd_status fail_empty(const struct tree_reader *reader, struct nd_error *err)
{
    if (reader->first.status == ND_OK)
        return nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "CANN dump files",
                       "%zu files, none of them one", reader->tree.count);
    if (err != NULL)
        *err = reader->first;
    return reader->first.status;
}

static enum nd_status canntree_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct tree_reader reader = {.dump = dump};

    (void)file;
    ND_TRY(nd_tree_walk(dump, &reader.tree, err));
    if (reader.tree.count > 1)
        qsort(reader.tree.files, reader.tree.count, sizeof *reader.tree.files, file_order);
    for (size_t i = 0; i < reader.tree.count; i++) {
        dump->step = reader.tree.files[i].step;
        dump->rank = reader.tree.files[i].rank;
        ND_TRY(reader_file(&reader, &reader.tree.files[i], err));
    }
    dump->step = dump->rank = -1;
    if (reader.read_count == 0)
        return fail_empty(&reader, err);
    ND_TRY(nd_cann_marks_apply(dump, &reader.marks, reader.owners, err));
    dump->device = "npu";
    dump->order = ND_ORDER_TIMESTAMP;
    return nd_tree_number(dump, reader.owners, err);
}

static int canntree_probe(const struct dump_directory *directory)
{
    const enum tree_kind kind = nd_tree_kind(directory);

    return kind == TREE_DUMPS ? 40 : kind == TREE_ARRAYS ? 16 : 0;
}

const struct dump_format nd_format_canntree = {
    .name = "canntree",
    .title = "folder of CANN dump files",
    .probe_directory = canntree_probe,
    .index = canntree_index,
};
