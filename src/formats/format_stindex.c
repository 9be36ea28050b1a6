/*
 * The index of a sharded safetensors checkpoint (model.safetensors.index.json):
 *
 *   { "metadata": {"total_size": N}, "weight_map": { TENSOR: SHARD, ... } }
 *
 * SHARD is the base name of a safetensors file that stands beside the index; anything but a
 * plain name is refused, and symbolic links are not followed.  A shard that cannot be read
 * makes its tensors unreadable and leaves the others alone.  A folder with such an index in
 * it is read through the index, so that no tensor counts twice.  Learned from the files
 * that transformers' save_pretrained() and huggingface_hub write.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/format.h"
#include "formats/json_in.h"
#include "formats/json_scan.h"
#include "formats/st_header.h"

enum { STINDEX_MAX = 100 * 1000 * 1000 }; /* as large as the headers that it sums up */

struct stindex_tensor {
    const char *name, *shard;
};

struct stindex_shard {
    const char *name;
    size_t file;
    struct st_header header;
    const char *broken; /* why none of its tensors can be read */
};

struct stindex {
    struct dump *dump;
    size_t file;
    struct stindex_tensor *tensors; /* by name, as people sort names */
    size_t count;
    struct stindex_shard *shards; /* by name, in byte order */
    size_t shard_count, readable_count;
};

static int stindex_probe(const struct dump_head *head)
{
    struct cursor in = {.bytes = head->bytes, .size = head->size};
    struct json_text key;

    if (head->size > STINDEX_MAX || !nd_json_accept(&in, '{'))
        return 0;
    do {
        if (nd_json_scan_text(&in, &key, NULL) != ND_OK || !nd_json_accept(&in, ':'))
            return 0;
        if (nd_json_text_is(&key, "weight_map"))
            return nd_json_accept(&in, '{') ? 64 : 0;
        if (nd_json_scan_value(&in, false, NULL, NULL) != ND_OK)
            return 0;
    } while (nd_json_accept(&in, ','));
    return 0;
}

/* --- what the index says ------------------------------------------------------------- */

static int tensor_order(const void *a, const void *b)
{
    const struct stindex_tensor *first = a, *second = b;

    return nd_natural_compare(first->name, second->name);
}

static int shard_order(const void *a, const void *b)
{
    const struct stindex_shard *first = a, *second = b;

    return strcmp(first->name, second->name);
}

static bool stindex_plain(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strchr(name, '/') == NULL && strchr(name, '\\') == NULL;
}

static enum nd_status stindex_collect(struct stindex *index, const cJSON *map,
                                      struct nd_error *err)
{
    struct arena *arena = index->dump->arena;
    const cJSON *item;

    cJSON_ArrayForEach(item, map) index->count++;
    index->tensors = nd_arena_alloc(arena, index->count + 1, sizeof *index->tensors);
    index->shards = nd_arena_alloc(arena, index->count + 1, sizeof *index->shards);
    if (index->tensors == NULL || index->shards == NULL)
        return nd_fail_memory(err);
    struct stindex_tensor *next = index->tensors;
    cJSON_ArrayForEach(item, map)
    {
        if (!cJSON_IsString(item) || !stindex_plain(item->valuestring))
            return nd_fail_key(err, ND_ERR_MALFORMED, "weight_map",
                               "plain names of files beside the index",
                               "tensor \"%.150s\" in \"%.200s\"", item->string,
                               cJSON_IsString(item) ? item->valuestring : "no text");
        next->name = nd_arena_string(arena, item->string);
        next->shard = nd_arena_string(arena, item->valuestring);
        if (next->name == NULL || next->shard == NULL)
            return nd_fail_memory(err);
        index->shards[index->shard_count++].name = next->shard;
        next++;
    }
    return ND_OK;
}

static enum nd_status stindex_parse(struct stindex *index, struct nd_error *err)
{
    const struct cursor bytes = nd_dump_bytes(index->dump, index->file);
    cJSON *root;

