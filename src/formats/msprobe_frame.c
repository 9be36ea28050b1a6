/*
 * construct.json: which module a call ran in.
 *
 *   1. {NODE: PARENT | null, ...}: names of records, in both directions; nodes that were
 *      not dumped are in it too
 *   2. Megatron: NODE: [PARENT, MICRO_STEP], and "megatron_micro_step_number"
 *   3. level L1 leaves it empty
 *
 * A layer's parent is the nearest node above it that was dumped, and that layer is a
 * container; the frame of a function's call is the nearest module, dumped or not.  A forward call below a backward one is a recomputation, whether or not its
 * record says so.  What points in a circle has no parent.
 */
#include <stdlib.h>

#include "formats/msprobe.h"
#include "formats/names.h"

struct node {
    const char *name, *parent_name;
    struct node *parent;
    struct msprobe_record *record; /* NULL: not dumped */
    int64_t micro_step;
    /* of the nodes above, the node itself excluded; filled by climb() */
    enum { FRESH, BUSY, DONE } state;
    struct msprobe_record *nearest;
    const char *frame; /* the nearest module, with a record or without */
    bool in_backward, is_circle;
};

struct frame {
    struct node *nodes;
    size_t count, capacity;
};

/* --- reading ------------------------------------------------------------------------- */

static enum nd_status take_name(struct msprobe_reader *reader, struct cursor *in,
                                const char **ret_name, struct nd_error *err)
{
    struct json_text text;

    nd_json_skip_blank(in);
    if (in->at == in->size || in->bytes[in->at] != '"')
        return nd_json_scan_value(in, true, NULL, err);
    ND_TRY(nd_json_scan_text(in, &text, err));
    if (text.len > ND_MAX_NAME)
        return nd_fail_at(err, ND_ERR_LIMIT, text.at, "names of at most 4096 bytes",
                          "a longer name");
    char *const name = nd_arena_alloc(reader->dump->scratch, text.len + 1, 1);
    if (name == NULL)
        return nd_fail_memory(err);
    nd_json_text_decode(&text, name);
    *ret_name = name;
    return ND_OK;
}

/* "parent", null, or ["parent", 3]. */
static enum nd_status take_parent(struct msprobe_reader *reader, struct cursor *in,
                                  struct node *node, struct nd_error *err)
{
    nd_json_skip_blank(in);
    if (!nd_json_accept(in, '['))
        return take_name(reader, in, &node->parent_name, err);
    for (size_t i = 0, more = !nd_json_accept(in, ']'); more; i++) {
        uint64_t number;
        struct cursor digits = *in;
        if (i == 0)
            ND_TRY(take_name(reader, in, &node->parent_name, err));
        else
            ND_TRY(nd_json_scan_value(in, true, NULL, err));
        if (i == 1 && nd_json_scan_size(&digits, &number, NULL) == ND_OK &&
            number <= INT32_MAX)
            node->micro_step = (int64_t)number;
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, ']', err));
    }
    return ND_OK;
}

static enum nd_status read_nodes(struct msprobe_reader *reader, struct cursor *in,
                                 struct frame *frame, struct nd_error *err)
{
    struct arena *const arena = reader->dump->scratch;

    ND_TRY(nd_json_expect(in, '{', err));
    for (bool more = !nd_json_accept(in, '}'); more;) {
        struct node *const nodes = nd_arena_grow(arena, frame->nodes, frame->count,
                                                 &frame->capacity, sizeof *nodes);
        if (nodes == NULL)
            return nd_fail_memory(err);
        frame->nodes = nodes;
        struct node *const node = &nodes[frame->count];
        *node = (struct node){.micro_step = -1};
        nd_json_skip_blank(in);
        ND_TRY(take_name(reader, in, &node->name, err));
        ND_TRY(nd_json_expect(in, ':', err));
        ND_TRY(take_parent(reader, in, node, err));
        if (node->name == NULL)
            return nd_json_unexpected(in, "a name", err);
        frame->count++;
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, '}', err));
    }
    return ND_OK;
}

