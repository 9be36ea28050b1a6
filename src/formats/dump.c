/*
 * The dump: opening one, and what formats put into it.  Here, once for all formats, every
 * extent is checked against its file and every shape against its extent.
 */
#include "formats/dump.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "formats/extent.h"
#include "formats/files.h"
#include "formats/format.h"
#include "formats/names.h"

enum {
    /* A file may refer to others, those never to more: an index to its shards. */
    MAX_INDEX_DEPTH = 2
};

/* --- opening ----------------------------------------------------------------------- */

static struct dump *dump_new(const char *path, const char *input_format, const char *raw)
{
    struct arena *const arena = nd_arena_new();
    struct dump *const  dump = arena == NULL ? NULL : nd_arena_alloc(arena, 1, sizeof *dump);

    if (dump == NULL) {
        nd_arena_free(arena);
        return NULL;
    }
    *dump = (struct dump){.arena = arena,
                          .path = nd_arena_string(arena, path),
                          .input_format = input_format,
                          .raw = raw,
                          .root_fd = -1,
                          .order = ND_ORDER_NAME,
                          .deterministic = -1,
                          .seed = (double)NAN,
                          .step = -1,
                          .rank = -1};
    if (dump->path == NULL) {
        nd_arena_free(arena);
        return NULL;
    }
    return dump;
}

void nd_dump_close(struct dump *dump)
{
    if (dump == NULL)
        return;
    nd_names_done(dump);
    nd_files_close(dump);
    nd_arena_free(dump->arena);
}

/* The folder's format: the one that was asked for, if it is one of folders. */
static const struct dump_format *folder_format(const struct dump *dump,
                                               const struct dump_directory *directory)
{
    const struct dump_format *asked =
        dump->input_format == NULL ? NULL : nd_format_by_name(dump->input_format);

    if (asked == NULL)
        return nd_format_recognise_directory(directory);
    return asked->probe_directory != NULL ? asked : nd_format_by_name("directory");
}

static enum nd_status index_folder(struct dump *dump, struct nd_error *err)
{
    struct dump_directory directory;

    ND_TRY(nd_dump_directory_read(dump, "", &directory, err));
    if (directory.name_count + directory.folder_count == 0) {
        nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "files with tensors",
                directory.other_count == 0 ? "an empty directory"
                                           : "a directory of symbolic links or devices only");
        if (directory.other_count > 0)
            nd_error_hint(err, "links are not followed: copy the files (cp -rL)");
        return ND_ERR_UNKNOWN_FORMAT;
    }
    dump->format = folder_format(dump, &directory);
    if (dump->format == NULL)
        return nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "a directory of tensors",
                       "a directory of other things");
    return dump->format->index(dump, 0, err);
}

static enum nd_status index_lone(struct dump *dump, struct nd_error *err)
{
    dump->format = nd_dump_recognise_file(dump, 0, err);
    if (dump->format == NULL)
        return err == NULL ? ND_ERR_UNKNOWN_FORMAT : err->status;
    return nd_dump_index_file(dump, 0, err);
}

/* Indexes what has been opened; closes the dump on failure. */
static enum nd_status dump_index(struct dump *dump, struct dump **ret_dump, struct nd_error *err)
{
    const enum nd_status status =
        dump->is_lone ? index_lone(dump, err) : index_folder(dump, err);

    if (status == ND_OK && dump->is_lone && !nd_map_intact(&dump->files[0].map)) {
        nd_fail(err, ND_ERR_CHANGED, NULL, "the file shrank while it was read");
        nd_error_file(err, dump->path);
        nd_dump_close(dump);
        return ND_ERR_CHANGED;
    }
    if (status == ND_OK) {
        *ret_dump = dump;
    } else {
        nd_error_file(err, dump->path);
        nd_dump_close(dump);
    }
    return status;
}

enum nd_status nd_dump_open(const char *path, const char *input_format, const char *raw,
                            struct dump **ret_dump, struct nd_error *err)
{
    if (input_format != NULL && nd_format_by_name(input_format) == NULL)
        return nd_format_bad_word(input_format, err);
    struct dump *const dump = dump_new(path, input_format, raw);
    if (dump == NULL)
        return nd_fail_memory(err);
    const enum nd_status status = nd_files_open(dump, err);
    if (status != ND_OK) {
        nd_error_file(err, path);
        nd_dump_close(dump);
        return status;
    }
    return dump_index(dump, ret_dump, err);
}

enum nd_status nd_dump_open_bytes(const void *bytes, uint64_t size, const char *name,
                                  const char *input_format, const char *raw,
                                  struct dump **ret_dump, struct nd_error *err)
{
    if (input_format != NULL && nd_format_by_name(input_format) == NULL)
        return nd_format_bad_word(input_format, err);
    struct dump *const dump = dump_new(name, input_format, raw);
    if (dump == NULL)
        return nd_fail_memory(err);
    const enum nd_status status = nd_files_borrow(dump, bytes, size, err);
    if (status != ND_OK) {
        nd_error_file(err, name);
        nd_dump_close(dump);
        return status;
    }
    return dump_index(dump, ret_dump, err);
}