    if (bytes.size > STINDEX_MAX)
        return nd_fail(err, ND_ERR_LIMIT, "an index of at most 100 MB", "a larger file");
    ND_TRY(nd_json_parse(bytes.bytes, bytes.size, false, &root, err));
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
    enum nd_status status = ND_OK;
    if (!cJSON_IsObject(map))
        status = nd_fail_key(err, ND_ERR_MALFORMED, "weight_map",
                             "an object: tensor name to file name",
                             map == NULL ? "nothing" : "another value");
    else
        status = stindex_collect(index, map, err);
    cJSON_Delete(root);
    return status;
}

/* Both lists in their order, each shard once. */
static void stindex_sort(struct stindex *index)
{
    size_t kept = 0;

    if (index->count == 0)
        return;
    qsort(index->tensors, index->count, sizeof *index->tensors, tensor_order);
    qsort(index->shards, index->shard_count, sizeof *index->shards, shard_order);
    for (size_t i = 0; i < index->shard_count; i++)
        if (kept == 0 || strcmp(index->shards[kept - 1].name, index->shards[i].name) != 0)
            index->shards[kept++] = index->shards[i];
    index->shard_count = kept;
}

/* --- the shards ---------------------------------------------------------------------- */

/* Beside the index means: in the folder of the index, wherever in a directory dump that is.
 */
static enum nd_status shard_open(struct stindex *index, struct stindex_shard *shard,
                                 struct nd_error *err)
{
    const char *own = index->dump->files[index->file].open_name;
    const char *slash = own == NULL ? NULL : strrchr(own, '/');
    const char *path = slash == NULL
                           ? shard->name
                           : nd_arena_format(index->dump->arena, "%.*s/%s",
                                             (int)(slash - own), own, shard->name);

    if (path == NULL)
        return nd_fail_memory(err);
    ND_TRY(nd_dump_file_add(index->dump, path, &shard->file, err));
    ND_TRY(nd_st_header_read(nd_dump_bytes(index->dump, shard->file), index->dump->scratch,
                             &shard->header, err));
    return nd_st_header_tight(&shard->header, err);
}

static enum nd_status stindex_open_shards(struct stindex *index, struct nd_error *err)
{
    for (size_t i = 0; i < index->shard_count; i++) {
        struct stindex_shard *shard = &index->shards[i];
        struct nd_error why = {0};
        const enum nd_status status = shard_open(index, shard, &why);
        if (status == ND_OK) {
            index->readable_count++;
            nd_dump_file_rest(index->dump, shard->file);
            continue;
        }
        nd_error_file(&why, shard->name);
        if (status == ND_ERR_MEMORY ||
            (i + 1 == index->shard_count && index->readable_count == 0)) {
            if (err != NULL)
                *err = why;
            return status;
        }
        const char *reason = nd_dump_reason(index->dump, &why);
        shard->broken = reason == NULL ? NULL
                                       : nd_arena_format(index->dump->arena, "%s: %s",
                                                         shard->name, reason);
        if (shard->broken == NULL)
            return nd_fail_memory(err);
    }
    return ND_OK;
}

static enum nd_status stindex_add(struct stindex *index,
                                  const struct stindex_tensor *tensor, struct nd_error *err)
{
    const struct stindex_shard key = {.name = tensor->shard};
    struct stindex_shard *shard =
        bsearch(&key, index->shards, index->shard_count, sizeof key, shard_order);
    struct dump_slot slot = nd_dump_slot_init();

    struct st_entry *entry =
        shard->broken == NULL ? nd_st_find(&shard->header, tensor->name) : NULL;
    if (entry != NULL) {
        entry->named = true;
        slot = nd_st_slot(entry, shard->file);
    } else {
        slot.broken = shard->broken != NULL
                          ? shard->broken
                          : nd_arena_format(index->dump->arena, "%s holds no such tensor",
                                            shard->name);
        if (slot.broken == NULL)
            return nd_fail_memory(err);
    }
    return nd_dump_add_tensor(index->dump, tensor->name, &slot, err);
}

