/*
 * The framework's own run of an offline comparison: one array a file in one folder.
 *
 *   1. {operator}.{index}.{time}.npy is an output, input_{operator}.{index}.{time}.npy an
 *      input, where the folder has outputs of that operator; dots and slashes of its name
 *      have become '_'
 *   2. time in microseconds: the files are written in the order of the graph
 *   3. a name that is too long stands in mapping.csv (cann_walk.c)
 *
 * Learned from msquickcmp's onnx_dump_data.py and the patterns of msaccucmp.
 */
#include <stdlib.h>

#include "base/text.h"
#include "formats/cann_tree.h"

static const char input_word[] = "input_";
enum { INPUT_LEN = sizeof input_word - 1, SURE_TIME = 1000000000 };

struct golden_file {
    struct tree_file *file;
    struct golden_name name;
    const char *op; /* NULL: no such name */
    bool is_input;
};

/* Inputs of one time and operator stand before its outputs. */
static int golden_order(const void *a, const void *b)
{
    const struct golden_file *x = a, *y = b;

    if (x->name.time != y->name.time)
        return x->name.time < y->name.time ? -1 : 1;
    if (x->op != NULL && y->op != NULL) {
        const int order = nd_natural_compare(x->op, y->op);
        if (order != 0)
            return order;
        if (x->is_input != y->is_input)
            return x->is_input ? -1 : 1;
    }
    const int order = nd_natural_compare(x->file->name, y->file->name);
    return order != 0 ? order : strcmp(x->file->path, y->file->path);
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Rule 1: of which operators there are outputs, sorted. */
static enum nd_status golden_inputs(struct dump *dump, struct golden_file *files,
                                    size_t count, struct nd_error *err)
{
    const char **const ops = nd_arena_alloc(dump->arena, count + 1, sizeof *ops);
    size_t known = 0;

    if (ops == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < count; i++)
        if (files[i].op != NULL)
            ops[known++] = files[i].op;
    if (known > 1)
        qsort(ops, known, sizeof *ops, text_order);
    for (size_t i = 0; i < count; i++) {
        if (files[i].op == NULL || strncmp(files[i].op, input_word, INPUT_LEN) != 0)
            continue;
        const char *const op = files[i].op + INPUT_LEN;
        if (*op != '\0' && bsearch(&op, ops, known, sizeof *ops, text_order) != NULL) {
            files[i].op = op;
            files[i].is_input = true;
        }
    }
    return ND_OK;
}

static enum nd_status golden_ignore(struct dump *dump, const struct tree_file *file,
                                    struct nd_error *err)
{
    return nd_dump_ignore(dump, file->path, err);
}

static enum nd_status golden_index_file(struct dump *dump, const struct golden_file *at,
                                        bool *ret_is_read, struct nd_error *err)
{
    const char *const stem = nd_arena_format(dump->arena, "%s.%s.%llu", at->op,
                                             at->is_input ? "input" : "output",
                                             (unsigned long long)at->name.index);
    const size_t first = dump->layer_count;
    struct nd_error reason = {0};
    size_t file = SIZE_MAX;

    if (stem == NULL)
        return nd_fail_memory(err);
    enum nd_status status = nd_dump_file_add(dump, at->file->path, &file, &reason);
    if (status == ND_OK) {
        dump->files[file].stem = stem;
        status = nd_dump_index_file(dump, file, &reason);
        nd_dump_file_rest(dump, file);
    }
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    *ret_is_read = status == ND_OK;
    if (status != ND_OK) {
        struct dump_slot slot = nd_dump_slot_init();
        slot.broken = nd_dump_reason(dump, &reason);
        if (file != SIZE_MAX)
            slot.extent.file = file;
        ND_TRY(slot.broken == NULL ? nd_fail_memory(err)
                                   : nd_dump_add_tensor(dump, stem, &slot, err));
    }
    for (size_t i = first; i < dump->layer_count; i++)
        dump->layers[i].time = (double)at->name.time;
    return ND_OK;
}

static enum nd_status golden_list(struct dump *dump, struct tree *tree,
                                  struct golden_file **ret_files, struct nd_error *err)
{
    ND_TRY(nd_tree_walk(dump, tree, err));
    struct golden_file *const files =
        nd_arena_alloc(dump->arena, tree->count + 1, sizeof *files);
    if (files == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < tree->count; i++) {
        struct golden_file *const at = &files[i];
        at->file = &tree->files[i];
        if (!nd_golden_name_parse(at->file->name, &at->name))
            continue;
        at->op = nd_arena_copy(dump->arena, at->file->name, at->name.op_len);
        if (at->op == NULL)
            return nd_fail_memory(err);
    }
    ND_TRY(golden_inputs(dump, files, tree->count, err));
    if (tree->count > 1)
        qsort(files, tree->count, sizeof *files, golden_order);
    *ret_files = files;
    return ND_OK;
}

static enum nd_status canngolden_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct tree tree = {0};
    struct golden_file *files = NULL;
    bool is_ordered = false, is_read = false, is_any_read = false;

    (void)file;
    ND_TRY(golden_list(dump, &tree, &files, err));
    for (size_t i = 0; i < tree.count; i++) {
        if (files[i].op == NULL) {
            ND_TRY(golden_ignore(dump, files[i].file, err));
            continue;
        }
        is_ordered = is_ordered || (i > 0 && files[i].name.time != files[i - 1].name.time);
        ND_TRY(golden_index_file(dump, &files[i], &is_read, err));
        is_any_read = is_any_read || is_read;
    }
    dump->order = is_ordered ? ND_ORDER_TIMESTAMP : ND_ORDER_NAME;
    return is_any_read
               ? ND_OK
               : nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "{operator}.{index}.{time}.npy",
                         "%zu files, none of which can be read", tree.count);
}

/* Most arrays must be named so: one such name proves nothing. */
static int canngolden_probe(const struct dump_directory *directory)
{
    size_t ours = 0, arrays = 0;
    struct golden_name name;

    for (size_t i = 0; i < directory->name_count; i++) {
        const size_t len = strlen(directory->names[i]);
        if (len < 4 || strcmp(directory->names[i] + len - 4, ".npy") != 0)
            continue;
        arrays++;
        ours += nd_golden_name_parse(directory->names[i], &name) &&
                name.time >= SURE_TIME && !nd_cann_name_is_array(directory->names[i]);
    }
    return ours > 0 && ours * 2 > arrays ? 20 : 0;
}

const struct dump_format nd_format_canngolden = {
    .name = "canngolden",
    .title = "arrays of an offline comparison's reference",
    .probe_directory = canngolden_probe,
    .index = canngolden_index,
};