/* --- files ------------------------------------------------------------------------- */

struct cursor nd_dump_bytes(const struct dump *dump, size_t file)
{
    const struct dump_file *const at = &dump->files[file];
    return (struct cursor){.bytes = at->map.bytes, .size = at->size};
}

/* In a folder --raw is about the files that look like it, not about every text. */
static bool named_raw(const char *path)
{
    const size_t      len = strlen(path);
    const char *const end = path + (len < 4 ? 0 : len - 4);

    return strcmp(end, ".bin") == 0 || strcmp(end, ".raw") == 0 || strcmp(end, ".dat") == 0;
}

const struct dump_format *nd_dump_recognise_file(struct dump *dump, size_t file,
                                                 struct nd_error *err)
{
    const struct dump_file *const at = &dump->files[file];
    const char *const             slash = strrchr(at->path, '/');
    /* Probes compare magics without asking for NULL first. */
    const unsigned char *const bytes =
        at->map.bytes == NULL ? (const unsigned char *)"" : at->map.bytes;
    const struct dump_head head = {bytes, at->size, slash == NULL ? at->path : slash + 1};
    const struct dump_format *format =
        dump->input_format == NULL ? NULL : nd_format_by_name(dump->input_format);

    if (format != NULL && format->probe == NULL && dump->is_lone) {
        nd_fail_key(err, ND_ERR_USAGE, "--input-format", "a format of files",
                    "'%s', a format of folders", format->name);
        return NULL;
    }
    if (format == NULL || format->probe == NULL)
        format = nd_format_recognise(&head);
    if (format == NULL && dump->raw != NULL && (dump->is_lone || named_raw(at->path)))
        format = &nd_format_raw;
    if (format == NULL) {
        nd_format_unknown(&head, err);
        nd_error_file(err, at->path);
    }
    return format;
}

enum nd_status nd_dump_index_file(struct dump *dump, size_t file, struct nd_error *err)
{
    struct nd_error own = {0}; /* the status is needed even where nobody wants the text */

    if (dump->index_depth == MAX_INDEX_DEPTH)
        return nd_fail(err, ND_ERR_MALFORMED, "files that hold tensors",
                       "files that refer to files that refer to files");
    ND_TRY(nd_file_wake(dump, file, err));
    const struct dump_format *const format = nd_dump_recognise_file(dump, file, &own);
    if (format == NULL) {
        if (err != NULL)
            *err = own;
        return own.status;
    }
    dump->index_depth++;
    const enum nd_status status = format->index(dump, file, err);
    dump->index_depth--;
    if (status != ND_OK)
        nd_error_file(err, dump->files[file].path);
    return status;
}

/* --- layers and slots -------------------------------------------------------------- */

struct dump_layer *nd_dump_push_layer(struct dump *dump, const char *name, const char *type)
{
    struct dump_layer *const layers =
        nd_arena_grow(dump->arena, dump->layers, dump->layer_count, &dump->layer_capacity,
                      sizeof *layers);
    if (layers == NULL)
        return NULL;
    dump->layers = layers;
    struct dump_layer *const layer = &layers[dump->layer_count];
    *layer = (struct dump_layer){.name = nd_arena_string(dump->arena, name),
                                 .type = type == NULL || *type == '\0'
                                             ? ""
                                             : nd_arena_string(dump->arena, type),
                                 .step = dump->step,
                                 .rank = dump->rank,
                                 .time = (double)NAN,
                                 .micro_step = -1};
    if (layer->name == NULL || layer->type == NULL)
        return NULL;
    dump->layer_count++;
    return layer;
}

struct dump_layer *nd_dump_add_layer(struct dump *dump, const char *name, const char *type)
{
    if (dump->prefix != NULL)
        name = nd_arena_format(dump->arena, "%s/%s", dump->prefix, name);
    return name == NULL ? NULL : nd_dump_push_layer(dump, name, type);
}

struct dump_slot nd_dump_slot_init(void)
{
    struct dump_slot slot = {.evidence = ND_EVIDENCE_VALUES,
                             .dtype = ND_DTYPE_NONE,
                             .real_dtype = ND_DTYPE_NONE};

    for (int i = 0; i < STATISTIC_COUNT; i++)
        slot.statistics.value[i] = (double)NAN;
    return slot;
}

static bool keep_text(struct arena *arena, const char **text)
{
    if (*text == NULL)
        return true;
    *text = nd_arena_string(arena, *text);
    return *text != NULL;
}

static bool keep_texts(struct arena *arena, struct dump_slot *slot)
{
    return keep_text(arena, &slot->name) && keep_text(arena, &slot->dtype_text) &&
           keep_text(arena, &slot->layout_text) && keep_text(arena, &slot->checksum) &&
           keep_text(arena, &slot->broken) && keep_text(arena, &slot->note) &&
           keep_text(arena, &slot->device);
}

static bool range_fits(uint64_t offset, uint64_t size, uint64_t total)
{
    return offset <= total && size <= total - offset;
}

