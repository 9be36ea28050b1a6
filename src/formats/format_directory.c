/*
 * A folder of dump files: one tensor each (.npy, .pt), or containers, in sub-folders or
 * not; and the tree step{N}/rank{R}.dump of a run that wrote one normdiff dump per step
 * and rank.
 *
 *   1. leading folders "step{N}" and "rank{R}", and a last file of the name rank{R}, are
 *      the step and the rank; what is left of the path, without a known extension, is the
 *      tensor's name ("block1/conv.output.0")
 *   2. a container's layers are named as it names them if it is the only file of its step
 *      and rank; beside others its path comes first ("encoder.npz" gives encoder/conv1)
 *   3. files are ordered by name as people sort them, which is no order of execution;
 *      where each step and rank is one file, that file's own order counts
 *   4. logs, texts and whatever is no dump are ignored and listed; a file that should be
 *      one by its extension and cannot be read is a broken tensor of its name; if none can
 *      be read, the folder is refused with what is wrong with the first
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "formats/files.h"
#include "formats/format.h"
#include "formats/walk_folders.h"

enum { MAX_FILES = 1000000 };

struct entry {
    const char *path, *stem;
    int64_t step, rank;
    size_t file;
    const struct dump_format *format; /* NULL: not to be read */
    const char *broken;               /* why not, where it should be */
};

struct listing {
    struct entry *entries;
    size_t count, capacity;
    size_t read_count;     /* entries that could be indexed */
    struct nd_error first; /* what is wrong with the first that could not */
};

/* --- walking ----------------------------------------------------------------------- */

