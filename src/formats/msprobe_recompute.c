/*
 * Recomputed calls (activation checkpointing): a forward call is run again during the
 * backward pass and takes a call number, so that every later call of that name is numbered
 * too high beside a run without checkpoints.
 *
 *   1. the call it repeats is the one of the same name that had the same inputs: what a
 *      checkpoint keeps.  Several of them are paired in order
 *   2. outputs that differ from the original's are noted there ("recompute_differs"): the
 *      random state was not restored, or the kernel is not deterministic
 *   3. forward calls are numbered without the recomputed ones, and a backward call of a
 *      recomputed one gets the original's number
 */
#include <math.h>
#include <stdlib.h>

#include "formats/msprobe.h"

struct call {
    struct msprobe_record *record;
    uint64_t inputs; /* fingerprint; 0: nothing to tell calls apart by */
    int64_t number;  /* without recomputed calls; -1: not known */
    struct call *original;
};

/* --- fingerprints -------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *const p = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static bool slot_in(const struct dump_slot *slot, const char *group)
{
    return strncmp(slot->name, group, strlen(group)) == 0;
}

static uint64_t fingerprint(const struct dump_layer *layer)
{
    uint64_t hash = 0xcbf29ce484222325u;
    bool any = false;

    for (size_t i = 0; i < layer->slot_count; i++) {
        const struct dump_slot *const slot = &layer->slots[i];
        if (!slot_in(slot, "input."))
            continue;
        any = any || slot->has_statistics || slot->checksum != NULL;
        hash = mix(hash, slot->name, strlen(slot->name));
        hash = mix(hash, slot->storage.dim, slot->storage.rank * sizeof *slot->storage.dim);
        for (int s = 0; s < STATISTIC_COUNT; s++)
            if (!isnan(slot->statistics.value[s]))
                hash = mix(hash, &slot->statistics.value[s], sizeof(double));
        if (slot->checksum != NULL)
            hash = mix(hash, slot->checksum, strlen(slot->checksum));
    }
    return any ? hash | 1 : 0;
}

/* --- what repeats what --------------------------------------------------------------- */

static int base_compare(const struct msprobe_record *a, const struct msprobe_record *b)
{
    const size_t x = a->name.base_len, y = b->name.base_len;
    const int order = memcmp(a->key, b->key, x < y ? x : y);

    return order != 0 ? order : (x > y) - (x < y);
}

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By name, forward calls first, by call. */
static int by_call(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    int order = base_compare(x->record, y->record);

    if (order == 0)
        order = (x->record->name.direction == DIRECTION_BACKWARD) -
                (y->record->name.direction == DIRECTION_BACKWARD);
    if (order == 0)
        order = compare_number(x->record->name.call, y->record->name.call);
    return order != 0 ? order : strcmp(x->record->key, y->record->key);
}

/* By inputs, originals first, by call. */
static int by_inputs(const void *a, const void *b)
{
    const struct call *const *x = a, *const *y = b;

    if ((*x)->inputs != (*y)->inputs)
        return (*x)->inputs < (*y)->inputs ? -1 : 1;
    if ((*x)->record->recompute != (*y)->record->recompute)
        return (*x)->record->recompute ? 1 : -1;
    return *x < *y ? -1 : *x > *y;
}

/* Rule 1, for the forward calls of one name. */
static void find_originals(struct call **list, size_t count)
{
    if (count > 1)
        qsort(list, count, sizeof *list, by_inputs);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && list[end]->inputs == list[first]->inputs;)
            end++;
        size_t again = first;
        while (again < end && !list[again]->record->recompute)
            again++;
        for (size_t i = first, k = again; list[first]->inputs != 0 && i < again && k < end;)
            list[k++]->original = list[i++];
    }
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_prints(const struct dump_slot *a, const struct dump_slot *b)
{
    for (int s = 0; s < STATISTIC_COUNT; s++)
        if (!same_number(a->statistics.value[s], b->statistics.value[s]))
            return false;
    return a->checksum == NULL || b->checksum == NULL ||
           strcmp(a->checksum, b->checksum) == 0;
}

/* Rule 2.  Slots stand in the order of the record on both sides. */
static void check_outputs(struct dump_layer *original, const struct dump_layer *again)
{
    for (size_t i = 0, k = 0; i < original->slot_count; i++) {
        struct dump_slot *const slot = &original->slots[i];
        if (!slot_in(slot, "output."))
            continue;
        while (k < again->slot_count && strcmp(again->slots[k].name, slot->name) != 0)
            k++;
        if (k == again->slot_count)
            return; /* the recomputation ended before its output was needed */
        if (!slot->undefined && !same_prints(slot, &again->slots[k]))
            slot->note = "recompute_differs";
    }
}

/* --- numbers ------------------------------------------------------------------------- */

static int call_number_order(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    return compare_number(x->record->name.call, y->record->name.call);
}