/* Tensors of the shards that the index does not map. */
static enum nd_status stindex_unmapped(const struct stindex *index, struct nd_error *err)
{
    for (size_t i = 0; i < index->shard_count; i++) {
        const struct stindex_shard *shard = &index->shards[i];
        for (size_t k = 0; shard->broken == NULL && k < shard->header.count; k++) {
            const struct st_entry *entry = shard->header.entries[k];
            if (entry->named)
                continue;
            const char *what =
                nd_arena_format(index->dump->arena, "%s: tensor \"%s\" is not in the index",
                                shard->name, entry->name);
            if (what == NULL)
                return nd_fail_memory(err);
            ND_TRY(nd_dump_ignore(index->dump, what, err));
        }
    }
    return ND_OK;
}

static enum nd_status stindex_read(struct stindex *index, struct nd_error *err)
{
    ND_TRY(stindex_parse(index, err));
    stindex_sort(index);
    ND_TRY(stindex_open_shards(index, err));
    index->dump->order = ND_ORDER_NAME;
    for (size_t i = 0; i < index->count; i++)
        ND_TRY(stindex_add(index, &index->tensors[i], err));
    return stindex_unmapped(index, err);
}

/* --- a folder with an index ---------------------------------------------------------- */

static bool stindex_is_index(const char *name)
{
    static const char end[] = ".safetensors.index.json";
    const size_t len = strlen(name);

    return len >= sizeof end - 1 && strcmp(name + len - (sizeof end - 1), end) == 0;
}

static int stindex_probe_directory(const struct dump_directory *directory)
{
    for (size_t i = 0; i < directory->name_count; i++)
        if (stindex_is_index(directory->names[i]))
            return 64;
    return 0;
}

/* What the index does not speak of (a tokenizer, a second index) is listed. */
static enum nd_status stindex_ignore_others(const struct stindex *index,
                                            const struct dump_directory *directory,
                                            const char *own, struct nd_error *err)
{
    for (size_t i = 0; i < directory->name_count; i++) {
        const struct stindex_shard key = {.name = directory->names[i]};
        if (strcmp(key.name, own) != 0 &&
            (index->shard_count == 0 || bsearch(&key, index->shards, index->shard_count,
                                                sizeof key, shard_order) == NULL))
            ND_TRY(nd_dump_ignore(index->dump, key.name, err));
    }
    for (size_t i = 0; i < directory->folder_count; i++)
        ND_TRY(nd_dump_ignore(index->dump, directory->folders[i], err));
    return ND_OK;
}

static enum nd_status stindex_folder(struct stindex *index, struct nd_error *err)
{
    struct dump_directory directory;
    size_t i = 0;

    ND_TRY(nd_dump_directory_read(index->dump, "", &directory, err));
    while (i < directory.name_count && !stindex_is_index(directory.names[i]))
        i++;
    if (i == directory.name_count)
        return nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "a file *.safetensors.index.json",
                       "a folder without one");
    ND_TRY(nd_dump_file_add(index->dump, directory.names[i], &index->file, err));
    const enum nd_status status = stindex_read(index, err);
    if (status != ND_OK) {
        nd_error_file(err, index->dump->files[index->file].path);
        return status;
    }
    return stindex_ignore_others(index, &directory, directory.names[i], err);
}

static enum nd_status stindex_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct stindex index = {.dump = dump, .file = file};

    /* Depth 0: asked for the folder itself, not for a file in it. */
    return dump->index_depth == 0 ? stindex_folder(&index, err) : stindex_read(&index, err);
}

const struct dump_format nd_format_stindex = {
    .name = "stindex",
    .title = "sharded safetensors (index)",
    .probe = stindex_probe,
    .probe_directory = stindex_probe_directory,
    .index = stindex_index,
};
