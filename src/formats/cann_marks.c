/*
 * Overflows in a tree: an op debug dump names the task and the stream of the operator that
 * overflowed, and dumps of the same folder have both in their names.  The operator's layer
 * gets the account as attributes, and its outputs the note "overflow".
 */
#include "formats/cann_marks.h"

#include <inttypes.h>
#include <stdlib.h>

static const uint64_t mark_unknown = 65535;

static int compare_unsigned(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int mark_order(const void *a, const void *b)
{
    const struct cann_mark *x = a, *y = b;
    int order = (x->file->step > y->file->step) - (x->file->step < y->file->step);

    if (order == 0)
        order = (x->file->rank > y->file->rank) - (x->file->rank < y->file->rank);
    if (order == 0)
        order = compare_unsigned(x->task, y->task);
    return order != 0 ? order : compare_unsigned(x->stream, y->stream);
}

enum nd_status nd_cann_marks_add(struct dump *dump, struct cann_marks *marks,
                                 const struct tree_file *file,
                                 const struct cann_overflow *overflow, struct nd_error *err)
{
    struct cann_mark *const list = nd_arena_grow(dump->arena, marks->list, marks->count,
                                                 &marks->capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    marks->list = list;
    list[marks->count++] =
        (struct cann_mark){.file = file,
                           .overflow = *overflow,
                           .task = nd_cann_overflow_field(overflow, "task_id"),
                           .stream = nd_cann_overflow_field(overflow, "stream_id")};
    return ND_OK;
}

static bool field_fits(const struct cann_overflow *overflow, const char *name,
                       uint64_t value)
{
    const uint64_t told = nd_cann_overflow_field(overflow, name);
    return told == mark_unknown || told == value;
}

static enum nd_status mark_layer(struct dump *dump, struct cann_mark *mark,
                                 struct dump_layer *layer, struct nd_error *err)
{
    mark->is_used = true;
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strncmp(layer->slots[i].name, "output.", 7) == 0)
            layer->slots[i].note = "overflow";
    return nd_cann_overflow_describe(dump, layer, &mark->overflow, err);
}

static enum nd_status marks_report(struct dump *dump, const struct cann_marks *marks,
                                   struct nd_error *err)
{
    for (size_t i = 0; i < marks->count; i++) {
        const struct cann_mark *const mark = &marks->list[i];
        if (mark->is_used)
            continue;
        const char *const what = nd_arena_format(
            dump->arena,
            "%s: %s overflow in task %" PRIu64 " of stream %" PRIu64
            ", which was not dumped",
            mark->file->path, mark->overflow.unit, mark->task, mark->stream);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(dump, what, err));
    }
    return ND_OK;
}

enum nd_status nd_cann_marks_apply(struct dump *dump, struct cann_marks *marks,
                                   const struct tree_file *const *owners,
                                   struct nd_error *err)
{
    if (marks->count > 1)
        qsort(marks->list, marks->count, sizeof *marks->list, mark_order);
    for (size_t i = 0; marks->count > 0 && i < dump->layer_count; i++) {
        const struct tree_file *const file = owners[i];
        const struct cann_mark key = {
            .file = file, .task = file->parsed.task, .stream = file->parsed.stream};
        struct cann_mark *const mark =
            file->is_named
                ? bsearch(&key, marks->list, marks->count, sizeof key, mark_order)
                : NULL;
        if (mark == NULL ||
            (file->parsed.is_ffts &&
             !(field_fits(&mark->overflow, "context_id", file->parsed.context) &&
               field_fits(&mark->overflow, "thread_id", file->parsed.thread))))
            continue;
        ND_TRY(mark_layer(dump, mark, &dump->layers[i], err));
    }
    return marks_report(dump, marks, err);
}
