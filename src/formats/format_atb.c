/*
 * Tensors that the Ascend transformer boost library (ATB) saves, one a file (.bin).
 *
 *   1. lines "name=value", ended by \n: $Version=1.0, $Object.Count, $Object.Length (bytes
 * of all objects), format, dtype (GE's numbering), dims=a,b,c, perhaps data=FILE, and
 *      $Object.NAME=offset,length; the last is $End=1
 *   2. the objects; of those only `data` is a tensor.  With data=FILE its bytes are there,
 *      in the same folder
 *   3. the writer appends: another head may follow, which is a later run of the same tensor
 *
 * In a tree of ATB the files are called {operation}/{before|after}/{in|out}tensor{N}.bin.
 * Learned from msprobe's atb_probe and its readers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "formats/cann_op.h"
#include "formats/format.h"

enum { ATB_MAX_LINE = 4096, ATB_MAX_LINES = 4096 };

static const char atb_magic[] = "$Version=";

struct atb_head {
    struct cann_tensor tensor;
    uint64_t length; /* of all objects */
    uint64_t at;     /* of `data` among them */
    bool has_object;
    const char *file; /* NULL: the bytes follow */
};

static bool atb_starts(const unsigned char *bytes, uint64_t size)
{
    return size >= sizeof atb_magic - 1 &&
           memcmp(bytes, atb_magic, sizeof atb_magic - 1) == 0;
}

static int atb_probe(const struct dump_head *head)
{
    return atb_starts(head->bytes, head->size) ? 8 * (int)(sizeof atb_magic - 1) : 0;
}

/* Decimal digits at *at, which moves behind them; false if there are none or too many. */
static bool atb_number(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *const begin = *at;

    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (!nd_size_mul(number, 10, &number) ||
            !nd_size_add(number, (uint64_t)(**at - '0'), &number))
            return false;
    *ret_number = number;
    return *at != begin;
}

static bool atb_dims(const char *at, struct cann_shape *shape)
{
    uint64_t dim;

    *shape = (struct cann_shape){0};
    while (*at != '\0') {
        const bool is_negative = *at == '-';
        at += is_negative;
        if (!atb_number(&at, &dim) || (*at != ',' && *at != '\0'))
            return false;
        nd_cann_shape_push(shape, is_negative ? UINT64_MAX : dim);
        at += *at == ',';
    }
    return true;
}

/* One line; false for a value that its name forbids. */
static bool atb_take(struct arena *arena, const char *name, const char *value,
                     struct atb_head *head)
{
    const char *at = value;

    if (strcasecmp(name, "$Object.Length") == 0)
        return atb_number(&at, &head->length);
    if (strcasecmp(name, "$Object.data") == 0) {
        head->has_object = true;
        return atb_number(&at, &head->at) && *at++ == ',' &&
               atb_number(&at, &head->tensor.size);
    }
    if (strcmp(name, "dtype") == 0)
        return atb_number(&at, &head->tensor.dtype);
    if (strcmp(name, "dims") == 0)
        return atb_dims(value, &head->tensor.shape);
    if (strcmp(name, "format") == 0) {
        /* -1 is "undefined", which orders nothing: ND */
        head->tensor.format = 2;
        return *value == '-' || atb_number(&at, &head->tensor.format);
    }
    if (strcmp(name, "data") == 0 && *value != '\0') {
        head->file = nd_arena_string(arena, value);
        return head->file != NULL;
    }
    return true;
}

static enum nd_status atb_head_read(struct cursor *in, struct arena *arena,
                                    struct atb_head *ret_head, struct nd_error *err)
{
    struct atb_head head = {
        .tensor = {.is_output = true, .numbering = CANN_GE, .format = 2}
    };
    char line[ATB_MAX_LINE];

    for (int count = 0; count < ATB_MAX_LINES; count++) {
        const uint64_t left = nd_cursor_left(in);
        const unsigned char *const at = in->bytes + in->at;
        const unsigned char *const end =
            memchr(at, '\n', left < ATB_MAX_LINE ? (size_t)left : (size_t)ATB_MAX_LINE);
        if (end == NULL)
            break;
        const size_t len = (size_t)(end - at);
        memcpy(line, at, len);
        line[len > 0 && line[len - 1] == '\r' ? len - 1 : len] = '\0';
        char *const equals = strchr(line, '=');
        if (equals == NULL)
            break;
        *equals = '\0';
        if (!atb_take(arena, line, equals + 1, &head))
            return nd_fail_at(err, ND_ERR_MALFORMED, in->at, "a value for that name",
                              "%.40s=%.80s", line, equals + 1);
        (void)nd_cursor_skip(in, len + 1);
        if (strcasecmp(line, "$End") != 0)
            continue;
        if (!head.has_object)
            head.tensor.size = head.length;
        *ret_head = head;
        return ND_OK;
    }
    return nd_fail_at(err, ND_ERR_MALFORMED, in->at, "lines name=value up to $End=1",
                      "something else");
}