/* "step12" with word "step": 12; -1 for anything else. */
static int64_t numbered(const char *at, size_t len, const char *word)
{
    const size_t word_len = strlen(word);
    int64_t number = 0;

    if (len <= word_len || len > word_len + 15 || memcmp(at, word, word_len) != 0)
        return -1;
    for (size_t i = word_len; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

/* Rule 1: takes step and rank off the front of a stem. */
static void entry_place(struct entry *entry)
{
    const char *at = entry->stem;

    for (;;) {
        const char *const slash = strchr(at, '/');
        const size_t len = slash == NULL ? strlen(at) : (size_t)(slash - at);
        const int64_t step = slash == NULL ? -1 : numbered(at, len, "step");
        const int64_t rank = numbered(at, len, "rank");
        if (step >= 0 && entry->step < 0)
            entry->step = step;
        else if (rank >= 0 && entry->rank < 0)
            entry->rank = rank;
        else
            break;
        if (slash == NULL)
            break; /* the file itself: its name stays, it may be a lone tensor's */
        at = slash + 1;
    }
    entry->stem = at;
}

static enum nd_status listing_add(struct dump *dump, struct listing *listing,
                                  const char *path, struct nd_error *err)
{
    if (listing->count == MAX_FILES)
        return nd_fail(err, ND_ERR_LIMIT, "at most 1000000 files below a folder", "more");
    struct entry *const entries = nd_arena_grow(
        dump->arena, listing->entries, listing->count, &listing->capacity, sizeof *entries);
    if (entries == NULL)
        return nd_fail_memory(err);
    listing->entries = entries;
    struct entry *const entry = &entries[listing->count++];
    *entry = (struct entry){.path = path, .step = -1, .rank = -1, .file = SIZE_MAX};
    entry->stem = nd_dump_path_stem(dump, path);
    if (entry->stem == NULL)
        return nd_fail_memory(err);
    entry_place(entry);
    return ND_OK;
}

static enum nd_status listing_folder(void *user, struct dump *dump,
                                     const struct dump_directory *directory,
                                     struct nd_error *err)
{
    for (size_t i = 0; i < directory->name_count; i++) {
        const char *const path = nd_walk_path(dump, directory->path, directory->names[i]);
        if (path == NULL)
            return nd_fail_memory(err);
        if (directory->names[i][0] == '.')
            ND_TRY(nd_dump_ignore(dump, path, err));
        else
            ND_TRY(listing_add(dump, user, path, err));
    }
    return ND_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    const int order = nd_natural_compare(x->stem, y->stem);
    return order != 0 ? order : strcmp(x->path, y->path);
}

/* --- what each file is ------------------------------------------------------------- */

/* Rule 4: files that a program named like a dump. */
static bool named_like_a_dump(const char *path)
{
    static const char *const ends[] = {".npy",  ".npz",  ".pt",         ".pth",
                                       ".dump", ".ckpt", ".safetensors"};
    const size_t len = strlen(path);
    const bool packed = len > 3 && strcmp(path + len - 3, ".gz") == 0;
    const size_t bare = packed ? len - 3 : len;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        if (bare > end && memcmp(path + bare - end, ends[i], end) == 0)
            return true;
    }
    return false;
}

/* Files whose trouble is told, though nothing shows that a dump is in them: those that
 * cannot be opened, and pointers to what is not there. */
static bool told_anyway(enum nd_status status)
{
    return status == ND_ERR_IO || status == ND_ERR_CHANGED || status == ND_ERR_LIMIT;
}

static void listing_fail(struct listing *listing, const struct nd_error *reason)
{
    if (listing->first.status == ND_OK)
        listing->first = *reason;
}

static enum nd_status entry_identify(struct dump *dump, struct listing *listing,
                                     struct entry *entry, struct nd_error *err)
{
    struct nd_error reason = {0};

    enum nd_status status = nd_dump_file_add(dump, entry->path, &entry->file, &reason);
    if (status == ND_OK) {
        dump->files[entry->file].stem = entry->stem;
        entry->format = nd_dump_recognise_file(dump, entry->file, &reason);
        nd_dump_file_rest(dump, entry->file);
        if (entry->format != NULL)
            return ND_OK;
        status = reason.status;
    }
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    if (named_like_a_dump(entry->path) || told_anyway(status)) {
        listing_fail(listing, &reason);
        entry->broken = nd_dump_reason(dump, &reason);
        return entry->broken == NULL ? nd_fail_memory(err) : ND_OK;
    }
    const char *const what =
        nd_arena_format(dump->arena, "%s: %s", entry->path, reason.found);
    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(dump, what, err);
}

static enum nd_status identify_all(struct dump *dump, struct listing *listing,
                                   struct nd_error *err)
{
    const char **const names = nd_arena_alloc(dump->arena, listing->count, sizeof *names);

    if (names == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < listing->count; i++)
        names[i] = listing->entries[i].path;
    ND_TRY(nd_files_ahead(dump, names, listing->count, err));
    for (size_t i = 0; i < listing->count; i++)
        ND_TRY(entry_identify(dump, listing, &listing->entries[i], err));
    nd_files_ahead_done(dump);
    return ND_OK;
}

static enum nd_status ignore_logs(struct dump *dump, struct listing *listing,
                                  struct nd_error *err)
{
    bool other = false;

    for (size_t i = 0; i < listing->count; i++)
        other = other ||
                (listing->entries[i].format != NULL && !listing->entries[i].format->is_log);
    for (size_t i = 0; other && i < listing->count; i++) {
        struct entry *const entry = &listing->entries[i];
        if (entry->format == NULL || !entry->format->is_log)
            continue;
        entry->format = NULL;
        const char *const what =
            nd_arena_format(dump->arena, "%s: a log beside tensors", entry->path);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(dump, what, err));
    }
    return ND_OK;
}

/* --- indexing ---------------------------------------------------------------------- */

static enum nd_status entry_break(struct dump *dump, const struct entry *entry,
                                  const char *why, struct nd_error *err)
{
    struct dump_slot slot = nd_dump_slot_init();

    slot.broken = why;
    if (entry->file != SIZE_MAX)
        slot.extent.file = entry->file;
    dump->prefix = NULL;
    return nd_dump_add_tensor(dump, entry->stem, &slot, err);
}

