/*
 * Opening a dump: a path, standard input or bytes; recognised, and indexed by its format.
 */
#include <math.h>

#include "formats/dump.h"
#include "formats/files.h"
#include "formats/format.h"
#include "formats/names.h"

enum {
    /* A file may refer to others, those never to more: an index to its shards. */
    MAX_INDEX_DEPTH = 2
};

static struct dump *dump_new(const char *path, const char *input_format, const char *raw)
{
    struct arena *const arena = nd_arena_new();
    struct dump *const dump = arena == NULL ? NULL : nd_arena_alloc(arena, 1, sizeof *dump);

    if (dump == NULL) {
        nd_arena_free(arena);
        return NULL;
    }
    *dump = (struct dump){.arena = arena,
                          .scratch = nd_arena_new(),
                          .path = nd_arena_string(arena, path),
                          .input_format = input_format,
                          .raw = raw,
                          .root_fd = -1,
                          .order = ND_ORDER_NAME,
                          .deterministic = -1,
                          .seed = (double)NAN,
                          .step = -1,
                          .rank = -1};
    if (dump->path == NULL || dump->scratch == NULL) {
        nd_arena_free(dump->scratch);
        nd_arena_free(arena);
        return NULL;
    }
    return dump;
}

/* What finding names took may be as much as the dump itself. */
static void scratch_free(struct dump *dump)
{
    nd_names_done(dump);
    nd_arena_free(dump->scratch);
    dump->scratch = NULL;
}

void nd_dump_close(struct dump *dump)
{
    if (dump == NULL)
        return;
    scratch_free(dump);
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
                directory.other_count == 0
                    ? "an empty directory"
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
static enum nd_status dump_index(struct dump *dump, struct dump **ret_dump,
                                 struct nd_error *err)
{
    const enum nd_status status =
        dump->is_lone ? index_lone(dump, err) : index_folder(dump, err);

    scratch_free(dump);
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
    ND_TRY(nd_raw_check(raw, err));
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
    ND_TRY(nd_raw_check(raw, err));
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
    const size_t len = strlen(path);
    const char *const end = path + (len < 4 ? 0 : len - 4);

    return strcmp(end, ".bin") == 0 || strcmp(end, ".raw") == 0 || strcmp(end, ".dat") == 0;
}

const struct dump_format *nd_dump_recognise_file(struct dump *dump, size_t file,
                                                 struct nd_error *err)
{
    const struct dump_file *const at = &dump->files[file];
    const char *const slash = strrchr(at->path, '/');
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