/* --- the tree ------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void link_nodes(struct msprobe_reader *reader, struct frame *frame)
{
    if (frame->count > 1)
        qsort(frame->nodes, frame->count, sizeof *frame->nodes, by_name);
    for (size_t i = 0; i < frame->count; i++) {
        struct node *const node = &frame->nodes[i];
        const struct node key = {.name = node->parent_name};
        node->record = nd_msprobe_find(reader, node->name);
        if (key.name != NULL)
            node->parent = bsearch(&key, frame->nodes, frame->count, sizeof key, by_name);
    }
}

static bool is_backward(const struct node *node)
{
    struct msprobe_name name;

    nd_msprobe_name_read(node->name, &name);
    return name.direction == DIRECTION_BACKWARD;
}

/* A parent that has no node of its own may still have a record. */
static struct msprobe_record *record_above(struct msprobe_reader *reader,
                                           const struct node *node)
{
    if (node->parent == NULL)
        return node->parent_name == NULL || node->is_circle
                   ? NULL
                   : nd_msprobe_find(reader, node->parent_name);
    return node->parent->record != NULL ? node->parent->record : node->parent->nearest;
}

static bool is_module(const char *text)
{
    struct msprobe_name name;

    nd_msprobe_name_read(text, &name);
    return name.is_module;
}

static const char *frame_above(const struct node *node)
{
    if (node->is_circle || node->parent_name == NULL)
        return NULL;
    if (is_module(node->parent_name))
        return node->parent_name;
    return node->parent == NULL ? NULL : node->parent->frame;
}

/* Fills a node from those above it; `path` has room for every node. */
static void climb(struct msprobe_reader *reader, struct node *node, struct node **path)
{
    size_t depth = 0;

    for (struct node *at = node; at != NULL && at->state == FRESH; at = at->parent) {
        at->state = BUSY;
        path[depth++] = at;
    }
    while (depth > 0) {
        struct node *const at = path[--depth];
        if (at->parent != NULL && at->parent->state == BUSY) {
            at->parent = NULL;
            at->is_circle = true;
        }
        at->nearest = record_above(reader, at);
        at->frame = frame_above(at);
        at->in_backward =
            at->parent != NULL && (at->parent->in_backward || is_backward(at->parent));
        at->state = DONE;
    }
}

static void apply(struct msprobe_reader *reader, const struct node *node)
{
    struct dump_layer *const layers = reader->dump->layers;
    struct msprobe_record *const record = node->record;

    if (record == NULL)
        return;
    layers[record->layer].micro_step = node->micro_step;
    if (!record->name.is_module)
        record->frame = node->frame;
    if (node->in_backward && record->name.direction == DIRECTION_FORWARD)
        record->recompute = true;
    if (node->nearest == NULL || node->nearest == record)
        return;
    record->parent = node->nearest;
    if (node->nearest->name.direction == record->name.direction)
        layers[node->nearest->layer].container = true;
}

/* A recomputation stops as soon as nothing more is needed: its last call has a record and
 * no node. */
static void mark_cut_short(struct msprobe_reader *reader, const struct frame *frame)
{
    for (size_t i = 1; i < reader->record_count; i++) {
        struct msprobe_record *const record = &reader->records[i];
        const struct node key = {.name = record->key};
        if (record->name.direction == DIRECTION_FORWARD && record[-1].recompute &&
            (record->name.form == MSPROBE_CALL_FIRST ||
             record->name.form == MSPROBE_CALL_LAST) &&
            bsearch(&key, frame->nodes, frame->count, sizeof key, by_name) == NULL)
            record->recompute = true;
    }
}

static enum nd_status read_frame(struct msprobe_reader *reader, size_t file,
                                 struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(reader->dump, file);
    struct frame frame = {0};

    ND_TRY(read_nodes(reader, &in, &frame, err));
    link_nodes(reader, &frame);
    struct node **const path = malloc((frame.count + 1) * sizeof(struct node *));
    if (path == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < frame.count; i++)
        climb(reader, &frame.nodes[i], path);
    free(path);
    for (size_t i = 0; i < frame.count; i++)
        apply(reader, &frame.nodes[i]);
    mark_cut_short(reader, &frame);
    return ND_OK;
}

enum nd_status nd_msprobe_frame(struct msprobe_reader *reader, struct nd_error *err)
{
    size_t file;

    if (!reader->site->has_construct)
        return ND_OK;
    const char *const path =
        nd_msprobe_path(reader->dump, reader->site->folder, "construct.json");
    if (path == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_file_add(reader->dump, path, &file, err));
    const enum nd_status status = read_frame(reader, file, err);
    if (status != ND_OK)
        nd_error_file(err, reader->dump->files[file].path);
    nd_dump_file_rest(reader->dump, file);
    return status;
}
