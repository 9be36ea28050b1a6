/*
 * Executions of CANN's operators.  An operator that ran several times, in one iteration or
 * under several folders of one process, left a file each; the time keeps them apart and in
 * order, and they become calls 0, 1, 2 of one layer.
 *
 *   1. of two models that have an operator of the same name, each layer's name begins with
 *      its model's
 *   2. the threads of an FFTS+ task are parts of one execution that run side by side: they
 *      are joined where their attribute says how (cann_ffts.h), else each is a layer of its
 *      own, {operator}.thread{N}, where there are several
 *   3. where an execution is there several times, its dump is taken, else the arrays that
 *      were made of it, else its statistics
 */
#include "formats/cann_ffts.h"
#include "formats/cann_tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_time(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int place_order(const struct tree_layer *x, const struct tree_layer *y)
{
    const int order = compare_number(x->layer.step, y->layer.step);
    return order != 0 ? order : compare_number(x->layer.rank, y->layer.rank);
}

/* Time has its say within a step and rank; equal times keep the order of names. */
static int run_order(const void *a, const void *b)
{
    const struct tree_layer *x = a, *y = b;
    int order = place_order(x, y);

    if (order == 0)
        order = compare_time(x->layer.time, y->layer.time);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* What the tensors of one execution are taken from, best first. */
enum source { SOURCE_DUMP, SOURCE_ARRAY, SOURCE_PRINT };

static enum source source_of(const struct tree_layer *at)
{
    if (at->layer.slot_count > 0 && at->layer.slots[0].evidence != ND_EVIDENCE_VALUES)
        return SOURCE_PRINT;
    return at->file->is_named && at->file->parsed.direction != NULL ? SOURCE_ARRAY
                                                                    : SOURCE_DUMP;
}

static uint64_t thread_of(const struct tree_layer *at)
{
    return at->file->is_named && at->file->parsed.is_ffts ? at->file->parsed.thread : 0;
}

/* One operator's executions side by side: by model, thread and time, values first. */
static int group_order(const void *a, const void *b)
{
    const struct tree_layer *x = *(struct tree_layer *const *)a,
                            *y = *(struct tree_layer *const *)b;
    int order = place_order(x, y);

    if (order == 0)
        order = strcmp(x->key, y->key);
    if (order == 0)
        order = strcmp(x->file->model, y->file->model);
    if (order == 0 && thread_of(x) != thread_of(y))
        order = thread_of(x) > thread_of(y) ? 1 : -1;
    if (order == 0)
        order = compare_time(x->layer.time, y->layer.time);
    if (order == 0)
        order = (int)source_of(x) - (int)source_of(y);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static bool same_operator(const struct tree_layer *x, const struct tree_layer *y)
{
    return place_order(x, y) == 0 && strcmp(x->key, y->key) == 0;
}

static bool same_line(const struct tree_layer *x, const struct tree_layer *y)
{
    return strcmp(x->file->model, y->file->model) == 0 && thread_of(x) == thread_of(y);
}

/* Rules 1 and 2. */
static enum nd_status layer_rename(struct dump *dump, struct tree_layer *at, bool by_model,
                                   bool by_thread, struct nd_error *err)
{
    const char *const model = at->file->model;
    const bool has_model = by_model && *model != '\0';

    if (has_model)
        at->layer.name = nd_arena_format(dump->arena, "%s/%s", model, at->layer.name);
    if (at->layer.name != NULL && by_thread)
        at->layer.name = nd_arena_format(dump->arena, "%s.thread%" PRIu64, at->layer.name,
                                         thread_of(at));
    return at->layer.name == NULL ? nd_fail_memory(err) : ND_OK;
}

/* The executions of one operator; a layer that is dropped loses its key. */
static enum nd_status group_number(struct dump *dump, struct tree_layer **group,
                                   size_t count, struct nd_error *err)
{
    bool by_model = false, by_thread = false;
    int64_t call = 0;

    for (size_t i = 1; i < count; i++) {
        by_model = by_model || strcmp(group[i]->file->model, group[0]->file->model) != 0;
        by_thread = by_thread || thread_of(group[i]) != thread_of(group[0]);
    }
    for (size_t i = 0, last = 0; i < count; i++) {
        if (i > 0 && !same_line(group[i], group[i - 1]))
            call = 0;
        else if (i > 0 && source_of(group[i]) > source_of(group[last]) &&
                 compare_time(group[i]->layer.time, group[last]->layer.time) == 0) {
            group[i]->key = NULL;
            continue;
        }
        last = i;
        group[i]->layer.call = call++;
        ND_TRY(layer_rename(dump, group[i], by_model, by_thread, err));
    }
    return ND_OK;
}

/* How many threads, 0 to n - 1, the executions of one model are of, each of which ran as often
 * and is there as dumps; 0: they are no whole tasks. */
static size_t line_threads(struct tree_layer *const *line, size_t count)
{
    size_t calls = 0, threads = 0;

    while (calls < count && thread_of(line[calls]) == thread_of(line[0]))
        calls++;
    for (size_t i = 0; i < count; i++) {
        if (!line[i]->file->is_named || !line[i]->file->parsed.is_ffts ||
            source_of(line[i]) != SOURCE_DUMP || thread_of(line[i]) != i / calls)
            return 0;
        threads = i / calls + 1;
    }
    return threads * calls == count && threads > 1 ? threads : 0;
}

/* Joins the threads of one model's executions; the others lose their keys.  *inout_count:
 * what is left at the front of the line. */
static enum nd_status line_join(struct dump *dump, struct tree_layer **line,
                                size_t *inout_count, struct nd_error *err)
{
    const size_t threads = line_threads(line, *inout_count);

    if (threads == 0 || !nd_ffts_has_threads(&line[0]->layer, threads))
        return ND_OK;
    const size_t calls = *inout_count / threads;
    struct dump_layer *const wholes = nd_arena_alloc(dump->arena, calls, sizeof *wholes);
    const struct dump_layer **const parts =
        nd_arena_alloc(dump->arena, threads, sizeof *parts);
    if (wholes == NULL || parts == NULL)
        return nd_fail_memory(err);
    for (size_t c = 0; c < calls; c++) {
        bool joined;
        for (size_t t = 0; t < threads; t++)
            parts[t] = &line[t * calls + c]->layer;
        ND_TRY(nd_ffts_join(dump, parts, threads, &wholes[c], &joined, err));
        if (!joined)
            return ND_OK;
    }
    for (size_t c = 0; c < calls; c++) {
        dump->tensor_count -= line[c]->layer.slot_count - wholes[c].slot_count;
        line[c]->layer = wholes[c];
    }
    for (size_t i = calls; i < *inout_count; i++)
        line[i]->key = NULL;
    *inout_count = calls;
    return ND_OK;
}

/* Joins threads, model by model; *inout_count: what is left at the front of the group. */
static enum nd_status group_join(struct dump *dump, struct tree_layer **group,
                                 size_t *inout_count, struct nd_error *err)
{
    size_t kept = 0;

    for (size_t first = 0, end; first < *inout_count; first = end) {
        const char *const model = group[first]->file->model;
        for (end = first + 1;
             end < *inout_count && strcmp(group[end]->file->model, model) == 0;)
            end++;
        size_t count = end - first;
        ND_TRY(line_join(dump, group + first, &count, err));
        memmove(group + kept, group + first, count * sizeof *group);
        kept += count;
    }
    *inout_count = kept;
    return ND_OK;
}

static enum nd_status layers_take(struct dump *dump, const struct tree_file *const *owners,
                                  struct tree_layer *all, struct tree_layer **grouped,
                                  struct nd_error *err)
{
    for (size_t i = 0; i < dump->layer_count; i++) {
        char *const key = nd_arena_string(dump->arena, dump->layers[i].name);
        if (key == NULL)
            return nd_fail_memory(err);
        nd_cann_escape(key);
        all[i] = (struct tree_layer){dump->layers[i], owners[i], key, i};
        grouped[i] = &all[i];
    }
    return ND_OK;
}

enum nd_status nd_tree_number(struct dump *dump, const struct tree_file *const *owners,
                              struct nd_error *err)
{
    const size_t count = dump->layer_count;
    struct tree_layer *const all = nd_arena_alloc(dump->arena, count + 1, sizeof *all);
    struct tree_layer **const grouped =
        nd_arena_alloc(dump->arena, count + 1, sizeof *grouped);
    size_t kept = 0;

    if (all == NULL || grouped == NULL)
        return nd_fail_memory(err);
    ND_TRY(layers_take(dump, owners, all, grouped, err));
    if (count > 1)
        qsort(grouped, count, sizeof *grouped, group_order);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && same_operator(grouped[first], grouped[end]);)
            end++;
        size_t left = end - first;
        ND_TRY(group_join(dump, grouped + first, &left, err));
        ND_TRY(group_number(dump, grouped + first, left, err));
    }
    if (count > 1)
        qsort(all, count, sizeof *all, run_order);
    for (size_t i = 0; i < count; i++) {
        if (all[i].key == NULL)
            dump->tensor_count -= all[i].layer.slot_count;
        else
            dump->layers[kept++] = all[i].layer;
    }
    dump->layer_count = kept;
    return ND_OK;
}
