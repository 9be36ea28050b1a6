/*
 * Dumps of msprobe, the accuracy tool for Ascend (mindstudio-probe; PrecisionDebugger in
 * PyTorch and MindSpore), at levels L0, L1, mix and debug.  Learned from its sources
 * (26.0 to 26.2 and the older mstt) and from trees that it wrote:
 *
 *   1. a tree of folders, one site per step and rank (msprobe_tree.c), or one dump.json
 *   2. dump.json or debug.json: a record per call, in order of execution
 *      (msprobe_json.c), with statistics or checksums, and names of tensor files
 *   3. dump_tensor_data/: the tensor files (msprobe_payload.c)
 *   4. construct.json (msprobe_frame.c) and stack.json (msprobe_stack.c); one that cannot
 *      be read is ignored and listed
 *
 * Level L2 leaves files of CANN, which are another format.
 */
#include <stdlib.h>

#include "base/mix.h"
#include "formats/format.h"
#include "formats/msprobe.h"

static int msprobe_probe(const struct dump_head *head)
{
    return nd_msprobe_head(head->bytes, head->size) ? 40 : 0;
}

static int msprobe_probe_directory(const struct dump_directory *directory)
{
    return directory->fd >= 0 && nd_msprobe_tree_probe(directory->fd) ? 64 : 0;
}

/* --- records by name ----------------------------------------------------------------- */

/* By hash, which tells nearly all keys apart without their texts, then by text. */
static int by_key(const void *a, const void *b)
{
    const struct msprobe_row *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return strcmp(x->record->key, y->record->key);
}

static uint64_t key_hash(const char *key)
{
    size_t left = strlen(key);
    uint64_t hash = left, word = 0;

    for (; left >= sizeof word; left -= sizeof word, key += sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = mix64(hash ^ word);
    }
    word = 0;
    memcpy(&word, key, left);
    return mix64(hash ^ word);
}

/* Of several keys that stand there twice, the first by text: no hash decides what is
 * said. */
static enum nd_status check_keys(const struct msprobe_reader *reader, struct nd_error *err)
{
    const char *twice = NULL;

    for (size_t i = 1; i < reader->record_count; i++) {
        const char *const key = reader->by_key[i].record->key;
        if (reader->by_key[i - 1].hash == reader->by_key[i].hash &&
            strcmp(reader->by_key[i - 1].record->key, key) == 0 &&
            (twice == NULL || strcmp(key, twice) < 0))
            twice = key;
    }
    return twice == NULL ? ND_OK
                         : nd_fail_key(err, ND_ERR_MALFORMED, "data",
                                       "records of different names", "%.200s twice", twice);
}

static enum nd_status sort_keys(struct msprobe_reader *reader, struct nd_error *err)
{
    reader->by_key = nd_arena_alloc(reader->dump->scratch, reader->record_count + 1,
                                    sizeof *reader->by_key);
    if (reader->by_key == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < reader->record_count; i++)
        reader->by_key[i] = (struct msprobe_row){key_hash(reader->records[i].key),
                                                 &reader->records[i]};
    qsort(reader->by_key, reader->record_count, sizeof *reader->by_key, by_key);
    return check_keys(reader, err);
}

struct msprobe_record *nd_msprobe_find(const struct msprobe_reader *reader, const char *key)
{
    struct msprobe_record wanted = {.key = key};
    const struct msprobe_row at = {key_hash(key), &wanted}, *const hit =
        reader->record_count == 0
            ? NULL
            : bsearch(&at, reader->by_key, reader->record_count, sizeof at, by_key);

    return hit == NULL ? NULL : hit->record;
}

/* --- one site ------------------------------------------------------------------------ */

/* What stands beside the records is an aid: without it they can be compared all the same.
 */
static enum nd_status aid(struct msprobe_reader *reader, const char *name,
                          enum nd_status status, const struct nd_error *reason,
                          struct nd_error *err)
{
    struct dump *const dump = reader->dump;