/* "dir/op/after/outTensor0" in a tree: the slot of dir/op; else the file's own name. */
static const char *atb_name(struct dump *dump, size_t file)
{
    const char *const stem = nd_dump_stem(dump, file);
    const char *const slash = stem == NULL || dump->is_lone ? NULL : strrchr(stem, '/');
    const char *at = slash == NULL ? NULL : slash + 1, *word = NULL;
    uint64_t index;

    if (at == NULL)
        return stem;
    if (strncasecmp(at, "intensor", 8) == 0) {
        word = "input";
        at += 8;
    } else if (strncasecmp(at, "outtensor", 9) == 0) {
        word = "output";
        at += 9;
    }
    if (word == NULL || !atb_number(&at, &index) || *at != '\0')
        return stem;
    size_t len = (size_t)(slash - stem);
    if (len > 6 && memcmp(slash - 6, "/after", 6) == 0)
        len -= 6;
    else if (len > 7 && memcmp(slash - 7, "/before", 7) == 0)
        len -= 7;
    return nd_arena_format(dump->arena, "%.*s.%s.%llu", (int)len, stem, word,
                           (unsigned long long)index);
}

/* Puts the extent into the file that data=FILE names. */
static enum nd_status atb_elsewhere(struct dump *dump, size_t file, struct atb_head *head,
                                    struct dump_slot *slot, struct nd_error *err)
{
    const char *const own = dump->files[file].open_name;
    const char *const slash = own == NULL ? NULL : strrchr(own, '/');
    const char *const path =
        slash == NULL
            ? head->file
            : nd_arena_format(dump->arena, "%.*s/%s", (int)(slash - own), own, head->file);
    struct nd_error reason = {0};

    if (path == NULL)
        return nd_fail_memory(err);
    if (strchr(head->file, '/') != NULL)
        (void)nd_fail(&reason, ND_ERR_MALFORMED, "a file of the same folder", "'%.200s'",
                      head->file);
    else if (nd_dump_file_add(dump, path, &slot->extent.file, &reason) == ND_OK) {
        if (!head->has_object && head->length == 0)
            slot->extent.size = slot->extent.raw_size = dump->files[slot->extent.file].size;
        nd_dump_file_rest(dump, slot->extent.file);
        return ND_OK;
    }
    slot->broken = nd_dump_reason(dump, &reason);
    return slot->broken == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status atb_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(dump, file);
    const char *const name = atb_name(dump, file);

    if (name == NULL)
        return nd_fail_memory(err);
    dump->device = "npu";
    dump->order = ND_ORDER_NAME;
    dump->prefix = NULL; /* the folder is in the name already */
    do {
        struct atb_head head;
        struct dump_slot slot;
        ND_TRY(atb_head_read(&in, dump->arena, &head, err));
        if (head.file != NULL || !nd_size_add(in.at, head.at, &head.tensor.offset))
            head.tensor.offset = head.file != NULL ? head.at : UINT64_MAX;
        ND_TRY(nd_cann_slot(dump, file, &head.tensor, &slot, err));
        if (head.file != NULL)
            ND_TRY(atb_elsewhere(dump, file, &head, &slot, err));
        if (dump->is_lone || strcmp(name, nd_dump_stem(dump, file)) == 0)
            ND_TRY(nd_dump_add_lone(dump, file, &slot, err));
        else
            ND_TRY(nd_dump_add_tensor(dump, name, &slot, err));
        if (head.file == NULL && !nd_cursor_skip(&in, head.length))
            break; /* cut off: the slot says so */
    } while (atb_starts(in.bytes + in.at, nd_cursor_left(&in)));
    return ND_OK;
}

const struct dump_format nd_format_atb = {
    .name = "atb",
    .title = "ATB tensor (.bin)",
    .probe = atb_probe,
    .index = atb_index,
};