/* Everything about a slot that can be known without reading its data. */
static enum nd_status slot_check(const struct dump *dump, const struct dump_slot *slot,
                                 struct nd_error *err)
{
    const struct extent *const extent = &slot->extent;
    struct tensor_view         view;

    if (extent->file >= dump->file_count)
        return nd_fail(err, ND_ERR_MALFORMED, NULL, "data in a file that is not there");
    const uint64_t total = dump->files[extent->file].size;
    if (!range_fits(extent->offset, extent->size, total))
        return nd_fail_at(err, ND_ERR_MALFORMED, extent->offset, NULL,
                          "%" PRIu64 " bytes of data, the file ends at %" PRIu64, extent->size,
                          total);
    if (extent->codec == CODEC_STORED && extent->has_crc &&
        !range_fits(extent->crc_offset, extent->crc_size, total))
        return nd_fail_at(err, ND_ERR_MALFORMED, extent->crc_offset, NULL,
                          "a member of %" PRIu64 " bytes, the file ends at %" PRIu64,
                          extent->crc_size, total);
    return nd_slot_storage_view(slot, NULL, nd_extent_payload(extent), &view, err);
}

static struct dump_slot *layer_push_slot(struct dump *dump, struct dump_layer *layer)
{
    if (layer->slot_count == layer->slot_capacity) {
        /* Most layers have one slot, and a slot is large: start with one. */
        const size_t want = layer->slot_capacity == 0 ? 1 : layer->slot_capacity * 2;
        struct dump_slot *const slots = nd_arena_alloc(dump->arena, want, sizeof *slots);
        if (slots == NULL)
            return NULL;
        if (layer->slot_count > 0)
            memcpy(slots, layer->slots, layer->slot_count * sizeof *slots);
        layer->slots = slots;
        layer->slot_capacity = want;
    }
    return &layer->slots[layer->slot_count];
}

enum nd_status nd_dump_add_slot(struct dump *dump, struct dump_layer *layer,
                                const struct dump_slot *slot, struct nd_error *err)
{
    struct nd_error         reason = {0};
    struct dump_slot *const added = layer_push_slot(dump, layer);

    if (added == NULL)
        return nd_fail_memory(err);
    *added = *slot;
    if (slot->evidence == ND_EVIDENCE_VALUES && slot->broken == NULL) {
        if (slot_check(dump, slot, &reason) != ND_OK) {
            added->broken = nd_dump_reason(dump, &reason);
            if (added->broken == NULL)
                return nd_fail_memory(err);
        } else {
            dump->bytes += slot->extent.size;
        }
        if (slot->extent.has_crc && slot->extent.codec == CODEC_STORED) {
            added->crc_state = nd_arena_alloc(dump->arena, 1, sizeof *added->crc_state);
            if (added->crc_state == NULL)
                return nd_fail_memory(err);
            atomic_init(added->crc_state, 0);
        }
    }
    if (!keep_texts(dump->arena, added))
        return nd_fail_memory(err);
    layer->slot_count++;
    dump->tensor_count++;
    return ND_OK;
}

enum nd_status nd_dump_add_attribute(struct dump *dump, struct dump_layer *layer,
                                     const struct attribute *attribute, struct nd_error *err)
{
    struct attribute *const list =
        nd_arena_grow(dump->arena, layer->attributes, layer->attribute_count,
                      &layer->attribute_capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    layer->attributes = list;
    struct attribute *const added = &list[layer->attribute_count];
    *added = *attribute;
    if (!keep_text(dump->arena, &added->key) || !keep_text(dump->arena, &added->text))
        return nd_fail_memory(err);
    if (attribute->list != NULL) {
        double *const values =
            nd_arena_alloc(dump->arena, attribute->list_len, sizeof *values);
        if (values == NULL)
            return nd_fail_memory(err);
        if (attribute->list_len > 0)
            memcpy(values, attribute->list, attribute->list_len * sizeof *values);
        added->list = values;
    }
    layer->attribute_count++;
    return ND_OK;
}

enum nd_status nd_dump_ignore(struct dump *dump, const char *what, struct nd_error *err)
{
    const char **const list = nd_arena_grow(dump->arena, dump->ignored, dump->ignored_count,
                                            &dump->ignored_capacity, sizeof *list);
    if (list == NULL)
        return nd_fail_memory(err);
    dump->ignored = list;
    list[dump->ignored_count] = nd_arena_string(dump->arena, what);
    return list[dump->ignored_count++] == NULL ? nd_fail_memory(err) : ND_OK;
}

const char *nd_dump_reason(struct dump *dump, const struct nd_error *error)
{
    const bool has_at = error->at[0] != '\0', has_expected = error->expected[0] != '\0';
    const bool has_hint = error->hint[0] != '\0';

    return nd_arena_format(dump->arena, "%s%s%s%s%s%s%s%s", error->at, has_at ? ": " : "",
                           error->found, has_expected ? " (expected " : "", error->expected,
                           has_expected ? ")" : "", has_hint ? "; " : "", error->hint);
}