/* Rule 3, for the calls of one name: forward[0..n), then backward. */
static void number_calls(struct call *calls, size_t forward, size_t count)
{
    int64_t recomputed = 0;

    for (size_t i = 0; i < forward; i++) {
        calls[i].number =
            calls[i].record->recompute ? -1 : calls[i].record->name.call - recomputed;
        recomputed += calls[i].record->recompute;
    }
    recomputed = 0;
    for (size_t i = forward, k = 0; i < count; i++) {
        const int64_t call = calls[i].record->name.call;
        while (k < forward && calls[k].record->name.call < call)
            recomputed += calls[k++].record->recompute;
        const struct call *const of =
            bsearch(&calls[i], calls, forward, sizeof *calls, call_number_order);
        calls[i].number = call - recomputed;
        if (of != NULL && of->record->recompute && of->original != NULL)
            calls[i].number = of->original->number;
    }
}

static enum nd_status rename_calls(struct msprobe_reader *reader, const struct call *calls,
                                   size_t count, struct nd_error *err)
{
    struct dump *const dump = reader->dump;

    for (size_t i = 0; i < count; i++) {
        struct msprobe_record *const record = calls[i].record;
        struct dump_layer *const layer = &dump->layers[record->layer];
        if (calls[i].original != NULL)
            check_outputs(&dump->layers[calls[i].original->record->layer], layer);
        if (record->recompute || calls[i].number < 0 ||
            calls[i].number == record->name.call)
            continue;
        const char *const name =
            nd_msprobe_name_write(dump->arena, record->key, &record->name, calls[i].number);
        if (name == NULL)
            return nd_fail_memory(err);
        layer->name = dump->prefix == NULL
                          ? name
                          : nd_arena_format(dump->arena, "%s/%s", dump->prefix, name);
        if (layer->name == NULL)
            return nd_fail_memory(err);
        layer->call = calls[i].number;
    }
    return ND_OK;
}

static enum nd_status settle(struct msprobe_reader *reader, struct call *calls,
                             size_t count, struct call **list, struct nd_error *err)
{
    if (count > 1)
        qsort(calls, count, sizeof *calls, by_call);
    for (size_t first = 0, end; first < count; first = end) {
        size_t forward = 0, recomputed = 0;
        for (end = first;
             end < count && base_compare(calls[first].record, calls[end].record) == 0;
             end++) {
            if (calls[end].record->name.direction == DIRECTION_FORWARD)
                list[forward++] = &calls[end];
            recomputed += calls[end].record->recompute;
        }
        if (recomputed == 0)
            continue;
        find_originals(list, forward);
        number_calls(calls + first, forward, end - first);
        ND_TRY(rename_calls(reader, calls + first, end - first, err));
    }
    return ND_OK;
}

static enum nd_status keep_parents(struct msprobe_reader *reader, struct nd_error *err)
{
    struct dump_layer *const layers = reader->dump->layers;
    const char *last = NULL, *kept = NULL; /* a frame that has no record, and its copy */

    for (size_t i = 0; i < reader->record_count; i++) {
        const struct msprobe_record *const record = &reader->records[i];
        if (record->parent != NULL)
            layers[record->layer].parent = layers[record->parent->layer].name;
        const struct msprobe_record *const frame =
            record->frame == NULL ? NULL : nd_msprobe_find(reader, record->frame);
        if (frame == NULL && record->frame != NULL && record->frame != last) {
            last = record->frame;
            kept = nd_arena_string(reader->dump->arena, last);
            if (kept == NULL)
                return nd_fail_memory(err);
        }
        layers[record->layer].frame = frame != NULL           ? layers[frame->layer].name
                                      : record->frame != NULL ? kept
                                                              : NULL;
    }
    return ND_OK;
}

/* Takes the recomputed calls out of the numbering. */
static enum nd_status take_out(struct msprobe_reader *reader, struct nd_error *err)
{
    struct call *const calls = malloc((reader->record_count + 1) * sizeof *calls);
    struct call **const list = malloc((reader->record_count + 1) * sizeof(struct call *));
    size_t count = 0;

    for (size_t i = 0; calls != NULL && i < reader->record_count; i++) {
        struct msprobe_record *const record = &reader->records[i];
        if (record->name.form == MSPROBE_CALL_FIRST ||
            record->name.form == MSPROBE_CALL_LAST)
            calls[count++] =
                (struct call){.record = record,
                              .inputs = fingerprint(&reader->dump->layers[record->layer]),
                              .number = record->name.call};
    }
    const enum nd_status status = calls == NULL || list == NULL
                                      ? nd_fail_memory(err)
                                      : settle(reader, calls, count, list, err);
    free(calls);
    free(list);
    return status;
}

enum nd_status nd_msprobe_recompute(struct msprobe_reader *reader, struct nd_error *err)
{
    bool any = false;
    enum nd_status status = ND_OK;

    for (size_t i = 0; i < reader->record_count; i++) {
        const struct msprobe_record *const record = &reader->records[i];
        reader->dump->layers[record->layer].recompute = record->recompute;
        any = any || record->recompute;
    }
    if (any)
        status = take_out(reader, err);
    return status == ND_OK ? keep_parents(reader, err) : status;
}
