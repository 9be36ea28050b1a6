/*
 * stack.json: where in the program each call was made, innermost frame first.
 *
 *   1. {"0": [[RECORD, ...], [LINE, ...]], "1": ...}: records that share a stack
 *   2. old: {RECORD: [LINE, ...], ...}
 *
 * Stacks are an aid: records that are not in the dump are passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/msprobe.h"

/* "in forward, \n x = f(x)" is one line. */
static void add_line(struct text *out, const char *line, size_t len)
{
    if (out->len > 0)
        nd_text_add(out, "\n", 1);
    for (const char *const end = line + len; line < end;) {
        const char *const stop = memchr(line, '\n', (size_t)(end - line));
        const char *const part_end = stop == NULL ? end : stop;
        nd_text_add(out, line, (size_t)(part_end - line));
        line = part_end + 1;
    }
}

/* A list of strings, joined by newlines; values of other kinds are passed over. */
static enum nd_status read_lines(struct cursor *in, struct text *out, struct nd_error *err)
{
    ND_TRY(nd_json_expect(in, '[', err));
    for (bool more = !nd_json_accept(in, ']'); more;) {
        struct json_text line;
        nd_json_skip_blank(in);
        if (in->at < in->size && in->bytes[in->at] == '"') {
            ND_TRY(nd_json_scan_text(in, &line, err));
            char *const decoded = malloc(line.len + 1);
            if (decoded == NULL)
                return nd_fail_memory(err);
            const size_t len = nd_json_text_decode(&line, decoded);
            add_line(out, decoded, len);
            free(decoded);
        } else {
            ND_TRY(nd_json_scan_value(in, true, NULL, err));
        }
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, ']', err));
    }
    return out->broken ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status stack_keep(struct msprobe_reader *reader, const struct text *lines,
                                 const char **ret_stack, struct nd_error *err)
{
    *ret_stack = nd_arena_string(reader->dump->arena, lines->len == 0 ? "" : lines->bytes);
    return *ret_stack == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status give(struct msprobe_reader *reader, const struct json_text *key,
                           const char *stack, struct nd_error *err)
{
    char *const name = malloc(key->len + 1);

    if (name == NULL)
        return nd_fail_memory(err);
    nd_json_text_decode(key, name);
    const struct msprobe_record *const record = nd_msprobe_find(reader, name);
    if (record != NULL && *stack != '\0')
        reader->dump->layers[record->layer].stack = stack;
    free(name);
    return ND_OK;
}

/* The records of a group, which stand before their stack. */
static enum nd_status give_all(struct msprobe_reader *reader, struct cursor names,
                               const char *stack, struct nd_error *err)
{
    ND_TRY(nd_json_expect(&names, '[', err));
    for (bool more = !nd_json_accept(&names, ']'); more;) {
        struct json_text key;
        ND_TRY(nd_json_scan_text(&names, &key, err));
        ND_TRY(give(reader, &key, stack, err));
        more = nd_json_accept(&names, ',');
    }
    return ND_OK;
}

/* [[names], [lines]], the opening bracket behind us. */
static enum nd_status read_group(struct msprobe_reader *reader, struct cursor *in,
                                 struct text *lines, struct nd_error *err)
{
    const char *stack;
    const struct cursor names = *in;

    ND_TRY(nd_json_scan_value(in, true, NULL, err));
    ND_TRY(nd_json_expect(in, ',', err));
    ND_TRY(read_lines(in, lines, err));
    ND_TRY(stack_keep(reader, lines, &stack, err));
    ND_TRY(give_all(reader, names, stack, err));
    return nd_json_expect(in, ']', err);
}

static enum nd_status read_member(struct msprobe_reader *reader, struct cursor *in,
                                  struct nd_error *err)
{
    struct json_text key;
    struct text lines = {0};
    const char *stack;

    ND_TRY(nd_json_scan_text(in, &key, err));
    ND_TRY(nd_json_expect(in, ':', err));
    struct cursor inside = *in;
    if (!nd_json_accept(&inside, '['))
        return nd_json_scan_value(in, true, NULL, err);
    struct cursor deeper = inside;
    enum nd_status status;
    if (nd_json_accept(&deeper, '[')) {
        *in = inside;
        status = read_group(reader, in, &lines, err);
    } else {
        status = read_lines(in, &lines, err);
        if (status == ND_OK)
            status = stack_keep(reader, &lines, &stack, err);
        if (status == ND_OK)
            status = give(reader, &key, stack, err);
    }
    nd_text_done(&lines);
    return status;
}

enum nd_status nd_msprobe_stack(struct msprobe_reader *reader, struct nd_error *err)
{
    size_t file;

    if (!reader->site->has_stack)
        return ND_OK;
    const char *const path =
        nd_msprobe_path(reader->dump, reader->site->folder, "stack.json");
    if (path == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_file_add(reader->dump, path, &file, err));
    struct cursor in = nd_dump_bytes(reader->dump, file);
    enum nd_status status = nd_json_expect(&in, '{', err);
    for (bool more = status == ND_OK && !nd_json_accept(&in, '}'); more;) {
        status = read_member(reader, &in, err);
        more = status == ND_OK && nd_json_accept(&in, ',');
        if (status == ND_OK && !more)
            status = nd_json_expect(&in, '}', err);
    }
    if (status != ND_OK)
        nd_error_file(err, reader->dump->files[file].path);
    nd_dump_file_rest(reader->dump, file);
    return status;
}
