/*
 * The folder that an offline comparison leaves behind, with both sides in it:
 *
 *   [{time}/[{input shape}/]]dump_data/npu/...        the candidate, a tree of CANN dumps
 *                            dump_data/{onnx|tf|caffe|...}/...   the reference
 *                            model/NAME.json          the model that ATC compiled, as text
 *
 * Learned from the documentation of msit's and msprobe's offline compare.
 */
#define _GNU_SOURCE /* openat, O_NOFOLLOW */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/dump.h"

enum { MAX_ABOVE = 2, MAX_LISTED = 4096, MAX_HEAD = 1 << 20 };

struct root_search {
    struct arena *arena;
    struct dump_sides sides;
    unsigned found; /* roots that hold both sides */
};

static bool is_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t a = strlen(name), b = strlen(end);
    return a > b && strcmp(name + a - b, end) == 0;
}

/* Does the file look like ATC's graph?  ATC and its passes leave other JSON beside it. */
static bool is_graph(const char *path)
{
    static const char key[] = "\"graph\"";
    struct map map;
    struct nd_error err;

    if (nd_map_open(path, &map, &err) != ND_OK)
        return true; /* whoever reads it says what is wrong */
    const size_t head = map.size < MAX_HEAD ? (size_t)map.size : MAX_HEAD;
    const bool found = head > 0 && memmem(map.bytes, head, key, sizeof key - 1) != NULL;
    nd_map_close(&map);
    return found;
}

/* The first name in byte order that fits: a folder with another name than `but`, or a graph
 * whose name ends with `end`.  NULL: none. */
static const char *first_entry(struct arena *arena, const char *folder, const char *but,
                               const char *end)
{
    DIR *const stream = opendir(folder);
    const char *best = NULL;
    const struct dirent *entry;

    for (int i = 0; stream != NULL && i < MAX_LISTED && (entry = readdir(stream)) != NULL;
         i++) {
        if (entry->d_name[0] == '.' || (best != NULL && strcmp(best, entry->d_name) <= 0))
            continue;
        const char *const path = nd_arena_format(arena, "%s/%s", folder, entry->d_name);
        if (path == NULL)
            break;
        if (end != NULL ? ends_with(entry->d_name, end) && !is_folder(path) && is_graph(path)
                        : strcmp(entry->d_name, but) != 0 && is_folder(path))
            best = nd_arena_string(arena, entry->d_name);
    }
    if (stream != NULL)
        closedir(stream);
    return best;
}

static enum nd_status root_take(struct root_search *search, const char *root,
                                struct nd_error *err)
{
    struct arena *const arena = search->arena;
    const char *const data = nd_arena_format(arena, "%s/dump_data", root);
    const char *const npu = nd_arena_format(arena, "%s/dump_data/npu", root);
    const char *const model = nd_arena_format(arena, "%s/model", root);

    if (data == NULL || npu == NULL || model == NULL)
        return nd_fail_memory(err);
    if (!is_folder(npu))
        return ND_OK;
    const char *const reference = first_entry(arena, data, "npu", NULL);
    if (reference == NULL)
        return ND_OK;
    const char *const json = first_entry(arena, model, NULL, ".json");
    search->found++;
    search->sides.candidate = npu;
    search->sides.reference = nd_arena_format(arena, "%s/%s", data, reference);
    search->sides.fusion =
        json == NULL ? NULL : nd_arena_format(arena, "%s/%s", model, json);
    return search->sides.reference == NULL || (json != NULL && search->sides.fusion == NULL)
               ? nd_fail_memory(err)
               : ND_OK;
}

static enum nd_status root_look(struct root_search *search, const char *root,
                                unsigned above, struct nd_error *err)
{
    const unsigned before = search->found;

    ND_TRY(root_take(search, root, err));
    if (search->found != before || above == 0)
        return ND_OK;
    DIR *const stream = opendir(root);
    const struct dirent *entry;
    enum nd_status status = ND_OK;
    for (int i = 0; stream != NULL && status == ND_OK && i < MAX_LISTED &&
                    (entry = readdir(stream)) != NULL;
         i++) {
        if (entry->d_name[0] == '.')
            continue;
        const char *const path =
            nd_arena_format(search->arena, "%s/%s", root, entry->d_name);
        if (path == NULL)
            status = nd_fail_memory(err);
        else if (is_folder(path))
            status = root_look(search, path, above - 1, err);
    }
    if (stream != NULL)
        closedir(stream);
    return status;
}

enum nd_status nd_dump_find_sides(const char *root, struct arena *arena,
                                  struct dump_sides *ret_sides, struct nd_error *err)
{
    struct root_search search = {.arena = arena};
    size_t len = strlen(root);

    while (len > 1 && root[len - 1] == '/')
        len--;
    const char *const bare = nd_arena_copy(arena, root, len);
    if (bare == NULL)
        return nd_fail_memory(err);
    ND_TRY(root_look(&search, bare, MAX_ABOVE, err));
    if (search.found == 1) {
        *ret_sides = search.sides;
        return ND_OK;
    }
    nd_fail(err, ND_ERR_USAGE,
            "one folder with dump_data/npu and dump_data/{onnx,tf,caffe}",
            search.found == 0 ? "no such folder" : "%u of them", search.found);
    nd_error_file(err, root);
    if (search.found > 1)
        nd_error_hint(err, "name the one that is meant");
    return ND_ERR_USAGE;
}

enum nd_status nd_dump_find_model(const char *candidate, struct arena *arena,
                                  const char **ret_fusion, struct nd_error *err)
{
    static const char place[] = "dump_data/npu";
    const char *at = NULL;

    for (const char *next = candidate; (next = strstr(next, place)) != NULL; next++)
        if ((next == candidate || next[-1] == '/') &&
            (next[sizeof place - 1] == '/' || next[sizeof place - 1] == '\0'))
            at = next;
    if (at == NULL)
        return ND_OK;
    const char *const root = nd_arena_copy(arena, candidate, (size_t)(at - candidate));
    const char *const model = root == NULL ? NULL : nd_arena_format(arena, "%smodel", root);
    const char *const json = model == NULL ? NULL : first_entry(arena, model, NULL, ".json");
    const char *const path =
        json == NULL ? NULL : nd_arena_format(arena, "%s/%s", model, json);
    if (model == NULL || (json != NULL && path == NULL))
        return nd_fail_memory(err);
    *ret_fusion = path;
    return ND_OK;
}