static bool same_place(const struct entry *a, const struct entry *b)
{
    return a->step == b->step && a->rank == b->rank;
}

/* Usable files of the step and rank that starts at `first`; entries are sorted. */
static size_t place_files(const struct listing *listing, size_t first, size_t *ret_end)
{
    size_t count = 0, i = first;

    for (; i < listing->count && same_place(&listing->entries[first], &listing->entries[i]);
         i++)
        count += listing->entries[i].format != NULL || listing->entries[i].broken != NULL;
    *ret_end = i;
    return count;
}

static enum nd_status entry_index(struct dump *dump, struct listing *listing,
                                  const struct entry *entry, bool is_alone,
                                  struct nd_error *err)
{
    struct nd_error reason = {0};

    if (entry->broken != NULL)
        return entry_break(dump, entry, entry->broken, err);
    dump->prefix = is_alone ? NULL : entry->stem;
    const enum nd_status status = nd_dump_index_file(dump, entry->file, &reason);
    dump->prefix = NULL;
    nd_dump_file_rest(dump, entry->file);
    if (status == ND_OK) {
        listing->read_count++;
        return ND_OK;
    }
    listing_fail(listing, &reason);
    const char *const why = nd_dump_reason(dump, &reason);
    if (status == ND_ERR_MEMORY || why == NULL)
        return nd_fail_memory(err);
    return entry_break(dump, entry, why, err);
}

static enum nd_status index_places(struct dump *dump, struct listing *listing,
                                   struct nd_error *err)
{
    enum nd_order order = ND_ORDER_OPTION;

    for (size_t first = 0, end; first < listing->count; first = end) {
        const size_t count = place_files(listing, first, &end);
        for (size_t i = first; i < end; i++) {
            const struct entry *const entry = &listing->entries[i];
            if (entry->format == NULL && entry->broken == NULL)
                continue;
            dump->step = entry->step;
            dump->rank = entry->rank;
            dump->order = ND_ORDER_NAME;
            ND_TRY(entry_index(dump, listing, entry, count == 1, err));
            if (dump->order > order)
                order = dump->order;
        }
        if (count > 1)
            order = ND_ORDER_NAME;
    }
    dump->order = order == ND_ORDER_OPTION ? ND_ORDER_NAME : order;
    dump->step = dump->rank = -1;
    return ND_OK;
}

static enum nd_status fail_empty(const struct dump *dump, const struct listing *listing,
                                 struct nd_error *err)
{
    struct text hint = {0};

    if (listing->first.status != ND_OK) {
        if (err != NULL)
            *err = listing->first;
        return listing->first.status;
    }
    nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "files with tensors",
            "%zu files, none of them a dump", listing->count);
    if (dump->ignored_count > 0) {
        nd_text_printf(&hint, "for example %.300s", dump->ignored[0]);
        if (!hint.broken)
            nd_error_hint(err, hint.bytes);
        nd_text_done(&hint);
    }
    return ND_ERR_UNKNOWN_FORMAT;
}

static enum nd_status directory_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct listing listing = {0};

    (void)file;
    ND_TRY(nd_walk_folders(dump, listing_folder, &listing, err));
    if (listing.count > 1)
        qsort(listing.entries, listing.count, sizeof *listing.entries, by_place);
    ND_TRY(identify_all(dump, &listing, err));
    ND_TRY(ignore_logs(dump, &listing, err));
    ND_TRY(index_places(dump, &listing, err));
    return listing.read_count > 0 ? ND_OK : fail_empty(dump, &listing, err);
}

/* Any folder may hold tensors; every other format of folders knows better. */
static int directory_probe(const struct dump_directory *directory)
{
    return directory->name_count + directory->folder_count > 0;
}

const struct dump_format nd_format_directory = {
    .name = "directory",
    .title = "directory of dump files",
    .probe_directory = directory_probe,
    .index = directory_index,
};