    if (status == ND_OK)
        return ND_OK;
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    const char *const path = nd_msprobe_path(dump, reader->site->folder, name);
    const char *const why = path == NULL ? NULL : nd_dump_reason(dump, reason);
    const char *const what =
        why == NULL ? NULL : nd_arena_format(dump->arena, "%s: %s", path, why);
    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(dump, what, err);
}

static enum nd_status read_aids(struct msprobe_reader *reader, struct nd_error *err)
{
    struct nd_error frame = {0}, stack = {0};
    enum nd_status status = nd_msprobe_frame(reader, &frame);

    ND_TRY(aid(reader, "construct.json", status, &frame, err));
    status = nd_msprobe_stack(reader, &stack);
    ND_TRY(aid(reader, "stack.json", status, &stack, err));
    return nd_msprobe_recompute(reader, err);
}

/* A file of a record's name that holds none: left by a run that died, or another tool's. */
static enum nd_status ignore_json(struct msprobe_reader *reader, size_t file,
                                  struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    const bool is_empty = dump->files[file].size == 0;
    const char *const what = nd_arena_format(
        dump->arena, "%s: %s", dump->files[file].path,
        is_empty ? "an empty file" : "a JSON text that msprobe did not write");

    dump->partial = dump->partial || is_empty;
    return what == NULL ? nd_fail_memory(err) : nd_dump_ignore(dump, what, err);
}

/* Nothing, or the beginning of an object: what a run leaves that dies while it writes. */
static bool breaks_off(const struct cursor *bytes)
{
    size_t end = bytes->size;

    while (end > 0 && strchr(" \t\r\n", bytes->bytes[end - 1]) != NULL)
        end--;
    return end == 0 || (bytes->bytes[0] == '{' && bytes->bytes[end - 1] != '}');
}

static enum nd_status read_json(struct msprobe_reader *reader, const char *name,
                                struct nd_error *err)
{
    struct dump *const dump = reader->dump;
    const char *const path = nd_msprobe_path(dump, reader->site->folder, name);
    size_t file;

    if (path == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_file_add(dump, path, &file, err));
    const struct cursor bytes = nd_dump_bytes(dump, file);
    enum nd_status status;
    if (bytes.size > 0 && nd_msprobe_head(bytes.bytes, bytes.size))
        status = nd_msprobe_json(reader, file, err);
    else if (breaks_off(&bytes) && !reader->site->has_tensors)
        status = nd_fail(err, ND_ERR_MALFORMED, "records of calls",
                         bytes.size == 0 ? "an empty file" : "a JSON text that breaks off");
    else
        status = ignore_json(reader, file, err);
    if (status == ND_ERR_MALFORMED)
        nd_error_file(err, path);
    nd_dump_file_rest(dump, file);
    return status;
}

/* `file` is the mapped dump.json of a lone dump, SIZE_MAX in a tree. */
static enum nd_status read_site(struct msprobe_reader *reader, size_t file,
                                struct nd_error *err)
{
    const struct msprobe_site *const site = reader->site;

    ND_TRY(nd_msprobe_files(reader, err));
    if (file != SIZE_MAX)
        ND_TRY(nd_msprobe_json(reader, file, err));
    for (size_t i = 0; file == SIZE_MAX && i < 2; i++)
        if (site->json[i] != NULL)
            ND_TRY(read_json(reader, site->json[i], err));
    ND_TRY(sort_keys(reader, err));
    ND_TRY(nd_msprobe_leftovers(reader, err));
    return read_aids(reader, err);
}

static enum nd_status index_site(struct dump *dump, const struct msprobe_site *site,
                                 size_t file, struct nd_error *err)
{
    struct msprobe_reader reader = {.dump = dump, .site = site};
    const enum nd_status status = read_site(&reader, file, err);

    nd_text_done(&reader.path);
    return status;
}

/* --- the dump ------------------------------------------------------------------------ */

/* The files beside a lone dump.json; from standard input there are none. */
static enum nd_status index_lone(struct dump *dump, size_t file, struct nd_error *err)
{
    struct msprobe_site site = {.folder = "", .outer = "", .step = -1, .rank = -1};
    struct dump_directory directory = {0};

    const enum nd_status status = nd_dump_directory_read(dump, "", &directory, NULL);
    if (status == ND_ERR_MEMORY)
        return nd_fail_memory(err);
    for (size_t i = 0; i < directory.name_count; i++) {
        site.has_stack |= strcmp(directory.names[i], "stack.json") == 0;
        site.has_construct |= strcmp(directory.names[i], "construct.json") == 0;
    }
    for (size_t i = 0; i < directory.folder_count; i++)
        site.has_tensors |= strcmp(directory.folders[i], "dump_tensor_data") == 0;
    return index_site(dump, &site, file, err);
}

/* A site that cannot be read is a broken tensor of its step and rank: a rank that died
 * takes no other with it. */
static enum nd_status break_site(struct dump *dump, const struct msprobe_site *site,
                                 const struct nd_error *why, struct nd_error *err)
{
    struct dump_slot slot = nd_dump_slot_init();
    const char *const name = nd_msprobe_path(dump, site->folder, "dump.json");

    slot.broken = nd_dump_reason(dump, why);
    dump->partial = true;
    dump->prefix = NULL;
    return name == NULL || slot.broken == NULL ? nd_fail_memory(err)
                                               : nd_dump_add_tensor(dump, name, &slot, err);
}

/* One of several sites; *inout_broken of them could not be read, *ret_first says why the
 * first of them could not. */
static enum nd_status try_site(struct dump *dump, const struct msprobe_site *site,
                               size_t *inout_broken, struct nd_error *ret_first,
                               struct nd_error *err)
{
    const size_t layers = dump->layer_count, tensors = dump->tensor_count;
    struct nd_error why = {0};
    const enum nd_status status = index_site(dump, site, SIZE_MAX, &why);

    if (status == ND_OK)
        return ND_OK;
    if (*inout_broken == 0)
        *ret_first = why;
    if (status != ND_ERR_MALFORMED && status != ND_ERR_LIMIT) {
        *err = why;
        return status;
    }
    ++*inout_broken;
    dump->layer_count = layers;
    dump->tensor_count = tensors;
    return break_site(dump, site, &why, err);
}

static enum nd_status index_tree(struct dump *dump, struct nd_error *err)
{
    struct msprobe_sites sites = {0};
    enum nd_order order = ND_ORDER_RECORDED;
    struct nd_error first = {0};
    size_t broken = 0;

    ND_TRY(nd_msprobe_tree_walk(dump, &sites, err));
    for (size_t i = 0; i < sites.count; i++) {
        const struct msprobe_site *const site = &sites.sites[i];
        dump->step = site->step;
        dump->rank = site->rank;
        dump->prefix = sites.has_outers && *site->outer != '\0' ? site->outer : NULL;
        dump->order = ND_ORDER_RECORDED;
        if (sites.count == 1)
            ND_TRY(index_site(dump, site, SIZE_MAX, err));
        else
            ND_TRY(try_site(dump, site, &broken, &first, err));
        if (dump->order > order)
            order = dump->order;
    }
    if (broken > 0 && broken == sites.count) {
        *err = first;
        return first.status;
    }
    dump->order = order;
    dump->prefix = NULL;
    dump->step = dump->rank = -1;
    return ND_OK;
}

static enum nd_status msprobe_index(struct dump *dump, size_t file, struct nd_error *err)
{
    dump->grouped = true;
    dump->order = ND_ORDER_RECORDED;
    ND_TRY(dump->is_lone ? index_lone(dump, file, err) : index_tree(dump, err));
    if (dump->layer_count > 0)
        return ND_OK;
    nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "records of calls", "a msprobe dump without any");
    nd_error_hint(err, "the tasks statistics and tensor leave records; structure does not");
    return ND_ERR_UNKNOWN_FORMAT;
}

const struct dump_format nd_format_msprobe = {
    .name = "msprobe",
    .title = "msprobe dump",
    .probe = msprobe_probe,
    .probe_directory = msprobe_probe_directory,
    .index = msprobe_index,
};
